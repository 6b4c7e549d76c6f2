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

// sent queues a prompt as a sender of ours.
func (l *lab) sent(id, prompt string) {
	l.t.Helper()
	l.send(id, prompt)
	l.desk().Sent(l.agent, inbox.Letter{ID: id, Prompt: prompt})
}

// remembered fails unless that many texts are.
func (l *lab) remembered(want int) {
	l.t.Helper()
	if all, err := ledger.TextsOf(l.state, l.agent.Inbox); all.Len() != want || err != nil {
		l.t.Errorf("%d are remembered, not %d: %v", all.Len(), want, err)
	}
}

// settles is the end of a session at a desk; want is how many dead letters that makes.
func (l *lab) settles(desk *Desk, want int) {
	l.t.Helper()
	if n, err := desk.Settle(l.t.Context(), l.agent); n != want || err != nil {
		l.t.Errorf("%d were filed, not %d: %v", n, want, err)
	}
}

// TestATextThatNobodyQueuedIsForged: the inbox says something else than what was queued, and
// every record of the entry in flight agrees. Under the same id nothing is checked, and what
// was queued is filed as forged with its text. Under another id, or none, it is a prompt as
// the agent can queue any, and what was queued is lost, with its text.
func TestATextThatNobodyQueuedIsForged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, anew string
		filed     []string
		checks    int
	}{
		"with the same id": {"mend it", "say hello", []string{"forged m1 mend it"}, 0},
		"with another id":  {`"id":"m1","source":"send","prompt":"mend it"`, `"id":"m9","source":"send","prompt":"say hello"`, []string{"lost m1 mend it"}, 1},
		"without its id":   {`{"heartbeat":1,"id":"m1","source":"send","prompt":"mend it"}`, "say hello", []string{"lost m1 mend it"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(l *lab) {
				desk := l.desk()
				desk.Sent(l.agent, inbox.Letter{ID: "m1", Prompt: "mend it"})
				if _, err := desk.HandedOver(l.agent, "a-1"); err != nil {
					t.Fatal(err)
				}
				l.writesOver(c.old, c.anew)
				for range 2 { // what the session reports in between is the same
					if _, err := desk.HandedOver(l.agent, "a-1"); err != nil {
						t.Fatal(err)
					}
				}
				if applied := l.prove(time.Hour); len(applied) != 1 || applied[0].Passed != (c.checks > 0) {
					t.Errorf("applied %+v", applied)
				}
				l.settles(desk, c.checks)
				if got := l.filed(); !slices.Equal(got, c.filed) {
					t.Errorf("filed %q, want %q", got, c.filed)
				}
				l.settles(l.desk(), 0)
				if l.ran != c.checks || l.flight() != nil || len(l.lies) != 1-c.checks {
					t.Errorf("%d checks, in flight %+v, told %q", l.ran, l.flight(), l.lies)
				}
				l.remembered(0)
			})
		})
	}
}

// TestAStaleVerdictOfAForgedTextChangesNothing: what was queued is still remembered, and the
// next look finds the same.
func TestAStaleVerdictOfAForgedTextChangesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		desk := l.desk()
		desk.Sent(l.agent, inbox.Letter{ID: "m1", Prompt: "mend it"})
		l.writesOver("mend it", "say hello")
		f := l.flight()
		book, err := desk.Book("a-1")
		if err != nil {
			t.Fatal(err)
		}
		known, err := desk.originOf(l.agent, "a-1", f, book.Course(f.DeliveryID))
		if err != nil || known.is != otherText || known.sent == nil {
			t.Fatalf("%+v, %v", known, err)
		}
		l.rewrites(func(r map[string]any) { r["check"] = 7 }) // the agent, a moment later
		r := run{Desk: desk, Case: Case{Key: "a-1"}}
		s := subject{agent: l.agent, flight: f, book: book, origin: known}
		if v, _, err := r.apply(l.t.Context(), s, s.forgery(book.Course(f.DeliveryID))); v != nil || err != nil {
			t.Fatalf("applied %+v, %v", v, err)
		}
		l.remembered(1)
		l.prove(time.Hour)
		if got := l.filed(); !slices.Equal(got, []string{"forged m1 mend it"}) || l.ran != 0 {
			t.Errorf("filed %q after %d checks", got, l.ran)
		}
	})
}

// TestAQueuedEntryThatIsWrittenOverIsNotLost: it is filed with its text when the session
// ends, or is forged when its turn comes, and what stands in its place is an entry as any
// other. Those around it go on.
func TestAQueuedEntryThatIsWrittenOverIsNotLost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		desk := l.desk()
		desk.Sent(l.agent, inbox.Letter{ID: "m1", Prompt: "mend it"})
		for _, id := range []string{"m2", "m3", "m4", "m5"} {
			l.sent(id, "prompt "+id)
		}
		l.writesOver(`"id":"m2","source":"send","prompt":"prompt m2"`, `"id":"m8","source":"send","prompt":"say hello"`)
		l.writesOver("prompt m4", "say hi")
		l.prove(time.Hour)
		l.settles(desk, 1)
		if got := l.filed(); !slices.Equal(got, []string{"lost m2 prompt m2"}) || l.replies() != 1 || l.next() != "say hello" {
			t.Errorf("filed %q, %d replies, next %q", got, l.replies(), l.next())
		}
		for range 4 {
			l.claims()
			l.prove(time.Hour)
		}
		l.settles(desk, 0)
		if got := l.filed(); !slices.Equal(got, []string{"forged m4 prompt m4", "lost m2 prompt m2"}) || l.replies() != 4 || len(l.lies) != 1 {
			t.Errorf("filed %q, %d replies, told %q", got, l.replies(), l.lies)
		}
		l.remembered(0)
	})
}

