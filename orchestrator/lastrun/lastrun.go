// Package lastrun keeps what is known of a fleet's present or last run: when it began, that
// it lives, and how it ended. A run that is killed cannot say so: it is told by the lock that
// nobody holds any more, by the time at which the run was last there, and by the boot of the
// machine.
package lastrun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/flock"
	"heartbeat/hook/process"
	"heartbeat/orchestrator/state"
)

// The files in the state directory. Whoever runs the fleet holds the lock; the lock file's
// time is when the run was last there.
const (
	recordFile = "last-run.json"
	lockFile   = ".last-run-lock"
)

// Every is how often a run notes that it is there.
const Every = 5 * time.Second

// End is how a run ended.
type End string

// The ends. A run says the first four itself.
const (
	Stopped  End = "stopped"      // somebody asked it to end
	Finished End = "finished"     // with --once: nothing was left to do
	TimedOut End = "once-timeout" // with --once: the time was over
	Failed   End = "failed"       // with an error
	Killed   End = "killed"       // it did not come to its end: a signal, or a crash
	Rebooted End = "rebooted"     // the machine has stopped under it
)

// Run is a run, as it has said itself.
type Run struct {
	PID   int       `json:"pid"`
	Began time.Time `json:"began"`
	// Ready is when it had locked its directories and opened its socket; zero: not yet.
	Ready time.Time `json:"ready,omitzero"`
	Once  bool      `json:"once,omitempty"`
	Zone  Zone      `json:"zone"`
	// Boot is the id of the boot that it ran in; "": not known.
	Boot string `json:"boot,omitempty"`
	// Memory is how often the kernel had ended a process of its control group for lack of
	// memory when it began.
	Memory kills `json:"memory,omitzero"`
	// Ended is when it ended, How and Why say how; zero: it runs, or was killed.
	Ended time.Time `json:"ended,omitzero"`
	How   End       `json:"how,omitempty"`
	Why   string    `json:"why,omitempty"`
	// Before is the run before it, if that did not end as it should.
	Before *Past `json:"before,omitempty"`
}

// Past is a run that has ended.
type Past struct {
	PID  int  `json:"pid"`
	Once bool `json:"once,omitempty"`
	// Ended is when it ended; it may have ended up to Within later.
	Ended  time.Time     `json:"ended"`
	Within time.Duration `json:"within_ns,omitempty"`
	How    End           `json:"how"`
	Why    string        `json:"why,omitempty"`
	// Rebooted is true if the machine has been started since.
	Rebooted bool `json:"rebooted,omitempty"`
}

// Died reports whether it ended without anybody having wanted that. An end that the machine's
// own end asked for counts, if nobody has started a run since.
func (p Past) Died() bool {
	return p.How == Killed || p.How == Rebooted || p.How == Failed || p.How == Stopped && p.Rebooted && p.Why == BySignal
}

// Who asked a run to end.
const (
	BySignal  = "SIGTERM"
	ByCommand = "heartbeat stop"
	ByKeys    = "Ctrl-C"
)

// Known is what can be told of the present or last run.
type Known struct {
	Run
	// Lives is true while it has the fleet.
	Lives bool
	// Seen is when it was last there.
	Seen time.Time
	// Past says how it ended; nil while it lives.
	Past *Past
}

// looks is how often a record that changes is read again.
const looks = 10

// Of returns what is known of a fleet's present or last run, or nil: none is known. It
// creates nothing.
func Of(stateDir string) *Known {
	var k Known
	lock := filepath.Join(stateDir, lockFile)
	record := func() (r Run, known bool) {
		err := state.Load(filepath.Join(stateDir, recordFile), &r)
		return r, err == nil // it is about display: the next run writes it
	}
	// A run may begin or end meanwhile: the record is that of the run whose lock it is only if
	// it is the same before and after the look at the lock.
	now, known := record()
	for range looks {
		k.Run = now
		k.Lives = flock.Held(lock)
		if now, known = record(); k.Lives || reflect.DeepEqual(now, k.Run) {
			break
		}
	}
	if !known {
		return nil
	}
	k.Run = now
	k.Seen = k.Began
	if info, err := os.Lstat(lock); err == nil && info.ModTime().After(k.Began) {
		k.Seen = info.ModTime()
	}
	if !k.Lives {
		k.Past = k.past(hook.Boot(), k.Memory.since())
	}
	return &k
}

