package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
	"heartbeat/hook/process"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/explain"
	"heartbeat/orchestrator/status"
)

// idle reports whether nobody works in the directory now, so that what looks
// unfinished is.
func (a *Agent) idle() bool { return !a.Running && !a.Queue.SessionHeld }

// recovering is Mend's recovery where it cannot disturb: nobody works there,
// and no hand-wired hook may have a session that holds no lock.
func (a *Agent) recovering() repair {
	if a.idle() && a.wired() == nil && a.Unwired == nil && !a.Queue.NeedsOperator {
		return recovering
	}
	return nothing
}

// checkQueue: a queue that cannot be read, or does not know where to continue.
func checkQueue(_ *Facts, a *Agent) (found []Finding) {
	q := a.Queue
	switch {
	case q.Err == nil, a.Denied != nil: // it is said there
		return nil
	case q.NeedsOperator:
		return []Finding{{
			Severity: Error, Code: "queue-needs-person", Seen: q.Err.Error(),
			Why: "nothing is handed over until a person says where the queue continues", Fix: a.command("answer"),
		}}
	}
	unreadable := func(path string, err error) {
		found = append(found, Finding{
			Severity: Error, Code: "queue-unreadable", Seen: err.Error(), Why: "nothing is handed over",
			Fix: permitted(a, err, inPlaceOf(path, err)),
		})
	}
	for _, o := range q.Obstacles {
		if a.keepsLines(o) {
			unreadable(o.Path, o.Err)
		}
	}
	if len(found) == 0 {
		unreadable(a.Config.Inbox, q.Err)
	}
	return found
}

// keepsLines reports whether an obstacle is a file of queued lines, urgent or not: while it
// cannot be read, none of the queue can.
func (a *Agent) keepsLines(o inbox.Obstacle) bool {
	return o.Path == a.Config.Inbox || o.Path == inbox.Urgent(a.Config.Inbox)
}

// checkUnreadable: files of the queue that cannot be read, apart from those that checkQueue
// names.
func checkUnreadable(_ *Facts, a *Agent) (found []Finding) {
	q := a.Queue
	if a.Denied != nil || q.NeedsOperator {
		return nil
	}
	for _, o := range q.Obstacles {
		if q.Err != nil && a.keepsLines(o) {
			continue
		}
		f := Finding{
			Severity: Warning, Code: "queue-file-unreadable", Seen: o.Err.Error(), Why: hides[o.Hides],
			Fix: permitted(a, o.Err, fileBelongs(o.Path)),
		}
		if o.Hides == inbox.HidesQueue {
			f.Severity = Error
		}
		found = append(found, f)
	}
	return found
}

// hides is what follows from an obstacle.
var hides = map[inbox.Hidden]string{
	inbox.HidesQueue:   "it is not known what is queued or worked on; a run sets it aside, and what it held may be done again",
	inbox.HidesReplies: "it is not known what was done, and the replies cannot be shown; it is set aside when the next prompt is done",
	inbox.HidesDead:    "what was given up cannot be shown or queued again; it is set aside when the next prompt is given up",
	inbox.HidesNothing: "the queue goes by its other files, and sets this one aside when it next uses it",
}

// inPlaceOf is how to correct what fails with err: what stands in the place of
// a file of lines, or of its folder.
func inPlaceOf(file string, err error) string {
	switch {
	case errors.Is(err, durable.ErrNotFolder):
		return "move away what stands at " + settings.Quote(filepath.Dir(file)) + ": a folder belongs there"
	case errors.Is(err, durable.ErrNotRegular):
		return fileBelongs(file)
	}
	return "correct " + file
}

// fileBelongs is what to do about what stands in the place of a file of the queue.
func fileBelongs(path string) string {
	return "move away what stands at " + settings.Quote(path) + ": a file belongs there, and is made when it is missing"
}

// permitted is how to correct what fails with err: a file that this user may
// not read is not broken.
func permitted(a *Agent, err error, fix string) string {
	if errors.Is(err, fs.ErrPermission) {
		return "let this user read and write " + settings.Quote(a.Config.Home) + " and what is in it (chmod, chown)"
	}
	return fix
}

// explained is what follows by itself, as `heartbeat explain` says it.
func explained(code string) string {
	w, _ := explain.Find(code)
	return strings.TrimSuffix(w.Then, ".")
}

