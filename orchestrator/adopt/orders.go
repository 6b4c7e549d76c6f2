package adopt

import (
	"strings"
	"time"

	"heartbeat/orchestrator/store"
)

// orders are those that were given by the page. Their key was: token, form, what.
func orders(c *store.Change, data []byte) error {
	var kept []struct {
		Key          string
		At           time.Time
		Done, Failed bool
		Answer       string
	}
	if err := read(data, &kept); err != nil {
		return err
	}
	for _, o := range kept {
		words := strings.SplitN(o.Key, " ", 3)
		if len(words) < 3 {
			continue
		}
		_, err := c.Do(`INSERT INTO orders (token, form, what, at, done, failed, answer) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING`,
			words[0], words[1], words[2], o.At.UnixMilli(), o.Done, o.Failed, o.Answer)
		if err != nil {
			return err
		}
	}
	return nil
}
