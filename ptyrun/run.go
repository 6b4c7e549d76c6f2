package ptyrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	ossignal "os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// Exit codes of Run: those of GNU timeout(1), and the reserved one above.
const (
	CodeTimeout = 124
	CodeStalled = 125
	maxCode     = 123 // a child's own code is at most this
)

// ExitWith says how the exit signal ends a child.
type ExitWith string

// The ways of ending by the exit signal. Both make the exit code 0.
const (
	ExitWithSignal  ExitWith = "signal"  // SIGTERM, grace, SIGKILL
	ExitWithCommand ExitWith = "command" // "/exit\r" is typed; after the grace as signal
)

// The defaults of the nudge for a silent terminal.
const (
	DefaultIdlePrompt     = "Continue"
	DefaultMaxIdleRetries = 3
)

// RunConfig is heartbeat-launch's command line. Only Argv is needed.
type RunConfig struct {
	Argv    []string
	Dir     string        // must exist; symbolic links are resolved. "": the current one
	Env     []string      // nil: CleanEnv(os.Environ())
	Timeout time.Duration // for the child's whole life; 0: none
	Grace   time.Duration // from SIGTERM to SIGKILL; 0: DefaultGrace, less: none

	// Rows and Cols are the terminal's fixed size; one that is 0 is the default.
	// When both are 0, it follows the window of Stdout.
	Rows, Cols int

	// ExitSignal is a file that ends the child when it appears; one that already
	// exists is stale and removed first. "": none.
	ExitSignal string
	ExitWith   ExitWith // "": ExitWithSignal

	// IdleTimeout: after so much silence of the terminal, ESC ESC, IdlePrompt and
	// CR are typed, MaxIdleRetries times in a row, and then the child is ended with
	// CodeStalled. 0: never. While a process below the child has one of the names
	// in Hooks, the child is waiting for it, and its silence does not count.
	IdleTimeout    time.Duration
	Hooks          []string
	IdlePrompt     string // "": DefaultIdlePrompt
	MaxIdleRetries int    // 0: DefaultMaxIdleRetries; negative: none, stalled at once

	// Interactive types what comes from Stdin, which is put into raw mode if it is
	// a terminal.
	Interactive bool
	Stdin       *os.File  // nil: os.Stdin
	Stdout      io.Writer // nil: os.Stdout. The window follows it if it is a terminal
	// Log, if not nil, also gets the output, even after Stdout has broken.
	Log *Log
}

// Run runs a command in a PTY, passes its output to Stdout until that breaks,
// and leaves no process behind. It returns the exit code to end with:
//
//   - the child's own, at most 123 (also 128+n after signal n);
//   - 0 after the exit signal, 124 after the timeout, 125 when stalled;
//   - 128+n when this process got SIGTERM, SIGINT or SIGHUP (143, 130, 129),
//     which end the child as End does; a second one cuts the grace short.
//
// When ctx is done the child is ended too and the code is 143. The error says
// that the command could not be run at all, or that processes are left.
func Run(ctx context.Context, cfg RunConfig) (int, error) {
	cfg, err := cfg.prepared()
	if err != nil {
		return 1, err
	}
	signals := make(chan os.Signal, 4)
	// SIGPIPE is caught, not ignored (the child would inherit that): then a broken
	// Stdout is an error of Write.
	pipe := make(chan os.Signal, 1)
	ossignal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	ossignal.Notify(pipe, syscall.SIGPIPE)
	defer ossignal.Stop(signals)
	defer ossignal.Stop(pipe)

	window := newWindow(cfg.Stdout)
	rows, cols := window.size()
	env := window.env(cfg.Env)
	if cfg.Rows > 0 || cfg.Cols > 0 {
		window, rows, cols, env = newWindow(nil), cfg.Rows, cfg.Cols, withoutSize(cfg.Env)
	}
	child, err := Start(ctx, Config{
		Argv: cfg.Argv, Dir: cfg.Dir, Env: env, Rows: rows, Cols: cols,
		Output: cfg.output(), Grace: cfg.Grace, Group: PlanGroup(),
	})
	if err != nil {
		return 1, err
	}
	defer window.follow(func(rows, cols int) {
		_ = child.Resize(rows, cols) // the next change tries again
	})()
	if cfg.Interactive {
		defer typeFrom(cfg.Stdin, child)()
	}
	forced, code := cfg.watch(ctx, child, signals)
	exit := endHurried(child, signals)
	if !forced {
		code = min(exit.Code, maxCode)
	}
	if cfg.signalled() { // obeyed by now, whatever ended the child
		if err := os.Remove(cfg.ExitSignal); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return code, fmt.Errorf("cannot remove the exit signal: %w", err)
		}
	}
	if len(exit.Left) > 0 {
		p := exit.Left[0]
		return code, fmt.Errorf("cannot end %d processes, the first is %d (%s)", len(exit.Left), p.PID, p.Command)
	}
	return code, nil
}

