package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/fleetfile"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/notify"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// surroundings are what a run has beside its scheduler.
type surroundings struct {
	c        runCmd
	app      *app
	fleet    *config.Fleet
	stateDir string
	store    *store.Store
	tokens   *access.Keeper
	begin    time.Time
	line     *progressLine
	shown    *exposed
	told     *notify.Watch
	tale     *narrator // nil: the log tells
	s        *orchestrator.Scheduler
	file     *fleetfile.File
	known    *lastrun.Keeper
	stopped  atomic.Bool     // heartbeat stop has asked the run to end
	beside   context.Context // until the scheduler has ended
	parts    sync.WaitGroup
}

// surround prepares what fails before anything runs.
func (c runCmd) surround(a *app, fleet *config.Fleet, line *progressLine) (r *surroundings, err error) {
	r = &surroundings{c: c, app: a, fleet: fleet, line: line}
	if r.shown, err = a.expose(c.Metrics); err != nil {
		return nil, err
	}
	r.begin = time.Now()
	if r.stateDir, err = owner.Claim(fleet); err != nil {
		return nil, err
	}
	if a.people {
		r.tale = newNarrator(a, c, fleet, r.stateDir, r.shown.Doors)
	}
	return r, nil
}

// supervised runs the fleet with everything around it: signals, the control socket,
// the watch of the configuration. It reports whether the run was asked to stop.
func (c runCmd) supervised(ctx context.Context, a *app, fleet *config.Fleet, inputs *config.Inputs) (asked bool, sum *status.Summary, err error) {
	line := newSlowLine(a)
	defer line.end()
	r, err := c.surround(a, fleet, line)
	if err != nil {
		return false, nil, err
	}
	var closeStore func()
	if r.store, closeStore, err = adopt.Open(ctx, r.stateDir, a.log); err != nil {
		return false, nil, err
	}
	defer closeStore() // when nobody writes any more
	r.told = a.watch(fleet, r.store)
	if r.tokens, err = access.Open(ctx, r.store, nil); err != nil {
		return false, nil, err
	}
	var end context.CancelFunc
	r.beside, end = context.WithCancel(ctx)
	defer r.parts.Wait()
	defer end()
	ctx, endFor := context.WithCancelCause(ctx)
	defer endFor(nil)
	r.parts.Go(func() {
		if err := r.store.Watch(r.beside, a.log); err != nil {
			a.log.Error("the run ends, because it can keep nothing any more")
			endFor(err)
		}
	})
	// By then ctx is what signals end, and there is a file.
	r.s, err = r.scheduler(func() { r.ready(ctx) })
	if err != nil {
		return false, nil, err
	}
	r.known = lastrun.Begin(r.stateDir, lastrun.Run{PID: os.Getpid(), Began: r.begin, Once: c.Once, Zone: lastrun.Here()}, a.log)
	if p := r.known.Before(); p != nil {
		a.log.Warn("the run before this one did not end as it should", "how", p.Text())
	}
	r.parts.Go(func() { r.known.Run(r.beside) })
	r.shown.follow(r.beside, a, r.s, a.web(fleet, r.stateDir, r.store, r.tokens, runOf(fleet, r.begin), r.s.CheckPerson, acting{r.store}.note), &r.parts)
	r.shown.serve(fleet)
	r.file = a.fileOf(r.s, inputs, func(f *config.Fleet) {
		r.shown.serve(f)
		r.told.Use(f)
		r.tale.use(f)
	})
	a.makeRoom(c.chosen(fleet))
	ctx, stop := a.supervise(ctx, r.s, r.file)
	defer stop()
	r.parts.Go(func() {
		<-ctx.Done()
		a.manager.Stopping()
	})
	sum, err = r.s.Run(ctx)
	if lost, is := errors.AsType[*store.LostError](context.Cause(ctx)); is && err == nil {
		err = lost
	}
	r.known.End(r.endOf(ctx, sum, err))
	r.tale.finish()
	asked = ctx.Err() != nil
	if sum != nil {
		a.logStop(sum, asked, err, time.Since(r.begin))
	}
	return asked, sum, err
}

