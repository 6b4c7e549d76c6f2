package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/store"
	"heartbeat/ptyrun"
)

// checkDirectory: where the agent lives.
func checkDirectory(_ *Facts, a *Agent) []Finding {
	if a.IsHome {
		return []Finding{{
			Severity: Error, Code: "dir-is-home", Seen: a.Config.Dir + " is the home directory",
			Why: "its project settings are the user's settings: our hooks would run in every session, and the agent may write everything you have",
			Fix: "give the agent a directory of its own",
		}}
	}
	return nil
}

// checkConfiguration: a file that cannot be used.
func checkConfiguration(f *Facts) []Finding {
	if f.Broken == nil {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "broken-configuration", Seen: f.Broken.Error(),
		Why: "a running scheduler continues with the last good file; no scheduler can be started or reloaded",
		Fix: ours(f.ours, "validate"),
	}}
}

// checkState: a state directory that is not the fleet's to use.
func checkState(f *Facts) []Finding {
	const why = "nothing can be applied, run or paused without it"
	if d := f.StateDenied; d != nil {
		fix := "chmod u+rwX " + settings.Quote(d.Path)
		if !d.Own {
			fix = `sudo chown -R "$(id -un)" ` + settings.Quote(f.StateDir)
		}
		return []Finding{{Severity: Error, Code: "state-directory", Seen: fmt.Sprintf("this user may not use %s (%s)", d.Path, d.Mode), Why: why, Fix: fix}}
	}
	if f.StateProblem == nil {
		return nil
	}
	if taken, ok := errors.AsType[*owner.TakenError](f.StateProblem); ok {
		return []Finding{{
			Severity: Error, Code: "name-taken", Seen: taken.Error(),
			Why: "heartbeat does nothing for this fleet, because it would be done to the other one; doctor checks the rest once that is settled",
			Fix: taken.Hint(),
		}}
	}
	return []Finding{{
		Severity: Error, Code: "state-directory", Seen: f.StateProblem.Error(),
		Why: why,
		Fix: "make it a folder of this user, or set HEARTBEAT_STATE_DIR to another one",
	}}
}

// checkLoginEnds: logins that a person has to renew soon.
func checkLoginEnds(f *Facts) (found []Finding) {
	for _, l := range f.Logins {
		found = append(found, Finding{
			Severity: Warning, Code: "login-ends", Seen: l.Text(),
			Why: "then each agent that uses it is held until a person has logged in again", Fix: l.Fix,
		})
	}
	return found
}

// checkOldQueues: prompts that nobody will work on.
func checkOldQueues(f *Facts) (found []Finding) {
	for _, q := range f.OldQueues {
		found = append(found, Finding{
			Severity: Warning, Code: "old-queue", Seen: q.Text(),
			Why: "nobody works on them: no agent of the file has this queue", Fix: q.Do(),
		})
	}
	return found
}

// checkMoved: a fleet that has forgotten what it knew.
func checkMoved(f *Facts) []Finding {
	var found []Finding
	for _, l := range f.Left {
		found = append(found, Finding{
			Severity: Warning, Code: "state-left-behind", Seen: l.String(),
			Why: "agents that were paused run, and triggers fire again for what they had seen",
			Fix: l.Advice(),
		})
	}
	return found
}

// checkElsewhere: a directory that another store has, or another agent.
func checkElsewhere(f *Facts) (found []Finding) {
	for _, e := range f.Elsewhere {
		if e.Copied != "" {
			found = append(found, Finding{
				Severity: Warning, Code: "copied-directory", Seen: e.String(),
				Why: "both agents work on what waited when it was copied", Fix: e.Advice(),
			})
			continue
		}
		found = append(found, Finding{
			Severity: Warning, Code: "other-store", Seen: e.String(),
			Why: "what one store knows of pauses, budgets and fires does not count in the other", Fix: e.Advice(),
		})
	}
	return found
}

// How much room is too little: an entry, its reply and logs are a few MiB.
const (
	littleSpace  = 1 << 30
	noSpace      = 64 << 20
	littleInodes = 10_000
	noInodes     = 200
)

