package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/hook/process"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/status"
)

// fleetRun is what can be told of the run that has a fleet, or had it last.
type fleetRun struct {
	live *status.Live // its answer, or nil
	mute *status.Mute // it has the fleet and does not answer, or nil
	// ended is how it ended; nil: one has the fleet, or none ever had.
	ended *lastrun.Past
	begun time.Time // of one that is not ready yet; zero: none begins
	err   error     // why there is no answer, where mute does not say it
}

// whoRuns asks the run that has a fleet.
func whoRuns(ctx context.Context, f *config.Fleet, stateDir string) (r fleetRun) {
	live, err := askStatus(ctx, f)
	if err == nil {
		return fleetRun{live: live}
	}
	last := cmp.Or(lastrun.Of(stateDir), &lastrun.Known{})
	r.ended = last.Past
	switch r.mute = control.MuteOf(err, last.Seen); {
	case r.mute != nil:
		r.ended = nil
	case !errors.Is(err, control.ErrNotRunning):
		r.err = err
	case !last.Lives || !last.Ended.IsZero(): // none, or one that is just going
	case process.StateOf(last.PID) == 0: // the lock is another run's, which has not said so yet
		r.begun = time.Now()
	case last.Ready.IsZero(), time.Since(last.Ready).Abs() < lastrun.Every: // its socket is about to be there
		r.begun = last.Began
	default:
		r.mute = &status.Mute{PID: last.PID, Seen: last.Seen, NoSocket: true}
	}
	return r
}

// warnOfEnd says with each command that acts or looks that nobody runs the fleet any more,
// where nobody wanted that: status and doctor say it themselves.
func (a *app) warnOfEnd(f *config.Fleet) {
	dir, err := owner.Path(f)
	if err != nil || a.tellsOfRun {
		return
	}
	if last := lastrun.Of(dir); last != nil && last.Past != nil && last.Past.Died() {
		a.warn(status.EndText(*last.Past) + ": " + a.ours() + " run")
	}
}

// warnOfEarlier says that what an earlier version has kept is not used before the next run.
func (a *app) warnOfEarlier(f *config.Fleet) {
	dir, err := owner.Path(f)
	if err == nil && adopt.Waits(dir) {
		a.warn(fmt.Sprintf("an earlier version of heartbeat has kept the fleet's pauses, events and more in files of %q, which are not shown: %s run takes them over; if the earlier one still runs, %s stop first", dir, a.ours(), a.ours()))
	}
}

// idleText says of a fleet whose last run was asked to end that nothing fires; "" of another.
func idleText(f *config.Fleet, now time.Time) string {
	dir, err := owner.Path(f)
	if err != nil {
		return ""
	}
	last := lastrun.Of(dir)
	if last == nil || last.Past == nil || last.Past.Died() {
		return ""
	}
	return status.Fleet{LastRun: last.Past}.NotRunText(now) + "; nothing fires until heartbeat run"
}

// tellsOfRun reports whether a command says itself who runs the fleet.
func tellsOfRun(c command) bool {
	switch c.(type) {
	case *statusCmd, *doctorCmd, *runCmd:
		return true
	}
	return false
}

// endOf is how a run has ended whose context is ctx, and why.
func (r *surroundings) endOf(ctx context.Context, sum *status.Summary, err error) (lastrun.End, string) {
	switch {
	case err != nil:
		return lastrun.Failed, err.Error()
	case ctx.Err() != nil && r.stopped.Load():
		return lastrun.Stopped, lastrun.ByCommand
	case ctx.Err() != nil:
		return lastrun.Stopped, context.Cause(ctx).Error()
	case sum != nil && sum.Finished:
		return lastrun.Finished, ""
	}
	return lastrun.TimedOut, ""
}

// failure is that nobody runs a fleet, and nobody wanted that, or that its run does not
// answer; nil otherwise.
func (r fleetRun) failure() error {
	switch {
	case r.ended != nil && r.ended.Died() && !r.ended.Once:
		return notRun{fmt.Errorf("nobody runs this fleet: %s", r.ended.Text()), exitNotRunning}
	case r.mute != nil:
		return notRun{errors.New(r.mute.Text(time.Now())), exitError}
	}
	return nil
}

// notRun is what status fails with. People have read it at the top of the page.
type notRun struct {
	error
	status int
}

// ExitCode returns the exit status.
func (n notRun) ExitCode() int { return n.status }
