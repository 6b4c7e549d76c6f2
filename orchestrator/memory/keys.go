package memory

import (
	"sync"
	"time"

	"heartbeat/config"
)

// Keys returns what knows, of a fleet's agents, the key that names what is kept of each;
// "" while no run has begun. It may be called by several goroutines.
func Keys(stateDir string, agents []*config.Agent) func(a *config.Agent) (string, error) {
	var mu sync.Mutex
	keys := map[string]string{} // by name
	return func(a *config.Agent) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if keys[a.Name] != "" {
			return keys[a.Name], nil
		}
		known, err := Read(stateDir)
		if err != nil || len(known) == 0 { // no run has begun
			return "", err
		}
		for name, id := range known.Follow(agents, time.Now()).Declared() {
			keys[name] = id.Key
		}
		return keys[a.Name], nil
	}
}
