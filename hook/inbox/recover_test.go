package inbox

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"heartbeat/hook/durable"
)

// unwatched stands for the repeats of an entry in a hand-wired directory,
// which is not given again.
const unwatched = -1

// What becomes of an interrupted entry, by state and policy.
func TestRecoverGoesByStateAndPolicy(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		state   State
		i       Interruption
		arrived bool
		want    Outcome
		repeats int
	}{
		{Offered, Interruption{Policy: Retry, Counts: true}, false, Requeued, 0},
		{Offered, Interruption{Policy: DeadLetter, Counts: true}, false, Requeued, 0},
		{Offered, Interruption{Policy: Drop, Counts: true}, false, Requeued, 0},
		{Offered, Interruption{Policy: DeadLetter, Counts: true}, true, Requeued, 1},
		{Offered, Interruption{Policy: DeadLetter, Counts: true}, true, DeadLettered, unwatched},
		{Taken, Interruption{Policy: Retry, Counts: true}, false, Requeued, 1},
		{Taken, Interruption{Policy: DeadLetter, Counts: true}, false, Requeued, 1},
		{Taken, Interruption{Policy: DeadLetter}, false, Requeued, 0},
		{Taken, Interruption{Policy: Drop, Counts: true}, false, Requeued, 1},
		{Taken, Interruption{Policy: DeadLetter}, false, DeadLettered, unwatched},
		{Taken, Interruption{Policy: Drop}, false, DroppedOrphan, unwatched},
		{Started, Interruption{Policy: Retry, Counts: true}, false, Requeued, 1},
		{Started, Interruption{Policy: Retry}, false, Requeued, 0},
		{Started, Interruption{Policy: DeadLetter, Counts: true}, false, DeadLettered, 0},
		{Started, Interruption{Policy: Drop, Counts: true}, false, DroppedOrphan, 0},
		{Started, Interruption{Counts: true}, false, DeadLettered, 0}, // the default policy
		{Background, Interruption{Policy: Retry, Counts: true}, false, Requeued, 1},
		{Background, Interruption{Policy: DeadLetter}, false, DeadLettered, 0},
		{Background, Interruption{Policy: Drop}, false, DroppedOrphan, 0},
	} {
		t.Run(fmt.Sprintf("%s %+v %v", k.state, k.i, k.arrived), func(t *testing.T) {
			t.Parallel()
			r := newRig(t).unsynced()
			r.echo("one\ntwo\n")
			r.offer()
			if k.repeats == unwatched {
				if _, _, err := r.Reoffer(Offering{Via: ViaStop, Unwatched: true}); err != nil {
					t.Fatal(err)
				}
			}
			r.advance(k.state)
			r.reopen()
			i := k.i
			i.Arrived = func(InFlight) Arrival {
				if k.arrived {
					return Seen
				}
				return Unseen
			}
			if got := r.recover(i); got != k.want {
				t.Fatalf("outcome %s, want %s", got, k.want)
			}
			if got := r.recover(i); got != NothingToRecover {
				t.Errorf("again: %s", got)
			}
			f := r.offer()
			switch k.want {
			case Requeued:
				if f.RawLine != "one" || f.Attempt != 2 || f.Repeats != k.repeats {
					t.Errorf("offered again: %q, attempt %d, repeats %d", f.RawLine, f.Attempt, f.Repeats)
				}
			default:
				if f.RawLine != "two" || f.Attempt != 1 {
					t.Errorf("offered next: %q, attempt %d", f.RawLine, f.Attempt)
				}
			}
			if n := len(r.dead()); (k.want == DeadLettered) != (n == 1) {
				t.Errorf("%d dead letters", n)
			}
		})
	}
}

// heartbeat-rs handed such an entry over 50 of 50 times, and the one behind it
// never.
func TestAPoisonEntryIsFiledAfterItsAttempts(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 1, 3} {
		r := newRig(t).unsynced()
		r.echo("poison\ngood\n")
		want := limit
		if limit == 0 {
			want = defaultAttempts
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
			r.advance(Started)
			r.recover(Interruption{Policy: Retry, MaxAttempts: limit, Counts: true})
		}
		if dead := r.dead(); len(dead) != 1 || dead[0].Reason != Poison || dead[0].Attempts != want || dead[0].RawLine != "poison" {
			t.Errorf("limit %d: dead letters %+v", limit, dead)
		}
	}
}

