package files

import (
	"encoding/json"
	"strings"
	"testing"

	"heartbeat/queue"
)

func FuzzInFlight(f *testing.F) {
	e := &Entry{Raw: []byte("hello"), Start: 0, End: 6, DeliveryID: "0123456789ab"}
	ours, err := json.Marshal(newFlight(e, 7).Record)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(ours)
	f.Add([]byte(`{"entry_id":"x","start_offset":0,"end_offset":6,"raw_line":"hello","delivered_at":"2026-01-01T00:00:00.123456789+00:00"}`))
	f.Add([]byte(`{"partial":`))
	f.Add([]byte(`{"end_offset":9223372036854775807,"raw_line":"x","start_offset":-1}`))
	// Whatever stands in the record: it does not panic, acknowledges nothing,
	// and the queue goes on.
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t).unsynced()
		r.put("inbox.jsonl", "hello\nworld\n")
		r.put(Inbox.Record, string(data))
		if _, err := r.InFlight(); err != nil {
			t.Fatalf("Record: %v", err)
		}
		if c := r.get(Inbox.Cursor); c != "" && c != "0" {
			t.Fatalf("the cursor moved to %q", c)
		}
		if _, _, err := r.Recover(Interruption{Policy: queue.RetryOrphan}); err != nil {
			t.Fatalf("Recover: %v", err)
		}
		if f, err := r.InFlight(); err != nil || f != nil {
			t.Fatalf("in flight after recovery: %+v, %v", f, err)
		}
		got := join(r.drain())
		if !strings.Contains(got, "hello|world") {
			t.Fatalf("drained %q", got)
		}
	})
}

func FuzzCursor(f *testing.F) {
	for _, s := range []string{"", "0", "6", " 6\n", "abc", "-1", "0x10", "18446744073709551616", "+6", "3"} {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	// Whatever stands in the cursor: nothing from a line's middle, nothing
	// silent.
	f.Fuzz(func(t *testing.T, data []byte, known bool) {
		r := newRig(t).unsynced()
		r.put("inbox.jsonl", "first\nsecond\nthird\n")
		if known {
			r.offer()
			r.advance(queue.Taken)
			r.ack()
		}
		r.put(Inbox.Cursor, string(data))
		got := r.nextOrOperator()
		switch got {
		case "first", "second", "third", "needs a person":
		case "":
			// Everything is done, or heartbeat-rs took the last line before
			// its newline came; a rest of it is a dead letter.
			c := parseCursor(data)
			if c == nil || *c != 19 && (known || *c != 18 && len(r.dead()) == 0) {
				t.Fatalf("cursor %q: nothing is left", data)
			}
		default:
			t.Fatalf("cursor %q: %q was handed over", data, got)
		}
	})
}

func FuzzMeta(f *testing.F) {
	f.Add([]byte(`{"dev":1,"ino":2,"generation":3,"cursor":6,"tail":"x"}`))
	f.Add([]byte(`{"generation":9223372036854775807,"cursor":9223372036854775807,"tail":"0000000000000000000000000000000000000000000000000000000000000000"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t).unsynced()
		r.put("inbox.jsonl", "first\nsecond\n")
		r.put(Inbox.Cursor, "6")
		r.put(Inbox.Sidecar, string(data))
		switch got := r.nextOrOperator(); got {
		case "first", "second", "needs a person":
		default:
			t.Fatalf("sidecar %q: %q was handed over", data, got)
		}
	})
}

func FuzzDeadLetter(f *testing.F) {
	f.Add([]byte("{\"entry_id\":\"x\",\"raw_line\":\"a\"}\n{\"torn"))
	f.Add([]byte("\n\n{}\nnull\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newRig(t).unsynced()
		r.put(DeadFile, string(data))
		r.dead()
		r.echo("{\"heartbeat\n") // a fragment
		r.next()
		all := r.dead()
		last := all[len(all)-1]
		if last.Reason != queue.Torn || last.RawLine != `{"heartbeat` {
			t.Fatalf("behind %q the record is %+v", data, last)
		}
	})
}
