// Package screen turns terminal output into what the terminal shows. It is
// for people who look at a session and for reports of one that never got
// going, not for decisions: the emulator is right for what the client was
// seen to write, not for every program (origin mode and line drawing differ
// from tmux; a wide character in the last column is lost).
//
// It is slow (from 0.1 MB/s for a flood of short lines to 4 MB/s) and holds
// some 7 MB: use it while somebody looks, never between a terminal and its
// log.
package screen

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/vt"
)

// Text returns what a terminal of the given size shows after the output: its rows
// from the top, without trailing spaces and trailing blank rows. It works for at
// most about five seconds: for output that takes longer (about a megabyte) it shows
// an intermediate state.
func Text(rows, cols int, output []byte) []string {
	s := New(rows, cols)
	defer s.Close()
	_ = s.Show(output, textLimit) // the screen shows an intermediate state
	return s.Lines()
}

const textLimit = 5 * time.Second

// Screen is a live terminal screen. It is safe for concurrent use; Close must be
// called.
type Screen struct {
	mu     sync.Mutex
	filter Filter
	buf    []byte
	emu    *vt.Emulator
	err    error
	closed bool
	quiet  chan struct{} // closed when the emulator's answers have ended
}

// New creates an empty screen; a size below 1 counts as 1.
func New(rows, cols int) *Screen {
	s := &Screen{emu: vt.NewEmulator(max(cols, 1), max(rows, 1)), quiet: make(chan struct{})}
	s.emu.SetScrollbackSize(1) // the default of 10,000 lines takes 232 MB when full
	go func() {
		defer close(s.quiet)
		// The emulator answers queries, and blocks until the answer is read.
		_, _ = io.Copy(io.Discard, s.emu)
	}()
	return s
}

// Write shows output, which may be cut anywhere. After an error, which only a
// defect of the emulator or Close causes, the screen no longer changes.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return 0, fmt.Errorf("cannot show output: %w", io.ErrClosedPipe)
	case s.err != nil:
		return 0, s.err
	}
	s.buf = s.filter.AppendTo(s.buf[:0], p)
	if s.err = s.guarded(func() error { _, err := s.emu.Write(s.buf); return err }); s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// ErrSlow means that output takes too long to show.
var ErrSlow = errors.New("the output takes too long to show")

// Show is Write for at most about limit: output that is left then is not shown, and
// the error is ErrSlow.
func (s *Screen) Show(output []byte, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for piece := range slices.Chunk(output, 1<<10) {
		if time.Now().After(deadline) {
			return ErrSlow
		}
		if _, err := s.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// guarded prevents a panic of the emulator, which reads what any program wrote,
// from ending the process.
func (s *Screen) guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot show output: the emulator failed: %v", r)
		}
	}()
	return f()
}

// Resize changes the size.
func (s *Screen) Resize(rows, cols int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.guarded(func() error { s.emu.Resize(max(cols, 1), max(rows, 1)); return nil })
}

// Lines returns the rows from the top, like Text.
func (s *Screen) Lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	_ = s.guarded(func() error { lines = strings.Split(s.emu.String(), "\n"); return nil })
	last := 0
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \r")
		if lines[i] != "" {
			last = i + 1
		}
	}
	return lines[:last]
}

// Close frees the memory of the screen. It can be called again.
func (s *Screen) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	// The emulator's own Close races with the goroutine that reads its answers:
	// that one is ended first, by closing its end of the pipe.
	if pipe, ok := s.emu.InputPipe().(io.Closer); ok {
		_ = pipe.Close() // of an io.Pipe: never fails
		<-s.quiet
	}
	return s.emu.Close()
}
