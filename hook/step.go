package hook

import (
	"time"

	"heartbeat/hook/client"
)

// step is what a Stop does after it has dealt with the entry in flight.
type step int

const (
	approve  step = iota // say nothing: the turn ends
	handOver             // the entry at hand becomes the next turn
	await                // wait for work
	idleTick             // a turn without an entry
	desert               // say nothing and leave the record alone: it is somebody else's now
)

// ends reports whether the session may not get anything more now, and enters the
// phase that follows.
func ends(r *Record, now time.Time) bool {
	switch {
	case r.Ruling != nil:
		leave(r, Ending, now)
	case r.Line.stands():
		// The client takes the typed line as soon as the turn has ended.
		r.Line.serve()
		leave(r, Turn, now)
	default:
		return false
	}
	return true
}

// proceed decides what a Stop does. entry says that an entry is available (queued,
// or to be offered again). It enters the phase that follows.
func proceed(r *Record, entry bool, now time.Time) step {
	tasks := r.Policy.Background != BackgroundIgnore && len(r.BackgroundTasks) > 0
	switch {
	case ends(r, now):
		return approve
	case r.Gated() && (r.worked() || !entry):
		// Our text would go out together with theirs, and a waiting hook would hold
		// theirs back.
		leave(r, Settling, now)
		return approve
	case typing(r, now) && !tasks:
		// Nothing is handed over now, and only a waiting hook can hand something
		// over later.
		return await
	case typing(r, now):
		leave(r, Background, now)
		return approve
	case r.Policy.Context == ContextEntry && r.worked():
		return release(r, "one entry for each conversation", now)
	case entry && r.Policy.MaxContinuations > 0 && r.Continuations >= r.Policy.MaxContinuations:
		r.End(EndRunaway, "hand-overs without an acknowledgement", now)
		leave(r, Ending, now)
		return approve
	case entry:
		return handOver
	case tasks:
		// No entry depends on these tasks, but ending the session would kill them.
		// It wakes itself when they end.
		leave(r, Background, now)
		return approve
	}
	return idle(r, now)
}

// worked reports whether the session is done with an entry, as far as it can be: it was
// acknowledged, or waits for a person.
func (r *Record) worked() bool { return r.Acknowledged+r.SetAside > 0 }

// idle decides what a session without work does.
func idle(r *Record, now time.Time) step {
	switch {
	case r.Yield && (r.Policy.Mode == Persist || r.Attached > 0):
		return release(r, "another agent needs the slot", now)
	case r.Policy.Mode == Persist || r.Attached > 0:
		return await
	}
	r.Drained(now)
	leave(r, Ending, now)
	return approve
}

// Drained records that the session ends because nothing is left to do, and says so if
// it has done nothing.
func (r *Record) Drained(now time.Time) {
	switch {
	case r.worked():
		r.End(EndDrained, "", now)
	case r.Undone > 0:
		r.End(EndDrained, "nothing was done", now)
	default:
		r.End(EndDrained, "nothing was queued", now)
	}
}

func release(r *Record, why string, now time.Time) step {
	r.End(EndReleased, why, now)
	leave(r, Ending, now)
	return approve
}

// proves decides what a Stop does, and a hook that waits, while the entry in flight is
// being checked: it is await, or approve.
func proves(r *Record, now time.Time) step {
	switch {
	case ends(r, now):
		return approve
	case r.Yield:
		return release(r, "another agent needs the slot", now)
	}
	return await
}

// vigil is the waiting of one hook.
type vigil struct {
	me     Process
	began  time.Time // the hook's start
	idleAt time.Time // idle-interval is over
}

// latest is when the wait ends by itself, whatever it waits for.
func (v vigil) latest(r *Record) time.Time { return v.began.Add(r.Policy.longest()) }

// lineShown is when the transcript shows all that the client has taken from its
// line for the turn that has just ended. Before, it may show that something was put
// in, and not yet that it was taken: a turn that ended for that would leave no hook
// waiting.
func (v vigil) lineShown() time.Time { return v.began.Add(client.Claude.Transcript.Behind) }

// doubtful reports whether something seems to stand in the client's line that may
// have been taken before the turn that has just ended.
func doubtful(r *Record, v vigil, now time.Time) bool {
	return r.awaits(v) && r.Ruling == nil && r.Line.stands() && now.Before(v.lineShown())
}

// awaits reports whether it is this hook that waits in the session.
func (r *Record) awaits(v vigil) bool {
	return (r.Phase == Waiting || r.Phase == Checking) && r.Waiter == v.me
}

// awake decides what a waiting hook does at each look. entry says that an entry is
// queued. The result await means to keep waiting.
func awake(r *Record, v vigil, entry bool, now time.Time) step {
	if !r.awaits(v) {
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
