package files

import (
	"os"
	"testing"

	"heartbeat/internal/testbed"
)

func TestMain(m *testing.M) { os.Exit(testbed.Run(m)) }
