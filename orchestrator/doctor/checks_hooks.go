package doctor

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/hook/handwired"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/preflight"
	"heartbeat/ptyrun"
)

// command is a command line of ours for an agent, quoted where a shell needs it.
func (a *Agent) command(verb string) string { return ours(a.ours, verb) + " " + a.Config.Name }

func ours(begin, verb string) string { return cmp.Or(begin, "heartbeat") + " " + verb }

// checkApplied: what applying would change, or why it cannot.
func checkApplied(_ *Facts, a *Agent) []Finding {
	switch {
	case a.Unwired != nil && a.Denied != nil: // it is said there
		return nil
	case a.Unwired != nil:
		fix := "correct the file, then " + a.command("apply")
		if h, ok := a.Unwired.(interface{ Hint() string }); ok {
			fix = h.Hint()
		}
		return []Finding{{
			Severity: Error, Code: "cannot-wire", Seen: a.Unwired.Error(),
			Why: "hooks cannot be installed, so no session can get prompts", Fix: fix,
		}}
	case len(a.Drift) > 0:
		return []Finding{{
			Severity: Warning, Code: "not-applied", Seen: "applying would change " + list(a.Drift, 3),
			Why: "the directory is not as declared; `heartbeat run` applies it before each session",
			Fix: a.command("apply"), mend: applying,
		}}
	}
	return nil
}

// list joins at most n texts.
func list(texts []string, n int) string {
	if len(texts) <= n {
		return strings.Join(texts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(texts[:n], ", "), len(texts)-n)
}

// checkSettings: hook events that may make the client open a dialog at its start,
// and rules that do nothing.
func checkSettings(_ *Facts, a *Agent) []Finding {
	const why = "the client opens a dialog at its start, and nobody answers it"
	var found []Finding
	for _, s := range a.Settings {
		fix := "correct " + s.Path
		if len(s.Unknown) > 0 {
			found = append(found, unknownEvents(a, s, why, fix))
		}
		if len(s.Idle) > 0 {
			found = append(found, Finding{
				Severity: Warning, Code: "rules-never-match", Seen: s.Path + ": " + list(s.Idle, 3),
				Why: "what they should allow is refused, and what they should refuse is not", Fix: fix,
			})
		}
	}
	return found
}

func unknownEvents(a *Agent, s Settings, why, fix string) Finding {
	f := Finding{
		Severity: Error, Code: "unknown-hook-event", Seen: fmt.Sprintf("%s: hooks for %s", s.Path, list(s.Unknown, 3)), Why: why, Fix: fix,
	}
	if client.Newer(a.Client.Version, claude.Versions.Measured) {
		f.Severity, f.Why = Warning, "if this client does not know it either, it opens a dialog at its start, and nobody answers it"
	}
	return f
}

// checkForeign: what files of the directory tell the client beside us.
func checkForeign(_ *Facts, a *Agent) []Finding {
	var found []Finding
	said := map[string][]string{}
	for _, f := range a.Foreign {
		if len(said[f.File]) == 0 {
			found = append(found, Finding{
				Severity: Warning, Code: "foreign-settings", Seen: f.File,
				Why: "it takes effect beside the fleet's file: whoever can write it decides what sessions may do, what they run and where they send their requests",
				Fix: "check that you want it, or set `settings: only` for the agent",
			})
		}
		said[f.File] = append(said[f.File], strings.TrimPrefix(f.String(), f.File))
	}
	for i, f := range found {
		found[i].Seen += list(said[f.Seen], 8)
	}
	return found
}

// checkTimed: prompts that come from the directory, not from the queue.
func checkTimed(_ *Facts, a *Agent) []Finding {
	if len(a.Timed) == 0 {
		return nil
	}
	file, says := a.Timed[0].File, []string{}
	for _, f := range a.Timed {
		says = append(says, strings.TrimPrefix(f.String(), file))
	}
	found := Finding{
		Severity: Warning, Code: "scheduled-prompts", Seen: file + list(says, 8),
		Why: "the client gives them to a session as if you had typed them; sessions of heartbeat are started without its timetable, a claude that you start there is not",
		Fix: "read it, and remove what you do not want: " + file,
	}
	if a.Timetable {
		found.Why = "permissions.allow names a tool of the client's timetable: it gives them to the agent's sessions as if you had typed them, beside the queue"
		found.Fix = "remove that rule, or what you do not want in " + file
	}
	return []Finding{found}
}

// checkReach: what decides what runs, and lies in the agent's directory.
func checkReach(_ *Facts, a *Agent) []Finding {
	if len(a.Config.Guarded) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Info, Code: "within-reach", Seen: "trust-dir: files that decide what runs are in its directory: " + list(a.Config.Guarded, 5),
		Why: "the rules that we install keep the client's own tools from them; a shell that the agent may use can rewrite them",
		Fix: "move them out of " + a.Config.Dir,
	}}
}

