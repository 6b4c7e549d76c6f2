package proving

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
)

// desk is one at which nothing is checked.
func (l *lab) desk() *Desk {
	return New(Options{StateDir: l.state, Log: slog.New(slog.DiscardHandler), Note: func(e journal.Event) {
		if e.Kind == journal.Forged {
			l.lies = append(l.lies, e.Reason.Raw())
		}
	}})
}

// writesOver replaces text in the inbox, and makes every record that tells of the entry in
// flight agree with that, as the agent can.
func (l *lab) writesOver(old, anew string) {
	l.t.Helper()
	data, err := os.ReadFile(l.agent.Inbox)
	if err != nil || !bytes.Contains(data, []byte(old)) {
		l.t.Fatalf("%q is not in %q: %v", old, data, err)
	}
	if err := os.WriteFile(l.agent.Inbox, bytes.ReplaceAll(data, []byte(old), []byte(anew)), 0o600); err != nil {
		l.t.Fatal(err)
	}
	l.drop(inbox.FlightFile, ".inbox-meta", ".ids", ".inbox.jsonl.kept")
	l.claims()
	if f := l.flight(); f == nil || !f.Own || f.Renamed {
		l.t.Fatalf("the record does not agree: %+v", f)
	}
}

// filed is the text of the dead letters, with their reasons.
func (l *lab) filed() (all []string) {
	for _, d := range l.dead() {
		all = append(all, string(d.Reason)+" "+d.ID+" "+d.Prompt())
	}
	slices.Sort(all)
	return all
}

// TestATextThatNobodyQueuedIsForged: the inbox says something else than what was queued, and
// every record of the entry in flight agrees. Nothing is checked, and what was queued is
// filed with its text.
func TestATextThatNobodyQueuedIsForged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		byHand    bool
		old, anew string
		filed     []string
	}{
		"with the same id":                   {false, "mend it", "say hello", []string{"forged m1 mend it"}},
		"with another id":                    {false, `"id":"m1","source":"send","prompt":"mend it"`, `"id":"m9","source":"send","prompt":"say hello"`, []string{"forged m1 mend it", "forged m9 say hello"}},
		"without its id":                     {false, `{"heartbeat":1,"id":"m1","source":"send","prompt":"mend it"}`, "say hello", []string{"forged  say hello", "forged m1 mend it"}},
		"of a line that others have written": {true, "by hand", "say hello", []string{"forged  by hand", "forged  say hello"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(l *lab) {
				desk := l.desk()
				if c.byHand {
					l.prove(time.Hour)
					l.appends("by hand\n")
					if err := desk.Sees(l.t.Context(), l.agent, "a-1"); err != nil {
						t.Fatal(err)
					}
					l.claims()
				} else {
					desk.Sent(l.agent, inbox.Letter{ID: "m1", Prompt: "mend it"})
				}
				if err := desk.HandedOver(l.t.Context(), l.agent, "a-1"); err != nil {
					t.Fatal(err)
				}
				ran, replies := l.ran, l.replies()
				l.writesOver(c.old, c.anew)
				for range 2 { // what a look or a report of the session remembers in between is the same
					if err := desk.Sees(l.t.Context(), l.agent, "a-1"); err != nil {
						t.Fatal(err)
					}
					if err := desk.HandedOver(l.t.Context(), l.agent, "a-1"); err != nil {
						t.Fatal(err)
					}
				}
				if applied := l.prove(time.Hour); len(applied) != 1 || applied[0].Passed || applied[0].GiveUp != inbox.Forged {
					t.Errorf("applied %+v", applied)
				}
				if got := l.filed(); !slices.Equal(got, c.filed) {
					t.Errorf("filed %q, want %q", got, c.filed)
				}
				if forged, err := l.desk().Settle(l.t.Context(), l.agent, "a-1"); forged != 0 || err != nil {
					t.Errorf("at the end of the session %d more are forged: %v", forged, err)
				}
				if l.ran != ran || l.replies() != replies || l.flight() != nil || len(l.lies) != len(c.filed) {
					t.Errorf("%d checks, %d replies, in flight %+v, told %q", l.ran-ran, l.replies()-replies, l.flight(), l.lies)
				}
				if all, err := ledger.Texts(l.state, l.agent.Inbox); len(all) > 0 || err != nil {
					t.Errorf("still remembered: %+v, %v", all, err)
				}
			})
		})
	}
}

// TestAQueuedEntryThatIsWrittenOverIsNotLost: it is told and filed when the session ends,
// and what stands in its place is an entry as any other.
func TestAQueuedEntryThatIsWrittenOverIsNotLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		desk := l.desk()
		desk.Sent(l.agent, inbox.Letter{ID: "m1", Prompt: "mend it"})
		l.send("m2", "another")
		desk.Sent(l.agent, inbox.Letter{ID: "m2", Prompt: "another"})
		if err := desk.HandedOver(l.t.Context(), l.agent, "a-1"); err != nil {
			t.Fatal(err)
		}
		l.writesOver(`"id":"m2","source":"send","prompt":"another"`, `"id":"m8","source":"send","prompt":"say hello"`)
		l.prove(time.Hour)
		if forged, err := desk.Settle(l.t.Context(), l.agent, "a-1"); forged != 1 || err != nil || len(l.lies) != 1 {
			t.Errorf("%d are forged, told %q: %v", forged, l.lies, err)
		}
		if got := l.filed(); !slices.Equal(got, []string{"forged m2 another"}) || l.replies() != 1 || l.next() != "say hello" {
			t.Errorf("filed %q, %d replies, next %q", got, l.replies(), l.next())
		}
	})
}

