package agent

import (
	"cmp"
	"slices"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// queue is what is known about the agent's queue.
type queue struct {
	// folders are the queue's, queued is what was in it when it was last counted;
	// folderGone is since when the folders differ.
	folders    session.Ground
	folderGone time.Time
	queued     int
	names      []string // of the first of them
	fired      int      // of triggers, since then
	// line is why queued work waits for a slot, or "": there was none.
	line string
	// stale is true if something may have been queued since the last look.
	stale bool
}

// TakeLook reports, once, that its queue has to be looked into.
func (a *Agent) TakeLook(now time.Time) bool {
	if !a.queue.stale || !a.Wants(now) {
		return false
	}
	a.queue.stale = false
	return true
}

// Counted says how many entries are queued; names are those of the first ones.
func (a *Agent) Counted(n int, names []string) {
	a.queue.queued, a.queue.names, a.queue.fired = n, names, 0
}

// Fired counts an entry that one of its triggers has queued.
func (a *Agent) Fired() { a.queue.fired++ }

// Recounted is Counted while nothing is started. A person who has sent a prompt meanwhile does
// not wait for a long delay: Recounted reports whether the agent's delay, a back-off or the next
// try of its account, has to end HurryAfter its last failure. Prompts of triggers do not shorten
// it, and nothing shortens a parking whose end is known.
func (a *Agent) Recounted(n int, names []string, now time.Time) (hurry bool) {
	grew := n > a.queue.queued+a.queue.fired
	a.Counted(n, names)
	p := &a.past
	waits := !deadline.Over(p.backOff.until, now) || !deadline.Over(p.parked.Until, now) && !p.parked.Known
	if !grew || !waits {
		return false
	}
	at := a.shown.since.Add(HurryAfter)
	if now.After(at) {
		at = now
	}
	if at.Before(p.backOff.until) {
		p.backOff.until = at
	}
	if !p.parked.Known && at.Before(p.parked.Until) {
		p.parked.Until = at
	}
	return true
}

// HurryAfter is the longest that a new prompt waits after a failure.
const HurryAfter = time.Minute

// Nothing says that a look into its queue found nothing to do. tail is true if
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

// Folders returns those of its queue as they were last seen.
func (a *Agent) Folders() session.Ground { return a.queue.folders }

// AtRisk returns what would be lost with the queue's folders while no session lives, as far as
// is known.
func (a *Agent) AtRisk() session.Loss {
	q, p := a.queue, a.past
	l := session.Loss{Queued: q.queued + q.fired, IDs: q.names, InFlight: p.left.inFlight}
	if o := p.left.owed; o != nil && o.Delivery != "" && l.InFlight == nil {
		l.InFlight = &hook.Work{DeliveryID: o.Delivery}
	}
	return l
}

// Sees takes the result of a look at the folders of its queue: what they were before, what
// differs, or "", what is there now, and what is missing of their contents; nil: nothing. It
// detects a loss while no session lives. During a session its shim does.
func (a *Agent) Sees(before session.Ground, differs string, folders session.Ground, missing *session.Loss, now time.Time) {
	q := &a.queue
	if a.life.is == Live || a.life.is == Starting || !slices.Equal(q.folders, before) {
		return // the look was before the session began, or after it ended
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
	if l := missing; l != nil && (l.Queued > 0 || l.InFlight != nil || a.past.left.owed != nil) {
		l.What = differs
		a.queueLost(*l, now)
		a.Counted(0, nil)
	}
	q.folders, q.folderGone = folders, time.Time{}
	a.past.left.owed, a.past.left.inFlight = nil, nil
	a.past.left.unseen = a.past.left.unseen || folders != nil
}

// queueLost says that prompts are gone.
func (a *Agent) queueLost(l session.Loss, now time.Time) {
	a.note(journal.Event{Kind: journal.QueueLost, Reason: foreign.Text(l.What), Detail: foreign.Text(l.String()), Session: a.life.session})
	if was := a.past.loss; was != nil { // not acknowledged yet: they add up
		l.Queued, l.More, l.IDs = l.Queued+was.Queued, l.More || was.More, slices.Concat(was.IDs, l.IDs)
		l.InFlight = cmp.Or(l.InFlight, was.InFlight)
	}
	a.past.loss = &status.QueueLoss{At: now, Loss: l}
}
