package main

import (
	"context"
	"sync"

	"heartbeat/config"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/doors"
	"heartbeat/orchestrator/metrics"
	"heartbeat/orchestrator/status"
)

// exposed is what a run serves: at the address of --metrics, which it has from the
// start or does not begin, and at those of its file, which come and go.
type exposed struct {
	*metrics.Metrics
	flag  *doors.Flag // nil: there is no --metrics
	doors *doors.Doors
	web   *web
}

// expose opens the address of --metrics, if there is one, before anything is started.
func (a *app) expose(addr string) (*exposed, error) {
	v := thisVersion()
	x := &exposed{Metrics: metrics.New(metrics.Build{Version: v.Version, Revision: v.Revision, Go: v.Go})}
	if addr == "" {
		return x, nil
	}
	var err error
	if x.flag, err = doors.OpenFlag(addr); err != nil {
		return nil, err
	}
	if !x.flag.Loopback() {
		a.log.Warn("metrics and the agents' names can be read by everybody who reaches this address", "address", x.flag.Addr())
	}
	a.log.Info("metrics are served", "url", "http://"+x.flag.Addr()+"/metrics")
	return x, nil
}

// follow answers for a scheduler, at the address of --metrics until ctx ends.
func (x *exposed) follow(ctx context.Context, a *app, s *orchestrator.Scheduler, w *web, around *sync.WaitGroup) {
	x.Follow(s)
	x.web = w
	x.doors = doors.New(doors.Options{Webhooks: doors.Webhooks(s.Webhook), Metrics: x.Handler(), Page: w, Log: a.log})
	if x.flag != nil {
		around.Go(func() { x.flag.Serve(ctx, x.Handler(), a.log) })
	}
}

// serve opens the addresses of a version of the fleet's file, in place of those of
// the one before, once the run is ready. A run with --once opens none.
func (x *exposed) serve(f *config.Fleet) {
	x.web.use(f)
	x.doors.Set(f.Listen)
}

// Doors implements control.Scheduler.
func (x *exposed) Doors() []status.Door { return x.doors.State() }