// TestWhatIsQueuedByHandIsProvenAsItIs: also where nobody has looked before it was handed
// over, and where an id was sent again after it had ended.
func TestWhatIsQueuedByHandIsProvenAsItIs(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		l.prove(time.Hour)
		for i, line := range []string{"by hand\n", "by hand\n", `{"heartbeat":1,"id":"x","source":"me","prompt":"one"}` + "\n", `{"heartbeat":1,"prompt":"no id"}` + "\n", `"a string"` + "\n"} {
			l.appends(line)
			l.claims()
			if i%2 == 0 {
				if err := l.desk().HandedOver(l.t.Context(), l.agent, "a-1"); err != nil {
					t.Fatal(err)
				}
			}
			l.prove(time.Hour)
			if l.replies() != i+2 || l.flight() != nil {
				t.Fatalf("%q: %d replies, in flight %+v, told %q", line, l.replies(), l.flight(), l.lies)
			}
		}
		if forged, err := l.desk().Settle(l.t.Context(), l.agent, "a-1"); forged != 0 || err != nil || len(l.lies) > 0 {
			t.Errorf("%d are forged, told %q: %v", forged, l.lies, err)
		}
		if all, err := ledger.Texts(l.state, l.agent.Inbox); len(all) > 0 || err != nil {
			t.Errorf("still remembered: %+v, %v", all, err)
		}
	})
}

// TestWhatEndsOtherwiseIsNotForged: dropped, given up and queued again, deleted, or done
// when nothing had to be passed.
func TestWhatEndsOtherwiseIsNotForged(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(l *lab) error{
		"dropped": func(l *lab) error { _, err := queue.Drop(l.t.Context(), l.agent, []string{"m2"}); return err },
		"dropped, and queued again": func(l *lab) error {
			_, err := queue.Drop(l.t.Context(), l.agent, []string{"m2"})
			if err == nil {
				err = l.desk().Ended(l.t.Context(), l.agent)
			}
			if err == nil {
				_, err = queue.Retry(l.t.Context(), l.agent, []string{"m2"}, false)
			}
			return err
		},
		"dropped, and deleted": func(l *lab) error {
			_, err := queue.Drop(l.t.Context(), l.agent, []string{"m2"})
			if err == nil {
				err = l.desk().Ended(l.t.Context(), l.agent)
			}
			if err == nil {
				_, err = queue.Purge(l.t.Context(), l.agent, nil, true)
			}
			return err
		},
		"done without until": func(l *lab) error {
			l.prove(time.Hour)
			return l.heldErr(func(q *inbox.Held) error {
				e, err := q.Next()
				if err == nil {
					_, err = q.Offer(e, inbox.Offering{Session: "S"})
				}
				if err == nil {
					_, err = q.Acknowledge(inbox.Acknowledgement{Session: "S", Now: time.Now()})
				}
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(l *lab) {
				l.send("m2", "another")
				l.desk().Sent(l.agent, inbox.Letter{ID: "m2", Prompt: "another"})
				if err := end(l); err != nil {
					t.Fatal(err)
				}
				if forged, err := l.desk().Settle(l.t.Context(), l.agent, "a-1"); forged != 0 || err != nil || len(l.lies) > 0 {
					t.Errorf("%d are forged, told %q: %v", forged, l.lies, err)
				}
			})
		})
	}
}

// TestATextIsRememberedAsItWasFirstSeen: a later look changes nothing.
func TestATextIsRememberedAsItWasFirstSeen(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		desk := l.desk()
		if err := desk.Sees(l.t.Context(), l.agent, "a-1"); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(l.agent.Inbox)
		if err == nil {
			err = os.WriteFile(l.agent.Inbox, bytes.ReplaceAll(data, []byte("mend it"), []byte("say hi!")), 0o600)
		}
		if err == nil {
			err = desk.Sees(l.t.Context(), l.agent, "a-1")
		}
		all, failed := ledger.Texts(l.state, l.agent.Inbox)
		if len(all) != 1 || all[0].Text != "mend it" || err != nil || failed != nil {
			t.Errorf("%+v, %v, %v", all, err, failed)
		}
	})
}

func (l *lab) appends(text string) {
	l.t.Helper()
	f, err := os.OpenFile(filepath.Join(l.agent.Home, "inbox.jsonl"), os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		f.Close()
	}
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *lab) heldErr(do func(q *inbox.Held) error) error {
	q, err := queue.Open(l.agent)
	if err != nil {
		return err
	}
	defer q.Close()
	return q.Hold(l.t.Context(), do)
}