// The codes of a file system without room, and of one that is not on this machine.
const (
	diskSpace   = "disk-space"
	diskInodes  = "disk-inodes"
	diskNetwork = "network-file-system"
)

func checkVolume(_ *Facts, a *Agent) []Finding { return ofVolume(a.Volume) }

// checkStateVolume: where no store can be kept, no run begins, whatever else is there.
func checkStateVolume(f *Facts) (found []Finding) {
	if refused, is := errors.AsType[*store.NetworkError](store.Suits(f.State.Path, f.State.Volume)); is {
		found = append(found, Finding{Severity: Error, Code: diskNetwork, Seen: refused.Error(), Why: "heartbeat run does not begin there", Fix: refused.Hint()})
	}
	if len(f.Agents) > 0 && f.Agents[0].Volume.sameAs(f.State) {
		return found // the rest is said of the agents
	}
	rest := f.State
	rest.Network, rest.Fuse = "", false
	return append(found, ofVolume(rest)...)
}

// sameAs is a guess that keeps one full disk from being reported twice.
func (v Volume) sameAs(o Volume) bool {
	return v.Known && v.Total == o.Total && v.Free == o.Free && v.Unwritable == o.Unwritable
}

// ofVolume: file systems that cannot hold a queue.
func ofVolume(v Volume) []Finding {
	if !v.Known {
		return nil
	}
	var found []Finding
	add := func(s Severity, code, seen, why, fix string) {
		found = append(found, Finding{Severity: s, Code: code, Seen: v.Path + seen, Why: why, Fix: fix})
	}
	const locks = "locks and appends of different machines are not kept apart there: entries may be lost or come twice"
	switch {
	case v.Network != "":
		add(Error, diskNetwork, " lies on a network file system ("+v.Network+")", locks, "move it to a local disk")
	case v.Fuse:
		add(Warning, diskNetwork, " lies on a FUSE file system, which may be remote", locks, "move it to a local disk")
	}
	switch {
	case v.ReadOnly:
		add(Error, "not-writable", " is mounted read-only", "nothing can be queued", "mount it read-write")
		return found
	case v.Unwritable != "":
		add(Error, "not-writable", ": "+v.Unwritable, "nothing can be queued", "sudo chown -R $(id -un) "+settings.Quote(v.Path)+", or chmod -R u+rwX it if it is yours already")
	}
	const full = "when the disk is full nothing is accepted or acknowledged, and sessions stand still"
	switch {
	case v.Free < noSpace:
		add(Error, diskSpace, fmt.Sprintf(": %d MiB free", v.Free>>20), full, "df -h "+v.Path)
	case v.Free < littleSpace:
		add(Warning, diskSpace, fmt.Sprintf(": %d MiB free", v.Free>>20), full, "df -h "+v.Path)
	}
	switch {
	case v.Files == 0:
	case v.FreeFiles < noInodes:
		add(Error, diskInodes, fmt.Sprintf(": room for %d files", v.FreeFiles), full, "df -i "+v.Path)
	case v.FreeFiles < littleInodes && v.FreeFiles < v.Files/20:
		add(Warning, diskInodes, fmt.Sprintf(": room for %d files", v.FreeFiles), full, "df -i "+v.Path)
	}
	return found
}

// firstYear is before any clock that is right.
var firstYear = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// checkClock: a clock that is wrong for certain.
func checkClock(f *Facts) []Finding {
	than := firstYear
	if f.Self.Built.After(than) {
		than = f.Self.Built
	}
	if f.Now.After(than.Add(-24 * time.Hour)) {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "clock", Seen: "the clock says " + f.Now.Format(time.RFC3339) + ", this program is newer",
		Why: "schedules fire at wrong times, and requests to the model fail by their certificates", Fix: "timedatectl set-ntp true",
	}}
}