// checkCursor: a cursor that fails the sanity check.
func checkCursor(_ *Facts, a *Agent) []Finding {
	q := a.Queue
	if q.CursorProblem == "" || q.Err != nil || a.Denied != nil {
		return nil
	}
	return []Finding{{
		Severity: Warning, Code: "cursor", Seen: q.Cursor + ": " + q.CursorProblem,
		Why: explained("cursor"),
		Fix: a.command("recover"), mend: a.recovering(),
	}}
}

// checkOrphan: an entry in flight whose session is gone. One that is to be checked, or whose
// check has not passed, is none: it waits for a run.
func checkOrphan(f *Facts, a *Agent) []Finding {
	q := a.Queue
	if q.InFlight == nil || q.InFlight.Failure != "" || !a.idle() || q.Err != nil { // it continues
		return nil
	}
	if s := q.InFlight.State; s == inbox.Checking || s == inbox.Unproven {
		return nil
	}
	return []Finding{{
		Severity: Warning, Code: "orphan",
		Seen: fmt.Sprintf("entry %s has been in flight for %s, and no session is running", q.InFlight.DeliveryID, age(f.Now.Sub(q.InFlight.DeliveredAt))),
		Why:  fmt.Sprintf("`heartbeat run` deals with it by on-orphan (%s) when it starts", a.Config.OnOrphan),
		Fix:  a.command("recover"), mend: a.recovering(),
	}}
}

// tailPatience is how long a writer may take for a line.
const tailPatience = 10 * time.Second

// checkForeignUrgent: a file that has the urgent lane's name by accident.
func checkForeignUrgent(_ *Facts, a *Agent) []Finding {
	path := a.Queue.ForeignUrgent
	if path == "" {
		return nil
	}
	return []Finding{{
		Severity: Warning, Code: "foreign-urgent", Seen: path + " holds lines, and none that `heartbeat send --urgent` has written first",
		Why: explained("foreign-urgent"), Fix: "if they are not prompts: mv " + settings.Quote(path) + " elsewhere, or set inbox",
	}}
}

// checkTail: a last line without its newline.
func checkTail(f *Facts, a *Agent) []Finding {
	q := a.Queue
	if !q.Depth.Tail || f.Now.Sub(q.Written) < tailPatience {
		return nil
	}
	path := a.Config.Inbox
	if q.Depth.TailUrgent {
		path = inbox.Urgent(path)
	}
	return []Finding{{
		Severity: Warning, Code: "torn-line", Seen: fmt.Sprintf("the last line of %s has had no newline for %s", path, age(f.Now.Sub(q.Written))),
		Why: "a line is accepted once it ends with a newline: its writer died, or forgot it", Fix: "echo >> " + settings.Quote(path),
	}}
}

// checkDead: entries that were given up.
func checkDead(f *Facts, a *Agent) []Finding {
	q := a.Queue
	found := takenOut(a)
	if dead := q.Dead - q.Gone.Lost; dead > 0 {
		seen := fmt.Sprintf("%d dead letters, the oldest %s old", dead, age(f.Now.Sub(q.OldestDead)))
		if dead == 1 {
			seen = fmt.Sprintf("1 dead letter, %s old", age(f.Now.Sub(q.OldestDead)))
		}
		if q.Torn > 0 {
			seen += fmt.Sprintf(", %d of them torn lines", q.Torn)
		}
		found = append(found, Finding{
			Severity: Warning, Code: "dead-letters", Seen: seen, Why: "these prompts were given up, and are not tried again automatically",
			Fix: a.command("dead-letter"),
		})
	}
	obstructed := slices.ContainsFunc(q.Obstacles, func(o inbox.Obstacle) bool { return o.Hides == inbox.HidesDead }) // that is said there
	if q.DeadBroken > 0 && a.Denied == nil && !obstructed {
		found = append(found, Finding{
			Severity: Warning, Code: "dead-letters-broken", Seen: "the dead letters cannot be read to their end",
			Why: "what was given up cannot be queued again", Fix: "look at " + inbox.DeadLetterFile(a.Config.Inbox),
		})
	}
	return found
}

