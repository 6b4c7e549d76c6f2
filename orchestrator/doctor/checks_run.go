package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
	"heartbeat/hook/process"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// checkHeld: an agent for which nothing starts until a person says so.
func checkHeld(f *Facts, a *Agent) []Finding {
	if a.State.State != status.Held || !a.State.Paused.IsZero() || a.queueHolds(a.State) || a.forApproval(a.State) {
		return nil
	}
	held := Finding{
		Severity: Error, Code: "held", Seen: fmt.Sprintf("held for %s: %s", age(f.Now.Sub(a.State.Since)), a.State.Why()),
		Why: "nothing starts until a person resumes it, and " + waits(a),
		Fix: a.mended(a.State) + a.command("resume"),
	}
	if a.State.GoesOn {
		held.Why, held.Fix = "nothing starts until that is mended, and "+waits(a), a.State.Fix.String()
	}
	return []Finding{held}
}

// mended says what to do before an agent is resumed whose sessions have failed.
func (a *Agent) mended(s status.AgentState) string {
	if s.Fix != "" {
		return s.Fix.String() + "; then "
	}
	if _, login := s.Refused(); login != "" {
		return login + "; then "
	}
	return "fix the cause (" + ours(a.ours, s.Evidence()) + "), then "
}

// checkLastRun: what the last run of an agent has ended with that nobody runs now.
// What is in the way of the next one, other checks find.
func checkLastRun(f *Facts, a *Agent) []Finding {
	was := a.Was
	if was == nil || !a.Paused.IsZero() || !was.Paused.IsZero() || a.queueHolds(*was) || a.forApproval(*was) {
		return nil
	}
	if was.GoesOn {
		return checkAsked(a, was)
	}
	again, fix := "the next run tries again, and "+waits(a), a.mended(*was)+ours(a.ours, "run")
	switch {
	case was.State == status.Held && was.Lasts:
		return []Finding{{
			Severity: Error, Code: "held", Seen: fmt.Sprintf("held for %s, and by the next run: %s", age(f.Now.Sub(was.Since)), was.Why()),
			Why: "nothing starts until a person resumes it, and " + waits(a), Fix: a.mended(*was) + a.command("resume"),
		}}
	case was.State == status.Held:
		return []Finding{{Severity: Warning, Code: "was-held", Seen: "held when its last run ended: " + was.Why(), Why: again, Fix: fix}}
	case was.State == status.BackingOff:
		return []Finding{{Severity: Warning, Code: "was-failing", Seen: "its sessions failed when its last run ended: " + was.Why(), Why: again, Fix: fix}}
	}
	return nil
}

// queueHolds reports whether a hold is for the queue that asks a person: that is said by
// checkQueue, and its answer is all that it takes.
func (a *Agent) queueHolds(s status.AgentState) bool {
	return s.State == status.Held && !s.Lasts && !s.GoesOn && a.Queue.NeedsOperator
}

// checkAsked: a question at the client's start that nobody has answered, as far as is
// known. Whatever else an agent was held for until it is mended is there to be seen, or
// gone.
func checkAsked(a *Agent, was *status.AgentState) []Finding {
	if was.State != status.Held || was.Last == nil || was.Last.Asks == nil || len(a.Obstacles) > 0 {
		return nil
	}
	return []Finding{{
		Severity: Warning, Code: "was-held", Seen: "held when its last run ended: " + was.Why(),
		Why: "the next run starts a session once something has changed that may answer it, or after half an hour, and " + waits(a),
		Fix: a.mended(*was) + ours(a.ours, "run"),
	}}
}

// checkQueueLost: accepted prompts that are gone.
func checkQueueLost(f *Facts, a *Agent) []Finding {
	l := a.last().QueueLost
	if l == nil {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "queue-lost", Seen: fmt.Sprintf("its queue was lost %s ago: %s", age(f.Now.Sub(l.At)), l),
		Why: "the accepted prompts in it are lost; the agent works on new ones",
		Fix: "send again what is missing (" + a.command("history") + "), then " + a.command("resume"),
	}}
}

