package queue

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// queued returns an entry that nobody has.
func queued() Entry {
	return Entry{Key: Key{"a", 1}, Delivery: "0123456789ab", State: Queued, Lane: Normal, Place: 1}
}

// must fails the test if a step was refused.
func must(t testing.TB) func(Entry, error) Entry {
	return func(e Entry, err error) Entry {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

// inState returns an entry that was handed over and has come to a state.
func inState(t testing.TB, s State) Entry {
	e := must(t)(queued().Offer(Handover{Session: "s1", Via: ViaStop, At: noon}))
	switch {
	case s.IsInSession():
		return must(t)(e.Advance(s, ""))
	case s == Checking, s == Unproven, s == Suspended:
		e = must(t)(must(t)(e.Advance(Started, "")).Claim(noon))
		if s == Unproven {
			e = must(t)(e.Judge(Verdict{Check: 1}, noon))
		}
		if s == Suspended {
			e = must(t)(e.Suspend(1, "c", noon))
		}
	}
	return e
}

// What becomes of an interrupted entry, by state and policy.
func TestRecoverGoesByStateAndPolicy(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		state   State
		i       Interruption
		want    Outcome
		repeats int
	}{
		{Offered, Interruption{Policy: RetryOrphan, Counts: true, Arrived: Unseen}, Requeued, 0},
		{Offered, Interruption{Policy: DeadLetterOrphan, Counts: true, Arrived: Unseen}, Requeued, 0},
		{Offered, Interruption{Policy: DropOrphan, Counts: true, Arrived: Unseen}, Requeued, 0},
		{Offered, Interruption{Policy: DeadLetterOrphan, Counts: true, Arrived: Seen}, Requeued, 1},
		{Offered, Interruption{Policy: DeadLetterOrphan, Counts: true, Arrived: Worked}, DeadLettered, 1},
		{Offered, Interruption{Policy: DropOrphan, Counts: true, Arrived: Worked}, DroppedOrphan, 1},
		{Offered, Interruption{Policy: DeadLetterOrphan, Counts: true, Unwatched: true, Arrived: Seen}, DeadLettered, 1},
		{Offered, Interruption{Policy: DeadLetterOrphan, Counts: true, Unwatched: true, Arrived: Unseen}, DeadLettered, 1},
		{Offered, Interruption{Policy: RetryOrphan, Counts: true, Unwatched: true, Arrived: Unseen}, Requeued, 0},
		{Offered, Interruption{Policy: RetryOrphan, Counts: true, Unwatched: true}, Requeued, 1},
		{Offered, Interruption{Policy: DeadLetterOrphan, Counts: true, Unwatched: true, Untaken: true}, Requeued, 0},
		{Offered, Interruption{Policy: DeadLetterOrphan, Counts: true, Fatal: true, Arrived: Unseen}, Requeued, 1},
		{Offered, Interruption{Policy: DeadLetterOrphan, Fatal: true, Arrived: Unseen}, Requeued, 0},
		{Taken, Interruption{Policy: RetryOrphan, Counts: true, Arrived: Unseen}, Requeued, 1},
		{Taken, Interruption{Policy: DeadLetterOrphan, Counts: true}, Requeued, 1},
		{Taken, Interruption{Policy: DeadLetterOrphan, Counts: true, Arrived: Worked}, DeadLettered, 1},
		{Taken, Interruption{Policy: DeadLetterOrphan}, Requeued, 0},
		{Taken, Interruption{Policy: DropOrphan, Counts: true}, Requeued, 1},
		{Taken, Interruption{Policy: DeadLetterOrphan, Unwatched: true}, DeadLettered, 0},
		{Taken, Interruption{Policy: DropOrphan, Unwatched: true}, DroppedOrphan, 0},
		{Started, Interruption{Policy: RetryOrphan, Counts: true}, Requeued, 1},
		{Started, Interruption{Policy: RetryOrphan}, Requeued, 0},
		{Started, Interruption{Policy: DeadLetterOrphan, Counts: true}, DeadLettered, 1},
		{Started, Interruption{Policy: DropOrphan, Counts: true}, DroppedOrphan, 1},
		{Started, Interruption{Counts: true}, DeadLettered, 1}, // the default policy
		{Started, Interruption{Policy: RetryOrphan, Poison: true}, DeadLettered, 0},
		{Started, Interruption{Policy: RetryOrphan, OverBudget: true}, DeadLettered, 0},
		{Started, Interruption{Policy: RetryOrphan, Finished: true}, StaleOrphanDeleted, 0},
		{Background, Interruption{Policy: RetryOrphan, Counts: true}, Requeued, 1},
		{Background, Interruption{Policy: DeadLetterOrphan}, DeadLettered, 0},
		{Background, Interruption{Policy: DropOrphan}, DroppedOrphan, 0},
		{Checking, Interruption{Policy: DropOrphan, Counts: true}, LeftChecking, 0},
		{Unproven, Interruption{Policy: DropOrphan, Counts: true}, LeftUnproven, 0},
		{Queued, Interruption{Policy: DropOrphan, Counts: true}, NothingToRecover, 0},
	} {
		t.Run(fmt.Sprintf("%s %+v", k.state, k.i), func(t *testing.T) {
			t.Parallel()
			e := queued()
			if k.state != Queued {
				e = inState(t, k.state)
			}
			k.i.Now = noon
			got, outcome := e.Recover(k.i, 9)
			if outcome != k.want {
				t.Fatalf("outcome %s, want %s", outcome, k.want)
			}
			if got.Repeats != k.repeats {
				t.Errorf("%d repeats, want %d", got.Repeats, k.repeats)
			}
			if again, o := got.Recover(k.i, 9); !got.State.IsInFlight() && (o != NothingToRecover || again != got) {
				t.Errorf("again: %s, %+v", o, again)
			}
			want := map[Outcome]State{
				Requeued: Queued, DeadLettered: Dead, DroppedOrphan: Dropped, StaleOrphanDeleted: Done,
				LeftChecking: Checking, LeftUnproven: Unproven, NothingToRecover: Queued,
			}[outcome]
			if got.State != want {
				t.Errorf("it is %s, want %s", got.State, want)
			}
			if next, err := got.Offer(Handover{}); outcome == Requeued && (err != nil || next.Attempt != 2 || next.Place != 1) {
				t.Errorf("offered again: %+v, %v", next, err)
			}
		})
	}
}

func TestARepeatIsMarkedWhereASessionMayHaveWorked(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		state State
		i     Interruption
		want  bool
	}{
		{Offered, Interruption{Untaken: true}, false},
		{Offered, Interruption{}, true},
		{Taken, Interruption{Refused: true}, false},
		{Started, Interruption{Refused: true}, true},
		{Taken, Interruption{}, true},
	} {
		k.i.Policy = RetryOrphan
		e, _ := inState(t, k.state).Recover(k.i, 9)
		e = must(t)(e.Offer(Handover{}))
		if e.IsRepeat() != k.want {
			t.Errorf("%s, %+v: repeat %v", k.state, k.i, e.IsRepeat())
		}
		// Once it was a repeat it stays one, whatever the next attempt's end was like.
		e, _ = e.Recover(Interruption{Policy: RetryOrphan, Untaken: true}, 9)
		if e = must(t)(e.Offer(Handover{})); k.want && !e.IsRepeat() {
			t.Errorf("%s, %+v: no repeat any more", k.state, k.i)
		}
	}
}

