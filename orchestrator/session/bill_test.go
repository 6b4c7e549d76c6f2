package session

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/usage"
)

// billed is a session whose costs are counted, without a client.
func (l *lab) billed(began time.Time, change ...func(*Spec)) *shim {
	log := slog.New(slog.DiscardHandler)
	s := &shim{
		log: log, failed: complaints{log: log},
		spec:   Spec{Agent: "a", Session: id, StateDir: l.stateDir, Dir: l.dir, Home: l.home, Env: []string{"HOME=" + l.user}},
		record: &hook.Record{StartedAt: began},
	}
	s.live = hook.NewLive(s.record, l.home, "", l.place())
	for _, c := range change {
		c(&s.spec)
	}
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

// TestRecordsThatCannotBeReadBackAreKept: what had not been recorded was forgotten
// where the records could not be read either, and so was the session's note.
func TestRecordsThatCannotBeReadBackAreKept(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	now := time.Now().Round(0)
	path := filepath.Join(l.user, "c.jsonl")
	s := l.billed(now)
	s.record.Transcript = path
	s.openBill()
	l.writeDown(path, now, answer("1"))
	folder := filepath.Join(l.stateDir, "usage")
	if err := errors.Join(s.keepLeftover(), os.WriteFile(folder, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // neither written nor read back
		s.spend(now.Add(time.Duration(i) * 2 * recordInTurn))
	}
	if err := s.dropLeftover(); err != nil || len(s.bill.unsure) == 0 {
		t.Errorf("%d are to be recorded, %v", len(s.bill.unsure), err)
	}
	if _, err := os.Stat(leftoverPath(l.stateDir, id)); err != nil {
		t.Errorf("nobody counts what was not recorded: %v", err)
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	s.closeBill(now.Add(10*recordInTurn), time.Time{})
	var got usage.Sum
	if err := usage.Read(l.stateDir, "a", time.Time{}, func(r usage.Record) { got = got.Plus(r.Sum) }); err != nil || got.Calls != 1 || got.Input != 3 {
		t.Errorf("recorded %+v, %v", got, err)
	}
	if err := s.dropLeftover(); err != nil || len(s.bill.unsure) != 0 {
		t.Errorf("%d are to be recorded, %v", len(s.bill.unsure), err)
	}
	if _, err := os.Stat(leftoverPath(l.stateDir, id)); err == nil {
		t.Error("it is still noted")
	}
}

// TestAnEntrysEarlierCostIsReadAgain: where it could not be read once, the entry had
// cost nothing before, for the rest of the session.
func TestAnEntrysEarlierCostIsReadAgain(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	s := l.billed(time.Now(), func(s *Spec) { s.EntryBudget.Cost = 2 })
	s.record.Work = &hook.Work{DeliveryID: "d", Since: time.Now()}
	folder := filepath.Join(l.stateDir, "usage")
	if err := errors.Join(os.MkdirAll(l.stateDir, 0o700), os.WriteFile(folder, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if over := s.overBudget(time.Now()); over != "" {
		t.Errorf("over its budget: %s", over)
	}
	earlier := usage.Record{At: time.Now(), Agent: "a", Session: "earlier", Of: usage.Of{Delivery: "d"}, Sum: usage.Sum{Cost: 3}}
	if err := errors.Join(os.Remove(folder), usage.Append(l.stateDir, "a", earlier)); err != nil {
		t.Fatal(err)
	}
	if over := s.overBudget(time.Now()); over == "" {
		t.Error("what it had cost before is not counted")
	}
}