// checkUntended: what waits for approval, and whose answers have no effect.
func checkUntended(f *Facts, a *Agent) []Finding {
	u := a.State.Untended
	if u == nil || a.Queue.Err != nil || a.State.Lost != "" { // which says why
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "approval-stuck", Seen: fmt.Sprintf("approvals have been stuck for %s: %s", age(f.Now.Sub(u.Since)), u.Why),
		Why: "answers have no effect until then; the prompts that wait are kept in the state directory",
		Fix: "if its folder is gone: " + a.command("apply") + "; it is put back within half a minute. Otherwise mend what this says",
	}}
}

// checkStuck: work that the service has refused for long.
func checkStuck(f *Facts, a *Agent) []Finding {
	k := a.State.Stuck
	if k == nil || !k.Told {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "stuck", Seen: fmt.Sprintf("the service has failed for %s: %s", age(f.Now.Sub(k.Since)), k.Why),
		Why: "it is tried again, and " + waits(a), Fix: "check the service's status page; " + a.command("logs"),
	}}
}

// checkUnproven: what has to prove the work, and cannot be run.
func checkUnproven(f *Facts, a *Agent) []Finding {
	p := a.State.Proof
	if p == nil || !p.Vain.NeedsPerson(f.Now) {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "check-trouble", Seen: fmt.Sprintf("%s: %s", p.Vain.Tries(f.Now), p.Vain.Why),
		Why: "its prompt is neither done nor given up until the check runs; it is tried again, and " + waits(a),
		Fix: "mend what this says: install a program that is missing, or correct until: in the file, then " + ours(a.ours, "reload") + "; " + a.command("resume") + " tries at once",
	}}
}

// checkToolsRefused: calls of tools in the last session that no rule allows.
func checkToolsRefused(_ *Facts, a *Agent) []Finding {
	denied := session.StillDenied(a.last().Denied, a.Config.Permissions.Allow)
	if len(denied) == 0 {
		return nil
	}
	load := ours(a.ours, "reload")
	if !a.Scheduled {
		load = a.command("apply")
	}
	return []Finding{{
		Severity: Warning, Code: "tools-refused", Seen: "in its last session " + session.DeniedText(denied),
		Why: "no rule allows them, and nobody is asked: the agent works without them, or fails",
		Fix: "to allow them, add these rules to permissions: allow: of " + a.Config.Name + ", then " + load,
	}}
}

// checkServers: servers of MCP that did not connect in the last session.
func checkServers(_ *Facts, a *Agent) (found []Finding) {
	for _, s := range a.last().Servers {
		found = append(found, Finding{
			Severity: Warning, Code: "mcp-server", Seen: "in its last session MCP server " + foreign.Text(s.Name).String() + " did not connect: " + foreign.Text(s.Why).String(),
			Why: "its tools were not there, and prompts were done without them",
			Fix: "start the client in " + a.Config.Dir + " and type /mcp; mend the server's command, address or login, or take it out of the client's settings",
		})
	}
	return found
}

// checkStrays: prompts in the last session that came past the queue.
func checkStrays(_ *Facts, a *Agent) []Finding {
	strays := a.last().Strays
	if len(strays) == 0 {
		return nil
	}
	fix := "try whether the client is one that sessions can rely on: heartbeat doctor " + a.Config.Name + " --probe"
	switch strays[len(strays)-1].By {
	case client.Timetable:
		fix = "look into .claude/scheduled_tasks.json, and take what Cron and ScheduleWakeup begin with out of permissions: allow: without these rules no session has a timetable"
	case client.OtherSession:
		fix = "look who has SendMessage in permissions: allow, and which other clients run as this user"
	case client.Monitor:
		fix = "take Monitor out of permissions: allow, unless it is wanted"
	}
	return []Finding{{
		Severity: Warning, Code: "stray-prompt", Seen: "in its last session " + session.StraysText(strays),
		Why: "it was done with the agent's rules, though no prompt of the queue asked for it", Fix: fix,
	}}
}

