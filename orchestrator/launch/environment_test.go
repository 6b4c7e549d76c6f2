package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/ptyrun"
)

// TestNoSessionHasAnothersVariables: what a shim sets for its session, a run that was begun in it
// does not pass on.
func TestNoSessionHasAnothersVariables(t *testing.T) {
	t.Parallel()
	for _, name := range hook.Variables() {
		if !ptyrun.MarksSession(name) {
			t.Errorf("%s is passed on", name)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("HEARTBEAT_TEST_INHERITED", "from the caller")
	t.Setenv("HEARTBEAT_TEST_BOTH", "from the caller")
	t.Setenv("HEARTBEAT_TEST_DENIED", "from the caller")
	t.Setenv("CLAUDE_CODE_RETRY_WATCHDOG", "1")
	t.Setenv("CLAUDE_CODE_RETRY_WATCHDOG_MAX_WAIT_MS", "1")
	t.Setenv("HEARTBEAT_SESSION", "of the session that we run in")
	file := filepath.Join(t.TempDir(), "x.env")
	if err := os.WriteFile(file, []byte("HEARTBEAT_TEST_BOTH=from the file\nHEARTBEAT_TEST_THREE=file\nHEARTBEAT_TEST_DENIED=file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &config.Agent{
		EnvFile: file, EnvDeny: []string{"*_DENIED"}, Env: map[string]string{"HEARTBEAT_TEST_THREE": "from the agent", "CLAUDE_CODE_RETRY_WATCHDOG_SCOPE": "of the agent"},
	}
	env, err := Environment(a)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, kv := range env {
		if strings.HasPrefix(kv, "HEARTBEAT_TEST_") || strings.HasPrefix(kv, "HEARTBEAT_SESSION=") || strings.Contains(kv, "WATCHDOG") {
			got = append(got, kv)
		}
	}
	slices.Sort(got)
	want := []string{
		"CLAUDE_CODE_RETRY_WATCHDOG_SCOPE=of the agent",
		"HEARTBEAT_TEST_BOTH=from the file", "HEARTBEAT_TEST_DENIED=file",
		"HEARTBEAT_TEST_INHERITED=from the caller", "HEARTBEAT_TEST_THREE=from the agent",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if env, err := Environment(a); err == nil {
		t.Errorf("an env-file that others can read was read: %q", env)
	}
}