// TestAnEntryOfWhichEachSessionDiesBeforeItIsProvenIsPoison: it was handed over for ever,
// with what is behind it.
func TestAnEntryOfWhichEachSessionDiesBeforeItIsProvenIsPoison(t *testing.T) {
	t.Parallel()
	for _, untaken := range []bool{false, true} {
		r := newRig(t).unsynced()
		r.echo("poison\ngood\n")
		for n := 1; n <= 3; n++ {
			f := r.offer()
			if f.RawLine != "poison" || f.Repeats != n-1 {
				t.Fatalf("attempt %d: %+v", n, f)
			}
			i := Interruption{Policy: DeadLetter, MaxAttempts: 3, Counts: true, Fatal: true, Untaken: untaken, Delivery: f.DeliveryID, Cause: "crashed"}
			for _, other := range []func(*Interruption){
				func(i *Interruption) { i.Fatal = false }, func(i *Interruption) { i.Counts = false }, func(i *Interruption) { i.Delivery = "another" },
			} {
				uncounted := i
				other(&uncounted)
				r.recover(uncounted)
				if f = r.offer(); f.Repeats != n-1 {
					t.Fatalf("%+v counts: %+v", uncounted, f)
				}
			}
			r.recover(i)
		}
		if f := r.offer(); f.RawLine != "good" {
			t.Errorf("offered next: %q", f.RawLine)
		}
		if dead := r.dead(); len(dead) != 1 || dead[0].Reason != Poison || dead[0].RawLine != "poison" || dead[0].Counted != 3 || dead[0].Cause != "crashed" {
			t.Errorf("dead letters %+v", dead)
		}
	}
}

func TestRepeatsThatDoNotCountAreEndless(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\n")
	for n := 1; n <= 12; n++ {
		if f := r.offer(); f.Attempt != n || f.Repeats != 0 {
			t.Fatalf("attempt %d: %+v", n, f)
		}
		r.advance(Taken)
		r.recover(Interruption{Policy: Retry, MaxAttempts: 2}) // an API failure
	}
}

func TestWithdrawUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\n")
	for range 3 {
		if f := r.offer(); f.Attempt != 1 {
			t.Fatalf("attempt %d", f.Attempt)
		}
		if err := r.Withdraw(); err != nil {
			t.Fatal(err)
		}
	}
	r.offer()
	r.advance(Taken)
	r.recover(Interruption{Policy: Retry, Counts: true})
	r.offer()
	if err := r.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if f := r.offer(); f.Attempt != 2 || f.Repeats != 1 {
		t.Errorf("after a withdrawn second attempt: %+v", f)
	}
	r.advance(Taken)
	if err := r.Withdraw(); err == nil {
		t.Error("an entry that was taken is withdrawn")
	}
}

func TestReofferCountsAndRefusesWhatWasTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	if _, _, err := r.Reoffer(Offering{}); !errors.Is(err, ErrNothingInFlight) {
		t.Errorf("with nothing in flight: %v", err)
	}
	r.echo("\"one\\nline\"\n")
	first := r.offer()
	e, f, err := r.Reoffer(Offering{Via: ViaStop, Session: "s2", PromptID: "p2"})
	if err != nil {
		t.Fatal(err)
	}
	if e.Prompt != "one\nline" || f.Attempt != 2 || f.Session != "s2" || f.DeliveryID != first.DeliveryID {
		t.Errorf("offered again: %+v, %+v", e, f)
	}
	r.advance(Taken)
	if _, _, err := r.Reoffer(Offering{}); err == nil {
		t.Error("an entry that was taken is offered again")
	}
}

func TestAdvanceNeverGoesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\n")
	r.offer()
	r.advance(Started)
	r.advance(Taken)
	f, err := r.Advance(Offered, "p9")
	if err != nil || f.State != Started || f.PromptID != "p9" {
		t.Errorf("after going back: %+v, %v", f, err)
	}
	if _, err := r.Advance("flying", ""); err == nil {
		t.Error("a state that is none is recorded")
	}
}

// The acknowledgement is interrupted between the outbox and the cursor: it is
// done, whatever the policy, and has one record.
func TestAnInterruptedAcknowledgementIsDone(t *testing.T) {
	t.Parallel()
	for _, policy := range []OrphanPolicy{Retry, DeadLetter, Drop} {
		r := newRig(t)
		r.echo("zero\none\ntwo\n")
		r.offer()
		r.ack()
		r.offer()
		r.advance(Started)
		killed := errors.New("killed")
		dead := false
		r.guard(func(s durable.Step, run func() error) error {
			if dead = dead || s.Name == CursorFile; dead {
				return killed
			}
			return run()
		})
		if _, err := r.Acknowledge(Acknowledgement{Reply: "ok"}); !errors.Is(err, killed) {
			t.Fatalf("Acknowledge: %v", err)
		}
		r.step = nil
		r.reopen()
		if policy == Retry { // the session lives on and acknowledges again
			r.ack()
		} else if got := r.recover(Interruption{Policy: policy}); got != StaleOrphanDeleted {
			t.Errorf("%s: %s", policy, got)
		}
		if got := r.next(); got != "two" {
			t.Errorf("%s: next %q", policy, got)
		}
		if n := strings.Count(r.get(outboxFile), "\n"); n != 2 || len(r.dead()) != 0 {
			t.Errorf("%s: %d records, %d dead letters", policy, n, len(r.dead()))
		}
	}
}

