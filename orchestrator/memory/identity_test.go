package memory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// note has a store know agents, whose triggers run.
func note(t *testing.T, s *store.Store, agents ...*config.Agent) (known Identities, err error) {
	t.Helper()
	err = s.Write(t.Context(), func(c *store.Change) error {
		known, err = Note(c, s.Dir(), agents, agents, now)
		return err
	})
	return known, err
}

// TestWhatIsKeptOfAForgottenAgentGoes: what was set aside of it, and what was proven,
// would be that of another agent with its key. Of one that is only gone all stays.
func TestWhatIsKeptOfAForgottenAgentGoes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept := storetest.New(t, dir)
	flight := inbox.InFlight{DeliveryID: "0123456789ab"}.AsideSince(now)
	for _, key := range []string{"gone", "forgotten"} {
		b, err := ledger.Open(dir, key)
		if err == nil {
			err = b.Keep(ledger.Course{Delivery: flight.DeliveryID})
		}
		if err == nil {
			err = ledger.KeepAside(dir, key, ledger.Aside{Flight: flight})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	before := Identities{{Name: "gone", Dir: "/gone", Key: "gone"}, {Name: "forgotten", Dir: "/forgotten", Key: "forgotten", Gone: now.Add(-time.Hour)}}
	for i := range maxGone - 1 {
		name := fmt.Sprint("other-", i)
		before = append(before, Identity{Name: name, Dir: "/" + name, Key: name, Gone: now.Add(-time.Minute)})
	}
	before = append(before, Identity{Key: "..", Gone: now.Add(-time.Hour)}, Identity{Gone: now.Add(-time.Hour)}) // no keys
	err := kept.Write(t.Context(), func(c *store.Change) (err error) {
		for _, i := range before {
			err = errors.Join(err, Keep(c, i))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	all, err := note(t, kept, &config.Agent{Name: "new", Dir: "/new"})
	if err != nil || len(all) != 1+maxGone {
		t.Fatalf("%d agents, %v", len(all), err)
	}
	left, err := store.Get(t.Context(), kept.Reader, Read)
	if err != nil || len(left) != len(all) {
		t.Errorf("%d agents are kept, %v", len(left), err)
	}
	for _, key := range []string{"gone", "forgotten"} {
		for _, path := range []string{"proofs/" + key + ".json", "asides/" + key} {
			if _, err := os.Stat(filepath.Join(dir, path)); os.IsNotExist(err) != (key == "forgotten") {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
