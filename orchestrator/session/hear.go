package session

import (
	"slices"
	"strings"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
)

// The session record is written by hooks and by anybody else who can write in the
// agent's folder. What the shim knows about its session is its own record. Only
// hear changes it by what is in the file: it accepts, within limits, what only
// hooks can know, ignores everything else, and has the file corrected.

// hooksPhases are those that hooks enter.
var hooksPhases = []hook.Phase{
	hook.Starting, hook.Turn, hook.Waiting, hook.Background, hook.Checking, hook.Settling, hook.Unattended, hook.Ending,
}

// Limits for what hooks say.
const (
	maxDetail = 4 << 10
	maxTasks  = 1000
	maxTask   = 1 << 10
)

// queueSays is what the queue itself says about the session's work.
type queueSays interface {
	// flight returns the entry in flight for the session, or nil; ok is false if it
	// cannot be read.
	flight() (f *inbox.InFlight, ok bool)
	// pass takes up to n of the entries that the queue has passed and that were not
	// taken yet. ok is false if the queue cannot be read: then n is owed, and the
	// next call asks for it again.
	pass(n int) (taken int, ok bool)
}

// hear returns what the shim knows once it has read told, and whether the file has
// to be corrected.
func hear(own *hook.Record, told *hook.Shown, queue queueSays) (now *hook.Record, wrong bool) {
	if told.TokenHash != own.TokenHash {
		return own, true
	}
	r := *own
	if r.BoundAt.IsZero() {
		r.Client, r.BoundAt = told.Client, told.BoundAt
	}
	r.ClientSession, r.Transcript = told.ClientSession, told.Transcript
	r.PromptID, r.PermissionMode = told.PromptID, told.PermissionMode
	hearPhase(&r, told)
	r.Events, r.HandOvers = max(r.Events, told.Events), max(r.HandOvers, told.HandOvers)
	r.SetAside = max(r.SetAside, told.SetAside)
	r.Undone = max(r.Undone, told.Undone)
	r.LastEvent, r.LastEventAt = told.LastEvent, told.LastEventAt
	sure := hearWork(&r, told, queue)
	r.Waiter, r.Line, r.Said = told.Waiter, told.Line, told.Said
	r.Answers = heardAnswers(told.Answers)
	r.BackgroundTasks, r.BackgroundSince = bounded(told.BackgroundTasks), told.BackgroundSince
	r.LastReply = hook.KeepReply(told.LastReply)
	r.Spoke, r.Heard, r.Settles = told.Spoke, told.Heard, told.Settles
	r.Prolonged, r.Gates = r.Prolonged || told.Prolonged, heardGates(own.Gates, told.Gates)
	r.Ruling = heardRuling(own.Ruling, told.Ruling)
	return &r, !sure || differ(&r, told)
}

// hearPhase: hooks never return to the start, and do not decide about the end.
func hearPhase(r *hook.Record, told *hook.Shown) {
	switch {
	case r.Ruling != nil && r.Ruling.Final, r.Phase == hook.Ended:
	case !slices.Contains(hooksPhases, told.Phase), told.Phase == hook.Starting && r.Phase != hook.Starting:
	default:
		r.Phase, r.Since = told.Phase, told.Since
	}
}

// hearWork: the queue also says which entry is in work, and how many are done. It
// returns false while the queue owes an answer.
func hearWork(r *hook.Record, told *hook.Shown, queue queueSays) (sure bool) {
	done, sure := queue.pass(max(0, told.Acknowledged-r.Acknowledged))
	if r.Acknowledged += done; done > 0 {
		r.Continuations = max(0, told.Continuations)
	} else {
		r.Continuations = max(r.Continuations, told.Continuations)
	}
	if told.Work == nil && r.Work == nil || told.Work != nil && sameWork(told.Work, r.Work) {
		return sure
	}
	f, ok := queue.flight()
	if ok && hasVerdict(r.Work, f) {
		r.Continuations = max(0, told.Continuations)
	}
	switch {
	case !ok:
	case f == nil:
		r.Work = nil
	default:
		work := &hook.Work{
			DeliveryID: f.DeliveryID, ID: f.ID, Source: f.Source, Attempt: f.Attempt, Iteration: f.Iteration, Since: time.Now(),
		}
		switch {
		case sameWork(r.Work, work):
			return sure
		case sameWork(told.Work, work):
			work.Since = told.Work.Since
		}
		r.Work = work
	}
	return sure
}

