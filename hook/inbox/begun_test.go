package inbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/durable"
)

// killedAt has a process killed at each of its steps that change the disk, before and
// after it was carried out, and the next one takes the lock. It returns when there are no
// more steps.
func killedAt(t *testing.T, prepare func(*rig), do func(*rig) error, after func(r *rig, where string)) {
	t.Helper()
	killed := errors.New("killed")
	for _, happened := range []bool{false, true} {
		for n := 0; ; n++ {
			r := newRig(t).unsynced()
			prepare(r)
			at, where := 0, ""
			r.guard(func(s durable.Step, run func() error) error {
				if at++; at-1 < n {
					return run()
				}
				if where == "" {
					if where = string(s.Verb) + " " + s.Name; happened {
						_ = run()
					}
				}
				return killed // nothing that follows is carried out
			})
			err := do(r)
			r.unsynced()
			r.reopen()
			h, lockErr := r.Queue.Lock(t.Context())
			if lockErr != nil {
				t.Fatalf("%s: %v", where, lockErr)
			}
			r.Orphaned = Orphaned{h}
			after(r, where)
			if err := h.Unlock(); err != nil {
				t.Fatal(err)
			}
			if err == nil && where == "" {
				break
			}
		}
	}
}

// TestADropThatIsKilledIsFinished: an entry that was a dead letter already was handed over
// all the same, as its line still stood in the queue.
func TestADropThatIsKilledIsFinished(t *testing.T) {
	t.Parallel()
	var aside string
	prepare := func(r *rig) {
		r.send("aside", "waits")
		f := r.offerChecked()
		aside = f.DeliveryID
		f = r.claims("done")
		if _, err := r.SetAside(aside, f.Check, time.Now()); err != nil {
			t.Fatal(err)
		}
		r.send("a", "one")
		r.echo("two\n")
		if _, err := r.Append(t.Context(), Letter{ID: "u", Prompt: "at once", Urgent: true}); err != nil {
			t.Fatal(err)
		}
	}
	all, none := 0, 0
	killedAt(t, prepare, func(r *rig) error { _, err := r.DropQueued("u", "a", aside); return err }, func(r *rig, where string) {
		if r.exists(r.begunFile()) {
			t.Errorf("%s: it is still begun", where)
		}
		var dead []string
		for _, d := range r.dead() {
			dead = append(dead, string(d.Reason)+" "+d.ID)
		}
		slices.Sort(dead)
		waits := r.waits()
		left := join(r.drain())
		switch {
		case slices.Equal(dead, []string{"dropped a", "dropped aside", "dropped u"}) && left == "two" && waits == "":
			all++
		case dead == nil && left == "at once|one|two" && waits == "waits":
			none++
		default:
			t.Errorf("%s: dead letters %q, %q waits, then %q was done", where, dead, waits, left)
		}
	})
	if all < 6 || none == 0 {
		t.Errorf("finished after %d kills, not begun at %d", all, none)
	}
}

// TestARetryThatIsKilledIsFinished: the letter was queued again, and stayed a dead letter.
func TestARetryThatIsKilledIsFinished(t *testing.T) {
	t.Parallel()
	prepare := func(r *rig) {
		r.send("a", "one")
		if _, err := r.Append(t.Context(), Letter{ID: "u", Prompt: "at once", Urgent: true}); err != nil {
			t.Fatal(err)
		}
		r.echo("two\n")
		for range 2 {
			r.offer()
			r.giveUp()
		}
	}
	all, none := 0, 0
	killedAt(t, prepare, func(r *rig) error { _, err := r.RetryDead("u", "a"); return err }, func(r *rig, where string) {
		dead := len(r.dead())
		switch left := join(r.drain()); {
		case dead == 0 && left == "at once|two|one" && !r.exists(r.begunFile()):
			all++
		case dead == 2 && left == "two":
			none++
		default:
			t.Errorf("%s: %d dead letters, and %q was done", where, dead, left)
		}
	})
	if all < 4 || none == 0 {
		t.Errorf("finished after %d kills, not begun at %d", all, none)
	}
}

