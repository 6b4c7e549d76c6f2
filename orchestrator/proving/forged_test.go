package proving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/queue"
)

// TestAnUrgentEntryWithAForgedRecordIsNotLost: nor is any other, whichever lane the record
// says. One that stands goes on, and what is filed can be queued again.
func TestAnUrgentEntryWithAForgedRecordIsNotLost(t *testing.T) {
	t.Parallel()
	for _, urgent := range []bool{false, true} {
		for _, says := range []bool{false, true} {
			for _, what := range []string{"in flight", "record removed", "passed", "passed later", "line gone", "no delivery id"} {
				t.Run(fmt.Sprintf("urgent %t, the record says %t, %s", urgent, says, what), func(t *testing.T) {
					t.Parallel()
					inBubble(t, func(l *lab) { l.testForged(urgent, says, what) })
				})
			}
		}
	}
}

func (l *lab) testForged(urgent, says bool, what string) {
	t := l.t
	l.prove(time.Hour) // m1 is done
	demand := ledger.Demand{ID: "e27", Inbox: l.agent.Inbox, Text: "it is urgent", Until: config.NewUntil("make", "test"), At: time.Now()}
	if err := ledger.KeepDemand(l.state, demand); err != nil {
		t.Fatal(err)
	}
	if _, err := queue.Append(t.Context(), l.agent, inbox.Letter{ID: "e27", Source: "send", Prompt: demand.Text, Urgent: urgent}); err != nil {
		t.Fatal(err)
	}
	mark := queue.EndOfReplies(l.agent)
	l.claims()
	l.answer = proof.Result{Answer: proof.Failed, Why: "exit status 1", Said: "x"}
	l.prove(time.Hour)
	delivery := l.flight().DeliveryID
	record := fmt.Sprintf(`{"delivery_id":%q,"entry_id":"x","source":"send","urgent":%t,"attempt":1,"delivered_at":"2999-01-01T00:00:00Z","reply":"done"}`, delivery, says)
	switch what {
	case "line gone":
		record = fmt.Sprintf(`{"delivery_id":%q,"entry_id":"x","id":"e27","urgent":%t,"attempt":1}`, delivery, says)
	case "no delivery id":
		record = fmt.Sprintf(`{"entry_id":"x","id":"e27","urgent":%t,"attempt":1}`, says)
	}
	l.write("outbox.jsonl", record+"\n")
	lines, cursor, flight := "inbox.jsonl", inbox.CursorFile, inbox.FlightFile
	if urgent {
		lines, cursor, flight = inbox.UrgentFile, inbox.UrgentCursor, inbox.UrgentFlight
	}
	pass := func() {
		info, err := os.Stat(filepath.Join(l.agent.Home, lines))
		if err != nil {
			t.Fatal(err)
		}
		l.drop(flight, cursor)
		l.write(cursor, fmt.Sprint(info.Size()))
	}
	switch what {
	case "record removed":
		l.drop(flight)
	case "passed":
		pass()
	case "line gone":
		l.drop(flight, lines, "."+lines+".kept", ".ids")
	}
	told, filed := l.forged(&mark)
	if what == "passed later" && told == 1 && filed == 0 {
		pass()
		l.forged(&mark)
	}
	dead := l.dead()
	switch what {
	case "in flight", "record removed", "no delivery id":
		if stands, err := queue.Stands(l.agent, "e27"); told != 1 || filed != 0 || len(dead) != 0 || !stands || err != nil {
			t.Fatalf("told %d, filed %d: %+v; it stands: %t, %v", told, filed, dead, stands, err)
		}
		l.claims()
		l.answer = proof.Result{Answer: proof.Passed}
		l.prove(time.Hour)
		if f := l.flight(); f != nil || len(l.dead()) != 0 || !l.book().Passed(delivery) {
			t.Errorf("it has not gone on: %+v", f)
		}
	default:
		if told != 1 || len(dead) != 1 || dead[0].DeliveryID != delivery || dead[0].ID != "e27" || !dead[0].Retryable() {
			t.Fatalf("told %d, filed %d: %+v", told, filed, dead)
		}
		l.held(func(q *inbox.Held) error {
			if n, err := q.RetryDead(delivery); n != 1 || err != nil {
				t.Errorf("%d queued again, %v", n, err)
			}
			if e, err := q.Next(); err != nil || e.Prompt != demand.Text || e.ID != "e27" {
				t.Errorf("%+v, %v", e, err)
			}
			return nil
		})
	}
}

