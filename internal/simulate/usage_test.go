package simulate

import (
	"os"
	"path/filepath"
	"testing"

	"heartbeat/internal/simulate/script"
)

// TestTheScriptInTheHelp can be used as it stands.
func TestTheScriptInTheHelp(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(path, []byte(usageScript), 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := script.Load(path); err != nil || len(s.Rules) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
}
