package main

import (
	"context"
	"sync"

	"heartbeat/orchestrator"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/metrics"
)

// exposed are the metrics of a run and their server; the zero value is a run
// without them.
type exposed struct {
	*metrics.Metrics
	server *metrics.Server
}

// expose opens the address of --metrics before anything is started: if it cannot be
// used, the run does not begin.
func (a *app) expose(addr string) (exposed, error) {
	if addr == "" {
		return exposed{}, nil
	}
	server, err := metrics.Listen(addr)
	if err != nil {
		return exposed{}, err
	}
	if !server.Loopback() {
		a.log.Warn("metrics and the agents' names can be read by everybody who reaches this address", "address", server.Addr())
	}
	a.log.Info("metrics are served", "url", "http://"+server.Addr()+"/metrics")
	v := thisVersion()
	return exposed{metrics.New(metrics.Build{Version: v.Version, Revision: v.Revision, Go: v.Go}), server}, nil
}

// observe is for orchestrator.Options.
func (x exposed) observe() func(journal.Event) {
	if x.Metrics == nil {
		return nil
	}
	return x.Observe
}

// serve answers for the scheduler until ctx ends.
func (x exposed) serve(ctx context.Context, a *app, s *orchestrator.Scheduler, around *sync.WaitGroup) {
	if x.Metrics == nil {
		return
	}
	x.Follow(s)
	around.Go(func() { x.server.Serve(ctx, x.Metrics, a.log) })
}