// forged compares, and returns how many records were told and how many entries filed.
func (l *lab) forged(m *inbox.OutboxMark) (told, filed int) {
	l.t.Helper()
	desk := New(Options{StateDir: l.state, Log: slog.New(slog.DiscardHandler), Note: func(e journal.Event) {
		if e.Kind == journal.Forged {
			told++
		}
	}})
	all, err := desk.Forged(context.Background(), l.agent, "a-1", m)
	if err != nil {
		l.t.Fatal(err)
	}
	return told, len(all.Filed)
}

func (l *lab) dead() (all []inbox.DeadEntry) {
	l.t.Helper()
	l.held(func(q *inbox.Held) error {
		for d, err := range q.DeadLetters() {
			if err != nil {
				return err
			}
			all = append(all, d)
		}
		return nil
	})
	return all
}

// write appends to a file of the agent's.
func (l *lab) write(name, text string) {
	l.t.Helper()
	file, err := os.OpenFile(filepath.Join(l.agent.Home, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.WriteString(text)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) drop(names ...string) {
	l.t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(l.agent.Home, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			l.t.Fatal(err)
		}
	}
}

// TestARecordThatIsNotTheVerdictsIsTold, and not filed: its entry has passed. Who lists
// replies sees which it is, whatever it says of its time.
func TestARecordThatIsNotTheVerdictsIsTold(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]bool{"before the verdict": true, "after it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(l *lab) {
				if err := l.book().Begins(true); err != nil {
					t.Fatal(err)
				}
				mark := queue.EndOfReplies(l.agent)
				delivery := l.flight().DeliveryID
				record := fmt.Sprintf(`{"delivery_id":%q,"entry_id":"x","id":"m1","attempt":1,"acknowledged_at":"1999-01-01T00:00:00Z","reply":"forged","verdict":{"by":"check","iteration":1}}`, delivery)
				if early {
					l.write("outbox.jsonl", record+"\n")
				}
				l.prove(time.Hour)
				if !early {
					l.write("outbox.jsonl", record+"\n")
				}
				if told, filed := l.forged(&mark); told != 1 || filed != 0 || len(l.dead()) != 0 {
					t.Errorf("told %d, filed %d: %+v", told, filed, l.dead())
				}
				if told, _ := l.forged(&mark); told != 0 {
					t.Error("it is told again")
				}
				unproven := func(a *config.Agent, d inbox.Delivery) bool {
					is, err := ledger.Unproven(l.state, "a-1", a.Inbox, d, false)
					return is || err != nil
				}
				all, err := queue.Replies(t.Context(), []*config.Agent{l.agent}, time.Time{}, 10, unproven)
				if err != nil || len(all) != 2 {
					t.Fatalf("%+v %v", all, err)
				}
				for _, r := range all {
					if r.NotProven != (r.Reply == "forged") {
						t.Errorf("%q is not proven: %t", r.Reply, r.NotProven)
					}
				}
				d, err := queue.Await(context.Background(), l.agent, "m1", unproven)
				if err != nil || d.Reply != "I am done" {
					t.Errorf("awaited: %+v %v", d, err)
				}
			})
		})
	}
}

// TestTheRecordHasTheVerdictsIteration: the agent can write another one into its own record.
func TestTheRecordHasTheVerdictsIteration(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		l.rewrites(func(r map[string]any) { r["iteration"] = 9 })
		l.prove(time.Hour)
		all, err := queue.Replies(t.Context(), []*config.Agent{l.agent}, time.Time{}, 10, nil)
		if err != nil || len(all) != 1 || all[0].Verdict.Iteration != 1 {
			t.Errorf("%+v %v", all, err)
		}
	})
}
