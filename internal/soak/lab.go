package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/internal/promise"
)

// lab is a running soak.
type lab struct {
	*fleet
	record *ledger
	runLog *os.File
	// config is held for writing while the fleet's file is not a good one.
	config sync.RWMutex
	// stops counts the processes that are stopped now.
	stops atomic.Int32
	// shimHit is when a shim was signalled last, in Unix nanoseconds.
	shimHit atomic.Int64
	// lines is held by an agent's name: for writing by who writes a line in
	// pieces, or has filled the disk; for reading by who writes whole lines.
	lines map[string]*sync.RWMutex
	plant plant
	disks []string // folders that are file systems of their own
}

func newLab(f *fleet) (*lab, error) {
	l := &lab{fleet: f, lines: map[string]*sync.RWMutex{}}
	var err error
	if l.record, err = openLedger(f.Dir); err != nil {
		return nil, err
	}
	for _, m := range f.Members {
		l.lines[m.Name] = &sync.RWMutex{}
		l.record.add(promise.Fact{At: time.Now(), Kind: promise.Declared, Agent: m.Name, Policy: m.Policy})
	}
	l.runLog, err = os.OpenFile(f.path("run.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return l, err
}

// random is the plan of one who acts: the same for the same seed.
func (l *lab) random(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(l.Seed, stream)) }

func (l *lab) surprise(format string, args ...any) {
	l.record.add(promise.Fact{At: time.Now(), Kind: promise.Seen, Note: fmt.Sprintf(format, args...)})
}

// prepare makes the directories, the disks and the binaries; programs is a folder that has
// these, what a plant, or "".
func (l *lab) prepare(programs, what string) error {
	for _, m := range l.Members {
		dir := l.dirOf(m)
		if m.Disk {
			if err := l.ownDisk(dir); err != nil {
				m.Disk = false
				l.LeftOut = append(l.LeftOut, fmt.Sprintf("disk-full episodes of %s: %v", m.Name, err))
			}
		}
		if err := os.MkdirAll(filepath.Join(dir, "in"), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "tickets"), nil, 0o600); err != nil {
			return err
		}
		if m.Gate {
			if err := os.WriteFile(filepath.Join(dir, ".gate"), nil, 0o600); err != nil {
				return err
			}
		}
	}
	if err := l.ownDisk(l.path("state")); err != nil {
		l.LeftOut = append(l.LeftOut, fmt.Sprintf("disk-full episodes of the state directory: %v", err))
	}
	for _, dir := range []string{"bin", "state", "home"} {
		if err := os.MkdirAll(l.path(dir), 0o700); err != nil {
			return err
		}
	}
	files := map[string]string{"script.json": l.script(3 + len(l.Members)/2), "heartbeat.yaml": l.declare(l.plainVariant())}
	if l.StopHook {
		if err := os.MkdirAll(l.path("home", ".claude"), 0o700); err != nil {
			return err
		}
		files["home/.claude/settings.json"] = userSettings()
	}
	for name, text := range files {
		if err := os.WriteFile(l.path(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	for _, name := range []string{"heartbeat", hookName} {
		if programs != "" {
			if err := copyFile(filepath.Join(programs, name), l.path("bin", name)); err != nil {
				return err
			}
			continue
		}
		// As testbed.Build does, from the build cache.
		out, err := exec.Command("go", "run", "-exec=cp", "-buildvcs=false", "-ldflags=-s -w", "heartbeat/cmd/"+name, l.path("bin", name)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("cannot build %s: %w\n%s", name, err, out)
		}
	}
	if what != "" {
		l.plant = plant{What: what, Dir: l.path("plant")}
		return l.plant.put(l.path("bin", hookName))
	}
	return nil
}

func (l *lab) ownDisk(dir string) error {
	err := ownDisk(dir)
	if err == nil {
		l.disks = append(l.disks, dir)
	}
	return err
}

// closeDisks lets go of the disks; what is on them is kept where it is
// evidence.
func (l *lab) closeDisks(keep bool) error {
	var errs []error
	for _, dir := range l.disks {
		errs = append(errs, closeDisk(dir, keep))
	}
	return errors.Join(errs...)
}

func (l *lab) env() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + l.path("home"), "TERM=xterm", "TMPDIR=" + os.TempDir(),
		"HEARTBEAT_STATE_DIR=" + l.path("state"), l.plant.variable(),
	}
}

// patience is how long a command may take that does not wait for anything.
const patience = 60 * time.Second

// said is what a command of heartbeat came to.
type said struct {
	status int // -1: it was killed
	out    string
	errOut string
}

// heartbeat runs a command line and waits for it; slay, when not 0, kills it
// after that time.
func (l *lab) heartbeat(stdin []byte, slay time.Duration, args ...string) said {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.path("bin", "heartbeat"), append([]string{"-f", l.path("heartbeat.yaml")}, args...)...)
	var out, errOut bytes.Buffer
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = l.env(), bytes.NewReader(stdin), &out, &errOut
	err := cmd.Start()
	if err == nil {
		if slay > 0 {
			defer time.AfterFunc(slay, func() { _ = cmd.Process.Kill() }).Stop()
		}
		err = cmd.Wait()
	}
	if ctx.Err() != nil {
		l.surprise("heartbeat %.60q does not end within %s", args, patience)
	}
	if bytes.Contains(errOut.Bytes(), []byte("panic")) || bytes.Contains(errOut.Bytes(), []byte("goroutine ")) {
		l.surprise("heartbeat %.60q panics: %s", args, errOut.String())
	}
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		l.surprise("cannot run heartbeat %.60q: %v", args, err)
		return said{status: 1, errOut: err.Error()}
	}
	return said{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// asked is a [promise.Ask].
func (l *lab) asked(args ...string) ([]byte, error) {
	s := l.heartbeat(nil, 0, args...)
	if s.status != 0 {
		return nil, fmt.Errorf("heartbeat %q ended with status %d: %s", args, s.status, s.errOut)
	}
	return []byte(s.out), nil
}

// state is what `status -o json` says.
type state struct {
	Scheduler *struct{ PID int }
	Agents    []struct {
		Agent, State, Reason, Problem string
		Depth                         struct {
			Entries int
			Tail    bool
		}
		InFlight *struct{} `json:"in_flight"`
		Paused   time.Time
	}
}

func (l *lab) status() (*state, error) {
	s := l.heartbeat(nil, 0, "status", "-o", "json", "--heartbeat-ms", "0")
	var envelope struct{ Data *state }
	if err := json.Unmarshal([]byte(s.out), &envelope); err != nil || envelope.Data == nil {
		return nil, fmt.Errorf("cannot read the status: %s%s", s.out, s.errOut)
	}
	return envelope.Data, nil
}
