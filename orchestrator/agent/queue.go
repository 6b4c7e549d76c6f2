package agent

import (
	"slices"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// queue is what is known of what is queued.
type queue struct {
	// folders are what it stands in, queued what was in it when it was last looked
	// at; folderGone is since when they are not what they were.
	folders    session.Ground
	folderGone time.Time
	queued     int
	// line is why work that is queued waits for a slot, or "": none was seen.
	line string
	// stale is true when nobody has looked since something may have been queued.
	stale bool
}

// WantsLook reports, once, that its queue is to be looked into.
func (a *Agent) WantsLook(now time.Time) bool {
	if !a.queue.stale || !a.Wants(now) {
		return false
	}
	a.queue.stale = false
	return true
}

// Counted is how many entries are queued.
func (a *Agent) Counted(n int) { a.queue.queued = n }

// Nothing is a look into its queue that found nothing to do. tail is true when
// there is a line without its newline, which counts once its writer is quiet.
func (a *Agent) Nothing(tail bool, now time.Time) {
	a.queue.line, a.past.stuck = "", nil
	if tail {
		a.alarms.set(Tail, now.Add(tailCheck))
	}
}

// tailCheck is when to look again at a line without its newline: a quiet
// writer's line counts after 5 seconds (inbox.Held.Next).
const tailCheck = 6 * time.Second

// Folders are those of its queue as they were last seen.
func (a *Agent) Folders() session.Ground { return a.queue.folders }

// Sees takes what a look at the folders of its queue has found: what they were
// before, what differs, or "", and what is there now. It notices a loss while no
// session lives; what is known of a session's own queue its shim tells.
func (a *Agent) Sees(before session.Ground, differs string, folders session.Ground, now time.Time) {
	q := &a.queue
	if a.life.is == Live || a.life.is == Starting || !slices.Equal(q.folders, before) {
		return // looked at before it began, or after its end
	}
	switch {
	case differs == "":
		q.folderGone = time.Time{}
		if folders != nil {
			q.folders = folders
		}
		return
	case q.folderGone.IsZero():
		q.folderGone = now
		return
	case now.Sub(q.folderGone) < session.GroundPatience:
		return
	}
	if p := a.past; q.queued > 0 || p.owed != nil || p.halted != nil {
		a.queueLost(session.Loss{What: differs, Queued: q.queued, InFlight: p.halted}, now)
	}
	q.folders, q.folderGone, q.queued = folders, time.Time{}, 0
	a.past.owed, a.past.halted = nil, nil
	a.past.unseen = a.past.unseen || folders != nil
}

// queueLost tells that prompts are gone.
func (a *Agent) queueLost(l session.Loss, now time.Time) {
	a.past.loss = &status.QueueLoss{At: now, Loss: l}
	a.note(journal.Event{Kind: journal.QueueLost, Reason: foreign.Text(l.What), Detail: foreign.Text(l.String()), Session: a.life.session})
}
