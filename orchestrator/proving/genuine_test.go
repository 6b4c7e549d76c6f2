package proving

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/queue"
)

// rewrites changes the record of the entry in flight, as the agent can.
func (l *lab) rewrites(change func(record map[string]any)) {
	l.t.Helper()
	path := filepath.Join(l.agent.Home, inbox.FlightFile)
	var record map[string]any
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil {
		l.t.Fatal(err)
	}
	change(record)
	if data, err = json.Marshal(record); err == nil {
		err = os.WriteFile(path, append(data, '\n'), 0o600)
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

// saysLine puts another line into a record, with its hash.
func saysLine(record map[string]any, line string) {
	sum := sha256.Sum256([]byte(line))
	record["raw_line"], record["entry_id"] = line, hex.EncodeToString(sum[:])
}

func (l *lab) send(id, prompt string) {
	l.t.Helper()
	if _, err := queue.Append(l.t.Context(), l.agent, inbox.Letter{ID: id, Source: "send", Prompt: prompt}); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) demands(d ledger.Demand) {
	l.t.Helper()
	d.Inbox, d.At = l.agent.Inbox, time.Now()
	if err := ledger.KeepDemand(l.state, d); err != nil {
		l.t.Fatal(err)
	}
}

// next is the prompt that would be handed over now.
func (l *lab) next() (prompt string) {
	l.t.Helper()
	l.held(func(q *inbox.Held) error {
		if e, err := q.Next(); err == nil {
			prompt = e.Prompt
		}
		return nil
	})
	return prompt
}

// TestARecordThatNamesAnotherEntryHasToPassItsOwnCheck: what is demanded of the other one,
// or that it has nothing to pass, is not asked, and stays.
func TestARecordThatNamesAnotherEntryHasToPassItsOwnCheck(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]ledger.Demand{
		"nothing to pass": {ID: "other", Text: "tidy up", Nothing: true}, "another check": {ID: "other", Text: "tidy up", Until: config.NewUntil("true")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(l *lab) {
				l.demands(other)
				l.send("other", other.Text)
				l.rewrites(func(r map[string]any) { r["id"] = "other" })
				l.answer = proof.Result{Answer: proof.Failed, Why: "exit status 1", Said: "x"}
				l.prove(time.Hour)
				f := l.flight()
				if f == nil || f.State != inbox.Unproven || f.ID != "m1" || l.ran != 1 || l.book().Course(f.DeliveryID).From != ledger.FromAgent {
					t.Fatalf("after %d checks: %+v", l.ran, f)
				}
				if d, err := ledger.DemandOf(l.state, l.agent.Inbox, "other"); d == nil || d.Passed != "" || err != nil {
					t.Errorf("what is demanded of the other: %+v %v", d, err)
				}
				if len(l.lies) != 1 || !strings.Contains(l.lies[0], "named another entry") {
					t.Errorf("told: %q", l.lies)
				}
			})
		})
	}
}

// TestADemandOfAnotherTextIsNotThisEntrys: the agent can write an id into its inbox, too.
func TestADemandOfAnotherTextIsNotThisEntrys(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		l.demands(ledger.Demand{ID: "m1", Text: "tidy up", Nothing: true})
		l.answer = proof.Result{Answer: proof.Failed, Why: "exit status 1", Said: "x"}
		l.prove(time.Hour)
		if f := l.flight(); f == nil || f.State != inbox.Unproven || l.ran != 1 {
			t.Errorf("after %d checks: %+v", l.ran, f)
		}
	})
}