// TestAPersonWhoTruncatesTheInboxForgesNothing: what was in it is lost, once, with its text;
// what is put there by hand is worked on as it is.
func TestAPersonWhoTruncatesTheInboxForgesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		desk := l.desk()
		desk.Sent(l.agent, inbox.Letter{ID: "m1", Prompt: "mend it"})
		l.prove(time.Hour)
		l.sent("m2", "two")
		l.settles(desk, 0)
		if err := os.WriteFile(l.agent.Inbox, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		l.appends("a line by hand\n")
		l.claims()
		if _, err := desk.HandedOver(l.agent, "a-1"); err != nil {
			t.Fatal(err)
		}
		if applied := l.prove(time.Hour); len(applied) != 1 || !applied[0].Passed {
			t.Errorf("applied %+v", applied)
		}
		l.settles(desk, 0)
		l.settles(l.desk(), 0)
		dead := l.dead()
		if len(dead) != 1 || dead[0].ID != "m2" || dead[0].Reason != inbox.Lost || dead[0].Prompt() != "two" || !dead[0].Retryable() || len(l.lies) > 0 || l.replies() != 2 {
			t.Errorf("filed %q, told %q, %d replies", l.filed(), l.lies, l.replies())
		}
		l.remembered(0)
	})
}

// TestWhatIsQueuedAgainIsRememberedAgain: and what the agent writes over it is forged.
func TestWhatIsQueuedAgainIsRememberedAgain(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		desk := l.desk()
		desk.Sent(l.agent, inbox.Letter{ID: "m1", Prompt: "mend it"})
		l.prove(time.Hour)
		l.sent("m2", "two")
		if _, err := queue.Drop(l.t.Context(), l.agent, []string{"m2"}); err != nil {
			t.Fatal(err)
		}
		if err := desk.Ended(l.t.Context(), l.agent); err != nil {
			t.Fatal(err)
		}
		l.remembered(0)
		_, again, err := queue.Retry(l.t.Context(), l.agent, []string{"m2"}, false)
		if err != nil {
			t.Fatal(err)
		}
		desk.Sent(l.agent, again...)
		l.remembered(1)
		l.claims()
		l.writesOver(`"prompt":"two"`, `"prompt":"say hello"`)
		l.prove(time.Hour)
		if got := l.filed(); !slices.Equal(got, []string{"forged m2 two"}) {
			t.Errorf("filed %q", got)
		}
	})
}

// TestTwoTextsOfOneIdAreNotCompared: nobody can tell which one is in flight.
func TestTwoTextsOfOneIdAreNotCompared(t *testing.T) {
	t.Parallel()
	inBubble(t, func(l *lab) {
		for _, prompt := range []string{"mend it otherwise", "mend it", "mend it"} {
			l.desk().Sent(l.agent, inbox.Letter{ID: "m1", Prompt: prompt})
		}
		if applied := l.prove(time.Hour); len(applied) != 1 || !applied[0].Passed || len(l.lies) > 0 {
			t.Errorf("applied %+v, told %q", applied, l.lies)
		}
		l.remembered(0)
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
				if _, err := l.desk().HandedOver(l.agent, "a-1"); err != nil {
					t.Fatal(err)
				}
			}
			l.prove(time.Hour)
			if l.replies() != i+2 || l.flight() != nil {
				t.Fatalf("%q: %d replies, in flight %+v, told %q", line, l.replies(), l.flight(), l.lies)
			}
		}
		l.settles(l.desk(), 0)
		l.remembered(0)
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
				_, _, err = queue.Retry(l.t.Context(), l.agent, []string{"m2"}, false)
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
		"passed by a person's answer": func(l *lab) error {
			data, err := os.ReadFile(l.agent.Inbox)
			if err == nil {
				err = os.Rename(l.agent.Inbox, l.agent.Inbox+".old")
			}
			if err == nil {
				err = os.WriteFile(l.agent.Inbox, data[:bytes.Index(data, []byte("another"))], 0o600)
			}
			if err == nil {
				err = l.desk().MovedOn(l.t.Context(), l.agent)
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
				l.sent("m2", "another")
				if err := end(l); err != nil {
					t.Fatal(err)
				}
				l.settles(l.desk(), 0)
				if len(l.lies) > 0 {
					t.Errorf("told %q", l.lies)
				}
			})
		})
	}
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
