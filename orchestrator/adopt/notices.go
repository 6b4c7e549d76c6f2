package adopt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/store"
)

// notices are what people were told, and what is on its way to them.
func notices(c *store.Change, data []byte) error {
	type mark struct {
		Dead, Reply time.Time
		ReplyID     string `json:"reply_id"`
	}
	old := struct {
		Told    notice.Memory
		Boxes   map[string]*outbox.Box
		Marks   map[string]*mark
		Ping    *memo.Ping
		Heads   map[string]*memo.Head
		Replied []string
	}{}
	if err := read(data, &old); err != nil {
		return err
	}
	s := &memo.State{Told: old.Told, Boxes: old.Boxes, Ping: old.Ping, Heads: old.Heads, Replied: old.Replied, Marks: map[string]*memo.Mark{}}
	for agent, m := range old.Marks {
		s.Marks[agent] = &memo.Mark{Dead: m.Dead, Reply: m.Reply, ReplyID: m.ReplyID}
	}
	for _, h := range s.Heads {
		h.Saved = true
	}
	return memo.Put(c, s)
}

// messages are what became of each, one a line.
func messages(c *store.Change, data []byte) error {
	n := 0
	for line := range bytes.Lines(data) {
		var r memo.Record
		if json.Unmarshal(line, &r) != nil || r.Target == "" {
			continue // a writer that died left it
		}
		if err := memo.Log(c, r); err != nil {
			return err
		}
		n++
	}
	if n == 0 && len(bytes.TrimSpace(data)) > 0 {
		return fmt.Errorf("%w: no line of it is a message", errDamaged)
	}
	return nil
}
