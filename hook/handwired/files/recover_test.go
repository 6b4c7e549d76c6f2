package files

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"heartbeat/hook/durable"
	"heartbeat/queue"
)

// heartbeat-rs handed such an entry over 50 of 50 times, and the one behind it
// never.
func TestAPoisonEntryIsFiledAfterItsAttempts(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 1, 3} {
		r := newRig(t).unsynced()
		r.echo("poison\ngood\n")
		want := limit
		if limit == 0 {
			want = 5
		}
		for n := 1; ; n++ {
			f := r.offer()
			if f.RawLine == "good" {
				if n != want+1 {
					t.Errorf("limit %d: %d attempts, want %d", limit, n-1, want)
				}
				break
			}
			if f.Attempt != n {
				t.Fatalf("limit %d: attempt %d is called %d", limit, n, f.Attempt)
			}
			r.advance(queue.Started)
			r.recover(Interruption{Policy: queue.RetryOrphan, MaxAttempts: limit})
		}
		if dead := r.dead(); len(dead) != 1 || dead[0].Reason != queue.Poison || dead[0].Attempts != want || dead[0].RawLine != "poison" {
			t.Errorf("limit %d: dead letters %+v", limit, dead)
		}
	}
}

func TestTakingBackUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	back := func(f *Record) {
		t.Helper()
		if did, err := r.TakeBack(f); err != nil || !did {
			t.Fatal(did, err)
		}
	}
	r.echo("one\n")
	for range 3 {
		f := r.offer()
		if f.Attempt != 1 {
			t.Fatalf("attempt %d", f.Attempt)
		}
		back(f)
	}
	r.offer()
	r.advance(queue.Taken)
	r.recover(Interruption{Policy: queue.RetryOrphan})
	back(r.offer())
	f := r.offer()
	if f.Attempt != 2 || f.Repeats != 1 {
		t.Errorf("after a second attempt that was taken back: %+v", f)
	}
	r.advance(queue.Taken)
	if did, err := r.TakeBack(f); err != nil || did {
		t.Errorf("an entry that was taken is taken back: %v, %v", did, err)
	}
}

func TestAnOfferAgainCountsAndRefusesWhatWasTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	if _, err := r.OfferAgain(Offering{}); !errors.Is(err, ErrNothingInFlight) {
		t.Errorf("with nothing in flight: %v", err)
	}
	r.echo("\"one\\nline\"\n")
	first := r.offer()
	f, err := r.OfferAgain(Offering{Via: queue.ViaStop, Session: "s2", PromptID: "p2"})
	if err != nil {
		t.Fatal(err)
	}
	if f.Prompt() != "one\nline" || f.Attempt != 2 || f.Session != "s2" || f.DeliveryID != first.DeliveryID {
		t.Errorf("offered again: %+v", f)
	}
	r.advance(queue.Taken)
	if _, err := r.OfferAgain(Offering{}); err == nil {
		t.Error("an entry that was taken is offered again")
	}
}

// The acknowledgement is interrupted between the outbox and the cursor: it is
// done, whatever the policy, and has one record.
func TestAnInterruptedAcknowledgementIsDone(t *testing.T) {
	t.Parallel()
	for _, policy := range []queue.OrphanPolicy{queue.RetryOrphan, queue.DeadLetterOrphan, queue.DropOrphan} {
		r := newRig(t)
		r.echo("zero\none\ntwo\n")
		r.offer()
		r.ack()
		r.offer()
		r.advance(queue.Started)
		killed := errors.New("killed")
		dead := false
		r.guard(func(s durable.Step, run func() error) error {
			if dead = dead || s.Name == Inbox.Cursor; dead {
				return killed
			}
			return run()
		})
		if err := r.Acknowledge(Acknowledgement{Reply: "ok"}); !errors.Is(err, killed) {
			t.Fatalf("Acknowledge: %v", err)
		}
		r.step = nil
		r.reopen()
		if policy == queue.RetryOrphan { // the session lives on and acknowledges again
			r.ack()
		} else if got := r.recover(Interruption{Policy: policy}); got != queue.StaleOrphanDeleted {
			t.Errorf("%s: %s", policy, got)
		}
		if got := r.next(); got != "two" {
			t.Errorf("%s: next %q", policy, got)
		}
		if n := strings.Count(r.get(OutboxFile), "\n"); n != 2 || len(r.dead()) != 0 {
			t.Errorf("%s: %d records, %d dead letters", policy, n, len(r.dead()))
		}
	}
}

