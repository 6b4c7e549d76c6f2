package session

import (
	"os"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

func TestMain(m *testing.M) {
	deafness = 200 * time.Millisecond
	os.Exit(testbed.Run(m))
}