// takenOut: entries that were queued and do not stand in the inbox any more.
func takenOut(a *Agent) []Finding {
	t := status.TakenOutOf(a.Queue.Missing, a.Queue.Gone)
	if t == nil {
		return nil
	}
	becomes := "becomes"
	if t.Filed {
		becomes = "is"
	}
	verb, remark := t.Cure(a.Queue.NeedsOperator)
	return []Finding{{
		Severity: Error, Code: "queue-lost", Seen: t.What() + ": " + t.Cause(),
		Why: "somebody took out of the inbox what was accepted; each prompt " + becomes + " a dead letter, lost, with its text where that is known",
		Fix: a.command(verb) + "; " + remark,
	}}
}

// checkLocks: locks that are none, or that are held by nobody known.
func checkLocks(_ *Facts, a *Agent) []Finding {
	q, beside := a.Queue, filepath.Dir(a.Config.Inbox)
	var found []Finding
	for _, name := range q.BadLocks {
		found = append(found, Finding{
			Severity: Error, Code: "lock-no-file", Seen: filepath.Join(beside, name) + " is not a regular file",
			Why: "it cannot be locked: no session starts and no hook works", Fix: "rm -r " + settings.Quote(filepath.Join(beside, name)),
		})
	}
	if q.HookLockHeld {
		found = append(found, Finding{
			Severity: Error, Code: "lock-stuck", Seen: filepath.Join(beside, inbox.HookLock) + " was held for a whole second",
			Why: "hooks give up after a moment and hand nothing over", Fix: "fuser -v " + settings.Quote(filepath.Join(beside, inbox.HookLock)),
		})
	}
	switch {
	case q.SessionHeld && q.Shim.PID == 0:
		found = append(found, Finding{
			Severity: Error, Code: "lock-stuck", Seen: filepath.Join(beside, inbox.SessionLock) + " is held, and by no session of this fleet",
			Why: "no session can start", Fix: "fuser -v " + settings.Quote(filepath.Join(beside, inbox.SessionLock)),
		})
	case q.SessionHeld && q.ShimHalt.By != "":
		found = append(found, Finding{
			Severity: Error, Code: "lock-stuck", Seen: q.ShimHalt.By + " has stopped the session" + process.Numbered(q.Shim.PID),
			Why: "nothing watches or ends it, and no other can start", Fix: q.ShimHalt.Do,
		})
	case q.SessionHeld && !a.Running:
		found = append(found, Finding{
			Severity: Warning, Code: "session-without-run", Seen: "a session lives" + process.Numbered(q.Shim.PID) + ", and no `heartbeat run` holds the directory",
			Why: "it ends by itself within its grace; if it does not, nothing starts here", Fix: a.command("status"),
		})
	}
	return found
}

// checkFiles: what was left in the queue's folders.
func checkFiles(_ *Facts, a *Agent) []Finding {
	q := a.Queue
	var found []Finding
	if len(q.Temps) > 0 {
		f := Finding{
			Severity: Info, Code: "stale-files", Seen: "temporary files that nobody writes any more: " + list(q.Temps, 3),
			Why: "a process was killed while it wrote; they only take space", Fix: ours(a.ours, "doctor --fix"), mend: sweeping,
		}
		if a.Unwired != nil {
			f.mend, f.Fix = nothing, "remove them"
		}
		found = append(found, f)
	}
	if len(q.Corrupt) > 0 {
		found = append(found, Finding{
			Severity: Info, Code: "corrupt-files", Seen: "files that were corrupt and set aside: " + list(q.Corrupt, 3),
			Why: "they are kept for inspection; the queue continues without them", Fix: "remove them when you no longer need them",
		})
	}
	if q.NoGitignore && a.Unwired == nil {
		found = append(found, Finding{
			Severity: Warning, Code: "no-gitignore", Seen: filepath.Join(a.Config.Home, ".gitignore") + " is missing",
			Why: "queues, logs and replies may be committed", Fix: a.command("apply"), mend: applying,
		})
	}
	return found
}

// clockTolerance is how far file times may run ahead of the clock.
const clockTolerance = 2 * time.Minute

// checkTimes: files written in the future.
func checkTimes(_ *Facts, a *Agent) []Finding {
	q := a.Queue
	if q.FutureBy <= clockTolerance {
		return nil
	}
	return []Finding{{
		Severity: Warning, Code: "clock-behind", Seen: fmt.Sprintf("%s was written %s in the future", q.Future, age(q.FutureBy)),
		Why: "the clock was set back, or the file server's differs: schedules and ages are off", Fix: "timedatectl status",
	}}
}

// age is a duration in its largest unit.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
