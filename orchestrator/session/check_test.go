package session

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
)

// held runs do under the hook lock.
func (l *lab) held(do func(q *inbox.Held) error) {
	l.t.Helper()
	if err := l.queue.Hold(l.t.Context(), do); err != nil {
		l.t.Fatal(err)
	}
}

// TestASessionBeginsWithAnIteration, if that is due: it uses up no attempt, and one
// that cannot be given is due again.
func TestASessionBeginsWithAnIteration(t *testing.T) {
	t.Parallel()
	l := newLab(t, "mend it", "next")
	l.held(func(q *inbox.Held) error {
		e, err := q.Next()
		if err != nil {
			return err
		}
		f, err := q.Offer(e, inbox.Offering{Session: "S0", Checked: true})
		if err == nil {
			_, err = q.Check(inbox.Acknowledgement{Reply: "done"})
		}
		if err == nil {
			_, err = q.Verdict(inbox.Verdict{Delivery: f.DeliveryID, Check: 1, Output: "two tests fail", Most: 5})
		}
		return err
	})
	flight := func() *inbox.InFlight {
		f, err := l.queue.Peek()
		if err != nil || f == nil {
			t.Fatalf("in flight %+v, %v", f, err)
		}
		return f
	}

	o := l.run("", func(s *Spec) { s.Command = []string{"/no/such/client"} })
	if f := flight(); f.State != inbox.Unproven || f.Iteration != 2 || f.Attempt != 1 || o.Why != hook.EndExited {
		t.Fatalf("%+v %+v", o, f)
	}

	said := filepath.Join(l.dir, "said")
	o = l.run(`for last; do :; done; printf %s "$last" > `+said, func(s *Spec) { s.Policy.Checked = true })
	text, err := os.ReadFile(said)
	if err != nil || !strings.HasPrefix(string(text), "Task from the queue:\n\n[heartbeat: iteration 2 of 5 ") ||
		!strings.Contains(string(text), "\n\ntwo tests fail\n\n") || !strings.HasSuffix(string(text), "\n\nmend it") {
		t.Fatalf("%q, %v", text, err)
	}
	if f := flight(); f.State != inbox.Offered || f.Session != id || f.Attempt != 1 || f.Iteration != 2 || !f.Checked {
		t.Errorf("%+v %+v", o, f)
	}
}

