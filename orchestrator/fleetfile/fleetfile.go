// Package fleetfile keeps a running fleet in line with its file: it loads the file
// again when asked to, or when the file changes. Whoever asks, one reload happens
// at a time, from reading the file to running what it says, so that what runs is
// never older than what was read last.
package fleetfile

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/status"
)

// Options say which file belongs to which run.
type Options struct {
	// Load reads the file. It returns what it looked at, also with an error.
	Load func() (*config.Fleet, *config.Inputs, error)
	// Look is Load without anything that follows it; see Unloaded.
	Look func() (*config.Fleet, *config.Inputs, error)
	// Inputs are what the file that the run began with was loaded from.
	Inputs *config.Inputs
	// Scheduler is the run.
	Scheduler Scheduler
	// Manager is told about each reload.
	Manager Manager
	// Used is called with each new version that runs from now on, before another
	// one can replace it.
	Used func(*config.Fleet, *orchestrator.Plan)
	Log  *slog.Logger
}

// Scheduler is what it needs of a running fleet.
type Scheduler interface {
	// Reload runs another version of the file. If it cannot, it writes the reason
	// into the journal.
	Reload(*config.Fleet) (*orchestrator.Plan, error)
	// Compare returns what a version of the file would change.
	Compare(*config.Fleet) *orchestrator.Plan
	// ReloadFailed records that the file cannot be used.
	ReloadFailed(error)
}

// Manager is what started the run: systemd, for example.
type Manager interface {
	Reloading()
	Ready()
}

// File is the file of a running fleet. Several goroutines may use one.
type File struct {
	opt    Options
	inputs atomic.Pointer[config.Inputs] // those of the last load
	runs   atomic.Pointer[config.Inputs] // those of what runs

	loading sync.Mutex // held from reading the file until what it says runs

	looking  sync.Mutex // guards the rest
	lookedAt string     // what the inputs of both looked like when Unloaded read the file
	unloaded *status.Unloaded
}

// New returns the file of a run that began with it.
func New(opt Options) *File {
	f := &File{opt: opt}
	f.inputs.Store(opt.Inputs)
	f.runs.Store(opt.Inputs)
	return f
}

// Unloaded says what a reload would change, as the file is now, or why it would fail;
// nil where the file says what runs.
func (f *File) Unloaded() *status.Unloaded {
	runs := f.runs.Load()
	now := runs.Now()
	if now == runs.Then() {
		return nil
	}
	now += f.inputs.Load().Now()
	f.looking.Lock()
	defer f.looking.Unlock()
	if now == f.lookedAt {
		return f.unloaded
	}
	f.lookedAt, f.unloaded = now, nil
	fleet, _, err := f.opt.Look()
	if err != nil {
		problem, _, _ := strings.Cut(err.Error(), "\n")
		f.unloaded = &status.Unloaded{Problem: problem}
	} else if plan := f.opt.Scheduler.Compare(fleet); !plan.Empty() {
		f.unloaded = &status.Unloaded{Changes: plan.String()}
	}
	return f.unloaded
}

// Reload loads the file into the run and returns what that changes. After an
// error, which is logged and written into the journal, nothing has changed.
func (f *File) Reload() (*orchestrator.Plan, error) {
	f.loading.Lock()
	defer f.loading.Unlock()
	f.opt.Manager.Reloading()
	defer f.opt.Manager.Ready()
	f.opt.Log.Info("loading the configuration again")
	fleet, inputs, err := f.opt.Load()
	f.inputs.Store(inputs)
	if err != nil {
		f.opt.Scheduler.ReloadFailed(err)
		return nil, err
	}
	for _, w := range fleet.Warnings {
		f.opt.Log.Warn(w.String())
	}
	plan, err := f.opt.Scheduler.Reload(fleet)
	if err != nil {
		return nil, err
	}
	f.runs.Store(inputs)
	f.opt.Used(fleet, plan)
	return plan, nil
}

// The inputs are checked every lookEvery, and loaded once they have not changed for
// another lookEvery: an editor may be in the middle of it.
const lookEvery = time.Second

// lookShare limits the cost of the checks, for a glob that leads through many
// folders: a twentieth of the time.
const lookShare = 20

// Watch reloads when something changes that the file was loaded from, until ctx
// ends. It polls: there are no notifications when a file is replaced through a
// link, as in a mounted ConfigMap.
func (f *File) Watch(ctx context.Context) {
	last := ""
	for wait := lookEvery; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		inputs, begin := f.inputs.Load(), time.Now()
		now := inputs.Now()
		wait = max(lookEvery, lookShare*time.Since(begin))
		if settled := now == last; settled && now != inputs.Then() {
			_, _ = f.Reload() // it reports errors itself
		}
		last = now
	}
}
