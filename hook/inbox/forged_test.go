package inbox

import (
	"slices"
	"strings"
	"testing"
)

// TestTheOutboxIsReadFromAMark: each record once, over a rotation, and none again that
// somebody brings back.
func TestTheOutboxIsReadFromAMark(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	var m OutboxMark
	done := func(ids ...string) {
		for _, id := range ids {
			r.send(id, id)
			r.offer()
			r.ack()
		}
	}
	want := func(what string, ids ...string) {
		t.Helper()
		var got []string
		for d, err := range r.DeliveriesFrom(&m) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, d.ID)
		}
		if !slices.Equal(got, ids) {
			t.Errorf("%s: %q, want %q", what, got, ids)
		}
	}
	replace := func(with string) {
		r.put("copy", with)
		r.rename("copy", outboxFile)
	}
	want("nothing")
	done("a", "b")
	want("the first ones", "a", "b")
	want("again")
	done("c")
	r.rename(outboxFile, olderOutbox)
	want("rotated, and not begun anew", "c")
	done("d")
	want("begun anew", "d")
	done("e")
	r.rename(outboxFile, olderOutbox)
	done("f")
	want("rotated", "e", "f")
	older := r.get(olderOutbox)

	r.send("g", "g")
	m = r.EndOfDeliveries()
	want("from the end")
	replace(r.get(outboxFile))
	want("replaced by a copy")
	replace(older)
	want("replaced by an older one")
	r.put(outboxFile, "")
	want("emptied")
	r.put(outboxFile, older)
	want("older ones came back")
	r.remove(outboxFile)
	want("removed")
	r.offer()
	r.ack()
	want("one that was not done", "g")
	replace(older + r.get(outboxFile))
	want("and was told")
	torn := `{"delivery_id":"0123456789ab","id":"h"`
	r.put(outboxFile, r.get(outboxFile)+torn)
	m = r.EndOfDeliveries()
	r.put(outboxFile, r.get(outboxFile)+"}\n")
	want("one that was begun before", "h")
}

// TestARecordOfSomebodyElseEndsNothing: whoever wrote an outbox record with the id of
// the delivery in flight, and was interrupted, had an entry that has to be proven passed
// over; and one that was proven then had no record of its own.
func TestARecordOfSomebodyElseEndsNothing(t *testing.T) {
	t.Parallel()
	for _, made := range []string{
		`{"delivery_id":"%s","entry_id":"x","attempt":1,"reply":"done","verdict":{"by":"check","iteration":1}}`,
		`{"delivery_id":"%s","entry_id":"%s","id":"a","source":"send","attempt":1,"reply":"done","verdict":{"by":"check","iteration":1}}`,
	} {
		for _, with := range []string{"a verdict", "a recovery", "a void check", "given up"} {
			r := newRig(t).unsynced()
			r.send("a", "mend it")
			f := r.offerChecked()
			r.advance(Started)
			if with != "a recovery" {
				r.claims("I am done")
			}
			forged := strings.ReplaceAll(strings.Replace(made, "%s", f.DeliveryID, 1), "%s", f.EntryID) + "\n"
			r.put(outboxFile, forged)
			v := Verdict{Delivery: f.DeliveryID, Check: 1, Passed: true, By: "check, Ann"}
			switch with {
			case "a recovery":
				if o := r.recover(Interruption{Policy: Retry, Counts: true}); o != LeftChecking {
					t.Errorf("%s: %s", with, o)
				}
			case "a void check":
				if f, err := r.Void(); f != nil || err != nil {
					t.Errorf("%s: %+v, %v", with, f, err)
				}
			case "given up":
				v.Passed, v.GiveUp = false, NoProgress
			}
			if f, err := r.InFlight(); f == nil || err != nil {
				t.Errorf("%s: it is not in flight: %v", with, err)
			}
			for range 2 {
				if _, err := r.Verdict(v); err != nil {
					t.Errorf("%s: %v", with, err)
				}
			}
			lines := strings.Count(r.get(outboxFile), "\n")
			if done, err := r.FindDelivery("a", nil); v.Passed && (err != nil || done.Verdict.By != v.By || lines != 2) || !v.Passed && len(r.dead()) != 1 {
				t.Errorf("%s: %+v, %v, %d records", with, done, err, lines)
			}
		}
	}
}

// TestWhatIsLostTwiceIsFiledTwice: the same text may be queued again, and each loss is told
// of its own delivery.
func TestWhatIsLostTwiceIsFiledTwice(t *testing.T) {
	t.Parallel()
	q, err := Open(Place{Inbox: t.TempDir() + "/inbox.jsonl"})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for range 2 {
		err := q.Hold(t.Context(), func(h *Held) error {
			return h.FileGone(Lost, Sent{"m1", "one"}, Sent{"m2", "two"}, Sent{"m3", ""})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	ids, texts := map[string]bool{}, map[string]int{}
	for d, err := range q.DeadLetters() {
		if err != nil || d.Reason != Lost || d.Retryable() != (d.ID != "m3") {
			t.Fatalf("%+v, %v", d, err)
		}
		ids[d.DeliveryID] = true
		texts[d.ID+" "+d.Prompt()]++
	}
	if len(ids) != 6 || texts["m1 one"] != 2 || texts["m2 two"] != 2 || texts["m3 "] != 2 {
		t.Errorf("%v, %v", ids, texts)
	}
}
