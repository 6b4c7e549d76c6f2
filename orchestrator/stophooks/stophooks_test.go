package stophooks

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/hook/client"
)

// TestWhatIsKnownOfAHook is known for the agent in which it was seen, for all once
// it was seen in a second one; what cannot be told apart belongs to the agent.
func TestWhatIsKnownOfAHook(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	anew, err := Of(dir).Learn("a", []string{"make test", client.UnknownHook}, time.Now())
	if err != nil || len(anew) != 2 {
		t.Fatal(anew, err)
	}
	if anew, err = Of(dir).Learn("a", []string{"make test"}, time.Now()); err != nil || len(anew) != 0 {
		t.Errorf("learned again: %q %v", anew, err)
	}
	for _, agent := range []string{"b", "c"} {
		if _, err = Of(dir).Learn(agent, []string{"make lint", client.UnknownHook}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		agent   string
		present Present
		want    []string
	}{
		"its own":             {"a", Present{Commands: []string{"make test"}}, []string{"make test", client.UnknownHook}},
		"another agent's":     {"d", Present{Commands: []string{"play", "make test"}}, nil},
		"two other agents'":   {"d", Present{Commands: []string{"play", "make lint"}}, []string{"make lint"}},
		"another hook":        {"d", Present{Commands: []string{"play"}}, nil},
		"what nobody can see": {"a", Present{Opaque: true}, []string{"make test", client.UnknownHook}},
		"seen elsewhere":      {"d", Present{Opaque: true}, nil},
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

// TestOneAgentsHooks are nobody else's: an agent that made up sixteen hooks a
// session had its neighbours' prompts go one to a session, and after sixteen
// sessions no hook was learned any more.
func TestOneAgentsHooks(t *testing.T) {
	t.Parallel()
	m := Of(t.TempDir())
	for i := range 2 * maxOfAgent {
		if _, err := m.Learn("forger", []string{fmt.Sprint("made up ", i), "play"}, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := m.Gates("good", Present{Commands: []string{"play"}}); err != nil || got != nil {
		t.Errorf("a neighbour's: %q %v", got, err)
	}
	if anew, err := m.Learn("good", []string{"make test"}, time.Now()); err != nil || len(anew) != 1 {
		t.Errorf("not learned: %q %v", anew, err)
	}
	if f, err := m.load(); err != nil || f.of("forger") != maxOfAgent {
		t.Errorf("%d of the forger's: %v", f.of("forger"), err)
	}
	if got, err := m.Seen(Present{Commands: []string{"make test", "made up 0", "else"}}); err != nil || len(got) != 2 {
		t.Errorf("seen: %q %v", got, err)
	}
}