// checkZone: where local time comes from.
func checkZone(f *Facts) []Finding {
	if f.BadTZ != "" {
		return []Finding{{
			Severity: Warning, Code: "time-zone", Seen: fmt.Sprintf("TZ=%q: %s", f.TZ, f.BadTZ),
			Why: "schedules without a timezone silently follow UTC", Fix: "set TZ to a name like Europe/Rome, or timezone: in the file",
		}}
	}
	if f.LocalZone {
		return nil
	}
	for _, a := range f.Agents {
		for _, t := range a.Config.Triggers {
			if t.Cron != nil && t.Cron.Schedule.Location() == time.Local {
				return []Finding{{
					Severity: Warning, Code: "time-zone", Seen: "there is no /etc/localtime, and TZ is not set",
					Why: "schedules without a timezone follow UTC", Fix: "set timezone: in the file, or TZ",
				}}
			}
		}
	}
	return nil
}

// checkInotify: the limits of notifications about files.
func checkInotify(f *Facts) []Finding {
	in := f.Inotify
	if !in.Known {
		return nil
	}
	const why = "beyond the limit, files are only checked from time to time: prompts arrive later"
	var found []Finding
	for _, l := range []struct {
		name            string
		need, used, max int
	}{
		{"max_user_instances", in.NeedInstances, in.UsedInstances, in.MaxInstances},
		{"max_user_watches", in.NeedWatches, in.UsedWatches, in.MaxWatches},
	} {
		if l.need == 0 || l.used+l.need <= l.max {
			continue
		}
		found = append(found, Finding{
			Severity: Warning, Code: "inotify-limit",
			Seen: fmt.Sprintf("fs.inotify.%s is %d; %d are in use and the fleet needs %d", l.name, l.max, l.used, l.need),
			Why:  why, Fix: fmt.Sprintf("sysctl fs.inotify.%s=%d", l.name, 2*(l.used+l.need)),
		})
	}
	return found
}

// checkLimits: resources that nothing keeps.
func checkLimits(f *Facts) []Finding {
	var found []Finding
	by := "a run that is started like this"
	if f.Scheduler != nil {
		by = "the run"
	}
	for _, l := range f.Limits {
		add := func(s Severity, agents []string, why string) {
			if agents != nil {
				found = append(found, Finding{
					Severity: s, Code: "no-limits", Seen: l.Why.Error() + " (" + list(agents, 4) + ")", Why: by + " " + why, Fix: l.Why.Hint(),
				})
			}
		}
		add(Error, l.Required, "starts no session of these agents, as required: true says")
		add(Warning, l.Agents, "starts their sessions without the limits that resources: declares")
	}
	return found
}

// checkLeftovers: sessions whose shim died.
func checkLeftovers(f *Facts) []Finding {
	var found []Finding
	for _, l := range f.Leftovers {
		seen := fmt.Sprintf("session %s of agent %s lost its supervisor", l.Session, l.Agent)
		if len(l.Processes) > 0 {
			seen += fmt.Sprintf("; its processes are still there: %v", l.Processes)
		}
		found = append(found, Finding{
			Severity: Warning, Code: "leftover-session", Seen: seen,
			Why: "its processes may still write files and cost turns; `heartbeat run` ends it when it starts",
			Fix: ours(f.ours, "doctor --fix"), mend: ending,
		})
	}
	return found
}

// checkAttempts: what was running each time when the scheduler was killed.
func checkAttempts(f *Facts) []Finding {
	var found []Finding
	for _, n := range f.Attempts {
		last := "the last time at " + n.Last.Format(time.RFC3339)
		if f.Scheduler != nil && n.Last.After(f.Scheduler.Started) {
			n.Times-- // the last one is this run's, which goes on
			last = "and runs again now"
		}
		if n.Times < 1 || n.Times < 2 && f.Scheduler != nil {
			continue
		}
		finding := Finding{
			Severity: Warning, Code: "ends-scheduler", Seen: fmt.Sprintf("%s was running when the scheduler was killed, %d times in a row, %s", n.Work, n.Times, last),
			Why: "it may be what kills the scheduler: it waits longer before each try; the rest of the fleet goes on",
			Fix: (&attempts.HeldError{Note: n}).Hint(),
		}
		if _, ever := n.Next(f.Now); !ever {
			finding.Severity, finding.Why = Error, "it is not run any more: it may be what kills the scheduler"
		}
		found = append(found, finding)
	}
	return found
}

