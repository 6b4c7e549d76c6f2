package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/owner"
)

// The exit statuses (those of sysexits(3) and timeout(1) if they have one).
const (
	exitOK         = 0
	exitError      = 1
	exitUsage      = 2
	exitNotRunning = 3
	exitLater      = 75 // not now (EX_TEMPFAIL): parked, a full queue, while-down
	exitConfig     = 78
	exitTimeout    = 124
	exitStalled    = 125
)

// codes name the exit statuses in JSON.
var codes = map[int]string{
	exitUsage: "usage", exitNotRunning: "not-running", exitLater: "parked", exitConfig: "bad-configuration",
	exitTimeout: "timeout", exitStalled: "stalled",
}

// failure is an error with an exit status and a hint: what to type next. Errors of
// the domain carry a hint in a method Hint() string of their own.
type failure struct {
	status int
	hint   string
	err    error
}

// Error returns the cause's.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.err }

// ExitCode returns the exit status.
func (f *failure) ExitCode() int { return f.status }

// childStatus is the exit status of a child; people see no message of ours about
// it.
type childStatus int

// Error names the status.
func (c childStatus) Error() string { return fmt.Sprintf("the command exited with status %d", int(c)) }

// ExitCode returns the child's.
func (c childStatus) ExitCode() int { return int(c) }

// silent reports whether an error is only an exit status where people read.
func silent(err error) bool {
	_, child := errors.AsType[childStatus](err)
	_, changes := errors.AsType[changesFound](err)
	_, notRun := errors.AsType[notRun](err)
	_, unhealthy := errors.AsType[unhealthy](err)
	return child || changes || notRun || unhealthy
}

// statusOf returns the exit status for an error.
func statusOf(err error) int {
	var coder interface {
		error
		ExitCode() int
	}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coder):
		return coder.ExitCode()
	}
	if _, ok := errors.AsType[*owner.TakenError](err); ok {
		return exitConfig
	}
	return exitError
}

// Hint returns its hint or, without one, the cause's.
func (f *failure) Hint() string { return cmp.Or(f.hint, orchestrator.HintOf(f.err)) }

// hintOf returns what to type next, or "".
func hintOf(err error) string { return orchestrator.HintOf(err) }

// codeOf names an error for programs.
func codeOf(err error) string {
	if _, ok := errors.AsType[childStatus](err); ok {
		return "child-exited"
	}
	if _, ok := errors.AsType[changesFound](err); ok {
		return "changes"
	}
	if errors.Is(err, inbox.ErrFull) {
		return "queue-full"
	}
	if code := codes[statusOf(err)]; code != "" {
		return code
	}
	return "error"
}

// configFailure is a configuration file that cannot be used.
func configFailure(path string, err error) error {
	f := &failure{status: exitConfig, err: err}
	problems, ok := errors.AsType[config.Problems](err)
	switch {
	case ok:
		f.err = fmt.Errorf("cannot use %q: %s\n%w", path, count(len(problems), "problem"), err)
	case errors.Is(err, fs.ErrNotExist):
		f.hint = "heartbeat init writes a starter file; --file FILE or HEARTBEAT_FILE names another one"
		if other := owner.Meant(path); other != "" {
			f.hint = "there is " + other + ": heartbeat -f " + settings.Quote(other) + " …"
		}
	case errors.Is(err, syscall.EISDIR):
		f.hint = "-f names a file, not a folder"
		inside := filepath.Join(path, owner.FileName)
		if other := owner.Meant(inside); other != "" && owner.Gone(inside) {
			inside = other
		}
		if !owner.Gone(inside) {
			f.hint = "there is " + inside + ": heartbeat -f " + settings.Quote(inside) + " …"
		}
	}
	return f
}

// findAgent finds an agent by its name; the error lists similar ones.
func findAgent(f *config.Fleet, name string) (*config.Agent, error) {
	if a := f.Agent(name); a != nil {
		return a, nil
	}
	names := make([]string, len(f.Agents))
	for i, a := range f.Agents {
		names[i] = a.Name
	}
	hint := ""
	if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
		hint = "where -f means to follow, --file " + settings.Quote(name) + " names the fleet's file"
	} else if near := config.Nearest(name, names); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, ", ") + "?"
	} else if len(names) > 0 {
		hint = "the agents are " + strings.Join(names[:min(len(names), 10)], ", ")
		if len(names) > 10 {
			hint += fmt.Sprintf(" and %d more", len(names)-10)
		}
	}
	return nil, &failure{status: exitError, hint: hint, err: fmt.Errorf("cannot find agent %q in %q", name, f.Path)}
}

// count is a number of things.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
