package adopt

import (
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/store"
)

// waits is who waits for the reply to a prompt.
func waits(c *store.Change, _ string, data []byte) error {
	var o awaited.Order
	if err := read(data, &o.Reply); err != nil {
		return err
	}
	_, err := o.Do(c)
	return err
}
