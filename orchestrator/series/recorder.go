package series

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"heartbeat/orchestrator/store"
)

// lookEvery is how often it is looked how much the queues hold.
const lookEvery = time.Minute

// Depth is how many entries an agent's queue holds.
type Depth struct {
	Agent  string
	Queued int
}

// Recorder writes what no event tells: that a run is there, and how much the queues hold.
type Recorder struct {
	store  *store.Store
	log    *slog.Logger
	failed bool // the last write did
	// slot is the one that is running, written what is written of it.
	slot    int64
	written map[string]int64
}

// NewRecorder returns a Recorder for a run.
func NewRecorder(s *store.Store, log *slog.Logger) *Recorder { return &Recorder{store: s, log: log} }

// Run looks each minute, and when a slot begins, until ctx ends.
func (r *Recorder) Run(ctx context.Context, depths func() []Depth) {
	for {
		now := time.Now()
		err := r.look(ctx, depths(), now)
		if err != nil && !r.failed && ctx.Err() == nil {
			r.log.Warn("cannot keep the series of what agents do", "err", err)
		}
		r.failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-time.After(min(lookEvery, startOf(slotOf(now)+1).Sub(now))):
		}
	}
}

// look writes how much the queues hold, as far as it is more than what is written of the slot.
func (r *Recorder) look(ctx context.Context, depths []Depth, now time.Time) error {
	if slot := slotOf(now); r.written == nil || slot != r.slot {
		r.slot, r.written = slot, map[string]int64{}
	}
	more := map[string]int64{}
	all := int64(0)
	for _, d := range depths {
		all += int64(d.Queued)
		if int64(d.Queued) > r.written[d.Agent] {
			more[d.Agent] = int64(d.Queued)
		}
	}
	if before, known := r.written[everybody]; !known || all > before {
		more[everybody] = all
	}
	if len(more) == 0 {
		return nil
	}
	err := r.store.Write(ctx, func(c *store.Change) error {
		for agent, queued := range more {
			if err := held(c, agent, now, queued); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		maps.Copy(r.written, more)
	}
	return err
}

func held(c *store.Change, agent string, at time.Time, queued int64) error {
	if agent == everybody {
		return Looked(c, at, true, queued)
	}
	return Held(c, agent, at, queued)
}