// past says how a run ended that nobody holds the lock for; memory is true if the kernel has
// ended a process of its control group for lack of memory.
func (k Known) past(boot string, memory bool) *Past {
	p := &Past{PID: k.PID, Once: k.Once, Ended: k.Ended, How: k.How, Why: k.Why, Rebooted: boot != "" && k.Boot != "" && boot != k.Boot}
	switch {
	case !k.Ended.IsZero():
		return p
	case p.Rebooted:
		p.How = Rebooted
	case memory:
		p.How, p.Why = Killed, "memory ran out: the kernel has ended a process of its control group"
	default:
		p.How = Killed
	}
	p.Ended, p.Within = k.Seen, Every
	return p
}

// Keeper notes that a run is there, and how it ends.
type Keeper struct {
	stateDir string
	log      *slog.Logger

	mu     sync.Mutex
	run    Run
	unlock func() error // nil while another run has the fleet
}

// Begin notes that a run begins. While another run of the fleet holds the lock, that one is
// the run that is known.
func Begin(stateDir string, r Run, log *slog.Logger) *Keeper {
	r.Boot, r.Memory = hook.Boot(), killsNow()
	k := &Keeper{stateDir: stateDir, run: r, log: log}
	k.look()
	return k
}

// Before is the run before this one, if that did not end as it should; or nil.
func (k *Keeper) Before() *Past {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.run.Before
}

// Ready notes that the run has its directories and takes commands.
func (k *Keeper) Ready() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.run.Ready = time.Now()
	k.save()
}

// Run notes that the run is there until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.look()
		}
	}
}

// End notes how the run ended. What the Keeper does afterwards changes nothing.
func (k *Keeper) End(how End, why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.run.Ended, k.run.How, k.run.Why = time.Now(), how, why
	k.save()
	if k.unlock != nil {
		_ = k.unlock()
	}
	k.unlock = nil
}

// look takes the lock, or notes that the run is there.
func (k *Keeper) look() {
	k.mu.Lock()
	defer k.mu.Unlock()
	path := filepath.Join(k.stateDir, lockFile)
	switch {
	case !k.run.Ended.IsZero():
		return
	case k.unlock == nil:
		unlock, err := flock.TryLock(path)
		if err != nil {
			if !errors.Is(err, flock.ErrHeld) {
				k.log.Debug("cannot note that this run is there", "err", err)
			}
			return
		}
		if before := Of(k.stateDir); before != nil {
			if p := before.past(hook.Boot(), before.Memory.since()); p.Died() {
				k.run.Before = p
			}
		}
		k.unlock = unlock
		k.save()
	}
	now := time.Now()
	if err := os.Chtimes(path, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.log.Debug("cannot note that this run is there", "err", err)
	}
}

// save writes the record, if the run is the one that is known. The lock is held.
func (k *Keeper) save() {
	if k.unlock == nil {
		return
	}
	if err := state.Save(filepath.Join(k.stateDir, recordFile), k.run); err != nil {
		k.log.Warn("cannot note when this run began or ended: status will not know it", "err", err)
	}
}

// Text says in words when and how a run ended.
func (p Past) Text() string {
	at := p.Ended.Local().Format(time.DateTime)
	if p.Within > 0 {
		at += " or up to " + p.Within.String() + " later"
	}
	who := "the scheduler" + process.Numbered(p.PID)
	if p.Once {
		who = "the last run, with --once,"
	}
	switch p.How {
	case Stopped:
		if p.Rebooted && p.Why == BySignal {
			return fmt.Sprintf("%s ended at %s on %s, and the machine has been started since", who, at, p.Why)
		}
		return fmt.Sprintf("%s was stopped at %s by %s", who, at, p.Why)
	case Finished:
		return fmt.Sprintf("%s ended at %s: nothing was left to do", who, at)
	case TimedOut:
		return fmt.Sprintf("%s ended at %s: --once-timeout was over", who, at)
	case Failed:
		return fmt.Sprintf("%s ended at %s with an error: %s", who, at, p.Why)
	case Rebooted:
		return fmt.Sprintf("%s ended at %s: the machine stopped, and has been started since", who, at)
	case Killed:
		if p.Why != "" {
			return fmt.Sprintf("%s was killed at %s: %s", who, at, p.Why)
		}
		return fmt.Sprintf("%s was killed, or crashed, at %s", who, at)
	}
	return ""
}
