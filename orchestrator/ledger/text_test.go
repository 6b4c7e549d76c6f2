package ledger

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// TestQueuedIsRememberedByItsId: only what may have to be proven, and has an id; not what has
// nothing to pass. Two texts of one id are none, and a damaged file is none.
func TestQueuedIsRememberedByItsId(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	plain, proves := &config.Agent{Inbox: "/a/inbox.jsonl"}, &config.Agent{Inbox: "/a/inbox.jsonl", Until: config.NewUntil("true")}
	if err := KeepDemand(state, Demand{ID: "nothing", Inbox: proves.Inbox, Nothing: true, At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for _, q := range []struct {
		a *config.Agent
		l inbox.Letter
	}{
		{plain, inbox.Letter{ID: "plain", Prompt: "x"}},
		{plain, inbox.Letter{ID: "checked", Prompt: "x", Checked: true}},
		{proves, inbox.Letter{ID: "m1", Prompt: "one"}},
		{proves, inbox.Letter{ID: "m1", Prompt: "one"}},
		{proves, inbox.Letter{ID: "m2", Prompt: "two"}},
		{proves, inbox.Letter{ID: "m2", Prompt: "another"}},
		{proves, inbox.Letter{ID: "m2", Prompt: "two"}},
		{proves, inbox.Letter{ID: "m3", Prompt: "three"}},
		{proves, inbox.Letter{ID: "nothing", Prompt: "x"}},
		{proves, inbox.Letter{Prompt: "without an id"}},
	} {
		if err := Queued(state, q.a, q.l); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(textFolder(state, proves.Inbox), textName("m3")), []byte(`{"id"`), 0o600); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"plain": "", "checked": "x", "m1": "one", "m2": "", "m3": "", "nothing": "", "": ""} {
		got, err := TextOf(state, proves.Inbox, id)
		if err != nil || (got != nil) != (want != "") || got != nil && got.Text != want {
			t.Errorf("%q: %+v, %v", id, got, err)
		}
	}
	all, err := TextsOf(state, proves.Inbox)
	if err != nil || all.Len() != 4 {
		t.Fatalf("%d, %v", all.Len(), err)
	}
	if left, err := all.Without([]string{"m1", "other"}).Load(); len(left) != 2 || err != nil {
		t.Errorf("%+v, %v", left, err)
	}
	if err := DropTexts(state, proves.Inbox, "m1", "m2", "checked", "other"); err != nil {
		t.Error(err)
	}
	if all, err = TextsOf(state, proves.Inbox); all.Len() != 0 || err != nil {
		t.Errorf("%d are left: %v", all.Len(), err)
	}
}