// heartbeat-rs handed such an entry over 50 of 50 times, and the one behind it never.
func TestAPoisonEntryIsGivenUpAfterItsAttempts(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 1, 3} {
		want := limit
		if limit == 0 {
			want = defaultAttempts
		}
		e := queued()
		n := 0
		for e.State == Queued {
			n++
			e = must(t)(e.Offer(Handover{}))
			if e.Attempt != n {
				t.Fatalf("attempt %d is called %d", n, e.Attempt)
			}
			e = must(t)(e.Advance(Started, ""))
			e, _ = e.Recover(Interruption{Policy: RetryOrphan, MaxAttempts: limit, Counts: true, Cause: "crashed"}, 9)
		}
		if n != want || e.State != Dead || e.Reason != Poison || e.Cause != "crashed" {
			t.Errorf("limit %d: after %d attempts %+v", limit, n, e)
		}
	}
}

func TestRepeatsThatDoNotCountAreEndless(t *testing.T) {
	t.Parallel()
	e := queued()
	for n := 1; n <= 12; n++ {
		if e = must(t)(e.Offer(Handover{})); e.Attempt != n || e.Repeats != 0 {
			t.Fatalf("attempt %d: %+v", n, e)
		}
		e = must(t)(e.Advance(Taken, ""))
		e, _ = e.Recover(Interruption{Policy: RetryOrphan, MaxAttempts: 2}, 9) // an API failure
	}
}

func TestWithdrawUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	e := queued()
	for n := range int64(3) {
		if e = must(t)(e.Offer(Handover{})); e.Attempt != 1 || e.Handover.N != n+1 {
			t.Fatalf("%+v", e)
		}
		e = must(t)(e.Withdraw())
	}
	e = must(t)(must(t)(e.Offer(Handover{})).Advance(Taken, ""))
	if _, err := e.Withdraw(); !errors.Is(err, ErrState) {
		t.Errorf("an entry that was taken is withdrawn: %v", err)
	}
}

func TestAFailureThatPassesKeepsTheEntryForTheSessionThatGoesOn(t *testing.T) {
	t.Parallel()
	e := must(t)(inState(t, Started).Fail("overloaded"))
	e, outcome := e.Recover(Interruption{Policy: DropOrphan, Counts: true, Passes: true}, 9)
	if outcome != Kept || e.State != Started {
		t.Fatalf("%s: %+v", outcome, e)
	}
	e = must(t)(e.Rebind(Handover{Session: "s2", At: noon}))
	if e.Attempt != 1 || e.Handover.Via != ViaResume || e.Handover.Session != "s2" || e.Handover.N != 2 {
		t.Errorf("%+v", e)
	}
	if e = must(t)(e.GoOn("p")); e.Failure != "" {
		t.Errorf("%+v", e)
	}
	if _, err := e.Rebind(Handover{}); err == nil {
		t.Error("an entry that nothing interrupted is given to another session")
	}
}

// Work that is checked: an interrupted iteration is checked first, and is no repeat if it passes.
func TestACheckedEntryIsDoneByItsVerdictAlone(t *testing.T) {
	t.Parallel()
	e := queued()
	e.Checked = true
	e = must(t)(must(t)(e.Offer(Handover{Session: "s1"})).Advance(Started, ""))
	if _, err := e.Acknowledge(noon); !errors.Is(err, ErrUnproven) {
		t.Errorf("it is acknowledged: %v", err)
	}
	e, outcome := e.Recover(Interruption{Policy: DeadLetterOrphan, Counts: true, Now: noon}, 9)
	if outcome != LeftChecking || e.Interrupted != Started || e.Check != 1 || e.Repeats != 1 {
		t.Fatalf("%s: %+v", outcome, e)
	}
	if got := must(t)(e.Judge(Verdict{Check: 1, Passed: true}, noon)); got.State != Done || !got.Ended.Equal(noon) {
		t.Errorf("passed: %+v", got)
	}
	if _, err := e.Judge(Verdict{Check: 2, Passed: true}, noon); !errors.Is(err, ErrStale) {
		t.Errorf("another check's verdict: %v", err)
	}
	failed := must(t)(e.Judge(Verdict{Check: 1}, noon))
	if _, err := failed.OfferAgain(Handover{}); failed.State != Unproven || err == nil {
		t.Errorf("an interrupted one goes on before Recover has decided: %+v", failed)
	}
	if got, outcome := failed.Recover(Interruption{Policy: DeadLetterOrphan, Now: noon}, 9); outcome != DeadLettered || got.Repeats != 1 {
		t.Errorf("after its check: %s, %+v", outcome, got)
	}
	if got, outcome := failed.Recover(Interruption{Policy: RetryOrphan, Now: noon}, 9); outcome != Requeued || got.Iteration != 2 || got.Check != 1 {
		t.Errorf("after its check: %s, %+v", outcome, got)
	}
}

