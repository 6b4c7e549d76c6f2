package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"heartbeat/config"
	"heartbeat/internal/promise"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/launch"
)

// startTime is how long a small fleet may take to be ready.
const startTime = 2 * time.Second

// lead is how long a fleet may take to be ready, before the first minute that
// is watched begins.
func (s settings) lead() time.Duration {
	return cmp.Or(s.ready, startTime) + time.Duration(s.agents)*6*time.Millisecond
}

// run runs one scenario in this process.
func (s settings) run(ctx context.Context, sc scenario) (_ *Result, err error) {
	first, last := s.when(sc)
	path, err := s.declare(sc, first)
	if err != nil {
		return nil, err
	}
	r := &Result{Scenario: sc.name, What: sc.what, Agents: s.agents, Slots: s.slots}
	began := time.Now()
	fleet, err := config.Load(path)
	if err != nil {
		return nil, err
	}
	r.Load = time.Since(began)
	due := owed(fleet, first, last)

	crew := newCrew(s.lasts)
	live, err := s.start(ctx, sc, fleet, crew, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, live.end()) }()
	if time.Now().After(first) {
		return nil, fmt.Errorf("%w: it was ready only after %v", errLate, r.Ready)
	}
	if err := sleepUntil(ctx, first.Add(-time.Second)); err != nil {
		return nil, err
	}
	if err := s.watched(ctx, r, last); err != nil {
		return nil, err
	}
	if err := s.askAll(sc, r); err != nil {
		return nil, err
	}
	if err := s.settled(ctx, sc, crew, due); err != nil {
		return nil, err
	}
	r.RSSPeak = memory("VmHWM")
	if err := live.end(); err != nil {
		return nil, err
	}
	if err := crew.Err(); err != nil {
		return nil, err
	}
	return r, s.judge(sc, r, crew, due)
}

var errLate = errors.New("the fleet started too late for what it should have watched")

// when says what is watched of a scenario that begins now.
func (s settings) when(sc scenario) (first, last time.Time) {
	ready := time.Now().UTC().Add(s.lead())
	if sc.window > 0 {
		first = ready.Truncate(time.Second)
		return first, first.Add(sc.window)
	}
	minutes := s.minutes
	if sc.minutes > 0 {
		minutes = sc.minutes
	}
	first = ready.Truncate(time.Minute).Add(time.Minute)
	return first, first.Add(time.Duration(minutes) * time.Minute)
}

// live is a scheduler that runs.
type live struct {
	cancel context.CancelFunc
	ended  chan error
	log    *os.File
}

// end ends the run and its sessions.
func (l *live) end() error {
	if l.ended == nil {
		return nil
	}
	l.cancel()
	err := <-l.ended
	l.ended = nil
	return errors.Join(err, l.log.Close())
}

// start starts the scheduler as `heartbeat run` does and returns when it is
// ready.
func (s settings) start(ctx context.Context, sc scenario, f *config.Fleet, c *crew, r *Result) (*live, error) {
	stateDir := s.stateDir(sc)
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(stateDir, "run.log"))
	if err != nil {
		return nil, err
	}
	ready := make(chan struct{})
	began, cpu := time.Now(), cpuTime()
	logger := slog.New(slog.NewTextHandler(log, nil))
	kept, release, err := adopt.Open(ctx, stateDir, logger)
	if err != nil {
		return nil, err
	}
	sched := orchestrator.New(orchestrator.Options{
		Fleet: f, StateDir: stateDir, Store: kept, Runner: c, Inboxes: c.Folders,
		Prepare: func(*config.Agent) (launch.Prepared, error) { return launch.Prepared{}, nil },
		Log:     logger,
		Ready:   func() { r.Ready, r.ReadyCPU = time.Since(began), cpuTime()-cpu; close(ready) },
	})
	ctx, cancel := context.WithCancel(ctx)
	l := &live{cancel: cancel, ended: make(chan error, 1), log: log}
	go func() {
		_, err := sched.Run(ctx)
		release()
		l.ended <- err
	}()
	select {
	case <-ready:
		return l, nil
	case err := <-l.ended:
		cancel()
		return nil, err
	}
}

// watched measures what the process costs until a time.
func (s settings) watched(ctx context.Context, r *Result, until time.Time) error {
	r.RSSReady = memory("VmRSS")
	if s.profile != "" {
		f, err := os.Create(s.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	began, cpu := time.Now(), cpuTime()
	err := sleepUntil(ctx, until)
	r.CPU = cpuTime() - cpu
	r.CPUPercent = 100 * r.CPU.Seconds() / time.Since(began).Seconds()
	r.Goroutines, r.Descriptors = counts()
	return err
}

// settled waits until every fire that was due is done with, or no time is left.
func (s settings) settled(ctx context.Context, sc scenario, c *crew, due promise.Record) error {
	for end := time.Now().Add(s.settle); len(due) > 0 && time.Now().Before(end); {
		h, err := s.readHistory(sc)
		if err != nil || h.done(c, due) {
			return err
		}
		if err := sleepUntil(ctx, time.Now().Add(cmp.Or(s.look, settleLook))); err != nil {
			return err
		}
	}
	return nil // what is missing is judged
}

// settleLook is how often the journal is read to see whether all is done.
const settleLook = 2 * time.Second

func sleepUntil(ctx context.Context, at time.Time) error {
	select {
	case <-time.After(time.Until(at)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
