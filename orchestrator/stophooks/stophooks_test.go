package stophooks

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// lab is the store of a fleet.
type lab struct {
	*testing.T
	store *store.Store
}

func newLab(t *testing.T) lab { return lab{t, storetest.New(t, t.TempDir())} }

func (l lab) learns(agent string, commands ...string) (anew []string) {
	l.Helper()
	err := l.store.Write(l.Context(), func(c *store.Change) (err error) {
		anew, err = Learn(c, agent, commands, time.Now())
		return err
	})
	if err != nil {
		l.Fatal(err)
	}
	return anew
}

func (l lab) asks(ask func(*store.View) ([]string, error)) []string {
	l.Helper()
	got, err := store.Get(l.Context(), l.store.Reader, ask)
	if err != nil {
		l.Fatal(err)
	}
	return got
}

func (l lab) gates(agent string, p Present) []string {
	l.Helper()
	return l.asks(func(v *store.View) ([]string, error) { return Gates(v, agent, p) })
}

// TestWhatIsKnownOfAHook is known for the agent in which it was seen, for all once
// it was seen in a second one; what cannot be told apart belongs to the agent.
func TestWhatIsKnownOfAHook(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if anew := l.learns("a", "make test", client.UnknownHook, "make test"); len(anew) != 2 {
		t.Fatal(anew)
	}
	if anew := l.learns("a", "make test"); len(anew) != 0 {
		t.Errorf("learned again: %q", anew)
	}
	for _, agent := range []string{"b", "c"} {
		l.learns(agent, "make lint", client.UnknownHook)
	}
	if anew := l.learns("d", "make lint"); len(anew) != 0 {
		t.Errorf("learned, though it counts for all: %q", anew)
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
		if got := l.gates(tt.agent, tt.present); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestOneAgentsHooks are nobody else's: an agent that made up sixteen hooks a
// session had its neighbours' prompts go one to a session, and after sixteen
// sessions no hook was learned any more.
func TestOneAgentsHooks(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for i := range 2 * maxOfAgent {
		l.learns("forger", fmt.Sprint("made up ", i), "play")
	}
	if got := l.gates("good", Present{Commands: []string{"play"}}); got != nil {
		t.Errorf("a neighbour's: %q", got)
	}
	if anew := l.learns("good", "make test"); len(anew) != 1 {
		t.Errorf("not learned: %q", anew)
	}
	if got := l.gates("forger", Present{Opaque: true}); len(got) != maxOfAgent {
		t.Errorf("%d of the forger's", len(got))
	}
	present := Present{Commands: []string{"make test", "made up 0", "else"}}
	if got := l.asks(func(v *store.View) ([]string, error) { return Seen(v, present) }); len(got) != 2 {
		t.Errorf("seen: %q", got)
	}
}
