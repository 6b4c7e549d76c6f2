package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/term"

	"heartbeat/config"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/fleetfile"
	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// supervise turns signals into what a run has to do, until the returned function is
// called: the first SIGINT or SIGTERM ends the context, the second one the
// sessions, and a third one has its default effect. SIGHUP loads the configuration
// again, unless the run's terminal is gone: then it counts as one of them.
func (a *app) supervise(ctx context.Context, s *orchestrator.Scheduler, file *fleetfile.File) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	interactive := isTerminal(a.in)
	done := make(chan struct{})
	go func() {
		for stage := 0; ; {
			var got os.Signal
			select {
			case <-done:
				return
			case got = <-signals:
				if got == syscall.SIGHUP && (!interactive || isTerminal(a.in)) {
					_, _ = file.Reload() // it reports errors itself
					continue
				}
			}
			switch stage++; stage {
			case 1:
				cancel(askedBy(got))
			case 2:
				s.EndNow()
				signal.Reset(os.Interrupt, syscall.SIGTERM)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// askedBy names who ends a run with a signal.
func askedBy(got os.Signal) error {
	if got == os.Interrupt {
		return errors.New(lastrun.ByKeys)
	}
	return errors.New(lastrun.BySignal)
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// loadAgain loads the fleet's file for a run, and prepares for what it says.
func (a *app) loadAgain() (*config.Fleet, *config.Inputs, error) {
	f, inputs, err := a.load()
	if err == nil {
		a.makeRoom(f.Agents)
	}
	return f, inputs, err
}

// fileOf returns the fleet's file of a run that began with it.
func (a *app) fileOf(s *orchestrator.Scheduler, inputs *config.Inputs, use func(*config.Fleet)) *fleetfile.File {
	return fleetfile.New(fleetfile.Options{
		Load: a.loadAgain, Look: a.load, Inputs: inputs, Scheduler: s, Manager: a.manager, Log: a.log.With("file", a.file()),
		Used: func(f *config.Fleet, plan *orchestrator.Plan) {
			a.remember(f)
			warnOfOldQueues(f, func(text string) { a.log.Warn(text) })
			use(f)
			if added, err := chooseAgents(f, plan.Added); err == nil && len(plan.Added) > 0 {
				a.take(f, added)
			}
		},
	})
}

// reloading is a running scheduler that loads its fleet's file when asked to
// through the control socket.
type reloading struct {
	*orchestrator.Scheduler
	*exposed
	file *fleetfile.File
	end  *sync.Once
	// stopped is set once the socket has asked it to end.
	stopped *atomic.Bool
	store   *store.Store
	tokens  *access.Keeper
}

// MayAnswer implements control.Scheduler.
func (r reloading) MayAnswer(id, token string) (by string, err error) {
	if !r.NeedsToken(id) {
		return "", nil
	}
	return provenBy(context.Background(), r.tokens, token)
}

// Tokens implements control.Scheduler.
func (r reloading) Tokens(ctx context.Context, o access.Order, token string) (access.Done, error) {
	return hand(ctx, r.Declared(), r.tokens, o, token)
}

// Await implements control.Scheduler.
func (r reloading) Await(ctx context.Context, o awaited.Order) (known bool, err error) {
	return awaits(ctx, r.store, o)
}

// Stop implements control.Scheduler, as the signals do that supervise turns into
// the end of the run.
func (r reloading) Stop(now bool) {
	if now {
		r.EndNow()
	}
	r.stopped.Store(true)
	r.end.Do(func() { // a second signal would not let turns finish
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Signal(syscall.SIGTERM) // of oneself it does not fail
		}
	})
}

// Unloaded implements control.Scheduler.
func (r reloading) Unloaded() *status.Unloaded { return r.file.Unloaded() }

// Reload implements control.Scheduler.
func (r reloading) Reload() (*orchestrator.Plan, error) { return r.file.Reload() }
