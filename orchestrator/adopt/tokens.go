package adopt

import (
	"time"

	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/store"
)

// tokens are who may see the page.
func tokens(c *store.Change, data []byte) error {
	type secret struct {
		access.Token
		Hash string `json:"sha256"`
	}
	var kept struct {
		Host                    string
		Links, Tokens, Commands []secret
	}
	if err := read(data, &kept); err != nil {
		return err
	}
	for link, all := range map[bool][]secret{true: kept.Links, false: append(kept.Tokens, kept.Commands...)} {
		for _, s := range all {
			if err := access.Keep(c, access.Secret{Token: s.Token, Hash: s.Hash, Link: link}, time.Now()); err != nil {
				return err
			}
		}
	}
	if kept.Host == "" {
		return nil
	}
	return access.KeepHost(c, kept.Host)
}