// checkObstacles: what keeps sessions from working, for certain. `heartbeat run`
// holds the agent for it.
func checkObstacles(_ *Facts, a *Agent) []Finding {
	var found []Finding
	for _, o := range a.Obstacles {
		found = append(found, Finding{Severity: Error, Code: string(o.Code), Seen: o.Seen, Why: o.Why, Fix: o.Fix})
	}
	return found
}

// checkCap: a limit of consecutive hand-overs.
func checkCap(_ *Facts, a *Agent) []Finding {
	set, capVariable := false, claude.Variables.Cap
	for _, s := range a.Settings {
		_, ok := s.Report.Env[capVariable]
		set = set || ok
	}
	if slices.ContainsFunc(a.Obstacles, func(o preflight.Obstacle) bool { return o.Code == preflight.BlockCap }) {
		return nil // it is said
	}
	value, inEnv := a.Env[capVariable]
	switch uncapped := inEnv && !preflight.Capped(value); {
	case a.wired() != nil && !set && !uncapped:
		return []Finding{{
			Severity: Warning, Code: "block-cap", Seen: capVariable + " is not 0 in the environment",
			Why: "sessions that `heartbeat run` does not start, fed by the hand-wired hook, end their turn after 8 prompts in a row",
			Fix: "export " + capVariable + "=0 where those sessions are started",
		}}
	case inEnv && !uncapped:
		return []Finding{{
			Severity: Info, Code: "block-cap", Seen: fmt.Sprintf("the environment sets %s=%q", capVariable, value),
			Why: "`heartbeat run` sets it to 0 for its sessions and uses max-continuations instead",
			Fix: "unset " + capVariable,
		}}
	}
	return nil
}

// wired returns the first hand-wired Stop hook, or nil.
func (a *Agent) wired() *Hook {
	for i := range a.Hooks {
		if a.Hooks[i].Wired != nil {
			return &a.Hooks[i]
		}
	}
	return nil
}

// checkHooks: the programs that hooks name.
func checkHooks(f *Facts, a *Agent) []Finding {
	var found []Finding
	var seen []string
	for _, h := range a.Hooks {
		if !h.Ours && h.Wired == nil || slices.Contains(seen, h.Program.Path) {
			continue
		}
		seen = append(seen, h.Program.Path)
		if problem := checkProgram(f, a, h); problem.Code != "" {
			found = append(found, problem)
		}
	}
	return found
}

func checkProgram(f *Facts, a *Agent, h Hook) Finding {
	p, fix, mend := h.Program, a.command("apply"), applying
	if !h.Ours {
		fix, mend = "correct the hook in "+h.File, nothing
	}
	switch {
	case p.Missing:
		return Finding{
			Severity: Error, Code: "hook-missing", Seen: fmt.Sprintf("%s names %q, which is not there", h.File, p.Path),
			Why: "the hook fails, the turn ends, and the session does nothing more", Fix: fix, mend: mend,
		}
	case !p.Executable:
		if p.Mendable { // else the path may be an agent's word
			fix, mend = "chmod +x "+settings.Quote(p.Path), chmod
		}
		return Finding{
			Severity: Error, Code: "hook-not-executable", Seen: p.Path + " is not executable",
			Why: "the hook fails, the turn ends, and the session does nothing more", Fix: fix, mend: mend,
		}
	case p.Module == "" && h.Ours, p.Module != "" && f.Self.Module != "" && p.Module != f.Self.Module && p.Module != "?":
		return Finding{
			Severity: Warning, Code: "hook-version", Seen: p.Path + " is another program than this one",
			Why: "hooks and scheduler have to agree on what is on disk", Fix: fix, mend: mend,
		}
	case p.Revision != f.Self.Revision && p.Revision != "" && f.Self.Revision != "":
		return Finding{
			Severity: Warning, Code: "hook-version",
			Seen: fmt.Sprintf("%s was built from %.12s, this program from %.12s", p.Path, p.Revision, f.Self.Revision),
			Why:  "hooks and scheduler have to agree on what is on disk", Fix: "install heartbeat and heartbeat-stop of one version",
		}
	}
	return Finding{}
}

// defaultTimeout is the client's time-out for a hook that gives none.
const defaultTimeout = 600 * time.Second

// lasts is how long the client lets a hook run.
func (h Hook) lasts() time.Duration {
	if h.Timeout == 0 {
		return defaultTimeout
	}
	return time.Duration(min(h.Timeout, math.MaxInt64/float64(2*time.Second)) * float64(time.Second))
}

