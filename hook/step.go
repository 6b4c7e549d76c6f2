package hook

import "time"

// step is what a Stop does once the entry in flight is dealt with.
type step int

const (
	approve  step = iota // say nothing: the turn ends
	handOver             // the entry at hand becomes the next turn
	await                // wait for work
	idleTick             // a turn without an entry
	desert               // say nothing and leave the record alone: it is somebody else's now
)

// ends reports whether the session may not be given anything more now, and
// enters the phase that follows.
func ends(r *Record, now time.Time) bool {
	switch {
	case r.Ruling != nil:
		leave(r, Ending, now)
	case r.Line.stands():
		// The client takes it as soon as the turn has ended.
		r.Line.serve()
		leave(r, Turn, now)
	default:
		return false
	}
	return true
}

// proceed decides what a Stop does: entry says that one is at hand (queued, or
// to be offered again). It enters the phase that follows.
func proceed(r *Record, entry bool, now time.Time) step {
	tasks := r.Policy.Background != BackgroundIgnore && len(r.BackgroundTasks) > 0
	switch {
	case ends(r, now):
		return approve
	case r.Gated() && (r.Acknowledged > 0 || !entry):
		// What we said would go out with what they say, and a hook that waits
		// holds back theirs.
		leave(r, Settling, now)
		return approve
	case typing(r, now) && !tasks:
		// Nothing is handed over, and a hook that waits is the only way to
		// hand something over later.
		return await
	case typing(r, now):
		leave(r, Background, now)
		return approve
	case r.Policy.Context == ContextEntry && r.Acknowledged > 0:
		return release(r, "one entry for each conversation", now)
	case entry && r.Policy.MaxContinuations > 0 && r.Continuations >= r.Policy.MaxContinuations:
		r.End(EndRunaway, "hand-overs without an acknowledgement", now)
		leave(r, Ending, now)
		return approve
	case entry:
		return handOver
	case tasks:
		// Nothing of ours waits for them, but they would be killed; the
		// session wakes itself when they end.
		leave(r, Background, now)
		return approve
	}
	return idle(r, now)
}

// idle decides what a session does that has nothing to do.
func idle(r *Record, now time.Time) step {
	switch {
	case r.Yield && (r.Policy.Mode == Persist || r.Attached > 0):
		return release(r, "another agent needs the slot", now)
	case r.Policy.Mode == Persist || r.Attached > 0:
		return await
	}
	detail := ""
	if r.Acknowledged == 0 {
		detail = "nothing was queued"
	}
	r.End(EndDrained, detail, now)
	leave(r, Ending, now)
	return approve
}

func release(r *Record, why string, now time.Time) step {
	r.End(EndReleased, why, now)
	leave(r, Ending, now)
	return approve
}

// vigil is one hook's waiting.
type vigil struct {
	me     Process
	began  time.Time // the hook's start
	idleAt time.Time // idle-interval is over
}

// latest is when it ends by itself, whatever it waits for.
func (v vigil) latest(r *Record) time.Time { return v.began.Add(r.Policy.longest()) }

// awake decides what a waiting hook does when it looks up: entry says that
// one is queued. await means to wait on.
func awake(r *Record, v vigil, entry bool, now time.Time) step {
	if r.Phase != Waiting || r.Waiter != v.me {
		return desert
	}
	next := proceed(r, entry, now)
	switch {
	case next == await && !now.Before(v.latest(r)):
		leave(r, Unattended, now)
		return approve
	case next != await || typing(r, now):
		return next
	case now.Before(v.idleAt) || r.Policy.Mode != Persist:
		return await
	case r.Policy.OnIdle == IdleTick:
		return idleTick
	case r.Attached > 0: // not for doing nothing
		return await
	}
	return release(r, "idle", now)
}
