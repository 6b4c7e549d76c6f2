package memory

import (
	"sync"
	"time"

	"heartbeat/config"
)

// Keys returns a function that returns the permanent key of one of a fleet's agents; "" while no
// run has begun. The function may be called by several goroutines.
func Keys(stateDir string, agents []*config.Agent) func(a *config.Agent) (string, error) {
	var mu sync.Mutex
	keys := map[string]string{} // by name
	return func(a *config.Agent) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if keys[a.Name] != "" {
			return keys[a.Name], nil
		}
		known, err := ReadIn(stateDir)
		if err != nil || len(known) == 0 { // no run has begun
			return "", err
		}
		for name, id := range known.Follow(agents, time.Now()).Declared() {
			keys[name] = id.Key
		}
		return keys[a.Name], nil
	}
}
