package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"heartbeat/config"
	"heartbeat/orchestrator"
)

// supervise turns signals into what a run is to do, until the returned
// function is called: the first SIGINT or SIGTERM ends the context, the second
// one the sessions, and a third one has its default effect. SIGHUP loads the
// configuration again, unless the terminal that the run stands in is gone: then
// it is one of them.
func (a *app) supervise(ctx context.Context, s *orchestrator.Scheduler) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	interactive := isTerminal(a.in)
	done := make(chan struct{})
	go func() {
		for stage := 0; ; {
			select {
			case <-done:
				return
			case got := <-signals:
				if got == syscall.SIGHUP && (!interactive || isTerminal(a.in)) {
					_, _, _ = a.reload(s) // it has told
					continue
				}
			}
			switch stage++; stage {
			case 1:
				cancel()
			case 2:
				s.EndNow()
				signal.Reset(os.Interrupt, syscall.SIGTERM)
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// reload loads the configuration into a run, and returns it and what
// it changes. What went wrong is logged and written into the journal; nothing is changed then.
func (a *app) reload(s *orchestrator.Scheduler) (*config.Fleet, *orchestrator.Plan, error) {
	a.manager.Reloading()
	defer a.manager.Ready()
	a.log.Info("loading the configuration again", "file", a.File)
	f, err := a.fleet()
	if err != nil {
		s.ReloadFailed(err)
		return nil, nil, err
	}
	for _, w := range f.Warnings {
		a.log.Warn(w.String())
	}
	plan, err := s.Reload(f)
	if err == nil {
		a.remember(f)
		if added, err := chooseAgents(f, plan.Added); err == nil && len(plan.Added) > 0 {
			a.mark(f, added)
		}
	}
	return f, plan, err
}

// reloading is a running scheduler that loads its fleet's file when it is
// asked to through the control socket.
type reloading struct {
	*orchestrator.Scheduler
	app *app
}

// Reload implements control.Scheduler.
func (r reloading) Reload() (*orchestrator.Plan, error) {
	_, plan, err := r.app.reload(r.Scheduler)
	return plan, err
}

// The configuration is looked at every configLook, and loaded once it has
// not changed for another one: an editor may be in the middle of it.
const configLook = time.Second

// lookShare bounds what looking costs, where a glob leads through many folders:
// a twentieth of the time.
const lookShare = 20

// watchConfig reloads when something changes that the configuration was loaded
// from, until ctx ends. It looks instead of waiting for notifications, which do
// not come where a file is replaced through a link, as in a mounted ConfigMap.
func (a *app) watchConfig(ctx context.Context, s *orchestrator.Scheduler) {
	last := ""
	for wait := configLook; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		inputs, begin := a.inputs.Load(), time.Now()
		now := inputs.Now()
		wait = max(configLook, lookShare*time.Since(begin))
		if settled := now == last; settled && now != inputs.Then() {
			_, _, _ = a.reload(s) // it has told
		}
		last = now
	}
}