// Recover is interrupted at each of its steps and called again, under each
// policy: one dead letter, one requeued entry, nothing lost.
func TestAnInterruptedRecoveryIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	killed := errors.New("killed")
	for _, policy := range []OrphanPolicy{Retry, DeadLetter, Drop} {
		for _, gone := range []bool{false, true} { // the inbox was truncated meanwhile
			for at := 0; ; at++ {
				r := newRig(t)
				r.echo("one one\n")
				r.offer()
				r.advance(Started)
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
				_, _, err := r.Recover(Interruption{Policy: policy, Counts: true})
				if err == nil {
					break
				}
				r.step = nil
				r.reopen()
				r.recover(Interruption{Policy: policy, Counts: true})
				want := map[OrphanPolicy]int{Retry: 0, DeadLetter: 1, Drop: 0}[policy]
				if n := strings.Count(r.get(DeadFile), "\n"); n != want {
					t.Errorf("%s, gone %v, step %d: %d dead letters", policy, gone, at, n)
				}
				got := join(r.drain())
				if ok := got == "two" || policy == Retry && (got == "one one|two" || got == "two|one one"); !ok || (policy == Retry) != strings.Contains(got, "one") {
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
	if o := r.recover(Interruption{Policy: DeadLetter}); o != NothingToRecover {
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
					_, _, err = r.Reoffer(Offering{Session: "s2"})
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
					r.recover(Interruption{Policy: DeadLetter, Counts: true})
					want = 2
				}
				if f := r.offer(); f.Attempt != want || f.RawLine != "one" {
					t.Errorf("step %d, done %t, again %t: offered as %+v", n, done, again, f)
				}
			}
		}
	}
}

// TestACancelledEntryIsGivenUp: whatever the policy and the state say, and
// whatever the service has done to it; unless it was done before.
func TestACancelledEntryIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		for _, state := range []State{Offered, Taken, Started, Background} {
			for _, policy := range []OrphanPolicy{Retry, DeadLetter, Drop} {
				t.Run(fmt.Sprint(again, state, policy), func(t *testing.T) {
					t.Parallel()
					r := newRig(t).unsynced()
					r.echo("one\ntwo\n")
					f := r.offer()
					r.advance(state)
					if _, err := r.Fail("overloaded"); err != nil {
						t.Fatal(err)
					}
					if _, err := r.Cancel(Cancellation{Delivery: "another"}); !errors.Is(err, ErrNothingInFlight) {
						t.Fatalf("another entry: %v", err)
					}
					if _, err := r.Cancel(Cancellation{f.DeliveryID, again}); err != nil {
						t.Fatal(err)
					}
					r.reopen()
					want := CancelledOrphan
					if again {
						want = QueuedAgain
					}
					got := r.recover(Interruption{Policy: policy, Passes: func(string) bool { return true }})
					if got != want {
						t.Fatalf("outcome %s, want %s", got, want)
					}
					if f := r.offer(); f.RawLine != "two" {
						t.Errorf("the next one: %q", f.RawLine)
					}
					if _, err := r.Acknowledge(Acknowledgement{}); err != nil {
						t.Fatal(err)
					}
					dead := r.dead()
					if !again {
						if len(dead) != 1 || dead[0].Reason != Cancelled || dead[0].DeliveryID != f.DeliveryID {
							t.Errorf("dead letters: %+v", dead)
						}
						return
					}
					if f := r.offer(); len(dead) != 0 || f.Prompt() != "one" || f.Attempt != 1 || f.Repeats != 0 || f.Cancel != "" {
						t.Errorf("queued again: %+v, dead letters %+v", f, dead)
					}
				})
			}
		}
	}
}

// TestACancelThatCouldNotBeRecorded: who recovers the entry knows of it; another
// one is left to its policy.
func TestACancelThatCouldNotBeRecorded(t *testing.T) {
	t.Parallel()
	for _, mine := range []bool{true, false} {
		r := newRig(t).unsynced()
		r.echo("one\n")
		c := &Cancellation{Delivery: r.offer().DeliveryID}
		want := CancelledOrphan
		if !mine {
			c.Delivery, want = "another", Requeued
		}
		if got := r.recover(Interruption{Policy: DeadLetter, Cancel: c}); got != want {
			t.Errorf("%v: %s", mine, got)
		}
	}
}

// TestAnEntryThatWasDoneIsNotCancelled: the session acknowledged it between the
// wish and its end.
func TestAnEntryThatWasDoneIsNotCancelled(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\n")
	f := r.offer()
	if _, err := r.Cancel(Cancellation{Delivery: f.DeliveryID}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Acknowledge(Acknowledgement{Reply: "done"}); err != nil {
		t.Fatal(err)
	}
	if got := r.recover(Interruption{}); got != NothingToRecover || len(r.dead()) != 0 {
		t.Errorf("%s, %v", got, r.dead())
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
	r.advance(Started)
	before := map[string]string{}
	for _, name := range []string{FlightFile, CursorFile, metaFile} {
		before[name] = r.get(name)
	}
	if got := r.recover(Interruption{Policy: DeadLetter}); got != DeadLettered {
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
	if got := r.recover(Interruption{Policy: DeadLetter}); got != DeadLettered {
		t.Fatal(got)
	}
	if dead := r.dead(); len(dead) != 1 || dead[0].DeliveryID != f.DeliveryID {
		t.Errorf("dead letters %+v", dead)
	}
}
