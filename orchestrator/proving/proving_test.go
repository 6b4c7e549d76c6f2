package proving

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// lab is an agent whose entry is being checked, with real files and a stand-in for the
// check. Its clock is a bubble's.
type lab struct {
	t      *testing.T
	agent  *config.Agent
	state  string
	answer proof.Result
	ran    int
	before func()              // the next check, or nil
	told   []status.ProofState // since the last Desk
	notes  []string            // the verdicts in the journal
	lies   []string            // what was told as forged
}

func inBubble(t *testing.T, do func(l *lab)) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		home := filepath.Join(dir, "a", ".heartbeat")
		l := &lab{t: t, state: filepath.Join(dir, "state"), answer: proof.Result{Answer: proof.Passed, Output: "ok"}, agent: &config.Agent{
			Name: "a", Dir: filepath.Join(dir, "a"), Home: home, Inbox: filepath.Join(home, "inbox.jsonl"), MaxEntry: config.DefaultMaxEntry,
			Until: config.NewUntil("make", "test"),
		}}
		if err := errors.Join(os.MkdirAll(home, 0o700), os.MkdirAll(l.state, 0o700)); err != nil {
			t.Fatal(err)
		}
		q, err := queue.Open(l.agent)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		if _, err := q.Append(t.Context(), inbox.Letter{Source: "send", Prompt: "mend it", ID: "m1"}); err != nil {
			t.Fatal(err)
		}
		l.claims()
		do(l)
	})
}

func (l *lab) held(do func(q *inbox.Held) error) {
	l.t.Helper()
	q, err := queue.Open(l.agent)
	if err != nil {
		l.t.Fatal(err)
	}
	defer q.Close()
	if err := q.Hold(l.t.Context(), do); err != nil {
		l.t.Fatal(err)
	}
}

// claims is a session's turn on the entry, at whose end it claims to be done.
func (l *lab) claims() {
	l.t.Helper()
	l.held(func(q *inbox.Held) error {
		f, err := q.Peek()
		offer := inbox.Offering{Session: "S", Checked: true}
		var e *inbox.Entry
		switch {
		case err != nil:
		case f != nil:
			_, _, err = q.Reoffer(offer)
		default:
			if e, err = q.Next(); err == nil {
				_, err = q.Offer(e, offer)
			}
		}
		if err == nil {
			_, err = q.Advance(inbox.Started, "")
		}
		time.Sleep(time.Minute)
		if err == nil {
			_, err = q.Check(inbox.Acknowledgement{Session: "S", Reply: "I am done", Now: time.Now()})
		}
		return err
	})
}

// prove is a run of the scheduler that is killed after d, as far as room proving knows
// of that.
func (l *lab) prove(d time.Duration) []inbox.Verdict {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), d)
	defer cancel()
	l.told = nil
	desk := New(Options{
		StateDir: l.state, Log: slog.New(slog.DiscardHandler), Note: func(e journal.Event) {
			if e.Kind == journal.Forged {
				l.lies = append(l.lies, e.Reason.Raw())
				return
			}
			l.notes = append(l.notes, e.Verdict)
		},
		Files: func(context.Context, string) string { return "" },
		Check: func(ctx context.Context, _ proof.Check) (proof.Result, error) {
			l.ran++
			if l.before != nil {
				l.before()
				l.before = nil
			}
			if err := ctx.Err(); err != nil {
				return proof.Result{}, err
			}
			return l.answer, nil
		},
	})
	return desk.Prove(ctx, Case{
		Key: "a-1", Agent: func() *config.Agent { return l.agent }, Wake: make(chan struct{}),
		Tell: func(p status.Proof) { l.told = append(l.told, p.State) },
	})
}

func (l *lab) flight() *inbox.InFlight {
	l.t.Helper()
	f, err := queue.InFlight(l.agent)
	if err != nil {
		l.t.Fatal(err)
	}
	return f
}

func (l *lab) book() *ledger.Book {
	l.t.Helper()
	b, err := ledger.Open(l.state, "a-1")
	if err != nil {
		l.t.Fatal(err)
	}
	return b
}

