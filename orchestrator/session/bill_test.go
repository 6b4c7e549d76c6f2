package session

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// billed is a session whose costs are counted, without a client.
func (l *lab) billed(began time.Time, change ...func(*Spec)) *shim {
	log := slog.New(slog.DiscardHandler)
	s := &shim{
		log: log, failed: complaints{log: log}, bill: bill{written: make(chan Billed, 1)}, orders: make(chan Order),
		spec:   Spec{Agent: "a", Session: id, StateDir: l.stateDir, Dir: l.dir, Home: l.home, Env: []string{"HOME=" + l.user}},
		record: &hook.Record{StartedAt: began},
	}
	s.live = l.live(s.record)
	for _, c := range change {
		c(&s.spec)
	}
	in, orders := io.Pipe()
	l.t.Cleanup(func() { _ = orders.Close() })
	l.runs = l.scheduler(id, orders)
	s.out = &outlet{enc: json.NewEncoder(l.runs)}
	go s.readOrders(bufio.NewReader(in))
	return s
}

func (l *lab) writeDown(path string, at time.Time, fields string) {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		l.t.Fatal(err)
	}
	_, err = fmt.Fprintf(f, "{%s,\"timestamp\":%q}\n", fields, at.UTC().Format(time.RFC3339Nano))
	if err := errors.Join(err, f.Close()); err != nil {
		l.t.Fatal(err)
	}
}

func answer(id string) string {
	return fmt.Sprintf(`"type":"assistant","message":{"id":%q,"model":"m","usage":{"input_tokens":3}}`, id)
}

// TestCostsCountWhateverTheClockSays: a clock that was set back stopped all counting.
func TestCostsCountWhateverTheClockSays(t *testing.T) {
	t.Parallel()
	began := time.Now()
	back := began.Add(-time.Hour).Round(0)
	for _, resume := range []string{"", id} {
		l := newLab(t)
		path := filepath.Join(l.user, ".claude", "projects", "p", id+".jsonl")
		aside := filepath.Join(l.user, ".claude", "projects", "p", id, "subagents", "agent-1.jsonl")
		if resume != "" {
			l.writeDown(path, began.Add(-2*time.Hour), answer("old"))
			l.writeDown(aside, began.Add(-2*time.Hour), answer("old aside"))
		}
		s := l.billed(began, func(s *Spec) { s.Resume = resume })
		s.openBill()
		s.record.Transcript = path
		l.writeDown(path, began.Add(time.Second), answer("1"))
		l.writeDown(aside, began.Add(time.Second), answer("aside 1"))
		s.spend(began.Add(2 * time.Second).Round(0))
		l.writeDown(path, back.Add(time.Second), answer("2"))
		l.writeDown(aside, back.Add(time.Second), answer("aside 2"))
		s.bill.reader.LookAgain()
		s.spend(back.Add(2 * time.Second))
		if got := s.bill.counter.All(); got.Calls != 4 {
			t.Errorf("resumed %q: %+v, want 4 calls", resume, got)
		}
	}
}

// TestABillIsNeitherLostNorPaidTwice: whatever becomes of the scheduler while it is sent, and
// of the shim. What is not answered is sent again, and stays in the session's note.
func TestABillIsNeitherLostNorPaidTwice(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(*scheduler, *shim){
		"nothing fails":            func(*scheduler, *shim) {},
		"there is no room":         func(o *scheduler, _ *shim) { o.full = true },
		"the scheduler was killed": func(o *scheduler, _ *shim) { o.deaf = true; _ = o.orders.Close() },
		"its answer was not heard": func(o *scheduler, _ *shim) { o.mute = true; _ = o.orders.Close() },
		"the shim was, too":        func(o *scheduler, _ *shim) { o.deaf = true; _ = o.orders.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			began := time.Now().Add(-time.Hour).Round(0)
			path := filepath.Join(l.user, "c.jsonl")
			s := l.billed(began, func(s *Spec) { s.Token = "00000000000000000000000000000f0f" })
			o := l.runs
			s.record.Shim, s.record.Transcript = hook.Process{PID: os.Getpid(), Start: 1}, path
			s.record.Terms = s.spec.terms()
			s.record.Work = &hook.Work{DeliveryID: "1", Since: began}
			fails(o, s)
			s.openBill()
			for i := range 3 {
				now := began.Add(time.Duration(i) * 2 * recordInTurn)
				l.writeDown(path, now, answer(fmt.Sprint(i)))
				s.spend(now.Add(time.Second))
			}
			end := began.Add(10 * recordInTurn)
			l.writeDown(path, end, answer("last"))
			if !strings.Contains(name, "shim") {
				s.closeBill(end.Add(time.Second), time.Time{})
				if err := s.dropLeftover(); err != nil {
					t.Error(err)
				}
			}
			_, err := os.Stat(leftoverPath(l.stateDir, id))
			if noted := err == nil; noted != (name != "nothing fails") || name == "nothing fails" && l.spent().Calls != 4 {
				t.Errorf("noted: %v; recorded %+v", noted, l.spent())
			}
			if name != "nothing fails" && !strings.Contains(name, "shim") && len(Leftovers(l.stateDir)) != 0 {
				t.Error("there is something to end")
			}
			for range 2 {
				if _, err := l.sweep(); err != nil {
					t.Error(err)
				}
				if got := l.spent(); got.Calls != 4 || got.Input != 12 {
					t.Errorf("recorded %+v", got)
				}
			}
			if _, err := os.Stat(leftoverPath(l.stateDir, id)); err == nil {
				t.Error("it is still noted")
			}
			if o.full { // it was tried again each minute
				numbers := map[int64]int{}
				for _, r := range o.billed {
					numbers[r.Number]++
				}
				if numbers[1] < 3 {
					t.Errorf("sent: %v", numbers)
				}
			}
		})
	}
}

// TestAnEntrysEarlierCostIsReadAgain: where it could not be read once, the entry had
// cost nothing before, for the rest of the session.
func TestAnEntrysEarlierCostIsReadAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.billed(time.Now(), func(s *Spec) { s.EntryBudget.Cost = 2 })
	s.record.Work = &hook.Work{DeliveryID: "d", Since: time.Now()}
	there := filepath.Join(l.stateDir, store.Name)
	if err := os.MkdirAll(there, 0o700); err != nil { // which is no store
		t.Fatal(err)
	}
	if over := s.overBudget(time.Now()); over != "" {
		t.Errorf("over its budget: %s", over)
	}
	if err := os.Remove(there); err != nil {
		t.Fatal(err)
	}
	earlier := usage.Record{At: time.Now(), Agent: "a", Session: "earlier", Of: usage.Of{Delivery: "d"}, Sum: usage.Sum{Cost: 3}}
	if err := Bill(t.Context(), l.store(), earlier); err != nil {
		t.Fatal(err)
	}
	if over := s.overBudget(time.Now()); over == "" {
		t.Error("what it had cost before is not counted")
	}
}
