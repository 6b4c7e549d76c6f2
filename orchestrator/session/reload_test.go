package session

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/hook"
)

// TestARecordThatChangedTwiceInOneTick: a record that looks as it did when it was
// read a moment after its change is read again. The file system's clock stands
// still for some milliseconds and the number of a file that was replaced is used
// again; what a hook had written last was undone.
func TestARecordThatChangedTwiceInOneTick(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testARecordThatChanged) // where time stands still
}

func testARecordThatChanged(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "session.json")
	tick := time.Now()
	write := func(prompt string) {
		r := &hook.Record{}
		r.Version, r.TokenHash, r.PromptID = 1, "hash", prompt
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(data, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, tick, tick); err != nil {
			t.Fatal(err)
		}
	}
	own := &hook.Record{}
	own.TokenHash = "hash"
	s := &shim{spec: Spec{Home: home}, record: own, log: slog.New(slog.DiscardHandler)}
	for _, prompt := range []string{"one", "two", "three"} {
		write(prompt)
		if s.reload(); s.record.PromptID != prompt {
			t.Errorf("the shim believes %q, want %q", s.record.PromptID, prompt)
		}
	}
}
