package proving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/later"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
)

// TestASenderThatWasKilledHasQueuedNothing: what its prompt had to pass was recorded, and
// an entry that was never queued was told as forged. One that was queued is told.
func TestASenderThatWasKilledHasQueuedNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queued, seen bool
		want         journal.Kind
	}{
		"never queued": {false, false, journal.NotQueued}, "confirmed and removed": {true, false, journal.Forged}, "seen and removed": {false, true, journal.Forged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, state := t.TempDir(), t.TempDir()
			a := &config.Agent{Name: "a", Dir: dir, Home: dir, Inbox: dir + "/inbox.jsonl", MaxEntry: inbox.DefaultMaxEntry}
			var told []journal.Kind
			desk := New(Options{StateDir: state, Log: slog.New(slog.DiscardHandler), Note: func(e journal.Event) { told = append(told, e.Kind) }})
			settle := func() {
				if _, err := desk.Settle(t.Context(), a); err != nil {
					t.Fatal(err)
				}
			}
			l := inbox.Letter{ID: "p", Source: "send", Prompt: "mend it"}
			end, err := ledger.Asks(state, ledger.Demand{ID: l.ID, Inbox: a.Inbox, Text: l.Prompt, Until: config.NewUntil("true"), At: time.Now().Add(-time.Hour)})
			if err != nil {
				t.Fatal(err)
			}
			if c.queued {
				if err := end(true); err != nil {
					t.Fatal(err)
				}
			}
			if c.seen {
				if _, err := queue.Append(t.Context(), a, l); err != nil {
					t.Fatal(err)
				}
				settle()
				if err := os.WriteFile(a.Inbox, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := queue.Append(t.Context(), a, inbox.Letter{ID: "other", Prompt: "x"}); err != nil {
				t.Fatal(err)
			}
			settle()
			settle()
			if len(told) != 1 || told[0] != c.want {
				t.Errorf("%v", told)
			}
		})
	}
}

// TestWhatAKilledSessionHasLeftIsComparedWithItsOwnUntil: without until: in the file of the
// next run, what a session had called done without a check counted as done.
func TestWhatAKilledSessionHasLeftIsComparedWithItsOwnUntil(t *testing.T) {
	t.Parallel()
	until := config.NewUntil("make", "test")
	for name, c := range map[string]struct {
		then, now *config.Until
		want      int // filed
	}{
		"the same": {until, until, 1}, "removed": {until, nil, 1}, "another": {until, config.NewUntil("make", "lint"), 1},
		"declared since": {nil, until, 0}, "never": {nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(l *lab) {
				l.prove(time.Hour) // m1 is done
				l.send("m2", "mend that")
				l.demands(ledger.Demand{ID: "other", Until: until, Queued: true}) // so that there is a mark without until:, too
				l.send("other", "prove this")
				l.agent.Until = c.then
				mark := queue.EndOfReplies(l.agent)
				if err := errors.Join(l.desk().Begins(l.agent, "a-1"), l.desk().Marks(l.agent, "a-1", &mark)); err != nil {
					t.Fatal(err)
				}
				l.held(func(q *inbox.Held) error {
					e, err := q.Next()
					if err == nil {
						_, err = q.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: "s"})
					}
					if err == nil {
						_, err = q.Acknowledge(inbox.Acknowledgement{Session: "s", Reply: "I say so", Now: time.Now()})
					}
					return err
				})
				l.agent.Until = c.now // and the scheduler was killed
				if n, err := l.desk().Left(l.t.Context(), l.agent, "a-1"); n != c.want || err != nil {
					t.Errorf("%d were filed, not %d: %v", n, c.want, err)
				}
				if dead := l.dead(); len(dead) != c.want || c.want == 1 && dead[0].Reason != inbox.Forged {
					t.Errorf("dead letters %+v", dead)
				}
			})
		})
	}
}

