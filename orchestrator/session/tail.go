package session

import (
	"strings"
	"sync"

	"heartbeat/ptyrun"
	"heartbeat/ptyrun/screen"
)

// tail keeps the last bytes of the terminal's output, for the report about a
// session that never started working.
type tail struct {
	mu  sync.Mutex
	buf []byte
	max int
}

func newTail(limit int) *tail { return &tail{max: limit} }

// Write never fails and never blocks for long: the terminal must be drained.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*t.max {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-t.max:]...)
	}
	return len(p), nil
}

// screen returns the text that the terminal shows, without blank lines.
func (t *tail) screen() string {
	t.mu.Lock()
	out := append([]byte(nil), t.buf...)
	t.mu.Unlock()
	var lines []string
	for _, l := range screen.Text(ptyrun.DefaultRows, ptyrun.DefaultCols, out) {
		if strings.TrimSpace(l) != "" {
			lines = append(lines, strings.TrimRight(l, " "))
		}
	}
	return strings.Join(lines, "\n")
}