func TestAnIterationUsesUpNoAttempt(t *testing.T) {
	t.Parallel()
	e := inState(t, Unproven)
	for n := 2; n < 8; n++ {
		e = must(t)(e.OfferAgain(Handover{}))
		if e.Attempt != 1 || e.Iteration != n || e.Handover.N != int64(n) {
			t.Fatalf("iteration %d: %+v", n, e)
		}
		e = must(t)(must(t)(e.Advance(Taken, "")).Claim(noon))
		e = must(t)(e.Judge(Verdict{Check: n, Most: 9}, noon))
	}
	if e.Most != 9 {
		t.Errorf("%+v", e)
	}
	if dead := must(t)(must(t)(must(t)(e.OfferAgain(Handover{})).Claim(noon)).Judge(Verdict{Check: 8, GiveUp: MaxIterations, Cause: "no"}, noon)); dead.State != Dead || dead.Reason != MaxIterations {
		t.Errorf("%+v", dead)
	}
}

func TestWorkBesideACheckVoidsIt(t *testing.T) {
	t.Parallel()
	e := inState(t, Checking).VoidCheck()
	if e.State != Started || e.Check != 2 {
		t.Fatalf("%+v", e)
	}
	e = must(t)(e.Claim(noon))
	if _, err := e.Judge(Verdict{Check: 1, Passed: true}, noon); !errors.Is(err, ErrStale) {
		t.Errorf("the void check's verdict: %v", err)
	}
	if got := must(t)(e.Judge(Verdict{Check: 3, Passed: true}, noon)); got.State != Done {
		t.Errorf("%+v", got)
	}
}

// What waits for a person leaves the queue's order, and comes before all others afterwards.
func TestASuspendedEntryReturnsFirst(t *testing.T) {
	t.Parallel()
	e := inState(t, Suspended)
	if e.State.IsInFlight() || !e.Suspended.Equal(noon) {
		t.Fatalf("%+v", e)
	}
	if got := must(t)(e.Judge(Verdict{Check: 1, Passed: true}, noon)); got.State != Done {
		t.Errorf("%+v", got)
	}
	back := must(t)(e.Judge(Verdict{Check: 1}, noon.Add(time.Second)))
	if back.State != Queued || back.Lane != Returning || back.Iteration != 2 {
		t.Fatalf("%+v", back)
	}
	again := must(t)(back.Offer(Handover{}))
	if again.Attempt != 1 || again.IsRepeat() {
		t.Errorf("its next iteration is an attempt: %+v", again)
	}
	if got := must(t)(again.Withdraw()); got.State != Queued || got.Attempt != 1 {
		t.Errorf("%+v", got)
	}
	lost, _ := must(t)(again.Advance(Taken, "")).Recover(Interruption{Policy: RetryOrphan, Counts: true}, 9)
	if lost.State != Checking && lost.State != Queued {
		t.Errorf("%+v", lost)
	}
}

func TestAFileThatNobodyReadBeginsTheNextSession(t *testing.T) {
	t.Parallel()
	give := func() Entry {
		e := must(t)(queued().Offer(Handover{File: "/tmp/f"}))
		return must(t)(must(t)(e.Advance(Started, "")).MarkUnread())
	}
	e, outcome := give().Recover(Interruption{Policy: DeadLetterOrphan, Counts: true, Begins: true}, 9)
	if outcome != Requeued || !e.Unread || e.Repeats != 0 {
		t.Errorf("%s: %+v", outcome, e)
	}
	if e, outcome = give().Recover(Interruption{Policy: RetryOrphan}, 9); outcome != DeadLettered || e.Reason != Unread {
		t.Errorf("%s: %+v", outcome, e)
	}
	if e, outcome = give().Recover(Interruption{Policy: RetryOrphan, Counts: true, Arrived: Worked}, 9); outcome != Requeued || e.Unread || e.Repeats != 1 {
		t.Errorf("it was read later: %s: %+v", outcome, e)
	}
}

