package memory

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/state"
)

// TestWhatIsKeptOfAForgottenAgentGoes: what was set aside of it, and what was proven,
// would be that of another agent with its key. Of one that is only gone all stays.
func TestWhatIsKeptOfAForgottenAgentGoes(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
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
	if err := state.Save(identitiesPath(dir), struct{ Agents Identities }{before}); err != nil {
		t.Fatal(err)
	}
	all, err := Note(dir, []*config.Agent{{Name: "new", Dir: "/new"}}, nil, now)
	if err != nil || len(all) != 1+maxGone {
		t.Fatalf("%d agents, %v", len(all), err)
	}
	for _, key := range []string{"gone", "forgotten"} {
		for _, path := range []string{"proofs/" + key + ".json", "asides/" + key} {
			if _, err := os.Stat(filepath.Join(dir, path)); os.IsNotExist(err) != (key == "forgotten") {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