// checkTimeouts: Stop hooks that are ended while they wait.
func checkTimeouts(_ *Facts, a *Agent) []Finding {
	var found []Finding
	for _, h := range a.Hooks {
		var needs time.Duration
		fix, mend := a.command("apply"), applying
		switch {
		case h.Event == "Stop" && h.Ours:
			needs = a.Config.Policy().StopTimeout()
		case h.Wired != nil && h.Wired.Persist:
			needs, mend = handwired.Timeout(h.Wired.Idle), nothing
			fix = fmt.Sprintf("set \"timeout\": %d in %s", int(needs.Seconds()), h.File)
		}
		if h.lasts() >= needs {
			continue
		}
		found = append(found, Finding{
			Severity: Error, Code: "hook-timeout",
			Seen: fmt.Sprintf("%s: the Stop hook may run for %s, and needs %s", h.File, h.lasts(), needs),
			Why:  "the client ends it while it waits for work or for a person who types: the session does nothing more, and prompts that are queued then are not handed over",
			Fix:  fix, mend: mend,
		})
	}
	return found
}

// checkHandWired: heartbeat-rs's hook in a directory that is declared.
func checkHandWired(_ *Facts, a *Agent) []Finding {
	h := a.wired()
	if h == nil {
		return nil
	}
	found := []Finding{{
		Severity: Warning, Code: "hand-wired-hook", Seen: h.File + ": " + h.Command,
		Why: "it refuses to work while a session of `heartbeat run` lives, and costs a start at each Stop",
		Fix: "remove this hook from " + h.File,
	}}
	if !settings.Aborts(h.Command) {
		found = append(found, Finding{
			Severity: Warning, Code: "hand-wired-abort", Seen: h.File + ": " + h.Command,
			Why: "if it cannot even start (no process or thread left), it exits with 2, which the client takes for a prompt: a paid turn, again and again",
			Fix: "write GOTRACEBACK=crash exec before it in " + h.File,
		})
	}
	switch {
	case h.Wired.BadFlags:
		found = append(found, Finding{
			Severity: Error, Code: "hand-wired-flags", Seen: h.File + ": " + h.Command,
			Why: "its flags are wrong: it fails at each Stop", Fix: "heartbeat-stop --help",
		})
	case h.Wired.StdinClosed:
		found = append(found, Finding{
			Severity: Warning, Code: "hand-wired-payload", Seen: h.File + ": the payload does not reach " + h.Program.Path,
			Why: "without a session_id the next call acknowledges the last prompt that was handed over, whether it arrived or not",
			Fix: "let the hook read its standard input",
		})
	default:
		found = append(found, Finding{
			Severity: Info, Code: "hand-wired-payload", Seen: h.File + ": " + h.Command,
			Why: "if its payload has no session_id (a wrapper that does not pass it on), the next call acknowledges the last prompt that was handed over, whether it arrived or not",
			Fix: "remove this hook from " + h.File,
		})
	}
	return found
}

// checkOtherStops: other Stop hooks, which may block.
func checkOtherStops(_ *Facts, a *Agent) []Finding {
	const why = "what it says when it blocks is added to our prompts, each turn waits for it, and only the transcript proves that a prompt arrived"
	var found []Finding
	for _, h := range a.Others.Hooks {
		if wired(h.Command) != nil {
			continue
		}
		if h.Command != "" && slices.Contains(a.Gates, handover.ShownCommand(h.Command)) {
			found = append(found, Finding{
				Severity: Warning, Code: "stop-hook-gates", Seen: h.File + ": " + h.Command,
				Why: "it made the client continue at the end of a turn: a session takes one prompt and lets the hook finish, and the next prompt starts a session in the same conversation; a session that a hook never lets end becomes a runaway",
				Fix: "nothing, if you want that; otherwise remove it, or set `foreign-stop-hooks: free` for the agent if it no longer does this",
			})
			continue
		}
		found = append(found, Finding{
			Severity: Warning, Code: "other-stop-hook", Seen: h.File + ": " + cmp.Or(h.Command, "a hook of type "+h.Type),
			Why: why, Fix: "remove it from " + h.File + " if the agent can do without it",
		})
	}
	if a.Others.Unknown != "" {
		found = append(found, Finding{
			Severity: Info, Code: "other-stop-hook", Seen: "there may be another Stop hook: " + a.Others.Unknown, Why: why,
			Fix: "nothing, if there is none",
		})
	}
	return found
}

// checkSessionEnv: variables in settings, which override those of the session.
func checkSessionEnv(_ *Facts, a *Agent) []Finding {
	var found []Finding
	for _, s := range a.Settings {
		for name := range s.Report.Env {
			switch {
			case slices.Contains(hook.Variables(), name): // an obstacle
			case !strings.HasPrefix(name, "HEARTBEAT_") && !ptyrun.MarksSession(name) && !claude.Variables.Drops(name):
			default:
				found = append(found, Finding{
					Severity: Warning, Code: "settings-env", Seen: fmt.Sprintf("%s sets %s", s.Path, name),
					Why: "it overrides what the session was given",
					Fix: fmt.Sprintf("remove %s from env in %s", name, s.Path),
				})
			}
		}
	}
	slices.SortFunc(found, func(x, y Finding) int { return strings.Compare(x.Seen, y.Seen) })
	return found
}
