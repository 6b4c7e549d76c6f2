package orchestrator

import (
	"slices"
	"testing"

	"heartbeat/config"
)

// A reload says that other people are told, that somebody else watches, that an address
// is opened and that other sums may be spent.
func TestAPlanNamesWhoIsTold(t *testing.T) {
	t.Parallel()
	told := func() *config.Fleet {
		return &config.Fleet{Listen: []config.Listen{{}}, Budgets: map[string]config.Budget{"group": {}}, Targets: map[string]*config.Target{"phone": {Name: "phone"}}, Ping: &config.Ping{URL: config.Secret{File: "/x"}}}
	}
	if got := fleetChanges(&config.Fleet{}, told()); !slices.Equal(got, []string{"listen", "budget", "notify", "ping"}) {
		t.Errorf("%q", got)
	}
	if got := fleetChanges(told(), told()); len(got) != 0 {
		t.Errorf("nothing has changed: %q", got)
	}
}