func (l *lab) replies() int {
	l.t.Helper()
	all, err := queue.Replies(l.t.Context(), []*config.Agent{l.agent}, time.Time{}, 10, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	return len(all)
}

// TestAVerdictIsDecidedOnceAndAppliedOnce, wherever its path is interrupted: before the
// check, while it runs, before what it said is recorded, before that is applied, and
// before that is noted. The next run brings it to the same end.
func TestAVerdictIsDecidedOnceAndAppliedOnce(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	type end struct {
		answer proof.Result
		most   int
		check  func(l *lab) bool
	}
	ends := map[string]end{
		"passed": {proof.Result{Answer: proof.Passed, Output: "ok"}, 0, func(l *lab) bool { return l.flight() == nil && l.replies() == 1 }},
		"not passed": {proof.Result{Answer: proof.Failed, Why: "exit status 1", Output: "1 test fails", Said: "x"}, 0, func(l *lab) bool {
			f := l.flight()
			return f != nil && f.State == inbox.Unproven && f.Iteration == 2 && f.Output == "1 test fails" && l.replies() == 0
		}},
		"given up": {proof.Result{Answer: proof.Failed, Why: "exit status 1", Output: "1 test fails", Said: "x"}, 1, func(l *lab) bool {
			return l.flight() == nil && l.replies() == 0
		}},
	}
	// Each cut leaves what a kill there leaves, and returns how often the check has run
	// at the end.
	cuts := map[string]func(l *lab) int{
		"nowhere":          func(*lab) int { return 1 },
		"before the check": func(l *lab) int { l.prove(0); return 1 },
		"while it runs": func(l *lab) int {
			l.before = func() { time.Sleep(time.Hour) }
			l.prove(time.Minute)
			return 2
		},
		"before it is recorded": func(l *lab) int {
			folder := filepath.Join(l.state, "proofs")
			l.before = func() {
				if err := errors.Join(os.RemoveAll(folder), os.WriteFile(folder, nil, 0o600)); err != nil {
					l.t.Error(err)
				}
			}
			l.prove(time.Second)
			if err := os.Remove(folder); err != nil {
				l.t.Error(err)
			}
			return 2
		},
		"before it is applied": func(l *lab) int {
			l.held(func(*inbox.Held) error { // nobody else has the queue
				l.prove(time.Second)
				return nil
			})
			if l.flight().State != inbox.Checking {
				l.t.Error("it is applied")
			}
			return 1
		},
		"before that is noted": func(l *lab) int {
			delivery := l.flight().DeliveryID
			l.prove(day)
			book := l.book()
			c := book.Course(delivery)
			c.Verdict.Applied = false
			if err := book.Keep(c); err != nil {
				l.t.Error(err)
			}
			return 1
		},
	}
	for cut, interrupt := range cuts {
		for name, end := range ends {
			t.Run(cut+", "+name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(l *lab) {
					l.answer, l.agent.Until.MaxIterations = end.answer, end.most
					want := interrupt(l)
					l.prove(day)
					if applied := l.prove(day); len(applied) > 0 {
						t.Errorf("it is applied once more: %+v", applied)
					}
					if l.ran != want || !end.check(l) {
						t.Errorf("%d checks, want %d; in flight %+v, %d replies", l.ran, want, l.flight(), l.replies())
					}
				})
			})
		}
	}
}

// TestAVerdictThatStandsIsNotThatOfTheNextCheck: the next iteration is checked anew.
func TestAVerdictThatStandsIsNotThatOfTheNextCheck(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		l.answer = proof.Result{Answer: proof.Failed, Why: "exit status 1", Said: "x"}
		for i := range 4 {
			l.prove(time.Hour)
			if f := l.flight(); l.ran != i+1 || f.Iteration != i+2 {
				t.Fatalf("after %d checks: iteration %d", l.ran, f.Iteration)
			}
			l.claims()
		}
		l.answer = proof.Result{Answer: proof.Passed}
		l.prove(time.Hour)
		if l.flight() != nil || l.replies() != 1 || l.ran != 5 {
			t.Errorf("in flight %+v after %d checks", l.flight(), l.ran)
		}
	})
}

// TestADamagedBookIsDecidedAgain, and kept beside the new one.
func TestADamagedBookIsDecidedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		path := filepath.Join(l.state, "proofs", "a-1.json")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("{half"), 0o600)); err != nil {
			t.Fatal(err)
		}
		l.prove(time.Hour)
		_, err := os.Stat(path + ".damaged")
		if l.flight() != nil || l.ran != 1 || err != nil {
			t.Errorf("in flight %+v after %d checks, %v", l.flight(), l.ran, err)
		}
	})
}