// checkPaused: an agent, or a trigger, that a person has paused, and perhaps forgotten.
func checkPaused(f *Facts, a *Agent) (found []Finding) {
	for _, t := range a.PausedTriggers {
		found = append(found, Finding{
			Severity: Warning, Code: "paused", Seen: fmt.Sprintf("trigger %s is paused by %s for %s", t.Trigger, status.WhoPaused(t.By), age(max(0, f.Now.Sub(t.Since)))),
			Why: "it does not fire by itself, also after a restart, until it is resumed", Fix: a.command("resume") + " --trigger " + t.Trigger,
		})
	}
	if a.Paused.IsZero() {
		return found
	}
	until := "until it is resumed"
	if end := a.State.PauseEnd(f.Now); end != "" {
		until = end + ", or until it is resumed"
	}
	return append(found, Finding{
		Severity: Warning, Code: "paused", Seen: "paused by " + a.State.WhoPaused() + " for " + age(f.Now.Sub(a.Paused)),
		Why: fmt.Sprintf("nothing starts %s, also after a restart, and %s", until, waits(a)), Fix: a.command("resume"),
	})
}

// checkTriggers: triggers that cannot do what they are for.
func checkTriggers(f *Facts, a *Agent) []Finding {
	var found []Finding
	for _, t := range a.State.Failing {
		times := "once"
		if t.Times > 1 {
			times = fmt.Sprintf("%d times in a row", t.Times)
		}
		again := "it is tried again"
		fix := "fix the cause, then " + a.command("trigger") + " " + t.Trigger
		switch {
		case t.Requested:
			again, fix = "the next request tries it again", "fix the cause, then have the request sent again"
		case t.Stopped:
			again = "it is not tried again by itself"
		}
		found = append(found, Finding{
			Severity: Warning, Code: "trigger-fails", Seen: fmt.Sprintf("trigger %s has failed %s, since %s ago: %s", t.Trigger, times, age(f.Now.Sub(t.Since)), t.Why),
			Why: "it queues nothing until it succeeds; " + again, Fix: fix,
		})
	}
	return found
}

// checkFolders: triggers that watch folders which are not there.
func checkFolders(_ *Facts, a *Agent) (found []Finding) {
	for _, name := range slices.Sorted(maps.Keys(a.WatchesNothing)) {
		path := filepath.Join(a.Config.Dir, a.WatchesNothing[name])
		found = append(found, Finding{
			Severity: Warning, Code: "watches-nothing", Seen: fmt.Sprintf("trigger %s watches %s, which is not there", name, path),
			Why: "it does not fire until files come there", Fix: "mkdir -p " + settings.Quote(path) + ", or correct watch: in the file, then " + ours(a.ours, "reload"),
		})
	}
	return found
}

// checkRefused: requests that webhooks refuse.
func checkRefused(f *Facts, a *Agent) (found []Finding) {
	for _, r := range a.State.RefusedRequests {
		found = append(found, Finding{
			Severity: Warning, Code: "requests-refused",
			Seen: fmt.Sprintf("%s (since %s ago, the last %s ago)", r.Text(), age(f.Now.Sub(r.Since)), age(f.Now.Sub(r.Last))),
			Why:  "each of them was answered with an error and makes no prompt; many services never send them again",
			Fix:  r.Fault.Check(),
		})
	}
	return found
}

// checkUnsent: prompts whose time has come, and that are not in the queue.
func checkUnsent(f *Facts, a *Agent) []Finding {
	u := a.State.Unsent
	if u == nil {
		return nil
	}
	return []Finding{{
		Severity: Warning, Code: "not-sent", Seen: fmt.Sprintf("prompts whose time has come (send --at) cannot be queued for %s: %s", age(f.Now.Sub(u.Since)), u.Why),
		Why: "nothing works on them until they are queued; it is tried again", Fix: "mend what this says; " + a.command("next") + " shows them",
	}}
}

// waits says what an agent's queue holds.
func waits(a *Agent) string {
	n := a.Queue.Depth.Entries
	if a.Queue.InFlight != nil {
		n++
	}
	switch n {
	case 0:
		return "nothing waits yet"
	case 1:
		return "1 prompt waits"
	default:
		return fmt.Sprintf("%d prompts wait", n)
	}
}

// manyFailures is from when on sessions that come to nothing are no accident:
// after three the next one begins some 15 s later, after eight 5 minutes.
const manyFailures = 3