// checkNested: doctor, and maybe run, inside of a session.
func checkNested(f *Facts) []Finding {
	var found []Finding
	if len(f.Markers) > 0 {
		found = append(found, Finding{
			Severity: Info, Code: "nested-session", Seen: "this runs inside of a session: " + list(f.Markers, 4),
			Why: "sessions that `heartbeat run` starts do not get these variables; a client that you start by hand runs as a nested session",
			Fix: "run heartbeat outside of Claude Code",
		})
	}
	for _, a := range f.Agents {
		found = append(found, nested(a.Config)...)
	}
	return found
}

// nested: an agent whose sessions would be another session's.
func nested(a *config.Agent) (found []Finding) {
	for _, name := range slices.Sorted(maps.Keys(a.Env)) {
		if ptyrun.MarksSession(name) {
			found = append(found, Finding{
				Severity: Warning, Code: "nested-session", Agent: a.Name, Seen: "env: sets " + name,
				Why: "the client then treats the agent's sessions as nested sessions", Fix: "remove it from env: or env-file:",
			})
		}
	}
	return found
}

// OfFile returns what the fleet's file alone decides of all this, and what loading it does
// not say.
func OfFile(agents []*config.Agent) (found []Finding) {
	for _, a := range agents {
		found = append(found, nested(a)...)
		for _, o := range preflight.ClientOf(a, nil).OfFile() {
			found = append(found, Finding{Severity: Error, Code: string(o.Code), Agent: a.Name, Seen: o.Seen, Why: o.Why, Fix: o.Fix})
		}
	}
	return found
}

// checkFile: what loading the file says.
func checkFile(f *Facts) (found []Finding) {
	for _, w := range f.FileWarnings {
		_, agent, _ := strings.Cut(w.Key, "agents.")
		agent, _, _ = strings.Cut(agent, ".")
		if agent != "" && !slices.ContainsFunc(f.Agents, func(a *Agent) bool { return a.Config.Name == agent }) {
			continue
		}
		found = append(found, Finding{
			Severity: Warning, Code: "file-warning", Agent: agent, Seen: fmt.Sprintf("%s:%d:%d: %s: %s", w.File, w.Line, w.Column, w.Key, w.Message),
			Why: "it is allowed, and most likely not meant", Fix: cmp.Or(w.Hint, "correct the file"),
		})
	}
	return found
}

// checkTerminals: sessions without a terminal do not start.
func checkTerminals(f *Facts) []Finding {
	const why = "each session runs in a pseudo-terminal of its own: none can start"
	t := f.Terminals
	switch fix := "mount devpts on /dev/pts; in a container its runtime does that unless /dev is replaced"; {
	case t.None != nil && t.Max > 0 && t.Used >= t.Max:
		return []Finding{{
			Severity: Error, Code: "no-terminal", Seen: fmt.Sprintf("%v; %d of %d are in use", t.None, t.Used, t.Max), Why: why,
			Fix: fmt.Sprintf("end what uses them (ls -l /dev/pts), or sysctl kernel.pty.max=%d", 2*t.Max),
		}}
	case t.None != nil:
		return []Finding{{Severity: Error, Code: "no-terminal", Seen: t.None.Error(), Why: why, Fix: fix}}
	case t.Max > 0 && f.Scheduler == nil && t.Used+t.Need > t.Max:
		return []Finding{{
			Severity: Warning, Code: "no-terminal", Seen: fmt.Sprintf("%d of %d pseudo-terminals are in use, and %d sessions may live at once", t.Used, t.Max, t.Need),
			Why: "beyond the limit no session starts", Fix: fmt.Sprintf("sysctl kernel.pty.max=%d, or a smaller max-sessions", 2*(t.Used+t.Need)),
		}}
	}
	return nil
}

func checkStateTemps(f *Facts) []Finding {
	if len(f.StateTemps) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Info, Code: "stale-files", Seen: "temporary files that nobody writes any more: " + list(f.StateTemps, 3),
		Why: "a process was killed while it wrote; they only take space", Fix: ours(f.ours, "doctor --fix"), mend: sweeping,
	}}
}
