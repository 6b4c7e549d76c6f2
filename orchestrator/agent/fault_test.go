package agent

import (
	"testing"

	"heartbeat/hook/client"
)

// TestEachFailureIsSomebodysFault: of each word that the client is known to have for
// a failure its room says whose fault that is.
func TestEachFailureIsSomebodysFault(t *testing.T) {
	t.Parallel()
	if len(client.Claude.Hooks.Faults) < 10 {
		t.Error("which words?")
	}
	for word, fault := range client.Claude.Hooks.Faults {
		if fault == client.UnclearFault {
			t.Errorf("%s is nobody's", word)
		}
	}
	if faultOf("a word of a new release") != client.UnclearFault {
		t.Error("a word that is not known was judged")
	}
}
