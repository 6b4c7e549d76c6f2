// Package simulate is a stand-in for the Claude Code client, for trying
// heartbeat out and for tests: a process in a terminal that takes a prompt,
// runs the hooks of its settings files, and answers from a script instead of
// a model. It behaves as client 2.1.329 was measured to: the hooks' payloads
// and environment, their verdicts, time-outs and cap, permissions, background
// tasks, typed input, signals, transcript and exit statuses.
//
// It knows only what the client knows: nothing of queues, inboxes or whoever
// started it. What it cannot show: the model's own behaviour, a real screen
// layout, compaction without --api, MCP, CLAUDE.md, real prices.
//
// With --api the Messages API at ANTHROPIC_BASE_URL answers in a script's place, and
// counts what it is asked: tests have one that plays a model (internal/fakeapi).
//
// With SIMULATE_LOG=FILE it appends one JSON line per request to the model
// (see Request): what the "model" really got, independent of any hook.
package simulate

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"

	"heartbeat/internal/simulate/hooks"
	"heartbeat/internal/simulate/script"
)

// Version is the client's whose behaviour this is.
const Version = "2.1.329"

// Main runs the client and returns its exit status: 0 after /exit, ^D ^D,
// SIGINT and a closed terminal, 143 and 129 after SIGTERM and SIGHUP, 1 when
// it cannot start. It handles the process's signals and returns once.
func Main(args []string, stdin, stdout *os.File, stderr io.Writer) int {
	debug.SetGCPercent(400) // most sessions are over before there is garbage to speak of
	a, err := parseArguments(args)
	switch {
	case err != nil:
		fmt.Fprintf(stderr, "error: %v\n", err)
		return 1
	case a.help:
		fmt.Fprint(stdout, usage)
		return 0
	case a.version:
		fmt.Fprintf(stdout, "%s (simulated)\n", Version)
		return 0
	}
	s, err := newSession(a)
	if err != nil {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	s.stderr = stderr
	s.interactive = !a.print && term.IsTerminal(int(stdin.Fd())) && term.IsTerminal(int(stdout.Fd()))
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT)
	defer signal.Stop(signals)
	s.signals = signals
	if !s.interactive {
		return s.printMode(stdin, stdout)
	}
	s.term, err = openTerminal(stdin, stdout)
	if err != nil {
		fmt.Fprintf(stderr, "Error: %v\n", err)
		return 1
	}
	return s.inTerminal()
}

// newSession reads what the command line names. Nothing is written yet.
func newSession(a *arguments) (*session, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	// The client resolves a symlinked launch directory.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, err
	}
	home, err := homeDir(a.home)
	if err != nil {
		return nil, err
	}
	sc, err := script.Load(a.script)
	if err != nil {
		return nil, err
	}
	s := &session{
		figures: make(chan struct{}, 1),
		args:    a, script: sc, model: script.NewModel(sc), home: home, project: dir, cwd: dir,
		store:    hooks.ProjectStore(home, dir, a.settingSources),
		runner:   hooks.Runner{KillDelay: time.Duration(sc.KillDelay)},
		arrivals: make(chan item, 64), typed: make(chan string, 64), typedIn: make(chan struct{}, 1), exitNow: make(chan int, 1),
	}
	s.runner.Rest = &s.rest
	if s.store.Pinned, err = pinnedSettings(a.settings); err != nil {
		return nil, err
	}
	if a.api {
		if s.service, err = s.openService(); err != nil {
			return nil, err
		}
		s.meter.exact = true
	}
	return s, s.checkBypass()
}

func homeDir(flag string) (string, error) {
	if flag == "" {
		return os.UserHomeDir()
	}
	dir, err := filepath.Abs(flag)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}
