package doctor

import (
	"os"
	"testing"

	"heartbeat/internal/testbed"
)

// TestMain: what is prepared for a session names this program as its hook, and
// asks it whether it runs. Without this it would run the tests again, and again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "hook" {
		os.Exit(0)
	}
	os.Exit(testbed.Run(m))
}
