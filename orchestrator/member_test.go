package orchestrator

import (
	"reflect"
	"testing"

	"heartbeat/config"
	"heartbeat/orchestrator/agent"
)

// TestWhatAnAgentTakes: 10,000 agents take at most 200 MB (internal/fleetsim), and Go rounds
// what it allocates up (internal/runtime/gc/sizeclasses.go): a field more may be a quarter
// of a kilobyte of each. What few agents have belongs behind a pointer.
func TestWhatAnAgentTakes(t *testing.T) {
	t.Parallel()
	for of, most := range map[reflect.Type]uintptr{
		reflect.TypeFor[member]():       1152,
		reflect.TypeFor[agent.Agent]():  2048,
		reflect.TypeFor[config.Agent](): 1024,
	} {
		if size := of.Size(); size > most {
			t.Errorf("%v takes %d bytes, more than %d", of, size, most)
		}
	}
}