// checkFailures: sessions that are tried again and again, or not at all for
// now.
func checkFailures(f *Facts, a *Agent) []Finding {
	s := a.State
	again := ""
	if wait := s.Until.Sub(f.Now); wait > 0 {
		again = "; the next try is in " + age(wait)
	}
	switch {
	case a.Budget != nil:
		return overBudget(a, a.Budget.Why, a.Budget.Until, ours(a.ours, "run"))
	case s.State == status.Parked && s.OverBudget:
		return overBudget(a, s.Reason.String(), s.Until, ours(a.ours, "reload"))
	case s.State == status.Parked:
		parked := Finding{
			Severity: Warning, Code: "parked", Seen: fmt.Sprintf("parked for %s: %s%s", age(f.Now.Sub(s.Since)), s.Why(), again),
			Why: "no agent of this account works until its limit resets, and " + waits(a),
			Fix: "wait; " + a.command("resume") + " tries at once",
		}
		if do, stays := s.Stays(cmp.Or(a.ours, "heartbeat")); stays {
			parked.Why = "nothing starts for it until then (resume does not lift it), and " + waits(a)
			parked.Fix = "wait, or " + do
		} else if refused, _ := s.Refused(); refused != "" {
			parked.Why = refused + ": no agent of this account works until that is mended, and " + waits(a)
			parked.Fix = a.mended(s) + a.command("resume")
		}
		return []Finding{parked}
	case s.State != status.Held && s.Failures >= manyFailures:
		last := s.Reason
		if s.Last != nil && s.State != status.BackingOff { // which says why itself, also of a start
			last = foreign.Text(s.Last.String())
		}
		fix := cmp.Or(s.Fix.String(), ours(a.ours, s.Evidence())+" shows what the last one said")
		if s.State == status.BackingOff && s.Fix == "" && !s.OfLast() {
			fix = "mend that; then it continues by itself"
		}
		return []Finding{{
			Severity: Warning, Code: "sessions-fail", Seen: fmt.Sprintf("%d sessions in a row failed, the last one: %s%s", s.Failures, last, again),
			Why: "they are tried again, and " + waits(a),
			Fix: fix,
		}}
	}
	return nil
}

// overBudget: a budget is used up until a time; then is what puts a larger one into force.
func overBudget(a *Agent, why string, until time.Time, then string) []Finding {
	return []Finding{{
		Severity: Warning, Code: "over-budget", Seen: why,
		Why: fmt.Sprintf("nothing starts before %s, when the period of the budget ends (resume does not lift it), and %s", until.Local().Format(time.DateTime), waits(a)),
		Fix: "wait, or set a larger budget in the file, then " + then,
	}}
}

// checkReplaced: a directory that is not the one any more which the scheduler
// holds.
func checkReplaced(f *Facts, a *Agent) []Finding {
	if !a.Scheduled || a.Running {
		return nil
	}
	seen := "another folder stands at " + a.Config.Dir + " than the one that heartbeat holds"
	if a.Missing {
		seen = a.Config.Dir + " is gone while heartbeat runs it"
	}
	return []Finding{{
		Severity: Error, Code: "directory-replaced", Seen: seen + process.Numbered(f.Scheduler.PID),
		Why: "what is queued there may not be seen, and nothing keeps a second heartbeat out",
		Fix: a.command("apply") + "; if this stays, restart heartbeat run",
	}}
}

// checkAnswer: a run of the fleet that does not answer.
func checkAnswer(f *Facts) []Finding {
	m := f.Mute
	if m == nil {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "no-answer", Seen: m.Text(f.Now),
		Why: "nothing is started or watched meanwhile, and no command reaches it; sessions that live go on with the prompts that are queued",
		Fix: m.Do(ours(f.ours, "")),
	}}
}

