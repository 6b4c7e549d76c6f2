package orchestrator

import (
	"slices"
	"testing"

	"heartbeat/config"
)

// A reload says that other people are told, and that somebody else watches.
func TestAPlanNamesWhoIsTold(t *testing.T) {
	t.Parallel()
	told := func() *config.Fleet {
		return &config.Fleet{Targets: map[string]*config.Target{"phone": {Name: "phone"}}, Ping: &config.Ping{URL: config.Secret{File: "/x"}}}
	}
	if got := fleetChanges(&config.Fleet{}, told()); !slices.Equal(got, []string{"notify", "ping"}) {
		t.Errorf("%q", got)
	}
	if got := fleetChanges(told(), told()); len(got) != 0 {
		t.Errorf("nothing has changed: %q", got)
	}
}
