package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/orchestrator/person"
	"heartbeat/orchestrator/session"
	"heartbeat/ptyrun"
)

type launchCmd struct {
	CWD            string        `name:"cwd" placeholder:"DIR" help:"The directory to run in; it must exist." complete:"file"`
	Timeout        time.Duration `type:"seconds" placeholder:"DURATION" default:"1h" help:"End it after this time with status 124 (${default}); 0: never."`
	Grace          time.Duration `type:"seconds" placeholder:"DURATION" default:"10s" help:"From SIGTERM to SIGKILL (${default}); 0: SIGKILL follows at once."`
	ExitSignal     string        `placeholder:"FILE" help:"End it, with status 0, when this file appears, and remove the file; so is one that is there already." complete:"file"`
	ExitWith       string        `placeholder:"HOW" enum:"signal,command" default:"signal" help:"How the exit signal ends it: signal, or command, which types /exit first."`
	IdleTimeout    time.Duration `type:"seconds" placeholder:"DURATION" default:"0" help:"Type a prompt after this time without output, unless a hook of ours waits; 0: never."`
	IdlePrompt     string        `placeholder:"TEXT" default:"Continue" help:"What to type then (${default})."`
	MaxIdleRetries int           `placeholder:"N" default:"3" help:"How often in a row, before it counts as stalled, status 125 (${default})."`
	Rows           int           `placeholder:"N" help:"The terminal's rows (50, or this one's)."`
	Cols           int           `placeholder:"N" help:"The terminal's columns (200, or this one's)."`
	Log            string        `placeholder:"FILE" help:"Log the terminal's output too; FILE ends with .log. At 8 MiB it becomes FILE.1." complete:"file"`
	Interactive    bool          `short:"i" help:"Pass on what is typed here."`
	Shim           bool          `hidden:"" help:"Run a session for \"heartbeat run\": a specification on stdin, reports on stdout."`
	Argv           []string      `arg:"" optional:"" passthrough:"partial" name:"command" help:"The command and its arguments, behind \"--\"."`
}

// Help implements kong's HelpProvider.
func (launchCmd) Help() string {
	return `Runs a command in a terminal of 50 rows and 200 columns (or this one's size), and
ends its whole process tree when it exits, however it exits. A duration may be a
plain number of seconds. The exit status is the command's own, at most 123. With -o json the
command's output goes to stderr.

Examples:

    heartbeat launch --timeout 30m -- claude "Tidy up the changelog."
    heartbeat launch --cwd ~/agents/triage --exit-signal /tmp/done -- claude`
}

// launched is a command that has ended.
type launched struct {
	Command  []string `json:"command"`
	ExitCode int      `json:"exit_code"`
}

// text is empty: the command's output was all.
func (launched) text(*page) {}

func (c launchCmd) run(ctx context.Context, a *app) (result, error) {
	if c.Shim {
		if err := ptyrun.Bind(); err != nil {
			a.log.Warn("agents may pass for a person", "err", err)
		}
		ctx, stop := interruptible(ctx)
		defer stop()
		return nil, session.RunShim(ctx, a.in, a.stdio.out, person.Check, a.log)
	}
	if len(c.Argv) > 0 && c.Argv[0] == "--" {
		c.Argv = c.Argv[1:]
	}
	if len(c.Argv) == 0 {
		return nil, usagef("heartbeat launch [FLAGS] -- COMMAND [ARGUMENTS]", "there is no command")
	}
	if c.MaxIdleRetries < 0 {
		return nil, usagef("heartbeat launch --help", "--max-idle-retries is below 0")
	}
	if c.Rows < 0 || c.Rows > maxSide || c.Cols < 0 || c.Cols > maxSide {
		return nil, usagef("heartbeat launch --help", "--rows and --cols are numbers from 1 to %d", maxSide)
	}
	cfg := c.config(a)
	var err error
	if cfg.Log, err = c.openLog(); err != nil {
		return nil, err
	}
	if cfg.Log != nil {
		defer cfg.Log.Close()
	}
	a.step("running " + c.Argv[0])
	code, err := ptyrun.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if cfg.Log != nil {
		if n, why := cfg.Log.Missing(); n > 0 {
			a.log.Warn("not all of the terminal's output is in its log", "bytes", n, "err", why)
		}
	}
	return launched{Command: c.Argv, ExitCode: code}, c.failure(code)
}

// maxLog limits --log and the part that was rotated, together.
const maxLog = 16 << 20

// openLog returns nil if no log was asked for.
func (c launchCmd) openLog() (*ptyrun.Log, error) {
	if c.Log == "" {
		return nil, nil
	}
	path, err := filepath.Abs(c.Log)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log %q: %w", c.Log, err)
	}
	name, ok := strings.CutSuffix(filepath.Base(path), ".log")
	if !ok || name == "" {
		return nil, usagef("heartbeat launch --log FILE.log -- COMMAND", "--log %q does not end with .log", c.Log)
	}
	dir := filepath.Dir(path)
	// One folder is made for it, not a whole path that may be spelt wrongly.
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("cannot open the log %q: %w", c.Log, err)
	}
	folder, err := durable.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log %q: %w", c.Log, err)
	}
	return ptyrun.NewLog(folder, name, maxLog, 0)
}

// maxSide is the largest window there is (TIOCSWINSZ in ioctl_tty(2): 16 bits).
const maxSide = 1<<16 - 1

func (c launchCmd) config(a *app) ptyrun.RunConfig {
	var out io.Writer = a.stdio.out
	if a.Output == "json" {
		out = a.err
	}
	retries := c.MaxIdleRetries
	if retries == 0 {
		retries = -1 // stalled at once
	}
	grace := c.Grace
	if grace == 0 {
		grace = -1 // none
	}
	return ptyrun.RunConfig{
		Argv: c.Argv, Dir: c.CWD, Timeout: c.Timeout, Grace: grace,
		ExitSignal: c.ExitSignal, ExitWith: ptyrun.ExitWith(c.ExitWith),
		IdleTimeout: c.IdleTimeout, IdlePrompt: c.IdlePrompt, MaxIdleRetries: retries,
		Hooks: []string{"heartbeat-stop", "heartbeat"}, // as the system calls them
		Rows:  c.Rows, Cols: c.Cols, Interactive: c.Interactive, Stdin: a.in, Stdout: out,
	}
}

func (c launchCmd) failure(code int) error {
	switch code {
	case exitOK:
		return nil
	case ptyrun.CodeTimeout:
		return &failure{status: exitTimeout, err: fmt.Errorf("cannot finish %q: it took over %s", c.Argv[0], c.Timeout)}
	case ptyrun.CodeStalled:
		return &failure{status: exitStalled, err: fmt.Errorf("cannot finish %q: its terminal stays silent", c.Argv[0])}
	}
	return childStatus(code)
}