// checkStore: a store that cannot be written, or not be relied on.
func checkStore(f *Facts) (found []Finding) {
	for _, t := range f.Store {
		s := Finding{
			Severity: Error, Code: "store-fails", Seen: t.Text, Fix: t.Do,
			Why: "what the fleet remembers cannot be kept, or not be read; no run begins with a store that it cannot use",
		}
		switch t.Kind {
		case store.Long:
			s.Severity, s.Why = Warning, "it grows until the disk is full"
		case store.Cloned:
			s.Severity, s.Why = Warning, "where both machines run the fleet, prompts are done and triggers fire twice"
		case store.Reserve:
			s.Why = "once that is used up, nothing that happens is kept, and nothing that has to be kept is done"
		case store.Owed:
			s.Why = "a run that is killed takes with it what only it knows"
		case store.Damaged:
			s.Why = "what is in the damaged part is lost, and more of it with each change"
		}
		found = append(found, s)
	}
	return found
}

// checkEnded: a run that ended without anybody having wanted that.
func checkEnded(f *Facts) []Finding {
	p := f.LastRun
	if p == nil || !p.Died() {
		return nil
	}
	ended := Finding{
		Severity: Error, Code: "scheduler-ended", Seen: p.Text(),
		Why: "no schedule, watch or webhook fires, and no prompt is worked on",
		Fix: ours(f.ours, "run") + "; as a service it is started again by itself: " + ours(f.ours, "service"),
	}
	if p.Once {
		ended.Severity, ended.Why, ended.Fix = Warning, "what it had begun is recovered by the next run", ours(f.ours, "run --once")
	}
	return []Finding{ended}
}

// checkVersion: a run of another version than this program.
func checkVersion(f *Facts) []Finding {
	if f.Scheduler == nil || f.Scheduler.OtherProgram == "" {
		return nil
	}
	return []Finding{{
		Severity: Warning, Code: "other-version", Seen: f.Scheduler.OtherProgram,
		Why: "the run works as the other version does, and may not understand what a newer command asks",
		Fix: "where the run is the older one, when it suits: " + ours(f.ours, "stop") + ", then " + ours(f.ours, "run"),
	}}
}

// checkReachable: a run that the operator's commands cannot reach.
func checkReachable(f *Facts, a *Agent) []Finding {
	if by := a.Other; by != nil && !a.Scheduled {
		return []Finding{{
			Severity: Warning, Code: "scheduler-unreachable", Seen: by.Text(a.Config.Dir, a.Holder),
			Why: "one directory has one consumer: what is queued there goes to that fleet's sessions, and no run of this fleet starts",
			Fix: by.Command() + " status; take the directory out of one of the two files",
		}}
	}
	if !a.Running || f.Scheduler != nil || f.Mute != nil && f.Mute.PID == a.Holder {
		return nil
	}
	who := "a heartbeat"
	if a.Holder > 0 {
		who = fmt.Sprintf("process %d", a.Holder)
	}
	if !f.Journalled {
		return []Finding{{
			Severity: Error, Code: "state-directory-gone",
			Seen: fmt.Sprintf("%s runs %s, and no run has left a trace in %s", who, a.Config.Dir, f.StateDir),
			Why:  "the state directory was removed, or it is another one's: pauses and what triggers remember get lost, and nothing reaches the run",
			Fix:  "restart heartbeat run, with the same HEARTBEAT_STATE_DIR as this command",
		}}
	}
	return []Finding{{
		Severity: Warning, Code: "scheduler-unreachable", Seen: fmt.Sprintf("%s runs %s and does not answer for this fleet", who, a.Config.Dir),
		Why: "pause, trigger and reload cannot reach it: it runs the fleet of another file, is one with --once, is just starting or ending, or its state directory was replaced",
		Fix: ours(a.ours, "status") + "; if this stays, restart heartbeat run",
	}}
}

// checkDenied: a queue that this user may not use.
func checkDenied(_ *Facts, a *Agent) []Finding {
	d := a.Denied
	if d == nil {
		return nil
	}
	fix := "chmod u+rwX " + settings.Quote(d.Path)
	if !d.Own {
		fix = `sudo chown -R "$(id -un)" ` + settings.Quote(filepath.Join(a.Config.Dir, ".heartbeat"))
	}
	return []Finding{{
		Severity: Error, Code: "permission-denied", Seen: fmt.Sprintf("this user may not use %s (%s)", d.Path, d.Mode),
		Why: "nothing can be queued or handed over there, and no session starts", Fix: fix,
	}}
}