// TestWhatChangesWhileACheckRunsVoidsItsAnswer, also in the moment of its end.
func TestWhatChangesWhileACheckRunsVoidsItsAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		l.before = func() {
			other := *l.agent
			other.Until = config.NewUntil("make", "more")
			l.agent = &other
		}
		l.prove(time.Hour)
		if l.ran != 2 || l.flight() != nil || len(l.notes) != 1 {
			t.Errorf("%d checks, in flight %+v, noted %v", l.ran, l.flight(), l.notes)
		}
	})
}

// paced keeps a verdict that did not pass and may be applied only later.
func (l *lab) paced(wait time.Duration) {
	l.t.Helper()
	f := l.flight()
	v := ledger.Verdict{
		Delivery: f.DeliveryID, Entry: f.EntryID, Check: f.Check, Claimed: f.Claim.Since, Definition: ledger.Definition(l.agent.Until), Iteration: 1, By: "check",
		At: time.Now(), NotBefore: time.Now().Add(wait),
	}
	if err := l.book().Keep(ledger.Course{Delivery: f.DeliveryID, From: ledger.FromAgent, Verdict: &v}); err != nil {
		l.t.Fatal(err)
	}
}

// TestTheWaitOfATooFastAgentIsBounded: also if the clock was set back by days since.
func TestTheWaitOfATooFastAgentIsBounded(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		l.paced(72 * time.Hour)
		l.prove(guard.Longest + time.Second)
		if f := l.flight(); f.State != inbox.Unproven {
			t.Errorf("it still waits: %+v", f)
		}
	})
}

// TestALookCutsNoWaitShort, unless the queue asks for another check: a session's reports
// are its agent's to cause.
func TestALookCutsNoWaitShort(t *testing.T) {
	t.Parallel()
	for _, voided := range []bool{false, true} {
		inBubble(t, func(l *lab) {
			l.paced(guard.Longest)
			began, look := time.Now(), make(chan struct{}, 1)
			if voided {
				time.AfterFunc(time.Second, func() {
					if err := l.heldErr(func(q *inbox.Held) error { _, err := q.Void(); return err }); err != nil {
						l.t.Error(err)
					}
				})
			}
			time.AfterFunc(time.Second+time.Millisecond, func() { look <- struct{}{} })
			desk := New(Options{StateDir: l.state, Log: slog.New(slog.DiscardHandler), Note: func(journal.Event) {}})
			desk.Prove(l.t.Context(), Case{Key: "a-1", Agent: func() *config.Agent { return l.agent }, Look: look, Tell: func(status.Proof) {}})
			if took := time.Since(began); (took < 2*time.Second) != voided {
				t.Errorf("voided %v: it has waited for %s: %+v", voided, took, l.flight())
			}
		})
	}
}

// TestTheWaitOfATooFastAgentIsCutShort by what wakes a check: an approval, resume.
func TestTheWaitOfATooFastAgentIsCutShort(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		l.paced(guard.Longest)
		l.prove(guard.Longest - time.Second)
		if l.flight().State != inbox.Checking {
			t.Fatal("it has not waited")
		}
		began := time.Now()
		desk := New(Options{StateDir: l.state, Log: slog.New(slog.DiscardHandler), Note: func(journal.Event) {}})
		wake := make(chan struct{}, 1)
		wake <- struct{}{}
		desk.Prove(l.t.Context(), Case{Key: "a-1", Agent: func() *config.Agent { return l.agent }, Wake: wake, Tell: func(status.Proof) {}})
		if l.flight().State != inbox.Unproven || time.Since(began) > time.Millisecond {
			t.Errorf("after %s: %+v", time.Since(began), l.flight())
		}
	})
}

// TestHoursWithoutASchedulerAreNoWork: what was interrupted on Friday and is checked on
// Monday has not used up its max-time; nor has it where the machine slept.
func TestHoursWithoutASchedulerAreNoWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seen        time.Duration
		interrupted inbox.State
		apart       time.Duration
		want        time.Duration
	}{
		"interrupted, and nobody saw it": {0, inbox.Started, 60 * time.Hour, 0},
		"the machine slept":              {time.Minute, "", 8 * time.Hour, time.Minute},
		"the record says less":           {time.Hour, "", time.Second, time.Hour},
		"nobody saw it":                  {0, "", time.Hour, time.Hour},
		"the clock went back":            {0, "", -time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := time.Now()
			r := &run{Case: Case{Worked: func() time.Duration { return c.seen }}}
			f := &inbox.InFlight{DeliveredAt: now, Proving: inbox.Proving{Claim: &inbox.Claim{Since: now.Add(c.apart)}, Interrupted: c.interrupted}}
			if got := r.worked(subject{flight: f}, ledger.Course{}); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