func TestACancelledEntryIsDeadOrAsIfNew(t *testing.T) {
	t.Parallel()
	for _, s := range []State{Offered, Taken, Started, Background, Checking, Unproven} {
		e := must(t)(inState(t, s).MarkCancelled(CancelForGood))
		if got, outcome := e.Recover(Interruption{Policy: RetryOrphan, Now: noon}, 9); outcome != CancelledOrphan || got.State != Dead || got.Reason != Cancelled {
			t.Errorf("%s: %s, %+v", s, outcome, got)
		}
		e = must(t)(e.MarkCancelled(CancelAgain))
		got, outcome := e.Recover(Interruption{Policy: RetryOrphan, Now: noon}, 9)
		if outcome != QueuedAgain || got.State != Queued || got.Place != 9 || got.Attempt != 0 || got.Iteration != 0 {
			t.Errorf("%s: %s, %+v", s, outcome, got)
		}
	}
}

// TestACancelledEntryIsNotHandedOverAgain, whatever comes first: the end of its turn, the verdict
// of its check, or the end of its session. What is done by then is done.
func TestACancelledEntryIsNotHandedOverAgain(t *testing.T) {
	t.Parallel()
	for _, as := range []Cancel{CancelForGood, CancelAgain} {
		same := func(what string, got Entry) {
			t.Helper()
			is := got.State == Dead && got.Reason == Cancelled
			if as == CancelAgain {
				is = got.State == Queued && got.Place == 9 && got.Attempt == 0 && got.Iteration == 0
			}
			if !is || got.Cancel != "" {
				t.Errorf("%s, %s: %+v", as, what, got)
			}
		}
		cancelled := func(s State) Entry { return must(t)(inState(t, s).MarkCancelled(as)) }
		ended := Interruption{Policy: RetryOrphan, Finished: true, Now: noon}
		checked := cancelled(Started)
		checked.Checked = true
		got, _ := checked.Recover(ended, 9)
		same("its turn is over, and its work is checked", got)
		if got, outcome := cancelled(Started).Recover(ended, 9); outcome != StaleOrphanDeleted || got.State != Done {
			t.Errorf("%s, its turn is over: %+v", as, got)
		}
		for _, why := range []Reason{"", NoProgress} {
			same("its check has not passed", must(t)(cancelled(Checking).Judge(Verdict{Check: 1, Place: 9, GiveUp: why}, noon)))
		}
		aside := must(t)(cancelled(Checking).Suspend(1, "c", noon))
		same("a person has said no", must(t)(aside.Judge(Verdict{Check: 1, Place: 9}, noon)))
		if got := must(t)(cancelled(Checking).Judge(Verdict{Check: 1, Passed: true}, noon)); got.State != Done {
			t.Errorf("%s, its check has passed: %+v", as, got)
		}
		for _, s := range []State{Offered, Unproven} {
			if _, err := cancelled(s).OfferAgain(Handover{}); !errors.Is(err, ErrCancelled) || !errors.Is(err, ErrState) {
				t.Errorf("%s, %s is handed over again: %v", as, s, err)
			}
		}
		if _, err := must(t)(cancelled(Started).Fail("overloaded")).Rebind(Handover{}); !errors.Is(err, ErrCancelled) {
			t.Errorf("%s, another session goes on with it: %v", as, err)
		}
	}
}

// TestACancelEndsWithItsHandOver: it killed the work of a later one.
func TestACancelEndsWithItsHandOver(t *testing.T) {
	t.Parallel()
	e := must(t)(must(t)(inState(t, Offered).MarkCancelled(CancelForGood)).Withdraw())
	e = must(t)(must(t)(e.Offer(Handover{})).Advance(Started, ""))
	if got, outcome := e.Recover(Interruption{Policy: RetryOrphan, Now: noon}, 9); outcome != Requeued || got.State != Queued {
		t.Errorf("%s: %+v", outcome, got)
	}
}

