package ptyrun

import (
	"errors"
	"fmt"
	"io"
	"os"
	ossignal "os/signal"
	"sync"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// The size of a terminal if none is given.
const (
	DefaultRows = 50
	DefaultCols = 200
)

// open makes the PTY, gives its slave side to the command and returns it.
func (c *Child) open(rows, cols int) (tty *os.File, err error) {
	if rows <= 0 {
		rows = DefaultRows
	}
	if cols <= 0 {
		cols = DefaultCols
	}
	c.master, tty, err = pty.Open()
	if err != nil {
		return nil, fmt.Errorf("cannot start %q: %w: %w", c.cmd.Args[0], ErrPTY, err)
	}
	err = c.Resize(rows, cols)
	if err == nil {
		// pty.Open leaves the master blocking: then Close would not end a Read.
		err = c.control(func(fd int) error { return unix.SetNonblock(fd, true) })
	}
	if err != nil {
		_ = tty.Close()
		_ = c.master.Close()
		return nil, fmt.Errorf("cannot start %q: %w: %w", c.cmd.Args[0], ErrPTY, err)
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = tty, tty, tty
	return tty, nil
}

// CheckTerminal returns why no child could be given a terminal now, or nil.
func CheckTerminal() error {
	master, tty, err := pty.Open()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPTY, err)
	}
	return errors.Join(tty.Close(), master.Close())
}

// window is the caller's terminal, if there is one.
type window struct {
	file *os.File // nil: none
}

func newWindow(stdout io.Writer) window {
	f, ok := stdout.(*os.File)
	if !ok || !isTerminal(f) {
		return window{}
	}
	return window{f}
}

// IsTerminal reports whether f is a terminal.
func IsTerminal(f *os.File) bool { return isTerminal(f) }

// WindowSize returns the size of the terminal f, or zeros if f is none.
func WindowSize(f *os.File) (rows, cols int) { return newWindow(f).size() }

// FollowWindow calls resize with the size of the terminal f, now and whenever it
// changes, from a goroutine of its own, until stop is called.
func FollowWindow(f *os.File, resize func(rows, cols int)) (stop func()) {
	return newWindow(f).follow(resize)
}

// isTerminal does not use (*os.File).Fd, which would make f blocking.
func isTerminal(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	is := false
	err = conn.Control(func(fd uintptr) { is = term.IsTerminal(int(fd)) })
	return err == nil && is
}

// size returns the window's size, or zeros.
func (w window) size() (rows, cols int) {
	if w.file == nil {
		return 0, 0
	}
	conn, err := w.file.SyscallConn()
	if err != nil {
		return 0, 0
	}
	_ = conn.Control(func(fd uintptr) { cols, rows, err = term.GetSize(int(fd)) })
	if err != nil {
		return 0, 0
	}
	return rows, cols
}

// env returns the environment of a child whose terminal follows this window.
func (w window) env(env []string) []string {
	if w.file == nil {
		return env
	}
	return withoutSize(env)
}

// follow calls resize with the window's size whenever it changes.
func (w window) follow(resize func(rows, cols int)) (stop func()) {
	if w.file == nil {
		return func() {}
	}
	changed := make(chan os.Signal, 1)
	ossignal.Notify(changed, syscall.SIGWINCH)
	quit := make(chan struct{})
	go func() {
		for {
			// Also at the start: it may have changed since it was last read.
			if rows, cols := w.size(); rows > 0 && cols > 0 {
				resize(rows, cols)
			}
			select {
			case <-changed:
			case <-quit:
				return
			}
		}
	}()
	return func() {
		ossignal.Stop(changed)
		close(quit)
	}
}

// endOfInput is what a terminal in canonical mode takes as the end of input.
const endOfInput = 0x04

// typeFrom types what comes from stdin into the child's terminal.
func typeFrom(stdin *os.File, child *Child) (stop func()) {
	// A child that does not read loses keys, as on any terminal.
	return ReadKeys(stdin, func(keys []byte) { _, _ = child.Write(keys) },
		func() { _, _ = child.Write([]byte{endOfInput}) })
}

// ReadKeys puts stdin into raw mode, if it is a terminal, and calls keys with what
// is typed, which keys must not keep, and end at the end of input. stop restores
// stdin and waits until nothing reads from it any more; neither function may call
// it.
func ReadKeys(stdin *os.File, keys func(p []byte), end func()) (stop func()) {
	fd := int(stdin.Fd())
	restore := func() {}
	if term.IsTerminal(fd) {
		if state, err := term.MakeRaw(fd); err == nil {
			restore = func() { _ = term.Restore(fd, state) }
		}
	}
	quit := make(chan struct{})
	var typing sync.WaitGroup
	typing.Go(func() {
		buf := make([]byte, 4096)
		for !closed(quit) {
			n, err := readWithin(fd, buf)
			if n > 0 {
				keys(buf[:n])
			}
			if err != nil {
				end() // also if it cannot be read: a directory, a terminal that is gone
				return
			}
		}
	})
	return func() {
		close(quit)
		typing.Wait()
		restore()
	}
}

// readWithin reads what arrives within 100 ms, or nothing. The descriptor stays
// blocking, because it may be shared with the caller's shell.
func readWithin(fd int, buf []byte) (int, error) {
	ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(ready, int(lookEvery.Milliseconds()))
	if errors.Is(err, unix.EINTR) || n == 0 && err == nil {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err = unix.Read(fd, buf)
	switch {
	case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
		return 0, nil
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
