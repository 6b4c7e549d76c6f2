// Package remote runs heartbeat on another machine, by the user's own ssh(1). How the
// host is reached, with which key and through which other host, is in ssh's own
// configuration. Only sshd has to listen there.
package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"heartbeat/hook/settings"
)

// EnvProgram is the variable that names heartbeat on the other machine, if the shell
// that sshd starts does not find it in its PATH.
const EnvProgram = "HEARTBEAT_REMOTE"

// EnvVia is the variable that tells a command on the other machine by which host it was
// called, so that the command lines that it shows can be typed here.
const EnvVia = "HEARTBEAT_VIA"

// sshFailed is ssh's own exit status if the command did not answer (ssh(1)); notFound
// is a shell's.
const (
	sshFailed = 255
	notFound  = 127
)

// Call is one command line of heartbeat for another machine.
type Call struct {
	Host string   // as ssh takes it: [user@]name, or a name of its configuration
	Args []string // after the program's name
	// Terminal is true if the command needs a terminal there.
	Terminal bool
	// Input is true if the command reads stdin.
	Input bool
}

// Check refuses a host that ssh would take for something else.
func Check(host string) error {
	if host == "" || strings.HasPrefix(host, "-") || strings.ContainsAny(host, " \t\r\n") {
		return fmt.Errorf("%q is not a host: write user@name, or a name of ssh's configuration", host)
	}
	return nil
}

// Line is the command line for the shell of the other machine.
func (c Call) Line() string {
	program := os.Getenv(EnvProgram)
	switch rest, home := strings.CutPrefix(program, "~/"); {
	case program == "":
		program = "heartbeat"
	case home:
		program = "~/" + quote(rest)
	default:
		program = quote(program)
	}
	words := []string{program}
	if c.Host != "" {
		words = []string{"env", quote(EnvVia + "=" + c.Host), program}
	}
	for _, arg := range c.Args {
		words = append(words, quote(arg))
	}
	return strings.Join(words, " ")
}

// quote is settings.Quote, also for zsh, where a word that begins with "=" means a
// program's path.
func quote(word string) string {
	if q := settings.Quote(word); !strings.HasPrefix(q, "=") {
		return q
	}
	return "'" + word + "'"
}

// command returns the call of ssh. ssh asks its own questions (a password, an unknown
// key) at the terminal, except in batch.
func (c Call) command(ctx context.Context, batch bool) *exec.Cmd {
	argv := []string{"-T"}
	if c.Terminal {
		argv = []string{"-t", "-o", "LogLevel=ERROR"} // so that it ends without a message
	}
	if !c.Input && !c.Terminal {
		argv = append(argv, "-n") // otherwise it reads the stdin of a script's loop
	}
	if batch {
		argv = append(argv, "-o", "BatchMode=yes")
	}
	return exec.CommandContext(ctx, "ssh", append(argv, "--", c.Host, c.Line())...)
}

// Run runs the command there with the streams of this process and returns its exit
// status. The error is a *Error if no heartbeat has answered.
func (c Call) Run(in, out, err *os.File) (status int, failed error) {
	cmd := c.command(context.Background(), false)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, err
	return c.status(cmd, cmd.Run(), "")
}

// patience is how long Ask waits for a host, and a bit more for ssh to end.
const (
	patience = 20 * time.Second
	leaving  = time.Second
)

// Ask runs the command there and returns what it printed on stdout, and its exit
// status. It asks nothing at a terminal and waits 20 seconds at most. The error is a
// *Error.
func (c Call) Ask(ctx context.Context) (out []byte, status int, failed error) {
	ctx, stop := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it has not answered within %v", patience))
	defer stop()
	cmd := c.command(ctx, true)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, leaving
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		return nil, sshFailed, &Error{Host: c.Host, Status: sshFailed, err: cause}
	}
	status, failed = c.status(cmd, err, lastLine(stderr.String()))
	return stdout.Bytes(), status, failed
}

func (c Call) status(cmd *exec.Cmd, err error, said string) (int, error) {
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return sshFailed, &Error{Host: c.Host, Status: sshFailed, err: err}
	}
	status := cmd.ProcessState.ExitCode()
	switch {
	case status == sshFailed || status < 0:
		return sshFailed, &Error{Host: c.Host, Status: sshFailed, err: because(fmt.Sprintf("ssh ended with %s", cmd.ProcessState), said)}
	case status == notFound:
		return status, &Error{Host: c.Host, Status: status, err: because("there is no heartbeat in the PATH of its shell", said)}
	}
	return status, nil
}

func because(what, said string) error {
	if said != "" {
		what += ": " + said
	}
	return errors.New(what)
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// Error means that heartbeat did not run on the other machine, as far as can be told.
type Error struct {
	Host   string
	Status int // the exit status of ssh
	err    error
}

// Error names the host.
func (e *Error) Error() string {
	return fmt.Sprintf("cannot run heartbeat on %q: %v", e.Host, e.err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.err }

// ExitCode is the exit status of ssh.
func (e *Error) ExitCode() int { return e.Status }

// Hint says what to do.
func (e *Error) Hint() string {
	switch {
	case errors.Is(e.err, exec.ErrNotFound):
		return "install ssh; it is what reaches the other machine"
	case e.Status == notFound:
		return "install heartbeat there, or name it: " + EnvProgram + "=/path/to/heartbeat"
	}
	return "try: ssh " + settings.Quote(e.Host) + " true"
}
