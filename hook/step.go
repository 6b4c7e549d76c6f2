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

// ends reports whether the session may not be given anything more, and
// enters the phase that follows.
func ends(r *Record, now time.Time) bool {
	switch {
	case r.Ruling != nil:
		leave(r, Ending, now)
	case r.Policy.Context == ContextEntry && r.Acknowledged > 0:
		r.End(EndReleased, "one entry for each conversation", now)
		leave(r, Ending, now)
	case typing(r, now):
		leave(r, Unattended, now)
	default:
		return false
	}
	return true
}

// proceed decides what a Stop does: entry says that one is at hand (queued, or
// to be offered again). It enters the phase that follows.
func proceed(r *Record, entry bool, now time.Time) step {
	switch {
	case ends(r, now):
		return approve
	case entry && r.Policy.MaxContinuations > 0 && r.Continuations >= r.Policy.MaxContinuations:
		r.End(EndRunaway, "hand-overs without an acknowledgement", now)
		leave(r, Ending, now)
		return approve
	case entry:
		return handOver
	case r.Policy.Background != BackgroundIgnore && len(r.BackgroundTasks) > 0:
		// Nothing of ours waits for them, but they would be killed; the
		// session wakes itself when they end.
		leave(r, Background, now)
		return approve
	case r.Policy.Mode != Persist:
		detail := ""
		if r.Acknowledged == 0 {
			detail = "nothing was queued"
		}
		r.End(EndDrained, detail, now)
		leave(r, Ending, now)
		return approve
	case r.Yield:
		return release(r, "another agent needs the slot", now)
	}
	return await
}

func release(r *Record, why string, now time.Time) step {
	r.End(EndReleased, why, now)
	leave(r, Ending, now)
	return approve
}

// awake decides what a waiting hook does when it looks up: entry says that
// one is queued, idle that idle-interval has passed. await means to wait on.
func awake(r *Record, me Process, entry, idle bool, now time.Time) step {
	switch {
	case r.Phase != Waiting || r.Waiter != me:
		return desert
	case r.Ruling != nil:
		leave(r, Ending, now)
		return approve
	case typing(r, now) && !idle:
		return await
	case typing(r, now):
		leave(r, Unattended, now)
		return approve
	case entry:
		return proceed(r, true, now)
	case r.Yield:
		return release(r, "another agent needs the slot", now)
	case !idle:
		return await
	case r.Policy.OnIdle == IdleTick:
		return idleTick
	}
	return release(r, "idle", now)
}
