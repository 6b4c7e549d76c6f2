package session

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/queue"
	"heartbeat/queue/queuetest"
	"heartbeat/queue/wire"
)

// unproven has the first entry handed over to a former session, and its check not pass.
func (l *lab) unproven(to queue.Handover, said string, most int) {
	l.t.Helper()
	e := l.offer(to, true)
	l.change(func(e queue.Entry) (queue.Entry, error) { return e.Claim(time.Now()) })
	l.change(func(e queue.Entry) (queue.Entry, error) {
		return e.Judge(queue.Verdict{Check: 1, Most: most}, time.Now())
	})
	l.queue.Show(e.Delivery, queue.Shown{Output: said})
}

// TestASessionBeginsWithAnIteration, if that is due: it uses up no attempt, and one
// that cannot be given is due again.
func TestASessionBeginsWithAnIteration(t *testing.T) {
	t.Parallel()
	l := newLab(t, "mend it", "next")
	l.unproven(queue.Handover{Session: "S0"}, "two tests fail", 5)
	flight := func() *queuetest.Item {
		f := l.queue.InFlight()
		if f == nil {
			t.Fatal("nothing is in flight")
		}
		return f
	}

	o := l.run("", func(s *Spec) { s.Command = []string{"/no/such/client"} })
	if f := flight(); f.State != queue.Unproven || f.Iteration != 2 || f.Attempt != 1 || o.Why != hook.EndExited {
		t.Fatalf("%+v %+v", o, f)
	}

	said := filepath.Join(l.dir, "said")
	o = l.run(`for last; do :; done; printf %s "$last" > `+said, func(s *Spec) { s.Policy.Checked = true })
	text, err := os.ReadFile(said)
	if err != nil || !strings.HasPrefix(string(text), "Task from the queue:\n\n[heartbeat: iteration 2 of 5 ") ||
		!strings.Contains(string(text), "\n\ntwo tests fail\n\n") || !strings.HasSuffix(string(text), "\n\nmend it") {
		t.Fatalf("%q, %v", text, err)
	}
	if f := flight(); f.State != queue.Offered || f.Handover.Session != id || f.Attempt != 1 || f.Iteration != 2 || !f.Checked {
		t.Errorf("%+v %+v", o, f)
	}
}

// TestACheckIsReportedUntilItsVerdict: the session leaves its entry to it.
func TestACheckIsReportedUntilItsVerdict(t *testing.T) {
	t.Parallel()
	var c checkMeter
	e := queue.Entry{Delivery: "d", State: queue.Queued, Proving: queue.Proving{Checked: true}}
	look := func(step func(queue.Entry) (queue.Entry, error)) *Checking {
		t.Helper()
		var err error
		if e, err = step(e); err != nil {
			t.Fatal(err)
		}
		c.look(&queue.Given{Entry: e})
		return c.now
	}
	now := time.Now()
	claim := func(e queue.Entry) (queue.Entry, error) { return e.Claim(now) }
	again := func(e queue.Entry) (queue.Entry, error) { return e, nil }
	if got := look(func(e queue.Entry) (queue.Entry, error) { return e.Offer(queue.Handover{Session: "S"}) }); got != nil {
		t.Errorf("%+v", got)
	}
	first := look(claim)
	if first == nil || *first != (Checking{"d", 1, 1, now.UTC()}) || look(again) != first {
		t.Fatalf("%+v", first)
	}
	if got := look(func(e queue.Entry) (queue.Entry, error) { return e.VoidCheck(), nil }); got != nil {
		t.Errorf("%+v is void", got)
	}
	if got := look(claim); got == nil || got.Check != e.Check || got.Iteration != 1 {
		t.Errorf("%+v", got)
	}
	before := look(again)
	if got := look(func(e queue.Entry) (queue.Entry, error) {
		e.Claimed = now.Add(time.Hour)
		return e, nil
	}); got == before || got.Check != before.Check {
		t.Errorf("%+v is claimed anew: %+v", before, got)
	}
	if got := look(func(e queue.Entry) (queue.Entry, error) { return e.Judge(queue.Verdict{Check: e.Check}, now) }); got != nil {
		t.Errorf("%+v has its verdict", got)
	}
	if c.look(nil); c.now != nil {
		t.Errorf("%+v of nothing", c.now)
	}
}

// TestTasksThatNeverEndAreLeftToTheCheck, and not acknowledged.
func TestTasksThatNeverEndAreLeftToTheCheck(t *testing.T) {
	t.Parallel()
	for name, checked := range map[string]bool{"an entry that is checked": true, "another one": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "mend it")
			l.offer(queue.Handover{Session: "S"}, checked)
			l.change(func(e queue.Entry) (queue.Entry, error) { return e.Advance(queue.Background, "") })
			r := &hook.Record{Terms: hook.Terms{Session: "S"}}
			r.LastReply, r.BackgroundTasks = "it runs", []string{"shell: make"}
			s := &shim{spec: Spec{Session: "S"}, live: l.live(r), log: slog.New(slog.DiscardHandler)}
			s.heeds(t.Context()) // as at the start
			s.abandon(t.Context())
			e := l.queue.Items()[0]
			if e.Reply.Text != "it runs" || e.Reply.Abandoned[0] != "shell: make" || checked != (e.State == queue.Checking) || checked == (e.State == queue.Done) {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestACheckThatPassesWhileNoHookWaitsIsCounted: the hook that had waited for it is gone
// (Esc), and the session ends without another one.
func TestACheckThatPassesWhileNoHookWaitsIsCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict queue.Verdict
		done    int
		works   bool
	}{
		"passed":         {queue.Verdict{Passed: true}, 1, false},
		"given up":       {queue.Verdict{GiveUp: queue.MaxTime}, 0, false},
		"not passed":     {queue.Verdict{}, 0, true},
		"not judged yet": {queue.Verdict{Check: -1}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "mend it", "next")
			s := &shim{spec: Spec{Session: "S", Home: l.home}, log: slog.New(slog.DiscardHandler)}
			s.live = l.live(&hook.Record{Terms: hook.Terms{Session: "S"}, Phase: hook.Checking})
			err := s.hold(t.Context(), true, func(session *hook.Session) error {
				_, err := request(t.Context(), session, wire.Step{Do: wire.Offer, To: queue.Handover{Session: "S"}, Checked: true})
				g := session.Own()
				if err != nil || g == nil {
					return errors.Join(err, errEmpty)
				}
				session.Works(g)
				_, err = request(t.Context(), session, session.Finishes(g, queue.Reply{Session: "S"}))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if c.verdict.Check == 0 {
				l.change(func(e queue.Entry) (queue.Entry, error) {
					c.verdict.Check = e.Check
					return e.Judge(c.verdict, time.Now())
				})
			}
			s.heeds(t.Context())
			s.heeds(t.Context())
			if r := s.record; r.Acknowledged != c.done || (r.Work != nil) != c.works {
				t.Errorf("%d done, works on %+v", r.Acknowledged, r.Work)
			}
		})
	}
}
