package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/notify/deliver"
)

const (
	// alivePatience is how long the scheduler may take for a sign of life.
	alivePatience = 30 * time.Second
	// pingAgain is after how long a ping that did not arrive is sent again.
	pingAgain = 20 * time.Second
)

var errNoTurn = errors.New("the loop of the notices does not turn")

// Ping sends signs of life to a monitor outside this machine until ctx ends: first start,
// then, at the interval in the file, ok while the scheduler demonstrably works, or fail
// with the reason.
func (w *Watch) Ping(ctx context.Context, s Scheduler) {
	said, failing := deliver.Start, false
	for {
		p := w.pinged()
		if p == nil { // a reload may bring one
			if !rest(ctx, lookOften) {
				return
			}
			continue
		}
		text := fmt.Sprintf("heartbeat: the fleet %s on %s", w.opt.Fleet.Name, w.opt.Host)
		if said != deliver.Start {
			said = deliver.OK
			if err := w.alive(ctx, s); err != nil {
				said, text = deliver.Fail, text+": "+err.Error()
				w.opt.Log.Error("the ping says that the scheduler does not work", "err", err)
			}
		}
		if ctx.Err() != nil {
			return
		}
		err := deliver.Ping(ctx, p, said, text)
		if err != nil && !failing && ctx.Err() == nil {
			w.opt.Log.Warn("cannot send the ping", "err", err)
		}
		failing = err != nil
		wait := p.Every
		switch {
		case failing:
			wait = min(wait, pingAgain)
		case said == deliver.Start:
			wait, said = 0, deliver.OK
		}
		if !rest(ctx, wait) {
			return
		}
	}
}

// pinged is the ping that counts now.
func (w *Watch) pinged() *config.Ping { return w.file.Load().Ping }

// alive returns nil if the scheduler demonstrably works, and somebody is told if it
// does not.
func (w *Watch) alive(ctx context.Context, s Scheduler) error {
	ctx, cancel := context.WithTimeout(ctx, alivePatience)
	defer cancel()
	if err := s.Alive(ctx); err != nil {
		return err
	}
	if !w.turning(time.Now()) {
		return errNoTurn
	}
	return nil
}

func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Doctor is asked when a run has settled, and then now and then.
const (
	examineFirst = 10 * time.Minute
	examineEvery = 6 * time.Hour
)

// examine asks doctor now and then, beside the loop.
func (w *Watch) examine(ctx context.Context, s Scheduler) {
	if w.opt.Examine == nil {
		return
	}
	w.senders.Go(func() {
		for wait := examineFirst; rest(ctx, wait); wait = examineEvery {
			f := w.file.Load()
			if len(f.Targets) == 0 {
				continue
			}
			select {
			case w.found <- w.opt.Examine(ctx, f, s):
			case <-ctx.Done():
				return
			}
		}
	})
}

// disksEvery is how often it is looked whether a disk is full.
const disksEvery = time.Minute

// lookAtDisks looks whether disks are full, beside the loop. Nothing waits for its end:
// a disk that does not answer may not let it come.
func (w *Watch) lookAtDisks(ctx context.Context) {
	if w.opt.Full == nil {
		return
	}
	go func() {
		for wait := lookOften; rest(ctx, wait); wait = disksEvery {
			f := w.file.Load()
			if len(f.Targets) == 0 {
				continue
			}
			select {
			case w.full <- w.opt.Full(f):
			case <-ctx.Done():
			}
		}
	}()
}
