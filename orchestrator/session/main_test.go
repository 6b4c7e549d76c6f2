package session

import (
	"os"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("HEARTBEAT_TEST_LISTEN"); path != "" {
		listenApart(path)
		return
	}
	deafness = 200 * time.Millisecond
	os.Exit(testbed.Run(m))
}
