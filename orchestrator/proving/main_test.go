package proving_test

import (
	"os"
	"path/filepath"
	"testing"

	"heartbeat/internal/testbed"
)

// programs are what the test binary is by the name it is called with, beside the tests.
var programs = map[string]func(args []string) int{}

func TestMain(m *testing.M) {
	if main := programs[filepath.Base(os.Args[0])]; main != nil {
		os.Exit(main(os.Args[1:]))
	}
	os.Exit(testbed.Run(m))
}
