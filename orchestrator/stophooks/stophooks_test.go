package stophooks

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/hook"
)

// TestWhatIsKnownOfAHook belongs to its command line, whoever calls it; what
// cannot be told apart belongs to the agent.
func TestWhatIsKnownOfAHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	anew, err := Of(dir).Learn("a", []string{"make test", hook.UnknownHook}, time.Now())
	if err != nil || len(anew) != 2 {
		t.Fatal(anew, err)
	}
	if anew, err = Of(dir).Learn("a", []string{"make test"}, time.Now()); err != nil || len(anew) != 0 {
		t.Errorf("learned again: %q %v", anew, err)
	}
	for name, tt := range map[string]struct {
		agent   string
		present Present
		want    []string
	}{
		"its own":             {"a", Present{Commands: []string{"make test"}}, []string{"make test", hook.UnknownHook}},
		"another agent's":     {"b", Present{Commands: []string{"play", "make test"}}, []string{"make test"}},
		"another hook":        {"b", Present{Commands: []string{"play"}}, nil},
		"what nobody can see": {"a", Present{Opaque: true}, []string{"make test", hook.UnknownHook}},
		"seen elsewhere":      {"b", Present{Opaque: true}, nil},
		"none":                {"a", Present{}, nil},
	} {
		if got, err := Of(dir).Gates(tt.agent, tt.present); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q %v, want %q", name, got, err, tt.want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "foreign-stop-hooks.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Of(dir).Gates("a", Present{Commands: []string{"make test"}}); err != nil || got != nil {
		t.Errorf("a damaged file: %q %v", got, err)
	}
}
