package simulate

import (
	"slices"
	"testing"

	hookclient "heartbeat/hook/client"
	"heartbeat/internal/simulate/hooks"
)

// TestTheStandInKnowsWhatWeKnow of the client: each has it from the client itself,
// so that a new version of it is measured for both.
func TestTheStandInKnowsWhatWeKnow(t *testing.T) {
	t.Parallel()
	known := hookclient.Claude
	if !slices.Equal(slices.Sorted(slices.Values(hooks.Events)), slices.Sorted(slices.Values(known.Hooks.Known))) {
		t.Errorf("events %q, we know %q", hooks.Events, known.Hooks.Known)
	}
	if hooks.DefaultTimeout != known.Hooks.Timeout {
		t.Errorf("a hook may take %s, we know %s", hooks.DefaultTimeout, known.Hooks.Timeout)
	}
	if Version != known.Versions.Measured {
		t.Errorf("version %s, we know %s", Version, known.Versions.Measured)
	}
}
