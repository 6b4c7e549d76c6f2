//go:build !linux

package simulate

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alive reports whether a process still runs, after a while to go.
func alive(t *testing.T, text string) bool {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if syscall.Kill(pid, 0) != nil {
			return false
		}
	}
	return true
}
