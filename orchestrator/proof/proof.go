// Package proof runs one check of an agent's work, says what the check answered,
// and tells whether the agent's files have changed. It decides nothing: what
// follows an answer is room guard's, and whose check it is the scheduler's.
//
// A check is a command that is run by the scheduler, never by a session: a process
// tree of its own, with a small environment. What it leaves is ended when it ends
// (by its control group where there are any, and by a cookie in its environment),
// and noted in the state directory while it runs, so that the next one in the same
// directory ends it where the scheduler was killed.
//
// Not promised: on a system without control groups, a process that gives up its
// environment and its parent outlives the check. An agent that can edit what the
// check runs decides what it answers.
package proof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"heartbeat/queue"

	"golang.org/x/sys/unix"

	"heartbeat/hook/inpath"
	"heartbeat/hook/owned"
	"heartbeat/ptyrun"
)

// Check is what to run.
type Check struct {
	Agent, Delivery string
	Iteration       int
	// Key is the agent's, which names the note of what runs: no two checks have the
	// same at one time.
	Key string
	// Argv is run without a shell, in Dir. A name without a slash is looked up in the
	// PATH of the check's environment.
	Argv []string
	Dir  string // AGENT_DIR
	// Env are the variables of until: env, as NAME=VALUE.
	Env []string
	// Timeout ends it; it has to be more than 0.
	Timeout  time.Duration
	StateDir string
}

// Answer is what a check has said.
type Answer string

// The answers.
const (
	Passed  Answer = "passed"  // exit status 0
	Failed  Answer = "failed"  // any other, a signal, or it took too long
	Later   Answer = "later"   // exit status 75: neither; it is to be asked again
	Trouble Answer = "trouble" // it could not be run; it is to be asked again
)

// laterCode is sysexits' EX_TEMPFAIL.
const laterCode = 75

// Result is what became of a check.
type Result struct {
	Answer Answer
	// Why is what it ended with, in words: "exit status 2", or why it could not run.
	Why string
	// Output is the end of what it has printed, for people and for the agent, as
	// queue.CleanOutput leaves it. Said is a digest of all of it without its digits.
	Output, Said string
	Took         time.Duration
}

// endGrace is how long a check that is ended may take from SIGTERM to SIGKILL.
const endGrace = 2 * time.Second

// Run runs a check and returns what it has answered. When it returns, nothing of
// the check is left, nor of one that an earlier scheduler had begun under the same
// key. The error says that there is no answer: ctx was done before, what runs could
// not be noted, or what is left could not be ended.
func Run(ctx context.Context, c Check) (Result, error) {
	began := time.Now()
	if err := sweepOne(ctx, notePath(c.StateDir, c.Key)); err != nil {
		return Result{}, err
	}
	// The directory may be a link by now, and a link can lead anywhere.
	if info, err := os.Lstat(c.Dir); err != nil || !info.IsDir() {
		return trouble(fmt.Errorf("%s is not a folder", c.Dir)), nil
	}
	n := newNote(c)
	env := environment(c, n.Cookie)
	path, err := lookUp(c.Argv, c.Dir, env)
	if err != nil {
		return trouble(err), nil
	}
	if err := n.save(); err != nil {
		return Result{}, err
	}
	r, err := n.run(ctx, c, path, env)
	r.Took = time.Since(began)
	if errors.Is(err, errLeft) {
		return r, err // the next one tries again
	}
	return r, errors.Join(err, n.drop())
}

func trouble(err error) Result { return Result{Answer: Trouble, Why: err.Error()} }

// environment is all that a check gets: nothing of the scheduler's but where
// programs are, and who it is.
func environment(c Check, cookie string) []string {
	env := []string{"AGENT_DIR=" + c.Dir}
	for _, name := range []string{"PATH", "HOME", "LANG"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(append(env, c.Env...), cookieVariable+"="+cookie)
}

// lookUp finds the program of a check.
func lookUp(argv []string, dir string, env []string) (string, error) {
	if len(argv) == 0 || strings.TrimSpace(argv[0]) == "" {
		return "", errors.New("no program is named")
	}
	if strings.Contains(argv[0], "/") {
		return argv[0], startable(argv[0], dir)
	}
	file, err := inpath.Find(inpath.Of(env), argv[0])
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is not found in PATH", argv[0])
	}
	if err != nil {
		return "", fmt.Errorf("cannot run %s: %w", argv[0], err)
	}
	return file, nil
}

