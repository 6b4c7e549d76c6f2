package adopt

import (
	"fmt"
	"path"
	"strings"

	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/store"
)

// request is what an agent asks people for: ID, or done/ID with its answer, which counts where
// both are there.
func request(c *store.Change, key string, data []byte) error {
	var r approval.Request
	if err := read(data, &r); err != nil {
		return err
	}
	answered := strings.HasPrefix(key, "done/")
	if r.ID != path.Base(key) || r.Waits() == answered {
		return fmt.Errorf("%w: it is not what heartbeat has written", errDamaged)
	}
	if r.Waits() {
		if known, err := c.One(`SELECT at FROM requests WHERE request = $1`, []any{r.ID}, new(int64)); err != nil || known {
			return err
		}
	}
	return approval.Put(c, r)
}
