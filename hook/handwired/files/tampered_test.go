package files

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heartbeat/queue"
	form "heartbeat/queue/line"
)

// tampered is one file of a queue, and what somebody has done to it.
type tampered struct{ file, how string }

// whereTampered are the files, by what they are.
var whereTampered = map[string]string{
	"lines": "inbox.jsonl", "cursor": Inbox.Cursor, "sidecar": Inbox.Sidecar, "in flight": Inbox.Record,
	"outbox": OutboxFile, "dead letters": DeadFile, "flag": Inbox.Flag,
}

// tamper does something to a file; older is what it held before the last entry ended.
// It reports whether that makes sense.
func (r *rig) tamper(file, how, older string) bool {
	name := whereTampered[file]
	now := r.get(name)
	switch how {
	case "removed":
		if now == "" && !r.exists(name) {
			return false
		}
		r.remove(name)
	case "cut":
		r.put(name, now[:len(now)/2])
	case "emptied":
		r.put(name, "")
	case "replaced by an older copy":
		if older == "" {
			return false
		}
		r.put("copy", older)
		r.rename("copy", name)
	default:
		made, ok := r.madeUp(file, how)
		if !ok {
			return false
		}
		r.put("copy", made)
		r.rename("copy", name)
	}
	return true
}

// madeUp is what a liar writes into a file.
func (r *rig) madeUp(file, how string) (string, bool) {
	lines := strings.SplitAfter(r.get("inbox.jsonl"), "\n")
	size := int64(len(r.get("inbox.jsonl")))
	at := map[string]int64{"moved forward by one": size - int64(len(lines[len(lines)-2])), "moved forward": size, "moved back": int64(len(lines[0])), "moved to the start": 0}
	to, moves := at[how]
	s, err := r.openSource(0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.close()
	marshal := func(v any) string {
		data, err := encode(v)
		if err != nil {
			r.t.Fatal(err)
		}
		return string(data)
	}
	var m sidecar
	_ = json.Unmarshal([]byte(r.get(Inbox.Sidecar)), &m)
	switch {
	case file == "cursor" && moves:
		return strconv.FormatInt(to, 10), true
	case file == "cursor":
		return "7", true
	case file == "sidecar" && moves:
		return marshal(s.note(m, to, nil)), true
	case file == "sidecar":
		m.Generation++
		return marshal(m), true
	case file == "in flight" && moves:
		start := min(to, size-int64(len(lines[len(lines)-2])))
		e, err := r.firstEntry(s, start, m.Generation)
		if err != nil || e == nil {
			return "", false
		}
		return marshal(newFlight(e, m.Generation).Record), true
	case file == "in flight":
		f := parseRecord([]byte(r.get(Inbox.Record)))
		if f == nil {
			return "", false
		}
		f.raw = []byte("another text")
		f.RawLine, f.EntryID, f.DeliveryID, f.ID = "another text", form.Sum(f.raw), "0123456789ab", "x"
		f.State = queue.Background
		return marshal(f.Record), true
	case file == "outbox" && !moves:
		return `{"delivery_id":"0123456789ab","entry_id":"x","attempt":1}` + "\n" + r.get(OutboxFile), true
	}
	return "", false
}

// TestThePositionMovesOverWhatHasEnded: whoever moved the cursor, or wrote the record of
// a later entry, passed prompts without a word, or had them done a second time.
// Whatever one file of a queue says, each prompt is done, in flight, queued or a dead
// letter; none that was done is handed over again; or the queue asks.
func TestThePositionMovesOverWhatHasEnded(t *testing.T) {
	t.Parallel()
	hows := []string{
		"removed", "cut", "emptied", "replaced by an older copy", "moved forward by one", "moved forward", "moved back", "moved to the start", "made up",
	}
	tried := map[string]int{}
	for _, flies := range []string{"", "its session dies"} {
		for _, file := range []string{"lines", "cursor", "sidecar", "in flight", "outbox", "dead letters", "flag"} {
			for _, how := range hows {
				r := newRig(t).unsynced()
				if r.testTampered(tampered{file, how}, flies) {
					tried[file]++
				}
			}
		}
	}
	for _, file := range []string{"cursor", "sidecar", "in flight"} {
		if tried[file] < 8 {
			t.Errorf("%s: %d tried", file, tried[file])
		}
	}
}

func (r *rig) testTampered(what tampered, flies string) bool {
	t := r.t
	name := fmt.Sprintf("%s %s, %s", what.file, what.how, flies)
	send := func(id string) { r.echo(envelope(id, "prompt "+id)) }
	all := []string{"a", "b", "c", "d", "e"}
	for _, id := range all[:2] {
		send(id)
	}
	var older string
	for range 2 {
		older = r.get(whereTampered[what.file])
		r.offer()
		r.ack()
	}
	for _, id := range all[2:] {
		send(id)
	}
	if flies == "" && what.file == "lines" {
		return false // of what was appended since the last one was done, nothing is known
	}
	if flies != "" {
		r.offer()
		r.advance(queue.Started)
	} else {
		r.next()
	}
	r.Notes()
	if !r.tamper(what.file, what.how, older) {
		return false
	}
	r.reopen()
	r.unsynced()
	if r.nextOrOperator() == "needs a person" {
		return true // it has told
	}
	given := []string{}
	r.recover(Interruption{Policy: queue.RetryOrphan})
	given = append(given, r.drain()...)
	given = slices.DeleteFunc(given, func(p string) bool { return p == "another text" }) // the liar's own
	dead := map[string]bool{}
	for _, d := range r.dead() {
		dead[d.ID] = true
		if d.ID == "" {
			dead["c"], dead["d"], dead["e"] = true, true, true // by their size
		}
	}
	for i, id := range all {
		n := 0
		for _, p := range given {
			if p == "prompt "+id {
				n++
			}
		}
		switch {
		case i < 2 && n > 0:
			t.Errorf("%s: %s was done and is handed over again: %q, notes %q", name, id, given, r.Notes())
		case i >= 2 && n == 0 && !dead[id]:
			t.Errorf("%s: %s is lost: %q, notes %q", name, id, given, r.Notes())
		case i >= 2 && n > 1:
			t.Errorf("%s: %s is handed over %d times", name, id, n)
		}
	}
	if !slices.IsSorted(given) {
		t.Errorf("%s: not in order: %q", name, given)
	}
	return true
}
