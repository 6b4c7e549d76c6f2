package proof

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"heartbeat/orchestrator/state"
	"heartbeat/ptyrun"
)

// cookieVariable is in the environment of all that a check starts. It is the one by
// which sessions are found, with a value that is no session's: our hooks do nothing
// there.
const cookieVariable = "HEARTBEAT_SESSION"

// note is checks/KEY.json in the state directory: what may be ended if the scheduler
// dies while a check runs.
type note struct {
	Agent     string `json:"agent"`
	Delivery  string `json:"delivery"`
	Iteration int    `json:"iteration"`
	Cookie    string `json:"cookie"`
	// Scheduler is the process that ran it, After when that was started, Group the
	// control group.
	Scheduler int    `json:"scheduler"`
	After     uint64 `json:"after"`
	Group     string `json:"group,omitempty"`
	// PID and Start identify the check itself, once it runs.
	PID   int       `json:"pid,omitempty"`
	Start uint64    `json:"start,omitempty"`
	At    time.Time `json:"at"`

	path string
}

const folder = "checks"

func notePath(stateDir, key string) string {
	return filepath.Join(stateDir, folder, filepath.Base(key)+".json")
}

func newNote(c Check) *note {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // never fails
	after, _ := ptyrun.StartTimeOf(os.Getpid())
	return &note{
		Agent: c.Agent, Delivery: c.Delivery, Iteration: c.Iteration, Cookie: "check-" + hex.EncodeToString(b), Scheduler: os.Getpid(), After: after,
		Group: ptyrun.PlanGroup(), At: time.Now(), path: notePath(c.StateDir, c.Key),
	}
}

func (n *note) remains() ptyrun.Remains {
	return ptyrun.Remains{Cookie: n.Cookie, StartedAfter: n.After, Group: n.Group}
}

func (n *note) save() error {
	if err := state.Save(n.path, n); err != nil {
		return fmt.Errorf("cannot note a check: %w", err)
	}
	return nil
}

func (n *note) drop() error {
	if err := os.Remove(n.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot forget a check: %w", err)
	}
	return nil
}

// start starts the command and waits for it. The kernel takes the end of the thread
// that has started it for the scheduler's end.
func (n *note) start(cmd *exec.Cmd, started, ended chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, err := ptyrun.StartApart(cmd, n.Group)
	if err == nil {
		n.PID = cmd.Process.Pid
		n.Start, _ = ptyrun.StartTimeOf(n.PID)
		_ = state.Put(n.path, n) // the cookie and the group identify it anyway
	}
	started <- err
	if err == nil {
		ended <- cmd.Wait()
	}
}

// another reports whether the check is of a run of the fleet that lives beside this
// one, with other agents.
func (n *note) another() bool {
	if n.Scheduler == 0 || n.Scheduler == os.Getpid() {
		return false
	}
	start, err := ptyrun.StartTimeOf(n.Scheduler)
	return err == nil && start == n.After
}

// Sweep ends what is left of checks whose scheduler was killed, and leaves those of
// another one that lives. It returns the agents whose checks they were.
func Sweep(ctx context.Context, stateDir string) (agents []string, err error) {
	var errs []error
	for _, path := range notes(stateDir) {
		var n note
		if state.Load(path, &n) == nil {
			if n.another() {
				continue
			}
			agents = append(agents, n.Agent)
		}
		errs = append(errs, sweepOne(ctx, path))
	}
	return agents, errors.Join(errs...)
}

func notes(stateDir string) []string {
	entries, err := os.ReadDir(filepath.Join(stateDir, folder))
	if err != nil {
		return nil
	}
	var all []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") && !strings.HasPrefix(e.Name(), ".") {
			all = append(all, filepath.Join(stateDir, folder, e.Name()))
		}
	}
	return all
}

// sweepOne ends what one note tells of, and removes it. A damaged one tells nothing.
func sweepOne(ctx context.Context, path string) error {
	n := note{path: path}
	err := state.Load(path, &n)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, state.ErrDamaged):
		return os.Rename(path, path+".damaged")
	case err != nil:
		return err
	}
	if n.Cookie == "" {
		return n.drop()
	}
	if err := n.sweep(ctx, endGrace); err != nil {
		return fmt.Errorf("agent %q: %w", n.Agent, err)
	}
	return n.drop()
}

// Has returns the agent to whose check a process belongs, in the fleet with a state
// directory, or "": it or one of its line is the check, is in its control group, or has
// its token in the environment. What a check has left behind need not descend from it
// any more.
func Has(stateDir string, line []ptyrun.Forebear) (agent string) {
	for _, path := range notes(stateDir) {
		var n note
		if state.Load(path, &n) == nil && (n.above(line) || n.remains().Has(line)) {
			return n.Agent
		}
	}
	return ""
}

// above reports whether the check itself is one of a process's line.
func (n *note) above(line []ptyrun.Forebear) bool {
	if n.PID == 0 || !slices.ContainsFunc(line, func(f ptyrun.Forebear) bool { return f.PID == n.PID }) {
		return false
	}
	start, err := ptyrun.StartTimeOf(n.PID)
	return err == nil && start == n.Start
}
