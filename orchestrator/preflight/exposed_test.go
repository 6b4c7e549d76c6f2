package preflight

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/config"
)

// TestNoEnvironmentWhereOthersCanWrite: sessions and triggers' commands get none, so that
// none starts there.
func TestNoEnvironmentWhereOthersCanWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := &config.Agent{Name: "a", Dir: dir, Home: filepath.Join(dir, ".heartbeat"), Inbox: filepath.Join(dir, ".heartbeat", "inbox.jsonl")}
	if _, err := Variables(a, nil); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := Variables(a, nil)
	blocked, _ := errors.AsType[*BlockedError](err)
	if blocked == nil || blocked.Obstacles[0].Code != Exposed || !strings.HasPrefix(blocked.Hint(), "chmod go-w "+dir) {
		t.Errorf("%v", err)
	}
	if found := ClientOf(a, nil).unstartable(); len(found) == 0 || found[0].Code != Exposed {
		t.Error(found)
	}
}
