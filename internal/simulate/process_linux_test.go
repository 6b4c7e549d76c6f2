package simulate

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// alive reports whether a process still runs, after a while to go.
func alive(t *testing.T, pid string) bool {
	t.Helper()
	for end := time.Now().Add(testbed.Patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		data, err := os.ReadFile("/proc/" + strings.TrimSpace(pid) + "/stat")
		if errors.Is(err, os.ErrNotExist) || strings.Contains(string(data), ") Z ") {
			return false
		}
	}
	return true
}
