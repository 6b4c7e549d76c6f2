package simulate

import (
	"os"
	"testing"

	"heartbeat/internal/testbed"
)

// asClient makes the test binary the client itself, so that tests run it as a
// real process in a real terminal.
const asClient = "SIMULATE_TEST_AS_CLIENT"

func TestMain(m *testing.M) {
	if os.Getenv(asClient) == "1" {
		os.Unsetenv(asClient)
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	testbed.AtOnce(16) // they wait for their client's clocks more than others
	os.Exit(testbed.Run(m))
}
