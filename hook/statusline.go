package hook

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
)

// statusLineWord is the word behind "hook" of our status line's command.
const statusLineWord = "status-line"

// statusLineName is the file in home that has what the client told our status line
// last. It is not synced: the next one replaces it.
const statusLineName = ".status-line.json"

// maxStatusLine bounds what the client tells, theirTime how long a person's own
// status line may take, and maxTheirs what it may print.
const (
	maxStatusLine = 256 << 10
	theirTime     = 300 * time.Millisecond
	maxTheirs     = 64 << 10
)

// statusLine is the "hook status-line" form: it keeps what the client tells for the
// session's shim. theirs is the command line of the status line that ours takes the
// place of; it is run, and shown, only while a person has joined. The exit status is
// 0 always.
func statusLine(c Call, theirs string) int {
	var f fence
	record, ok := f.passes(c.Getenv)
	if !ok {
		return 0
	}
	data, err := io.ReadAll(io.LimitReader(c.Stdin, maxStatusLine))
	if err == nil {
		err = inHome(f.home, func(home *durable.Folder) error { return home.Put(statusLineName, data) })
	}
	if err != nil {
		logLine(f.home, "cannot keep what the status line was told: %v", err)
	}
	if theirs != "" && record.Attached > 0 {
		if out, err := runTheirs(theirs, data); err != nil {
			logLine(f.home, "your own status line: %v", err)
		} else {
			_, _ = c.Stdout.Write(out) // nobody looks any more
		}
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

// StatusLineAt is when the client told our status line something last, by the file's
// time; zero: it has told nothing. The stamp tells a later figure of the same time apart.
func StatusLineAt(home string) (at time.Time, s durable.Stamp) { return written(home, statusLineName) }

// ReadStatusLine reads what the client told our status line last, in home, at a
// time. It returns nil, nil when there is nothing. The agent can write it.
func ReadStatusLine(home string, now time.Time) (*client.StatusLine, error) {
	var data []byte
	err := inHome(home, func(f *durable.Folder) (err error) {
		data, err = f.Read(statusLineName, maxStatusLine)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	told, err := client.Claude.StatusLine(data, now)
	if err != nil {
		return nil, err
	}
	return &told, nil
}