// TestAForgedRecordIsFiledAndNeverPasses: nothing is checked by it, nobody is asked about
// it, and what was handed over is what is filed. The queue goes on.
func TestAForgedRecordIsFiledAndNeverPasses(t *testing.T) {
	t.Parallel()
	line := func(id, prompt string) string {
		return `{"heartbeat":1,"id":"` + id + `","source":"send","prompt":"` + prompt + `"}`
	}
	for name, forge := range map[string]func(r map[string]any){
		"a harmless prompt": func(r map[string]any) { saysLine(r, line("m1", "fix a typo")) },
		"the next line":     func(r map[string]any) { saysLine(r, line("m2", "another")); r["id"] = "m2" },
		"a delivery":        func(r map[string]any) { r["delivery_id"] = "aaaaaaaaaaaa" },
		"all of it, of a line that is nowhere": func(r map[string]any) {
			saysLine(r, line("m9", "fix a typo"))
			r["delivery_id"], r["id"] = "bbbbbbbbbbbb", "m9"
		},
		"and that it waits aside": func(r map[string]any) {
			saysLine(r, line("m1", "fix a typo"))
			r["aside"] = map[string]any{"since": "2026-01-01T00:00:00Z"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(l *lab) {
				l.send("m2", "another")
				delivery := l.flight().DeliveryID
				l.rewrites(forge)
				applied := l.prove(time.Hour)
				dead := l.dead()
				if len(dead) != 1 || dead[0].Reason != inbox.Forged || dead[0].ID != "m1" || dead[0].DeliveryID != delivery || !strings.Contains(dead[0].RawLine, "mend it") {
					t.Fatalf("filed: %+v", dead)
				}
				if l.ran != 0 || l.flight() != nil || l.replies() != 0 || len(l.lies) != 1 || len(applied) != 1 || l.next() != "another" {
					t.Errorf("%d checks, %d replies, in flight %+v, told %q, next %q", l.ran, l.replies(), l.flight(), l.lies, l.next())
				}
			})
		})
	}
}

// TestALineThatWasHandedOverIsKnown, also where its inbox is not the same any more; another
// one of the same delivery is not.
func TestALineThatWasHandedOverIsKnown(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		desk := New(Options{StateDir: l.state})
		if _, err := desk.HandedOver(l.agent, "a-1"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(l.agent.Inbox, []byte("something else\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		f := l.flight()
		if f.Own || !desk.Genuine(l.agent, "a-1", f) {
			t.Errorf("it is not known: %+v", f)
		}
		f.EntryID = strings.Repeat("0", 64)
		if desk.Genuine(l.agent, "a-1", f) {
			t.Error("another line is")
		}
		l.prove(time.Hour)
		if l.ran != 1 || l.flight() != nil || len(l.lies) != 0 {
			t.Errorf("%d checks, in flight %+v, told %q", l.ran, l.flight(), l.lies)
		}
	})
}

// TestAnAsideThatNobodyKnowsDoesNotCount: the cursor stayed before an entry that had passed,
// and it was worked on again.
func TestAnAsideThatNobodyKnowsDoesNotCount(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		l.send("m2", "another")
		l.rewrites(func(r map[string]any) { r["aside"] = map[string]any{"since": "2026-01-01T00:00:00Z"} })
		l.prove(time.Hour)
		if l.ran != 1 || l.replies() != 1 || l.next() != "another" || len(l.lies) != 1 {
			t.Errorf("%d checks, %d replies, next %q, told %q", l.ran, l.replies(), l.next(), l.lies)
		}
	})
}

// TestWhatIsProvenIsNotProvenAgain: put in flight once more it only leaves the queue.
func TestWhatIsProvenIsNotProvenAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		kept := map[string][]byte{}
		for _, name := range []string{inbox.FlightFile, inbox.CursorFile, ".inbox-meta"} {
			kept[name], _ = os.ReadFile(filepath.Join(l.agent.Home, name))
		}
		l.prove(time.Hour)
		for name, data := range kept {
			l.drop(name)
			if len(data) > 0 {
				l.write(name, string(data))
			}
		}
		l.rewrites(func(r map[string]any) {
			r["check"] = 7
			r["claim"] = map[string]any{"since": "2026-01-01T00:00:00Z", "reply": "something else"}
		})
		if f := l.flight(); f == nil || f.State != inbox.Checking {
			t.Fatalf("it is not in flight: %+v", f)
		}
		applied := l.prove(time.Hour)
		if l.ran != 1 || l.flight() != nil || l.replies() != 1 || len(applied) != 0 || l.next() != "" {
			t.Errorf("%d checks, in flight %+v, %d replies, applied %+v", l.ran, l.flight(), l.replies(), applied)
		}
	})
}