// TestWhatIsNotHereWholeIsNotRetried: no line can be made of it.
func TestWhatIsNotHereWholeIsNotRetried(t *testing.T) {
	t.Parallel()
	for _, why := range []Reason{Torn, TooLarge} {
		if _, err := queued().end(Dead, why, "", noon).Retry(9); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// TestAClaimOfASessionIsNoInterruption: a session that went on while its interrupted work was
// checked, and claimed to be done, was treated as one that had claimed nothing.
func TestAClaimOfASessionIsNoInterruption(t *testing.T) {
	t.Parallel()
	e := inState(t, Started)
	e.Checked = true
	e, _ = e.Recover(Interruption{Policy: DeadLetterOrphan, Now: noon}, 9)
	if e.Interrupted != Started {
		t.Fatalf("%+v", e)
	}
	if e = must(t)(e.VoidCheck().Claim(noon)); e.Interrupted != "" {
		t.Errorf("%+v", e)
	}
}

func TestALaterEntryWaitsForItsTime(t *testing.T) {
	t.Parallel()
	e := must(t)(queued().Defer(noon, 0))
	if _, err := e.Offer(Handover{}); e.State != Later || err == nil {
		t.Fatalf("%+v, %v", e, err)
	}
	if got := must(t)(e.Wake(7)); got.State != Queued || got.Place != 7 {
		t.Errorf("%+v", got)
	}
	if got := must(t)(must(t)(e.Hasten()).Defer(time.Time{}, 8)); got.State != Queued || got.Place != 8 || got.Lane != Urgent {
		t.Errorf("%+v", got)
	}
}

// TestWhateverIsDoneAnEntryNeitherComesBackNorIsStuck takes any steps in any order: a step is
// refused and changes nothing, or leads to a state from which something leads on; what is done or
// dropped stays so; the numbers only grow.
func TestWhateverIsDoneAnEntryNeitherComesBackNorIsStuck(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := queued()
		e.Checked = rapid.Bool().Draw(t, "checked")
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			before := e
			name, after, err := anyStep(t, e)
			if err != nil && after != before {
				t.Fatalf("%s of %+v is refused (%v) and gives %+v", name, before, err, after)
			}
			e = after
			switch {
			case (before.State == Done || before.State == Dropped) && e != before:
				t.Fatalf("%s changes an entry that has ended: %+v to %+v", name, before, e)
			case e.Handover.N < before.Handover.N || e.Check < before.Check:
				t.Fatalf("%s counts backwards: %+v to %+v", name, before, e)
			case e.State.HasEnded() == e.Ended.IsZero():
				t.Fatalf("%s: %+v", name, e)
			case (e.State == Dead) != (e.Reason != ""):
				t.Fatalf("%s: dead without a reason, or the other way round: %+v", name, e)
			case (e.State == Checking || e.State == Suspended) != !e.Claimed.IsZero():
				t.Fatalf("%s: checked without a claim, or the other way round: %+v", name, e)
			case !slices.Contains(States, e.State):
				t.Fatalf("%s: the state %q", name, e.State)
			case e.Cancel != "" && !e.State.IsInFlight() && e.State != Suspended:
				t.Fatalf("%s: %+v is cancelled", name, e)
			case e.Interrupted != "" && e.State != Checking && e.State != Unproven:
				t.Fatalf("%s: %+v is interrupted", name, e)
			case e.Attempt < 0 || e.Attempt == 0 && e.State.IsInFlight():
				t.Fatalf("%s: attempt %d in flight", name, e.Attempt)
			}
		}
		// A session that does its work, and a check that passes, end it from wherever it is.
		for range 4 {
			e = ends(e)
		}
		if !e.State.HasEnded() {
			t.Fatalf("it cannot end: %+v", e)
		}
	})
}

// ends does what leads an entry on.
func ends(e Entry) Entry {
	switch e.State {
	case Later:
		e, _ = e.Wake(99)
	case Queued:
		e, _ = e.Offer(Handover{})
	case Unproven:
		if e.Interrupted == "" && e.Cancel == "" {
			e, _ = e.OfferAgain(Handover{})
		} else {
			e, _ = e.Recover(Interruption{Now: noon}, 99)
		}
	case Checking, Suspended:
		e, _ = e.Judge(Verdict{Check: e.Check, Passed: true}, noon)
	default:
		if got, err := e.Acknowledge(noon); err == nil {
			return got
		}
		e, _ = e.Claim(noon)
	}
	return e
}

