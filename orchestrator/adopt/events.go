package adopt

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/store"
)

// events are those of a journal's file, one a line. Since 2026-11 each line ends with a
// checksum of what stands before it.
func events(c *store.Change, data []byte) error {
	var n int64
	if _, err := c.One(`SELECT COALESCE(MAX(n), 0) FROM events`, nil, &n); err != nil {
		return err
	}
	were := n
	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		var e journal.Event
		if json.Unmarshal(line, &e) != nil || e.Kind == "" {
			continue // a writer that died left it
		}
		body, err := json.Marshal(e)
		if err != nil {
			return err
		}
		crc := int64(crc32.Checksum(body, crc32.MakeTable(crc32.Castagnoli)))
		switch has, right := isSummed(line); {
		case !has:
			crc = journal.Unsummed
		case !right:
			crc ^= 1 // it stays damaged
		}
		n++
		if err := journal.Put(c, n, e, body, crc); err != nil {
			return err
		}
	}
	if n == were && len(bytes.TrimSpace(data)) > 0 {
		return fmt.Errorf("%w: no line of it is an event", errDamaged)
	}
	return nil
}

// isSummed reports whether a line of a journal has a checksum, and whether it is right.
func isSummed(line []byte) (has, right bool) {
	const key = `,"crc":"`
	at := bytes.LastIndex(line, []byte(key))
	if at < 0 || len(line) != at+len(key)+len(`00000000"}`) {
		return false, false
	}
	sum, err := hex.DecodeString(string(line[at+len(key):][:8]))
	if err != nil || !bytes.HasSuffix(line, []byte(`"}`)) {
		return true, false
	}
	want := crc32.Checksum(line[:at], crc32.MakeTable(crc32.Castagnoli))
	return true, uint32(sum[0])<<24|uint32(sum[1])<<16|uint32(sum[2])<<8|uint32(sum[3]) == want
}