// TestACheckIsReportedUntilItsVerdict, whatever the session's record says; the session
// leaves its entry to it.
func TestACheckIsReportedUntilItsVerdict(t *testing.T) {
	t.Parallel()
	l := newLab(t, "mend it")
	path := filepath.Join(l.home, "inbox.jsonl")
	var c checkMeter
	var f *inbox.InFlight
	look := func() *Checking {
		c.look(l.queue, path, "S")
		return c.now
	}
	l.held(func(q *inbox.Held) error {
		e, err := q.Next()
		if err == nil {
			f, err = q.Offer(e, inbox.Offering{Session: "S", Checked: true})
		}
		return err
	})
	if got := look(); got != nil {
		t.Errorf("%+v", got)
	}
	l.held(func(q *inbox.Held) (err error) { f, err = q.Check(inbox.Acknowledgement{}); return err })
	first := look()
	if first == nil || *first != (Checking{f.DeliveryID, 1, 1, first.Since}) || !first.Since.Equal(f.Claim.Since) || look() != first {
		t.Fatalf("%+v", first)
	}
	if c := (&checkMeter{}); c.now != nil {
		t.Error("another session's")
	}
	l.held(func(q *inbox.Held) (err error) { f, err = q.Void(); return err })
	if got := look(); got != nil {
		t.Errorf("%+v is void", got)
	}
	l.held(func(q *inbox.Held) (err error) { f, err = q.Check(inbox.Acknowledgement{}); return err })
	if got := look(); got == nil || got.Check != f.Check || got.Iteration != 1 {
		t.Errorf("%+v", got)
	}
	before := look()
	data, err := os.ReadFile(filepath.Join(l.home, inbox.FlightFile))
	if err != nil {
		t.Fatal(err)
	}
	later := f.Claim.Since.Add(time.Hour).Format(time.RFC3339Nano)
	data = bytes.ReplaceAll(data, []byte(f.Claim.Since.Format(time.RFC3339Nano)), []byte(later))
	if err := os.WriteFile(filepath.Join(l.home, inbox.FlightFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := look(); got == before || got.Check != before.Check {
		t.Errorf("%+v is claimed anew: %+v", before, got)
	}
	l.held(func(q *inbox.Held) error {
		_, err := q.Verdict(inbox.Verdict{Delivery: f.DeliveryID, Check: f.Check})
		return err
	})
	if got := look(); got != nil {
		t.Errorf("%+v has its verdict", got)
	}
}

// TestTasksThatNeverEndAreLeftToTheCheck, and not acknowledged.
func TestTasksThatNeverEndAreLeftToTheCheck(t *testing.T) {
	t.Parallel()
	for name, checked := range map[string]bool{"an entry that is checked": true, "another one": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "mend it")
			l.held(func(q *inbox.Held) error {
				e, err := q.Next()
				if err == nil {
					_, err = q.Offer(e, inbox.Offering{Session: "S", Checked: checked})
				}
				if err == nil {
					_, err = q.Advance(inbox.Background, "")
				}
				return err
			})
			s := &shim{spec: Spec{Session: "S"}}
			l.held(func(q *inbox.Held) error {
				r := &hook.Record{Terms: hook.Terms{Session: "S"}}
				r.LastReply, r.BackgroundTasks = "it runs", []string{"shell: make"}
				f, err := q.InFlight()
				if err != nil {
					return err
				}
				return s.acknowledge(hook.NewLive(r, l.home, "", l.place()).Under(q), f)
			})
			f, err := l.queue.Peek()
			if err != nil || checked != (f != nil && f.State == inbox.Checking && f.Claim.Reply == "it runs" && f.Claim.Abandoned[0] == "shell: make") {
				t.Errorf("in flight %+v, %v", f, err)
			}
			done, err := l.queue.LastReply()
			if err != nil || checked != (done == "") {
				t.Errorf("%q, %v", done, err)
			}
		})
	}
}

// TestACheckThatPassesWhileNoHookWaitsIsCounted: the hook that had waited for it is gone
// (Esc), and the session ends without another one.
func TestACheckThatPassesWhileNoHookWaitsIsCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		verdict inbox.Verdict
		done    int
		works   bool
	}{
		"passed":         {inbox.Verdict{Passed: true}, 1, false},
		"given up":       {inbox.Verdict{GiveUp: inbox.MaxTime}, 0, false},
		"not passed":     {inbox.Verdict{}, 0, true},
		"not judged yet": {inbox.Verdict{Check: -1}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "mend it", "next")
			s := &shim{spec: Spec{Session: "S", Home: l.home}, queue: l.queue, log: slog.New(slog.DiscardHandler)}
			s.live = hook.NewLive(&hook.Record{Terms: hook.Terms{Session: "S"}, Phase: hook.Checking}, l.home, "", l.place())
			l.held(func(q *inbox.Held) error {
				e, err := q.Next()
				if err == nil {
					session := s.live.Under(q)
					_, err = session.Offer(e, inbox.Offering{Session: "S", Checked: true})
					err = errors.Join(err, session.Save())
					s.reload()
				}
				var f *inbox.InFlight
				if err == nil {
					f, err = q.Check(inbox.Acknowledgement{Session: "S"})
				}
				if err == nil && c.verdict.Check == 0 {
					c.verdict.Delivery, c.verdict.Check = f.DeliveryID, f.Check
					_, err = q.Verdict(c.verdict)
				}
				return err
			})
			s.heeds(t.Context())
			s.heeds(t.Context())
			if r := s.record; r.Acknowledged != c.done || (r.Work != nil) != c.works {
				t.Errorf("%d done, works on %+v", r.Acknowledged, r.Work)
			}
		})
	}
}
