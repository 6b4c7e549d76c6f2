package ledger

import (
	"slices"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/state"
)

// TestWhatIsRecordedMovesToAnotherInbox: also after it was interrupted between any two
// steps, and beside what is recorded there already.
func TestWhatIsRecordedMovesToAnotherInbox(t *testing.T) {
	t.Parallel()
	const from, to = "/from/inbox.jsonl", "/to/inbox.jsonl"
	for name, before := range map[string]func(dir string) error{
		"once":  func(string) error { return nil },
		"again": func(dir string) error { return Move(dir, from, to, "m1", "m2") },
		"the text is in both": func(dir string) error {
			return state.Put(textFolder(dir, to)+"/"+textName("m1"), Text{ID: "m1", Inbox: to, Text: "one"})
		},
		"the demand is in both": func(dir string) error {
			return KeepDemand(dir, Demand{ID: "m2", Inbox: to, Text: "two", Until: config.NewUntil("lint"), At: time.Now()})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a := &config.Agent{Inbox: from, Until: config.NewUntil("true")}
			err := Queued(dir, a, inbox.Letter{ID: "m1", Prompt: "one"}, inbox.Letter{ID: "m2", Prompt: "two"}, inbox.Letter{ID: "stays", Prompt: "three"})
			if err == nil {
				err = KeepDemand(dir, Demand{ID: "m2", Inbox: from, Text: "two", Until: config.NewUntil("lint"), At: time.Now()})
			}
			if err == nil {
				err = before(dir)
			}
			if err == nil {
				err = Move(dir, from, to, "m1", "m2", "unknown")
			}
			if err != nil {
				t.Fatal(err)
			}
			for id, want := range map[string][2]string{"m1": {"", "one"}, "m2": {"", "two"}, "stays": {"three", ""}} {
				for i, path := range []string{from, to} {
					got, err := TextOf(dir, path, id)
					if err != nil || (got != nil) != (want[i] != "") || got != nil && (got.Text != want[i] || got.Inbox != path) {
						t.Errorf("%s in %s: %+v, %v", id, path, got, err)
					}
				}
			}
			if d, err := DemandOf(dir, to, "m2"); err != nil || d == nil || d.Inbox != to || d.Until.Check[0] != "lint" {
				t.Errorf("%+v, %v", d, err)
			}
			if d, err := DemandOf(dir, from, "m2"); d != nil || err != nil {
				t.Errorf("it is still recorded: %+v, %v", d, err)
			}
			all, err := Inboxes(dir)
			if slices.Sort(all); err != nil || !slices.Equal(all, []string{from, to}) {
				t.Errorf("inboxes %q, %v", all, err)
			}
		})
	}
}

// TestTwoTextsOfOneIdAreNoneWhereverTheyCameFrom.
func TestTwoTextsOfOneIdAreNoneWhereverTheyCameFrom(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, text := range map[string]string{"/from": "one", "/to": "another"} {
		if err := Queued(dir, &config.Agent{Inbox: path, Until: config.NewUntil("true")}, inbox.Letter{ID: "m1", Prompt: text}); err != nil {
			t.Fatal(err)
		}
	}
	if err := Move(dir, "/from", "/to", "m1"); err != nil {
		t.Fatal(err)
	}
	if got, err := TextOf(dir, "/to", "m1"); got != nil || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
}
