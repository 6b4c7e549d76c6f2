package e2e

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAClientInAProcessNamespace is served as any other: what it calls its processes is its own
// affair. Each prompt is one call, and what its tools say of the session arrives.
func TestAClientInAProcessNamespace(t *testing.T) {
	if out, err := exec.Command("unshare", "-pf", "--mount-proc", "true").CombinedOutput(); err != nil {
		t.Skipf("no process namespaces here: %v: %s", err, out)
	}
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, nil)
		f.behind(`export CLIENT; exec unshare -pf --kill-child --mount-proc /bin/sh -c 'eval exec "$CLIENT" "\"\$@\""' sh "$@"`)
		alive := filepath.Join(f.bin, "heartbeat") + " alive 'still here'"
		f.teach(behaviour{match: "two", bash: alive, reply: "done"})
		for _, prompt := range []string{"one", "two", "three"} {
			f.send(prompt)
		}
		f.must("", "run", "--once")
		f.gone()
		if got := f.prompts(); len(f.outbox()) != 3 || !slices.Equal(names(got), []string{"one", "two", "three"}) {
			t.Errorf("prompts %q, %d done", got, len(f.outbox()))
		}
		if why := f.ends(); len(why) != 1 || !strings.HasPrefix(why[0], "drained") {
			t.Errorf("sessions ended by %q", why)
		}
		if said := f.must("", "events"); !strings.Contains(said, "still here") {
			t.Errorf("no sign of life: %s", said)
		}
	})
}

// names are the last words of what the model was asked.
func names(prompts []string) (all []string) {
	for _, p := range prompts {
		words := strings.Fields(p)
		all = append(all, words[len(words)-1])
	}
	return all
}
