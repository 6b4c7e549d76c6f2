package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/notify/deliver"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/status"
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
			w.signs.Store(&status.Unpinged{})
			failing = false
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
		err := w.ping(ctx, p, said, text)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			w.opt.Log.Warn("cannot send the ping", "err", err)
		}
		failing = err != nil
		w.signed(err, time.Now())
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

// pingFailsAfter is for how long it has failed when that is told.
const pingFailsAfter = 5 * time.Minute

func pingFails(u *status.Unpinged, now time.Time) bool {
	return u != nil && now.Sub(u.Since) >= pingFailsAfter
}

// signed takes down whether the last ping has arrived.
func (w *Watch) signed(err error, now time.Time) {
	if err == nil {
		w.signs.Store(&status.Unpinged{})
		return
	}
	u := &status.Unpinged{Since: now, Why: err.Error()}
	if before := w.signs.Load(); before != nil && before.Why != "" {
		u.Since = before.Since
	}
	w.signs.Store(u)
}

// takeSigns keeps whether pings arrive. While this run has sent none, what an earlier one
// has seen counts.
//
// That one fails, or arrives again, is saved at once; that it fails for another reason only
// every pingFailsAfter, because a reason may be another one each time (it names a port).
func (w *Watch) takeSigns(at time.Time) {
	now, kept := w.signs.Load(), w.kept.Ping
	switch {
	case now == nil || now.Why == "" && kept == nil:
	case now.Why == "":
		w.kept.Ping, w.unsaved = nil, true
	case kept == nil:
		u := *now
		w.kept.Ping, w.unsaved, w.pingKept = &u, true, at
	case kept.Why != now.Why && at.Sub(w.pingKept).Abs() >= pingFailsAfter:
		w.kept.Ping, w.unsaved, w.pingKept = &status.Unpinged{Since: kept.Since, Why: now.Why}, true, at
	}
}

// unpinged returns that the ping does not arrive.
func (w *Watch) unpinged(now time.Time) []notice.Fact {
	u := w.kept.Ping
	if !pingFails(u, now) {
		return nil
	}
	return []notice.Fact{{
		Key: "/" + string(notice.PingFails), Kind: notice.PingFails, Urgent: true, Since: u.Since,
		Text: "whoever watches from outside gets no sign of life: " + u.Why, Do: status.MendPing,
	}}
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
			case w.sees.found <- w.opt.Examine(ctx, f, s):
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
			case w.sees.full <- w.opt.Full(f):
			case <-ctx.Done():
			}
		}
	}()
}
