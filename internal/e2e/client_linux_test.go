package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"heartbeat/internal/testbed"
)

// client is a program under test.
type client struct {
	name string
	path string
	real bool
}

// realName is the real client's among the clients.
const realName = "real"

// realClient finds the real client; without one, or without the namespace
// that keeps it from the network, the test is skipped, or fails in CI.
func realClient(t *testing.T) client {
	t.Helper()
	if testbed.Raced {
		t.Skip("the real client's scenarios are for the run without the race detector; the stand-in's find our races")
	}
	missing := t.Skipf
	if os.Getenv("CI") == "true" {
		missing = t.Fatalf
	}
	if where := os.Getenv(envNamespace); where != loopback {
		missing("the real client is not run: %s", where)
	}
	path, err := realClientPath()
	if err != nil {
		missing("the real client is not there: %v; run bash .ci/client/install, or set HEARTBEAT_CLAUDE", err)
	}
	return client{name: realName, path: path, real: true}
}

// realClientPath is where the real client is, or an error.
func realClientPath() (string, error) {
	path := os.Getenv("HEARTBEAT_CLAUDE")
	if path == "" {
		found, _ := filepath.Glob("../../.ci/client/node_modules/@anthropic-ai/claude-code-linux-*/claude")
		if len(found) == 0 {
			return "", errors.New("it is not installed")
		}
		path = found[0]
	}
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