// Recover is interrupted at each of its steps and called again, under each
// policy: one dead letter, one requeued entry, nothing lost.
func TestAnInterruptedRecoveryIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	killed := errors.New("killed")
	for _, policy := range []queue.OrphanPolicy{queue.RetryOrphan, queue.DeadLetterOrphan, queue.DropOrphan} {
		for _, gone := range []bool{false, true} { // the inbox was truncated meanwhile
			for at := 0; ; at++ {
				r := newRig(t)
				r.echo("one one\n")
				r.offer()
				r.advance(queue.Started)
				if gone {
					r.put("inbox.jsonl", "")
				}
				r.echo("two\n")
				n := 0
				r.guard(func(_ durable.Step, run func() error) error {
					if n++; n > at {
						return killed
					}
					return run()
				})
				_, _, err := r.Recover(Interruption{Policy: policy})
				if err == nil {
					break
				}
				r.step = nil
				r.reopen()
				r.recover(Interruption{Policy: policy})
				want := map[queue.OrphanPolicy]int{queue.RetryOrphan: 0, queue.DeadLetterOrphan: 1, queue.DropOrphan: 0}[policy]
				if n := strings.Count(r.get(DeadFile), "\n"); n != want {
					t.Errorf("%s, gone %v, step %d: %d dead letters", policy, gone, at, n)
				}
				got := join(r.drain())
				if ok := got == "two" || policy == queue.RetryOrphan && (got == "one one|two" || got == "two|one one"); !ok || (policy == queue.RetryOrphan) != strings.Contains(got, "one") {
					t.Errorf("%s, gone %v, step %d: drained %q", policy, gone, at, got)
				}
			}
		}
	}
}

// heartbeat-rs cleans its dead letters' temporary file; a directory that it
// left is taken over as it is.
func TestRecoverRemovesHeartbeatRsTemporaryFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	names := []string{".dead-letter.jsonl.tmp", ".in-flight.tmp", ".inbox-offset.tmp"}
	for _, name := range names {
		r.put(name, "half a rec")
	}
	if o := r.recover(Interruption{Policy: queue.DeadLetterOrphan}); o != queue.NothingToRecover {
		t.Errorf("outcome %s", o)
	}
	for _, name := range names {
		if r.exists(name) {
			t.Errorf("%s is left", name)
		}
	}
}

// A queue that begins with blank lines has no cursor until the first entry is
// acknowledged: that is nothing to report.
func TestBlankLinesFirstAreNoWrongCursor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("\n\n\none\n\ntwo\n")
	if got := join(r.drain()); got != "one|two" {
		t.Errorf("drained %q", got)
	}
	if notes := r.Notes(); notes != nil {
		t.Errorf("notes: %q", notes)
	}
}

// Any step of an offer fails (ENOSPC, EIO), before or after it was done: the
// entry is not handed over, and is queued as it was.
func TestAnOfferThatFailsIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		for _, done := range []bool{false, true} {
			for n := 1; ; n++ {
				r := newRig(t)
				r.echo("one\n")
				if again {
					r.offer()
				} else {
					r.next() // the sidecar is made by the first look
				}
				left := n
				r.guard(func(s durable.Step, run func() error) error {
					left--
					if left != 0 {
						return run()
					}
					if done {
						_ = run()
					}
					return syscall.EIO
				})
				var err error
				if again {
					_, err = r.OfferAgain(Offering{Session: "s2"})
				} else if e, nextErr := r.Next(); nextErr != nil {
					err = nextErr
				} else {
					_, err = r.Offer(e, Offering{Session: "s2"})
				}
				r.step = nil
				r.reopen()
				if err == nil {
					if n < 6 {
						t.Fatalf("only %d steps", n)
					}
					break
				}
				want := 1
				if again {
					f, err := r.InFlight()
					if err != nil || f == nil || f.Attempt != 1 || f.Session != "s1" {
						t.Errorf("step %d, done %t: in flight %+v, %v", n, done, f, err)
					}
					r.recover(Interruption{Policy: queue.DeadLetterOrphan})
					want = 2
				}
				if f := r.offer(); f.Attempt != want || f.RawLine != "one" {
					t.Errorf("step %d, done %t, again %t: offered as %+v", n, done, again, f)
				}
			}
		}
	}
}

// TestATornDeadLetterIsFiledAgain: the power went while it was written. The
// beginning of it has the entry's id, so that it passed for the whole record, and
// the prompt was gone.
func TestATornDeadLetterIsFiledAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\n")
	f := r.offer()
	r.advance(queue.Started)
	before := map[string]string{}
	for _, name := range []string{Inbox.Record, Inbox.Cursor, Inbox.Sidecar} {
		before[name] = r.get(name)
	}
	if got := r.recover(Interruption{Policy: queue.DeadLetterOrphan}); got != queue.DeadLettered {
		t.Fatal(got)
	}
	torn, _, ok := strings.Cut(r.get(DeadFile), `,"reason"`)
	if !ok || !strings.Contains(torn, f.DeliveryID) {
		t.Fatalf("the record: %q", r.get(DeadFile))
	}
	for name, content := range before {
		r.put(name, content)
	}
	r.put(DeadFile, torn)
	r.reopen()
	if got := r.recover(Interruption{Policy: queue.DeadLetterOrphan}); got != queue.DeadLettered {
		t.Fatal(got)
	}
	if dead := r.dead(); len(dead) != 1 || dead[0].DeliveryID != f.DeliveryID {
		t.Errorf("dead letters %+v", dead)
	}
}
