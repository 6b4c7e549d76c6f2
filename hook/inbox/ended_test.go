package inbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	form "heartbeat/queue/line"
)

// tampered is one file of a queue, and what somebody has done to it.
type tampered struct{ file, how string }

// whereTampered are the files of a lane, by what they are.
func (r *rig) whereTampered(l *lane) map[string]string {
	return map[string]string{
		"lines": l.name, "cursor": l.cursor, "sidecar": l.meta, "in flight": l.flight, "second name": l.kept,
		"ids": idsFile, "outbox": outboxFile, "dead letters": DeadFile, "flag": respondedFile,
	}
}

// tamper does something to a file; older is what it held before the last entry ended.
// It reports whether that makes sense.
func (r *rig) tamper(l *lane, file, how, older string) bool {
	name := r.whereTampered(l)[file]
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
		made, ok := r.madeUp(l, file, how)
		if !ok {
			return false
		}
		r.put("copy", made)
		r.rename("copy", name)
	}
	return true
}

// madeUp is what a liar writes into a file.
func (r *rig) madeUp(l *lane, file, how string) (string, bool) {
	lines := strings.SplitAfter(r.get(l.name), "\n")
	size := int64(len(r.get(l.name)))
	at := map[string]int64{"moved forward by one": size - int64(len(lines[len(lines)-2])), "moved forward": size, "moved back": int64(len(lines[0])), "moved to the start": 0}
	to, moves := at[how]
	s, err := l.openSource(0)
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.close()
	marshal := func(v any) string {
		data, err := encodeJSON(v)
		if err != nil {
			r.t.Fatal(err)
		}
		return string(data)
	}
	var m meta
	_ = json.Unmarshal([]byte(r.get(l.meta)), &m)
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
		e, err := l.firstEntry(s, start, m.Generation)
		if err != nil || e == nil {
			return "", false
		}
		return marshal(l.newFlight(e, m.Generation).InFlight), true
	case file == "in flight":
		f := parseFlight([]byte(r.get(l.flight)))
		if f == nil {
			return "", false
		}
		f.raw = []byte("another text")
		f.RawLine, f.EntryID, f.DeliveryID, f.ID = "another text", form.Sum(f.raw), "0123456789ab", "x"
		f.State = Background
		return marshal(f.InFlight), true
	case file == "outbox" && !moves:
		return `{"delivery_id":"0123456789ab","entry_id":"x","attempt":1}` + "\n" + r.get(outboxFile), true
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
	for _, urgent := range []bool{false, true} {
		for _, flies := range []string{"", "its session dies", "its session goes on"} {
			for _, file := range []string{"lines", "cursor", "sidecar", "in flight", "second name", "ids", "outbox", "dead letters", "flag"} {
				for _, how := range hows {
					r := newRig(t).unsynced()
					if r.testTampered(tampered{file, how}, urgent, flies) {
						tried[file]++
					}
				}
			}
		}
	}
	for _, file := range []string{"cursor", "sidecar", "in flight"} {
		if tried[file] < 16 {
			t.Errorf("%s: %d tried", file, tried[file])
		}
	}
}

func (r *rig) testTampered(what tampered, urgent bool, flies string) bool {
	t := r.t
	name := fmt.Sprintf("%s %s, urgent %t, %s", what.file, what.how, urgent, flies)
	l := r.laneOf(urgent)
	send := func(id string) {
		t.Helper()
		if _, err := r.Append(t.Context(), Letter{ID: id, Source: "send", Prompt: "prompt " + id, Urgent: urgent}); err != nil {
			t.Fatal(err)
		}
	}
	all := []string{"a", "b", "c", "d", "e"}
	for _, id := range all[:2] {
		send(id)
	}
	var older string
	for range 2 {
		older = r.get(r.whereTampered(l)[what.file])
		r.offer()
		r.advance(Taken)
		r.ack()
	}
	for _, id := range all[2:] {
		send(id)
	}
	delivery := ""
	if flies != "" {
		delivery = r.offer().DeliveryID
		r.advance(Started)
	} else {
		r.next()
	}
	r.Notes()
	if !r.tamper(l, what.file, what.how, older) {
		return false
	}
	r.reopen()
	r.unsynced()
	if r.nextOrOperator() == "needs a person" {
		return true // it has told
	}
	given := []string{}
	if flies == "its session goes on" {
		given = append(given, r.goOn(delivery)...)
	} else {
		r.recover(Interruption{Policy: Retry, Counts: true, Delivery: delivery})
	}
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

// goOn ends a turn as a hook does whose session works on an entry.
func (r *rig) goOn(delivery string) (done []string) {
	r.t.Helper()
	f, err := r.InFlight()
	if err == nil && f == nil {
		f, err = r.Restore(delivery, 1, Offering{Session: "s1"})
	}
	if err != nil {
		r.t.Fatal(err)
	}
	if f == nil {
		return nil
	}
	r.ack()
	return []string{f.Prompt()}
}

// TestWhoMovesCursorAndSidecarIsSeen: what was passed in both of them, in step, was
// passed for good.
func TestWhoMovesCursorAndSidecarIsSeen(t *testing.T) {
	t.Parallel()
	for _, urgent := range []bool{false, true} {
		for _, how := range []string{"nothing", "moved forward by one", "moved forward", "moved back", "moved to the start", "another generation"} {
			r := newRig(t).unsynced()
			l := r.laneOf(urgent)
			for _, id := range []string{"a", "b", "c", "d"} {
				if _, err := r.Append(t.Context(), Letter{ID: id, Source: "send", Prompt: id, Urgent: urgent}); err != nil {
					t.Fatal(err)
				}
			}
			r.offer()
			r.ack()
			m := r.EndOfDeliveries()
			data, err := json.Marshal(m)
			if err == nil {
				m = OutboxMark{}
				err = json.Unmarshal(data, &m) // as it is kept
			}
			if err != nil {
				t.Fatal(err)
			}
			f := r.offer()
			r.ack()
			to := map[string]string{"another generation": "moved forward"}[how]
			if to == "" {
				to = how
			}
			if how != "nothing" {
				cursor, _ := r.madeUp(l, "cursor", to)
				sidecar, _ := r.madeUp(l, "sidecar", to)
				if how == "another generation" {
					sidecar = strings.Replace(sidecar, `"generation":`, `"generation":1`, 1)
				}
				r.put(l.cursor, cursor)
				r.put(l.meta, sidecar)
			}
			r.reopen()
			r.unsynced()
			var done []Delivery
			for d, err := range r.DeliveriesFrom(&m) {
				if done = append(done, d); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				gap, err := r.Skipped(&m, done, nil)
				if err != nil {
					t.Fatal(err)
				}
				if how == "nothing" && !gap.Nothing() || how != "nothing" && gap.Nothing() {
					t.Errorf("%s: %+v", how, gap)
				}
				if how == "nothing" {
					break
				}
				if err := r.FileSkipped(&m, gap); err != nil {
					t.Fatal(err)
				}
				how = "nothing"
			}
			got := map[string]int{}
			for _, p := range r.drain() {
				got[p]++
			}
			for _, d := range r.dead() {
				if got[d.ID]++; d.Reason != Lost || d.Raw() == nil || d.Cause == "" {
					t.Errorf("%+v", d)
				}
			}
			if got["c"] != 1 || got["d"] != 1 || got["a"]+got["b"] > 0 || f.ID != "b" {
				t.Errorf("urgent %t, to %s: %v, notes %q", urgent, to, got, r.Notes())
			}
		}
	}
}