// TestWhatWasBegunAndCannotBeReadHoldsNothingUp: an agent can write the file.
func TestWhatWasBegunAndCannotBeReadHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for name, put := range map[string]func(r *rig){
		"garbage":     func(r *rig) { r.put(r.begunFile(), "{") },
		"empty":       func(r *rig) { r.put(r.begunFile(), "") },
		"a folder":    func(r *rig) { _ = os.Mkdir(r.path(r.begunFile()), 0o700) },
		"a link":      func(r *rig) { _ = os.Symlink("/etc/passwd", r.path(r.begunFile())) },
		"of nobody":   func(r *rig) { r.put(r.begunFile(), `{"drop":["nobody"],"retry":["nobody"]}`) },
		"of no kind":  func(r *rig) { r.put(r.begunFile(), `{"other":["x"]}`) },
		"of one done": func(r *rig) { d := r.ack(); r.put(r.begunFile(), `{"drop":["`+d.DeliveryID+`"]}`); r.offer() },
		"in flight": func(r *rig) {
			f, _ := r.InFlight()
			r.put(r.begunFile(), `{"drop":["`+f.DeliveryID+`"]}`)
		},
	} {
		r := newRig(t).unsynced()
		r.echo("one\ntwo\nthree\n")
		r.offer()
		put(r)
		r.reopen()
		h, err := r.Queue.Lock(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r.Orphaned = Orphaned{h}
		r.ack()
		if got := join(r.drain()); !strings.HasSuffix("two|three", got) || len(r.dead()) != 0 || r.exists(r.begunFile()) {
			t.Errorf("%s: %q was done, dead letters %+v", name, got, r.dead())
		}
		if settled, err := r.Settled(); !settled || err != nil {
			t.Errorf("%s: settled %v, %v", name, settled, err)
		}
		if err := h.Unlock(); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatWaitsForAnAnswerIsNotForgotten: while the urgent lane asks, the rest of a killed drop
// waits. A retry in between was noted in its place, and what was dropped was handed over.
func TestWhatWaitsForAnAnswerIsNotForgotten(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.hurry("a\nb\n")
	r.do(2)
	r.send("old", "given up")
	r.offer()
	r.giveUp()
	r.send("one", "dropped")
	killed := errors.New("killed")
	r.guard(func(s durable.Step, run func() error) error {
		if s.Name == "inbox.jsonl" {
			return killed
		}
		return run()
	})
	if _, err := r.DropQueued("one"); !errors.Is(err, killed) {
		t.Fatal(err)
	}
	r.unsynced()
	r.remove(UrgentCursor)
	r.remove(urgentMeta)
	again := func() {
		err := r.Unlock()
		r.reopen()
		h, lockErr := r.Queue.Lock(t.Context())
		if err := errors.Join(err, lockErr); err != nil {
			t.Fatal(err)
		}
		r.Orphaned = Orphaned{h}
	}
	again()
	if _, err := r.RetryDead("old"); !errors.Is(err, ErrNeedsOperator) {
		t.Errorf("a retry meanwhile: %v", err)
	}
	q, err := r.Question()
	if err != nil || q == nil {
		t.Fatalf("%+v, %v", q, err)
	}
	if err := r.StartAt(q.Answers[len(q.Answers)-1].Offset); err != nil {
		t.Fatal(err)
	}
	again()
	if got := r.next(); got != "" || r.exists(r.begunFile()) {
		t.Errorf("next is %q", got)
	}
	if n, err := r.RetryDead("old"); n != 1 || err != nil {
		t.Errorf("a retry afterwards: %d, %v", n, err)
	}
}

// TestADropThatFailsIsNotMadeUpForLater, unless it has come so far that its entry is a
// dead letter.
func TestADropThatFailsIsNotMadeUpForLater(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	for name, filed := range map[string]bool{DeadFile: false, "inbox.jsonl": true} {
		r := newRig(t).unsynced()
		r.send("a", "one")
		r.guard(func(s durable.Step, run func() error) error {
			if s.Verb == durable.Write && s.Name == name {
				return full
			}
			return run()
		})
		n, err := r.DropQueued("a")
		if !errors.Is(err, full) || strings.Contains(err.Error(), "nothing of it is handed over") != filed || (n == 1) != filed {
			t.Errorf("%s: %d, %v", name, n, err)
		}
		r.unsynced()
		r.reopen()
		h, err := r.Queue.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.Orphaned = Orphaned{h}
		if got := r.next(); (got == "") != filed || (len(r.dead()) == 1) != filed {
			t.Errorf("%s: %q is queued, dead letters %+v", name, got, r.dead())
		}
		if err := h.Unlock(); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatWasGivenUpIsNotQueuedAgain: a recovery that was killed when it had filed the
// entry was followed by one that knew less, or went by another policy, and queued it.
func TestWhatWasGivenUpIsNotQueuedAgain(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(f *InFlight) Interruption{
		"over its budget": func(f *InFlight) Interruption { return Interruption{Policy: Retry, OverBudget: f.DeliveryID} },
		"poison":          func(*InFlight) Interruption { return Interruption{Policy: Retry, Poison: true} },
		"interrupted":     func(*InFlight) Interruption { return Interruption{Policy: DeadLetter, Counts: true} },
		"cancelled": func(f *InFlight) Interruption {
			return Interruption{Policy: Retry, Cancel: &Cancellation{Delivery: f.DeliveryID}}
		},
	} {
		given, again := 0, 0
		killedAt(t, func(r *rig) { r.echo("one\ntwo\n"); r.offer(); r.advance(Started) }, func(r *rig) error {
			f, err := r.InFlight()
			if err == nil {
				_, _, err = r.Recover(first(f))
			}
			return err
		}, func(r *rig, where string) {
			r.recover(Interruption{Policy: Retry, Counts: true})
			dead := len(r.dead())
			switch left := join(r.drain()); {
			case dead == 1 && left == "two":
				given++
			case dead == 0 && left == "one|two":
				again++
			default:
				t.Errorf("%s, %s: %d dead letters, and %q was done", name, where, dead, left)
			}
		})
		if given < 2 || again == 0 {
			t.Errorf("%s: given up after %d kills, queued again after %d", name, given, again)
		}
	}
}
