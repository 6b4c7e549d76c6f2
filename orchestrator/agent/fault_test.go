package agent

import (
	"testing"

	"heartbeat/hook/client"
)

// TestEachFailureIsSomebodysFault: of each word that the client is known to have for
// a failure somebody has said whose fault that is.
func TestEachFailureIsSomebodysFault(t *testing.T) {
	t.Parallel()
	if len(client.Claude.Hooks.Failures) < 10 {
		t.Error("which words?")
	}
	for _, word := range client.Claude.Hooks.Failures {
		if faultOf(word) == unclearFault {
			t.Errorf("%s is nobody's", word)
		}
	}
	if faultOf("a word of a new release") != unclearFault {
		t.Error("a word that is not known was judged")
	}
}
