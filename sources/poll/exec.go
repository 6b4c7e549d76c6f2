package poll

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/hook/owned"
)

const (
	// maxOutput bounds what a command may print: more is an error.
	maxOutput = 1 << 20
	// stderrTail is how much of the end of its stderr an error quotes.
	stderrTail = 2 << 10
	// waitDelay is how long a run's output may stay open after the run's end.
	waitDelay = time.Second
	// laterCode is sysexits' EX_TEMPFAIL: nothing wrong, ask again later.
	laterCode = 75
)

// tooMuch is that a run printed more than so many bytes.
type tooMuch int

func (most tooMuch) Error() string { return fmt.Sprintf("it printed over %d bytes", int(most)) }

// Command is the command that a poll runs.
type Command struct {
	// Argv is run without a shell. A name with a slash is relative to Dir.
	Argv []string
	Dir  string   // AGENT_DIR
	Env  []string // the whole environment but for Extra; nil means ours
	// Extra are variables in addition to Env.
	Extra []string
	// Stdin is what it can read; "": it has no standard input.
	Stdin string
	// Quiet discards the output: only the exit status matters.
	Quiet bool
	// Timeout ends the run with its whole process group; 0 means a minute.
	Timeout time.Duration
	// Most bounds what it may print; 0 means 1 MiB.
	Most int
	// Part: a run that prints more or takes longer is killed as well, but what it has
	// printed by then is its Output.
	Part bool
}

// Output is the result of a run that did not fail.
type Output struct {
	Stdout []byte
	Later  bool // it ended with 75
	// Cut is why the output ends early, with Part; nil: it is complete.
	Cut error
}

// Exec runs c. The error says why the run failed, and quotes the end of its stderr. A
// run that prints more than its limit is killed and counts as failed. When Exec returns,
// the command's process group is gone. If we are killed first, so is the command, where
// the system supports that. A command without a slash is looked up in our own PATH.
func Exec(ctx context.Context, c Command) (Output, error) {
	if len(c.Argv) == 0 {
		return Output{}, errors.New("cannot run the command: it is empty")
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	tooLong := fmt.Errorf("it ran over %v", timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, tooLong)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	// The agent's directory may be a link by now, and a link can lead anywhere.
	if info, err := os.Lstat(c.Dir); c.Dir != "" && (err != nil || !info.IsDir()) {
		return Output{}, fmt.Errorf("cannot run the command: %w", cmp.Or(err, errors.New(c.Dir+" is not a folder")))
	}
	if err := owned.CheckProgram(c.Dir, c.Argv[0]); err != nil {
		return Output{}, fmt.Errorf("cannot run the command: %w", err)
	}
	most := cmp.Or(c.Most, maxOutput)
	stdout, stderr := &capped{most: most, stop: stop}, &tail{}
	cmd := c.command(ctx)
	cmd.Stderr = stderr
	if !c.Quiet {
		cmd.Stdout = stdout
	}
	// The kernel treats the end of the thread that started the command as our end.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return Output{}, fmt.Errorf("cannot run the command: %w", err)
	}
	err := wait(cmd)
	var exit *exec.ExitError
	switch cause := context.Cause(ctx); {
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
		return Output{Stdout: stdout.b.Bytes()}, nil
	case c.Part && (errors.Is(cause, tooMuch(most)) || errors.Is(cause, tooLong)):
		return Output{Stdout: stdout.b.Bytes(), Cut: cause}, nil
	case cause != nil:
		return Output{}, failure(cause, stderr)
	case errors.As(err, &exit) && exit.ExitCode() == laterCode:
		return Output{Later: true}, nil
	}
	return Output{}, failure(err, stderr)
}

// command returns c without its outputs. The end of ctx kills its process group.
func (c Command) command(ctx context.Context) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env = c.Dir, c.Env
	if len(c.Extra) > 0 {
		cmd.Env = append(cmd.Environ(), c.Extra...)
	}
	if c.Stdin != "" {
		cmd.Stdin = strings.NewReader(c.Stdin)
	}
	cmd.SysProcAttr = ownGroup()
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	cmd.WaitDelay = waitDelay
	return cmd
}

func failure(why error, stderr *tail) error {
	if said := stderr.text(); said != "" {
		return fmt.Errorf("the command failed: %w; it said: %s", why, said)
	}
	return fmt.Errorf("the command failed: %w", why)
}

// capped keeps output up to a limit. It must not embed the buffer, whose ReadFrom
// would accept everything.
type capped struct {
	b    bytes.Buffer
	most int
	stop func(error)
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.most - c.b.Len(); len(p) > room {
		n, _ := c.b.Write(p[:room]) // to memory: never fails
		c.stop(tooMuch(c.most))
		return n, tooMuch(c.most)
	}
	return c.b.Write(p)
}

// tail keeps the end of what is written to it.
type tail struct {
	b   []byte
	cut bool
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > stderrTail {
		p, t.cut = p[len(p)-stderrTail:], true
	}
	if over := len(t.b) + len(p) - stderrTail; over > 0 {
		t.b, t.cut = append(t.b[:0], t.b[over:]...), true
	}
	t.b = append(t.b, p...)
	return n, nil
}

// text returns the tail on one line, without control characters.
func (t *tail) text() string {
	s := strings.Join(strings.Fields(foreign.Line(strings.ToValidUTF8(string(t.b), ""))), " ")
	if t.cut && s != "" {
		return "..." + s
	}
	return s
}