func anyStep(t *rapid.T, e Entry) (string, Entry, error) {
	steps := []string{"offer", "again", "withdraw", "advance", "fail", "rebind", "goon", "ack", "claim", "void", "judge", "suspend", "cancel", "drop", "retry", "defer", "wake", "hasten", "unread", "recover", "given again", "ended"}
	name := rapid.SampledFrom(steps).Draw(t, "step")
	to := Handover{Session: "s", File: rapid.SampledFrom([]string{"", "f"}).Draw(t, "file")}
	var err error
	switch name {
	case "offer":
		e, err = e.Offer(to)
	case "again":
		e, err = e.OfferAgain(to)
	case "withdraw":
		e, err = e.Withdraw()
	case "advance":
		e, err = e.Advance(rapid.SampledFrom(States).Draw(t, "to"), "p")
	case "fail":
		e, err = e.Fail("overloaded")
	case "rebind":
		e, err = e.Rebind(to)
	case "goon":
		e, err = e.GoOn("p")
	case "ack":
		e, err = e.Acknowledge(noon)
	case "claim":
		e, err = e.Claim(noon)
	case "void":
		e = e.VoidCheck()
	case "judge":
		e, err = e.Judge(Verdict{Check: rapid.IntRange(0, 5).Draw(t, "check"), Passed: rapid.Bool().Draw(t, "passed"), GiveUp: rapid.SampledFrom([]Reason{"", NoProgress}).Draw(t, "why")}, noon)
	case "suspend":
		e, err = e.Suspend(rapid.IntRange(0, 5).Draw(t, "check"), "c", noon)
	case "cancel":
		e, err = e.MarkCancelled(rapid.SampledFrom([]Cancel{CancelForGood, CancelAgain}).Draw(t, "as"))
	case "drop":
		e, err = e.Drop(noon)
	case "retry":
		e, err = e.Retry(99)
	case "defer":
		e, err = e.Defer(rapid.SampledFrom([]time.Time{{}, noon}).Draw(t, "until"), 98)
	case "wake":
		e, err = e.Wake(97)
	case "hasten":
		e, err = e.Hasten()
	case "unread":
		e, err = e.MarkUnread()
	case "given again":
		e, err = e.GiveAgain()
	case "ended":
		e, err = e.EndAs(rapid.SampledFrom([]Reason{"", Poison}).Draw(t, "as"), "", noon)
	case "recover":
		b := func(what string) bool { return rapid.Bool().Draw(t, what) }
		e, _ = e.Recover(Interruption{
			Policy: rapid.SampledFrom([]OrphanPolicy{RetryOrphan, DeadLetterOrphan, DropOrphan, ""}).Draw(t, "policy"), MaxAttempts: rapid.IntRange(0, 3).Draw(t, "most"),
			Counts: b("counts"), Fatal: b("fatal"), Arrived: rapid.SampledFrom([]Arrival{Unknown, Unseen, Seen, Worked}).Draw(t, "arrived"), Finished: b("finished"),
			Begins: b("begins"), Unwatched: b("unwatched"), Untaken: b("untaken"), Refused: b("refused"), Passes: b("passes"), Poison: b("poison"), OverBudget: b("budget"), Now: noon,
		}, 96)
	}
	return name, e, err
}

func TestAReplyIsKeptWithinItsLimits(t *testing.T) {
	t.Parallel()
	r := Reply{Text: strings.Repeat("ü", MaxReply), Abandoned: make([]string, 100)}
	r.Abandoned[0] = strings.Repeat("x", 1000) + "\n"
	r = r.Within()
	if len(r.Text) != MaxReply || !r.Cut || len(r.Abandoned) != maxAbandoned || len(r.Abandoned[0]) != maxTask {
		t.Errorf("%d bytes, cut %v, %d tasks, the first %d", len(r.Text), r.Cut, len(r.Abandoned), len(r.Abandoned[0]))
	}
}