// startable says in plain words why a file cannot be started from a folder; nil where
// that is not known before.
func startable(name, dir string) error {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is not found in %s", name, dir)
	case err != nil:
		return nil // the start says more
	case info.IsDir():
		return fmt.Errorf("%s is a folder, not a program", name)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable: chmod +x %s", name, path)
	}
	return owned.CheckProgram(dir, name)
}

// unstarted says why a program that is there could not be started.
func unstarted(err error, name string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s cannot be started: the interpreter of its first line is not found", name)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%s cannot be started: it is not a program, and its first line names no interpreter", name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s cannot be started: it, or the interpreter of its first line, is not executable", name)
	}
	return err
}

// run runs the command to its end, or ends it.
func (n *note) run(ctx context.Context, c Check, path string, env []string) (Result, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return trouble(err), nil
	}
	cmd := &exec.Cmd{Path: path, Args: c.Argv, Dir: c.Dir, Env: env, Stdout: write, Stderr: write, SysProcAttr: ownTree()}
	ended := make(chan error, 1)
	started := make(chan error, 1)
	go n.start(cmd, started, ended)
	err = <-started
	_ = write.Close()
	if err != nil {
		_ = read.Close()
		return trouble(unstarted(err, c.Argv[0])), nil
	}
	said := newListener()
	heard := make(chan struct{})
	go func() { defer close(heard); said.hear(read) }()
	how, err := n.await(ctx, c.Timeout, ended)
	// What is left may hold the pipe open.
	swept := n.sweep(ctx, 0)
	select {
	case <-heard:
	case <-time.After(endGrace):
	}
	_ = read.Close()
	<-heard
	r := Result{Answer: Failed, Why: how.why, Output: queue.CleanOutput(string(said.tail)), Said: said.digest()}
	switch how.code {
	case 0:
		r.Answer = Passed
	case laterCode:
		r.Answer = Later
	}
	return r, errors.Join(err, swept)
}

// ending is how a command ended: with an exit status, or without one, -1; and in words, ""
// for status 0.
type ending struct {
	code int
	why  string
}

// await waits for a command's end, and ends it where it takes too long or ctx is
// done: then the error says so.
func (n *note) await(ctx context.Context, timeout time.Duration, ended <-chan error) (how ending, err error) {
	clock := time.NewTimer(timeout)
	defer clock.Stop()
	select {
	case err := <-ended:
		return endingOf(err), nil
	case <-clock.C:
		how = ending{-1, fmt.Sprintf("it ran over %s", timeout)}
	case <-ctx.Done():
		how, err = ending{-1, "ended"}, fmt.Errorf("the check was ended: %w", context.Cause(ctx))
	}
	if swept := n.sweep(ctx, endGrace); swept != nil {
		return how, errors.Join(err, swept)
	}
	<-ended
	return how, err
}

// errLeft means that processes of a check could not be ended.
var errLeft = errors.New("cannot end all that a check has left")

// sweep ends what is left of the check, also where ctx is done.
func (n *note) sweep(ctx context.Context, grace time.Duration) error {
	if _, err := ptyrun.Sweep(context.WithoutCancel(ctx), n.remains(), grace); err != nil {
		return fmt.Errorf("%w: %w", errLeft, err)
	}
	return nil
}

// endingOf is how a command ended, by the error with which it was waited for.
func endingOf(err error) ending {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return ending{}
	case !ok:
		return ending{-1, err.Error()}
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return ending{-1, "killed by " + cmp.Or(unix.SignalName(status.Signal()), status.Signal().String())}
	}
	return ending{exit.ExitCode(), err.Error()}
}
