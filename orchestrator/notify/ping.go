package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/notify/deliver"
	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/status"
)

const (
	// alivePatience is how long the scheduler may take to show that it works.
	alivePatience = 30 * time.Second
	// pingAgain is the time after which a failed ping is sent again.
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
		if p == nil { // a reload may add one
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
		_, err := attempt(ctx, w.attempts, "of the ping", p.Argv(), func() (struct{}, error) { return struct{}{}, w.ping(ctx, p, said, text) })
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failing {
			w.opt.Log.Warn("cannot send the ping", "err", err, "hint", status.MendPing)
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

// pingFailsAfter is how long pings must fail before people are told.
const pingFailsAfter = 5 * time.Minute

func pingFails(u *memo.Ping, now time.Time) bool {
	return u != nil && now.Sub(u.Since) >= pingFailsAfter
}

// signed records whether the last ping has arrived.
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

// takeSigns puts the outcome of the last ping into kept. Until this run has sent one, the
// outcome that an earlier run saved counts.
//
// The first failure and the recovery are saved at once, another reason at most every
// pingFailsAfter: a reason that names a port differs each time.
func (w *Watch) takeSigns(at time.Time) {
	now, before := w.signs.Load(), w.kept.Ping
	switch {
	case now == nil || now.Why == "" && before == nil:
	case now.Why == "":
		w.kept.Ping, w.unsaved = nil, true
	case before == nil:
		w.kept.Ping, w.unsaved, w.pingKept = &memo.Ping{Since: now.Since, Why: now.Why}, true, at
	case before.Why != now.Why && at.Sub(w.pingKept).Abs() >= pingFailsAfter:
		w.kept.Ping, w.unsaved, w.pingKept = &memo.Ping{Since: before.Since, Why: now.Why}, true, at
	}
}

// unpinged returns the fact that pings fail, if they have for long enough.
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

// pinged returns the ping that the file in force declares, or nil.
func (w *Watch) pinged() *config.Ping { return w.file.Load().Ping }

// alive returns nil if the scheduler demonstrably works, and the loop that tells people does,
// too.
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

// When doctor is run: once a run has settled, and from time to time after that.
const (
	examineFirst = 10 * time.Minute
	examineEvery = 6 * time.Hour
)

// examine runs doctor from time to time, in a goroutine of its own.
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

// disksEvery is how often the disks are checked.
const disksEvery = time.Minute

// lookAtDisks checks from time to time whether disks are full. Nothing waits for it to end,
// because a disk that does not answer may block it forever.
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