func (r *surroundings) observe(e journal.Event) {
	r.shown.Observe(e)
	r.told.Observe(e)
	r.tale.observe(e)
}

// ready starts the other parts of a run when its scheduler is ready. ctx is the run's.
func (r *surroundings) ready(ctx context.Context) {
	a, c, s := r.app, r.c, r.s
	r.line.end()
	a.log.Info("heartbeat runs", "fleet", r.fleet.Name, "agents", cmp.Or(len(c.Agents), len(r.fleet.Agents)), "pid", os.Getpid(), "config", r.fleet.Path)
	r.tale.start(r.beside, s)
	a.remember(r.fleet)
	r.parts.Go(func() { a.take(r.fleet, c.chosen(r.fleet)) })
	r.parts.Go(func() {
		if !c.Once { // otherwise only agents with work are checked
			s.Foresee()
		}
		a.logTroubles(r.fleet, c.chosen(r.fleet), s.Snapshot(), r.begin)
	})
	if c.Once {
		r.parts.Go(func() { showHeadway(r.beside, r.line, c.chosen(r.fleet), s) })
	} else {
		r.parts.Go(s.ForeseeClients)
	}
	a.manager.Ready()
	r.parts.Go(func() { a.manager.Follow(r.beside, s) })
	r.parts.Go(func() { series.NewRecorder(r.store, a.log).Run(r.beside, func() []series.Depth { return depths(s) }) })
	now := reloading{s, r.shown, r.file, new(sync.Once), &r.stopped, r.store, r.tokens}
	r.parts.Go(func() { r.told.Run(r.beside, now) })
	r.parts.Go(func() { r.told.Ping(r.beside, now) })
	r.parts.Go(func() { a.serveControl(r.beside, r.fleet, now) })
	r.known.Ready()
	if !c.Once {
		r.shown.web.runPage(ctx, now, &r.parts)
		r.parts.Go(func() { r.shown.doors.Run(ctx) }) // until it is asked to stop
	}
	r.parts.Go(func() { r.keepBackups(r.beside) })
	r.parts.Go(func() { r.prune(r.beside) })
	r.parts.Go(func() {
		if err := adopt.Rest(r.beside, r.store, a.log); err != nil && r.beside.Err() == nil {
			a.log.Warn(err.Error())
		}
	})
	if c.WatchConfig {
		r.parts.Go(func() { r.file.Watch(r.beside) })
	}
}

// keepBackups keeps backups of the store until ctx ends.
func (r *surroundings) keepBackups(ctx context.Context) {
	for {
		after, err := r.store.KeepBackups(ctx, time.Now())
		if err != nil && ctx.Err() == nil {
			r.app.log.Warn("the fleet's store has no new backup", "err", err)
		}
		if !pause(ctx, after) {
			return
		}
	}
}

// pruneEvery is how often the store is made smaller.
const pruneEvery = time.Hour

// prune removes from the store what is too old or too much, until ctx ends.
func (r *surroundings) prune(ctx context.Context) {
	for {
		err := errors.Join(usage.Prune(ctx, r.store, time.Now()), series.Prune(ctx, r.store, time.Now()))
		if err != nil && ctx.Err() == nil {
			r.app.log.Warn("cannot remove what is old from the store", "err", err)
		}
		if !pause(ctx, pruneEvery) {
			return
		}
	}
}

// headwayEvery is how often a run with --once says how far it is.
const headwayEvery = time.Second

// showHeadway shows how far a run with --once is, until ctx ends.
func showHeadway(ctx context.Context, line *progressLine, agents []*config.Agent, s *orchestrator.Scheduler) {
	var h status.Headway
	for pause(ctx, headwayEvery) {
		h.Look(agents, s.Snapshot())
		line.gauge(h.Text, h.Done, h.Of)
	}
}

// depths are what the agents' queues hold.
func depths(s *orchestrator.Scheduler) (all []series.Depth) {
	for _, b := range s.Backlog() {
		all = append(all, series.Depth{Agent: b.Agent, Queued: b.Queued})
	}
	return all
}