// hasVerdict reports whether a check of an entry has come to a verdict, by what is in
// flight now.
func hasVerdict(w *hook.Work, f *inbox.InFlight) bool {
	return w != nil && w.Iteration > 0 && (f == nil || f.DeliveryID != w.DeliveryID || f.Iteration > w.Iteration)
}

// heardGates are the Stop hooks, not ours, that continued the client: they are
// remembered, so a session that makes some up only gets one entry at a time.
func heardGates(own, told []string) []string {
	all := slices.Clone(own)
	for _, command := range told {
		if command = handover.ShownCommand(command); len(all) < handover.MaxGates && !slices.Contains(all, command) {
			all = append(all, command)
		}
	}
	return all
}

// heardRuling returns the ruling that is in force: nothing withdraws what the shim
// has ruled, and what hooks have ruled for good.
func heardRuling(own, told *hook.Ruling) *hook.Ruling {
	switch {
	case own != nil && own.Stands():
		return own
	case told == nil:
		return nil
	case !told.Why.FromHooks():
		return own
	case own != nil && own.Why == told.Why:
		return own
	}
	detail := hook.Cut(told.Detail, maxDetail)
	if told.Why == hook.EndAPIFailure && !isWord(detail) {
		detail = "unknown"
	}
	return &hook.Ruling{Why: told.Why, Detail: detail, Told: hook.Cut(told.Told, maxDetail), At: told.At}
}

// isWord reports whether a text can be the kind of an API failure.
func isWord(s string) bool {
	return s != "" && len(s) <= 100 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// differ reports whether the file shows something that the shim knows otherwise: a
// hook would act on that.
func differ(r *hook.Record, told *hook.Shown) bool {
	if r.Terms != told.Terms || r.Shim != told.Shim {
		return true
	}
	if r.Yield != told.Yield || r.Attached != told.Attached || r.TypedAt.Sub(told.TypedAt).Abs() > typedSlack {
		return true
	}
	if r.Client != told.Client || r.Phase != told.Phase || r.Events != told.Events || r.HandOvers != told.HandOvers ||
		r.Continuations != told.Continuations || r.Acknowledged != told.Acknowledged {
		return true
	}
	return (r.Work == nil) != (told.Work == nil) || r.Work != nil && !sameWork(r.Work, told.Work) ||
		!sameRuling(r.Ruling, told.Ruling)
}

// typedSlack is how much a time may differ after it went through a file.
const typedSlack = 2 * time.Second

func sameRuling(a, b *hook.Ruling) bool {
	return a == b || a != nil && b != nil && a.Why == b.Why && a.Detail == b.Detail && a.Final == b.Final
}

func bounded(tasks []string) []string {
	if len(tasks) > maxTasks {
		tasks = tasks[:maxTasks]
	}
	for i, t := range tasks {
		tasks[i] = hook.Cut(t, maxTask)
	}
	return tasks
}

// ledger is what the shim knows about its queue: it implements queueSays.
type ledger struct {
	queue   *inbox.Queue
	session string
	at      inbox.Position
	// passed counts all entries that the queue has passed, taken those that count
	// as the session's, owed those that were asked for while the queue could not be
	// read.
	passed, taken, owed int
}

// open begins to count.
func (l *ledger) open(q *inbox.Queue, session string) error {
	_, at, err := q.Passed(inbox.Position{})
	l.queue, l.session, l.at = q, session, at
	return err
}

func (l *ledger) flight() (*inbox.InFlight, bool) {
	f, err := l.queue.Peek()
	if err != nil {
		return nil, false
	}
	l.look()
	if f != nil && f.Session != l.session {
		f = nil
	}
	return f, true
}

func (l *ledger) look() bool {
	n, at, err := l.queue.Passed(l.at)
	if err == nil {
		l.at, l.passed = at, l.passed+n
	}
	return err == nil
}

// mostOwed limits what a record can ask for.
const mostOwed = 1 << 20

func (l *ledger) pass(n int) (taken int, ok bool) {
	if l.owed = min(l.owed+min(n, mostOwed), mostOwed); l.owed == 0 {
		return 0, true
	}
	if !l.look() {
		return 0, false
	}
	taken = max(0, min(l.owed, l.passed-l.taken))
	l.taken += taken
	l.owed = 0
	return taken, true
}
