// Package probe tries on an installed client what heartbeat's promise rests on: a client
// that updates itself at night may do something else in the morning. A probe is a few
// short sessions in a pseudo-terminal, with hooks that write down what they are told,
// against an API of ours on loopback (internal/fakeapi), in a home, a folder and an
// environment of their own, with a key that is made up. Nothing is paid, and nothing of
// the user's is reachable.
//
// The sessions are played by a process of their own ([Serve]), on Linux in a network
// that has only loopback, where the system allows one: what the client sends reaches
// nobody. Where there is none, the client is told to call nobody but our API; the
// result says so.
//
// What is not promised: that the client does all that it did. The conformance tests
// compare far more, with recorded sessions; a probe asks only what would lose, double
// or delay a prompt. The model and the service are ours, so a change of theirs is not
// seen.
package probe

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
)

// Prober probes clients. Only Self is needed.
type Prober struct {
	// Self is the running program, which serves probes when it is called with Command.
	Self string
	// Step, if not nil, is told how many scenes were played, of how many, and which one
	// is played now.
	Step func(played, of int, now string)
	// Patience is how long something that must happen may take; 0: half a minute, as
	// long as a session may take to start. Within limits the whole probe; 0: 5 minutes.
	Patience, Within time.Duration

	// For tests: the ways to have a network of one's own, and whether an administrator has
	// settings for the client; nil: this machine's.
	networks func() []*syscall.SysProcAttr
	managed  func() bool
}

const (
	defaultPatience = 30 * time.Second
	defaultWithin   = 5 * time.Minute
	// stopWithin is how long the process has to end its clients.
	stopWithin = 15 * time.Second
)

// Probe tries a client: argv is its command line without arguments, path the PATH by
// which it is found and finds others. If ctx ends, nothing is known of the client.
func (p Prober) Probe(ctx context.Context, argv []string, path string) Result {
	began := time.Now()
	r, err := p.probe(ctx, argv, path)
	if err != nil {
		r = Result{Failure: foreign.Text(err.Error()), Kept: []Promise{}, Broken: []Breach{}, Once: []foreign.Text{}}
	}
	r.Client, r.Measured = strings.Join(argv, " "), client.Claude.Versions.Measured
	r.At, r.DurationMS = began, time.Since(began).Milliseconds()
	return r
}

func (p Prober) probe(ctx context.Context, argv []string, path string) (Result, error) {
	within := cmp.Or(p.Within, defaultWithin)
	ctx, stop := context.WithTimeoutCause(ctx, within, fmt.Errorf("it took more than %v", within))
	defer stop()
	dir, err := os.MkdirTemp("", "heartbeat-probe-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir) // the client resolves links
	}
	if err != nil {
		return Result{}, fmt.Errorf("cannot make a folder for the probe: %w", err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is a temporary one
	o := order{Client: argv, Path: path, Dir: dir, Isolated: true, Patience: cmp.Or(p.Patience, defaultPatience)}
	open := ""
	if p.networks == nil {
		p.networks, p.managed = networks, managed
	}
	for _, attr := range p.networks() {
		r, err := p.serve(ctx, o, attr)
		if none, is := errors.AsType[*noNetworkError](err); is && ctx.Err() == nil {
			open = none.Error()
			continue
		}
		return r, err
	}
	if open = cmp.Or(open, "it can be isolated on Linux only"); p.managed() {
		return Result{}, fmt.Errorf("%s, and this machine's administrator has settings for the client, which count in a probe, too: it might call others", open)
	}
	o.Isolated = false
	r, err := p.serve(ctx, o, &syscall.SysProcAttr{})
	r.Open = open
	return r, err
}

// managed reports whether there are settings that count in any home.
func managed() bool {
	entries, err := os.ReadDir(client.Claude.Settings.Managed(runtime.GOOS))
	return len(entries) > 0 || err != nil && !errors.Is(err, os.ErrNotExist)
}

// noNetworkError means that a process cannot be given a network of its own.
type noNetworkError struct{ why error }

func (e *noNetworkError) Error() string {
	return "it cannot have a network of its own: " + e.why.Error()
}

// serve starts the process that plays the scenes, and follows it.
func (p Prober) serve(ctx context.Context, o order, attr *syscall.SysProcAttr) (Result, error) {
	cmd := exec.CommandContext(ctx, p.Self, Command)
	attr.Setsid = true // Ctrl-C at our terminal is for us alone to handle
	cmd.SysProcAttr, cmd.Dir, cmd.WaitDelay = attr, "/", stopWithin
	cmd.Env = []string{"PATH=" + o.Path, "GORACE=atexit_sleep_ms=0"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return Result{}, err
	}
	cmd.Cancel = stdin.Close // it ends its clients, and itself
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return Result{}, err
	}
	complaint := &shown{}
	cmd.Stderr = complaint
	if err := cmd.Start(); err != nil {
		if o.Isolated {
			return Result{}, &noNetworkError{err}
		}
		return Result{}, fmt.Errorf("cannot start the probe: %w", err)
	}
	_ = json.NewEncoder(stdin).Encode(o) // a process that has ended says so below
	last := p.follow(stdout)
	switch err := cmd.Wait(); {
	case last.NoNetwork != "":
		return Result{}, &noNetworkError{errors.New(last.NoNetwork)}
	case last.Result == nil:
		return Result{}, fmt.Errorf("the probe ended early: %w %s", cmp.Or(context.Cause(ctx), err, io.ErrUnexpectedEOF), foreign.Line(complaint.lines(3)))
	}
	return *last.Result, nil
}

// follow reads reports until the last one.
func (p Prober) follow(from io.Reader) (last report) {
	lines := json.NewDecoder(from)
	for {
		var r report
		if err := lines.Decode(&r); err != nil {
			return last // who waits for the process knows why
		}
		if last = r; r.Result != nil || r.NoNetwork != "" {
			return last
		}
		if p.Step != nil {
			p.Step(r.Played, r.Of, r.Now)
		}
	}
}
