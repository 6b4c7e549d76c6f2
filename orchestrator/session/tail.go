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

// picture copies what is kept, which is what the terminal shows now.
func (t *tail) picture() picture {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append(picture(nil), t.buf...)
}

// picture is output of a terminal. It is drawn where its text is needed, which takes
// longer than all else at the end of a session.
type picture []byte

// text returns what the terminal shows, without blank lines.
func (out picture) text() string {
	var lines []string
	for _, l := range screen.Text(ptyrun.DefaultRows, ptyrun.DefaultCols, out) {
		if strings.TrimSpace(l) != "" {
			lines = append(lines, strings.TrimRight(l, " "))
		}
	}
	return strings.Join(lines, "\n")
}