func (cfg RunConfig) prepared() (RunConfig, error) {
	if cfg.Dir != "" {
		dir, err := filepath.EvalSymlinks(cfg.Dir)
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			return cfg, fmt.Errorf("cannot run in %q: %w: %w", cfg.Dir, ErrDir, err)
		}
		cfg.Dir = dir
	}
	if cfg.ExitSignal != "" {
		if err := os.Remove(cfg.ExitSignal); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return cfg, fmt.Errorf("cannot remove the stale exit signal: %w", err)
		}
	}
	switch cfg.ExitWith {
	case "":
		cfg.ExitWith = ExitWithSignal
	case ExitWithSignal, ExitWithCommand:
	default:
		return cfg, fmt.Errorf("cannot end with %q: it is %q or %q", cfg.ExitWith, ExitWithSignal, ExitWithCommand)
	}
	if cfg.Env == nil {
		cfg.Env = CleanEnv(os.Environ())
	}
	if cfg.Stdin == nil {
		cfg.Stdin = os.Stdin
	}
	if cfg.Stdout == nil {
		cfg.Stdout = os.Stdout
	}
	if cfg.IdlePrompt == "" {
		cfg.IdlePrompt = DefaultIdlePrompt
	}
	if cfg.MaxIdleRetries == 0 {
		cfg.MaxIdleRetries = DefaultMaxIdleRetries
	}
	return cfg, nil
}

// output says where the terminal's output goes.
func (cfg RunConfig) output() io.Writer {
	if cfg.Log == nil {
		return cfg.Stdout
	}
	return &logged{log: cfg.Log, out: cfg.Stdout}
}

// logged passes output on until that fails, and logs all of it.
type logged struct {
	log    *Log
	out    io.Writer
	broken bool
}

func (l *logged) Write(p []byte) (int, error) {
	if !l.broken {
		_, err := l.out.Write(p)
		l.broken = err != nil
	}
	return l.log.Write(p)
}

// lookEvery is how often the exit signal and the terminal's silence are checked.
const lookEvery = 100 * time.Millisecond

// watch waits until the child has exited or has to end. forced means that the exit
// code is code, whatever the child's is.
func (cfg RunConfig) watch(ctx context.Context, child *Child, signals <-chan os.Signal) (forced bool, code int) {
	var timeout <-chan time.Time
	if cfg.Timeout > 0 {
		timer := time.NewTimer(cfg.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	nudge := nudger{timeout: cfg.IdleTimeout, retries: max(cfg.MaxIdleRetries, 0)}
	for {
		select {
		case <-child.Done():
			return cfg.signalled(), 0
		case <-timeout:
			return true, CodeTimeout
		case s := <-signals:
			return true, 128 + int(s.(syscall.Signal))
		case <-ctx.Done():
			return true, 128 + int(syscall.SIGTERM)
		case now := <-ticker.C:
			if cfg.signalled() {
				cfg.leave(ctx, child, signals)
				return true, 0
			}
			last, _ := child.Activity()
			if nudge.silent(now, last) {
				nudge.sees(child.waitsFor(cfg.Hooks), now)
			}
			switch nudge.look(now, last) {
			case typePrompt:
				cfg.prompt(child)
			case giveUp:
				return true, CodeStalled
			}
		}
	}
}

// signalled reports whether the exit signal exists. A child that creates it and
// exits at once has ended by it too.
func (cfg RunConfig) signalled() bool {
	if cfg.ExitSignal == "" {
		return false
	}
	_, err := os.Lstat(cfg.ExitSignal)
	return err == nil
}

// leave lets the client exit by itself if it is to be asked with a command.
func (cfg RunConfig) leave(ctx context.Context, child *Child, signals <-chan os.Signal) {
	if cfg.ExitWith != ExitWithCommand {
		return
	}
	_, _ = child.Write([]byte("/exit\r")) // End follows in any case
	select {
	case <-child.Done():
	case <-ctx.Done():
	case <-signals:
	case <-time.After(child.grace):
	}
}

// prompt interrupts whatever the client is waiting for and types the idle prompt.
// If it cannot be typed, nothing has recovered, and the retries continue counting.
func (cfg RunConfig) prompt(child *Child) {
	_, _ = child.Write([]byte("\x1b\x1b"))
	time.Sleep(escapePause)
	_, _ = child.Write([]byte(cfg.IdlePrompt + "\r"))
}

// endHurried ends the child; a signal ends the grace.
func endHurried(child *Child, signals <-chan os.Signal) Exit {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-ctx.Done():
		}
	}()
	return child.End(ctx)
}