// TestAForgedReplyIsNoneUntilItIsProven: of two records of an entry, who waits and who
// lists take the one that the state directory knows to be proven.
func TestAForgedReplyIsNoneUntilItIsProven(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	a := &config.Agent{Name: "a", Dir: dir, Home: dir, Inbox: dir + "/inbox.jsonl", MaxEntry: inbox.DefaultMaxEntry}
	unproven := func(a *config.Agent, d inbox.Delivery) bool {
		is, err := ledger.Unproven(state, "", a.Inbox, d, true)
		return is || err != nil
	}
	if err := ledger.KeepDemand(state, ledger.Demand{ID: "p", Inbox: a.Inbox, Until: config.NewUntil("true"), At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	record := func(delivery, reply string) string {
		return fmt.Sprintf(`{"delivery_id":%q,"entry_id":"e","id":"p","acknowledged_at":"2026-03-01T12:00:00Z","reply":%q,"verdict":{"iteration":1}}`+"\n", delivery, reply)
	}
	expect := func(reply string, doubts ...bool) {
		t.Helper()
		all, err := queue.Replies(t.Context(), []*config.Agent{a}, time.Time{}, 10, unproven)
		if err != nil || len(all) != len(doubts) {
			t.Fatalf("%+v %v", all, err)
		}
		for i, r := range all {
			if r.NotProven != doubts[i] {
				t.Errorf("%q is not proven: %t", r.Reply, r.NotProven)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if reply == "" {
			cancel() // there is nothing to wait for
		}
		defer cancel()
		d, err := queue.Await(ctx, a, "p", unproven)
		if reply == "" && d != nil || reply != "" && (err != nil || d.Reply != reply) {
			t.Errorf("%+v %v", d, err)
		}
	}
	lines := record("000000000001", "forged")
	put := func() {
		t.Helper()
		if err := os.WriteFile(dir+"/outbox.jsonl", []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put()
	expect("", true)
	if err := ledger.Passes(state, a.Inbox, "p", "000000000002"); err != nil {
		t.Fatal(err)
	}
	lines += record("000000000002", "proven") + record("000000000003", "forged after it")
	put()
	expect("proven", true, false, true)
}

// TestWhatATimedPromptHasToPassWaitsWithIt, however late it is; until then an entry with the
// same text is another one. What somebody has removed before its time is let go.
func TestWhatATimedPromptHasToPassWaitsWithIt(t *testing.T) {
	t.Parallel()
	dir, state := t.TempDir(), t.TempDir()
	a := &config.Agent{Name: "a", Dir: dir, Home: dir + "/.heartbeat", Inbox: dir + "/.heartbeat/inbox.jsonl", MaxEntry: inbox.DefaultMaxEntry}
	if err := os.Mkdir(a.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	var told []journal.Kind
	desk := New(Options{StateDir: state, Log: slog.New(slog.DiscardHandler), Note: func(e journal.Event) { told = append(told, e.Kind) }})
	settle := func(kept bool, want ...journal.Kind) {
		t.Helper()
		if forged, err := desk.Settle(t.Context(), a); forged != 0 || err != nil {
			t.Fatal(forged, err)
		}
		if d, err := ledger.DemandOf(state, a.Inbox, "p"); (d != nil) != kept || err != nil || !slices.Equal(told, want) {
			t.Errorf("kept %+v, %v, told %v", d, err, told)
		}
	}
	before := time.Now().Add(-time.Hour)
	keep := func() {
		t.Helper()
		if err := ledger.KeepDemand(state, ledger.Demand{ID: "p", Inbox: a.Inbox, Text: "mend it", Until: config.NewUntil("true"), At: before, Due: before.Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		if _, err := later.Put(t.Context(), a, later.Prompt{ID: "p", At: before.Add(time.Minute), Text: "mend it"}); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	if _, err := queue.Append(t.Context(), a, inbox.Letter{ID: "other", Prompt: "mend it"}); err != nil {
		t.Fatal(err)
	}
	settle(true)
	if desk.Demands(a, &inbox.InFlight{ID: "other", RawLine: "mend it"}) {
		t.Error("another entry has to pass what it has to")
	}
	if err := later.Cancel(t.Context(), a, "p"); err != nil {
		t.Fatal(err)
	}
	if !desk.Demands(a, &inbox.InFlight{ID: "another id of the agent's", RawLine: "mend it"}) {
		t.Error("an agent writes another id, and its work is not checked")
	}
	if _, err := queue.Drop(t.Context(), a, []string{"other"}); err != nil {
		t.Fatal(err)
	}
	settle(false, journal.NotQueued)
	keep()
	checked, end, err := desk.Due(a, "p")
	if !checked || err != nil {
		t.Fatal(checked, err)
	}
	if _, err := queue.Append(t.Context(), a, inbox.Letter{ID: "p", Prompt: "mend it", Checked: checked}); err != nil {
		t.Fatal(err)
	}
	end(true)
	settle(true, journal.NotQueued)
	if d, err := ledger.DemandOf(state, a.Inbox, "p"); err != nil || !d.Queued {
		t.Errorf("%+v, %v", d, err)
	}
}
