package ask

import (
	"bytes"
	"errors"
	"io"
	"os"
	"syscall"
	"time"
)

// maxStatusLine bounds what the client tells, theirTime how long a person's own
// status line may take, and maxTheirs what it may print.
const (
	maxStatusLine = 256 << 10
	theirTime     = 300 * time.Millisecond
	maxTheirs     = 64 << 10
)

// statusLine passes on what the client tells its status line. theirs is the command line of the
// status line that ours takes the place of; it is run, and shown, only while a person has joined.
// The exit status is 0 always.
func (a *asking) statusLine(theirs string) int {
	data, err := io.ReadAll(io.LimitReader(a.Stdin, maxStatusLine))
	if err != nil {
		return 0
	}
	answer, err := Put(a.Getenv, Line, data)
	if err != nil {
		a.log("cannot tell what the status line was told: %v", err)
		return 0
	}
	if answer.Kind != Theirs || theirs == "" {
		return 0
	}
	if out, err := runTheirs(theirs, data); err != nil {
		a.log("your own status line: %v", err)
	} else {
		_, _ = a.Stdout.Write(out) // nobody looks any more
	}
	return 0
}

// errTheirsLate means that the person's own status line took too long.
var errTheirsLate = errors.New("it did not end within " + theirTime.String())

// runTheirs runs a command line as the client does, with data on its stdin, and
// returns what it has printed. What it has started is killed with it.
func runTheirs(command string, data []byte) ([]byte, error) {
	in, feed, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, answer, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, in.Close(), feed.Close())
	}
	defer out.Close()
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", command}, &os.ProcAttr{
		Files: []*os.File{in, answer}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	_, _ = in.Close(), answer.Close() // they are the child's
	if err != nil {
		return nil, errors.Join(err, feed.Close())
	}
	defer p.Wait() //nolint:errcheck // it was killed, or has ended
	go func() {
		_, _ = feed.Write(data) // it need not read
		feed.Close()
	}()
	_ = out.SetReadDeadline(time.Now().Add(theirTime))
	printed, err := io.ReadAll(io.LimitReader(out, maxTheirs))
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errTheirsLate
	}
	return bytes.TrimRight(printed, "\n"), err
}
