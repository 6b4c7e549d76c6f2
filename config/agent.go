package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"gopkg.in/yaml.v3"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/inbox"
)

// Defaults of an agent.
const (
	DefaultIdleInterval      = 30 * time.Minute
	DefaultMaxAttempts       = 5
	DefaultMaxContinuations  = 20
	DefaultMaxEntry          = 1 << 20
	DefaultTimeout           = time.Hour
	DefaultStartTimeout      = 30 * time.Second
	DefaultIdleGrace         = 10 * time.Second
	DefaultBackgroundTimeout = 10 * time.Minute
	DefaultEndGrace          = 10 * time.Second
	DefaultStuckAfter        = 30 * time.Minute
	DefaultStallTimeout      = 15 * time.Minute
	DefaultMaxRestarts       = 5 // or max-attempts, when that is more
	DefaultRestartWindow     = 30 * time.Minute
)

// mostIdle bounds idle-interval: the client was measured with hooks that wait this
// long, not with hooks that wait for years.
const mostIdle = 30 * day

// mostEntry bounds max-entry: with a prompt of 10 MB the client's next request was
// a compaction of the conversation.
const mostEntry = 10 << 20

// mostKickoff is below the kernel's limit for one argument (128 KiB).
const mostKickoff = 100_000

// agentElsewhere says where an agent's key belongs, or one of a part of it, that was
// written at the top level.
func agentElsewhere(key string) string {
	if slices.Contains(agentKeys, key) {
		return "it belongs in an agent, or in defaults:"
	}
	if below, is := strings.CutPrefix(triggerElsewhere(key), "it belongs "); is {
		return "it belongs in an agent, " + below
	}
	return ""
}

// triggerElsewhere says where a trigger's key belongs that was written in an agent.
func triggerElsewhere(key string) string {
	switch {
	case slices.Contains(triggerKeys, key) && !slices.Contains(untilKeys, key):
		return "it belongs below trigger:"
	case key == "allow" || key == "deny":
		return "it belongs below permissions:"
	case slices.Contains(untilKeys, key):
		return "it belongs below until:"
	}
	return ""
}

// declared is an agent with the places in the file that are needed for checks
// across agents.
type declared struct {
	*Agent
	name, dir, envFile place
	index              int    // in the order of the files
	place              string // its directory, for comparing, with a slash behind it
}

var nameForm = pattern(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// mostName keeps names short enough to be part of a file name.
const mostName = 100

func (l *loader) checkName(p place, text string) {
	if !nameForm().MatchString(text) || len(text) > mostName {
		l.problem(p, fmt.Sprintf("%q is not a name", cut(text)), "use letters and digits, and . _ - after the first character; at most 100")
	}
}

func (l *loader) name(p place) string {
	text, ok := l.text(p)
	if ok {
		l.checkName(p, text)
	}
	return text
}

func (l *loader) agent(f *Fleet, name string, p place, defaults table) {
	l.checkName(p.named(), name)
	a := &Agent{Name: name, File: p.from.path, Line: p.key.Line}
	f.Agents = append(f.Agents, a)
	if first := f.byName[name]; first != nil { // in another file: one file has it once
		l.problem(p.named(), fmt.Sprintf("is declared already, at %s:%d", first.File, first.Line), "give it another name")
		return
	}
	f.byName[name] = a
	own, ok := l.table(p, agentKeys, triggerElsewhere)
	if !ok {
		return
	}
	t := l.merge(own, l.grouping(own, defaults))
	l.fields(a, t)
	d := declared{Agent: a, name: p.named(), dir: t["dir"], envFile: t["env-file"], index: len(l.agents)}
	if d.dir.node == nil {
		l.absence(p.of(p.key, p.join("dir")), "write dir: DIRECTORY")
		return
	}
	if a.Dir == "" || l.tooWide(d.dir, a) {
		return // noted
	}
	a.Home = filepath.Join(a.Dir, ".heartbeat")
	a.Inbox = l.inbox(a, t)
	if !l.disk.absent[a] {
		if e, ok := errors.AsType[*ExposedError](a.Exposed()); ok {
			l.warn(d.dir, "the agent does not run: "+e.Error(), e.Hint())
		}
	}
	l.agents = append(l.agents, d)
}

// merge returns an agent's fields with the defaults below them: field by field, and
// key by key inside permissions and env. An own trigger or triggers replaces both.
func (l *loader) merge(own, defaults table) table {
	t := own.over(defaults)
	for _, pair := range [][2]string{{"trigger", "triggers"}, {"triggers", "trigger"}} {
		_, mine := own[pair[0]]
		_, other := own[pair[1]]
		if mine && !other {
			delete(t, pair[1])
		}
	}
	for _, key := range []string{"permissions", "env", "resources", "budget", "tool-timeouts", "limits", "approvals"} {
		if mine, ok := own[key]; ok {
			t[key] = mine.laidOver(defaults[key])
		}
	}
	return t
}

// fields reads everything that concerns this agent only.
func (l *loader) fields(a *Agent, t table) {
	programs, webhooks, watches := len(l.claims.programs), len(l.claims.webhooks), len(l.claims.watched)
	defer func() {
		for i := range l.claims.programs[programs:] {
			l.claims.programs[programs+i].agent = a
		}
		for i := range l.claims.webhooks[webhooks:] {
			l.claims.webhooks[webhooks+i].agent = a
		}
		for i := range l.claims.watched[watches:] {
			l.claims.watched[watches+i].agent = a
		}
	}()
	if p, ok := t["dir"]; ok {
		a.Dir, l.disk.absent[a] = l.directory(p)
	}
	a.Command = []string{"claude"}
	if p, ok := t["command"]; ok {
		a.Command = l.command(p, "[claude]")
		a.Program = l.runs(p, a.Command, true)
	}
	a.TrustDir = l.boolean(t, "trust-dir")
	a.AutoUpdate = l.boolean(t, "auto-update")
	a.Self = len(a.Command) > 0 && a.Command[0] == "heartbeat"
	a.Settings = enum(l, t, "settings", SettingsProject, []SettingsTarget{SettingsProject, SettingsLocal, SettingsFlag, SettingsOnly})
	a.Permissions = l.permissions(t)
	a.Env = l.env(t)
	a.EnvFile = l.envFile(t)
	a.EnvAllow, a.EnvDeny = l.globs(t, "env-allow"), l.globs(t, "env-deny")
	a.KickoffText = l.kickoff(t)
	l.group(a, t)
	a.Resources = l.resources(t)
	a.Budget = l.budget(t, true)
	a.Approvals = l.approvals(t)
	l.policies(a, t)
	l.limits(a, t)
	l.contrary(a, t)
	l.told(a, t)
	a.Until = l.until(t)
	a.Triggers = l.triggers(t)
	if p, ok := t["timezone"]; ok {
		a.Zone = l.cached.zones[follow(p.node).Value] // the triggers have looked it up
	}
}

func (l *loader) policies(a *Agent, t table) {
	a.Mode = enum(l, t, "mode", hook.Drain, []hook.Mode{hook.Drain, hook.Persist})
	a.OnIdle = enum(l, t, "on-idle", hook.IdleRelease, []hook.OnIdle{hook.IdleTick, hook.IdleRelease})
	a.Context = enum(l, t, "context", hook.ContextSession, []hook.Context{hook.ContextEntry, hook.ContextSession, hook.ContextResume})
	a.MaxContext = l.percent(t, "max-context")
	a.Background = enum(l, t, "background", hook.BackgroundWait, []hook.BackgroundRule{hook.BackgroundWait, hook.BackgroundIgnore})
	a.Foreign = enum(l, t, "foreign-stop-hooks", hook.ForeignLearn, []hook.ForeignRule{hook.ForeignLearn, hook.ForeignGate, hook.ForeignFree})
	a.ClientDrift = enum(l, t, "client-drift", DriftWarns, []DriftRule{DriftWarns, DriftHolds})
	a.OnLimit = enum(l, t, "on-limit", LimitResumes, []LimitRule{LimitResumes, LimitHolds})
	a.Limits = l.share(t)
	a.OnOrphan = enum(l, t, "on-orphan", inbox.DeadLetter, []inbox.OrphanPolicy{inbox.Retry, inbox.DeadLetter, inbox.Drop})
}

func (l *loader) limits(a *Agent, t table) {
	a.MaxAttempts = l.number(t, "max-attempts", DefaultMaxAttempts, 1)
	a.MaxContinuations = l.number(t, "max-continuations", DefaultMaxContinuations, 1)
	a.MaxRestarts = l.number(t, "max-restarts", max(DefaultMaxRestarts, a.MaxAttempts), 0)
	l.heldFirst(a, t)
	a.MaxEntry = l.size(t, "max-entry", DefaultMaxEntry, 1, mostEntry)
	if _, ok := t["max-queue"]; ok {
		a.MaxQueue = l.number(t, "max-queue", 0, 1)
	}
	a.IdleInterval = l.duration(t, "idle-interval", DefaultIdleInterval, bounds{most: mostIdle})
	a.Timeout = l.duration(t, "timeout", DefaultTimeout, bounds{none: true})
	a.SessionTimeout = l.duration(t, "session-timeout", 0, bounds{none: true})
	a.StartTimeout = l.duration(t, "start-timeout", DefaultStartTimeout, bounds{})
	a.IdleGrace = l.duration(t, "idle-grace", DefaultIdleGrace, bounds{})
	a.BackgroundTimeout = l.duration(t, "background-timeout", DefaultBackgroundTimeout, bounds{})
	a.StallTimeout = l.duration(t, "stall-timeout", DefaultStallTimeout, bounds{none: true})
	a.ToolTimeout = l.duration(t, "tool-timeout", 0, bounds{none: true})
	a.ToolTimeouts = l.toolTimeouts(t)
	a.StuckAfter = l.duration(t, "stuck-after", DefaultStuckAfter, bounds{none: true})
	a.Grace = l.duration(t, "end-grace", DefaultEndGrace, bounds{})
	a.RestartWindow = l.duration(t, "restart-window", DefaultRestartWindow, bounds{})
}

// toolTimeouts reads how long tools may run, by their names.
func (l *loader) toolTimeouts(t table) map[string]time.Duration {
	where, ok := t["tool-timeouts"]
	if !ok {
		return nil
	}
	limits := map[string]time.Duration{}
	for name, p := range l.entries(where) {
		limits[name] = l.duration(table{name: p}, name, 0, bounds{none: true})
	}
	return limits
}

func (l *loader) permissions(t table) Permissions {
	p := Permissions{Mode: "dontAsk"}
	where, ok := t["permissions"]
	if !ok {
		return p
	}
	fields, ok := l.table(where, permissionKeys, nil)
	if !ok {
		return p
	}
	p.Mode = l.permissionMode(fields, p.Mode)
	const hint = `for example [Read, "Bash(git *)"]`
	if rules, ok := fields["allow"]; ok {
		p.Allow = l.texts(rules, hint)
		l.rules(rules, true)
	}
	if rules, ok := fields["deny"]; ok {
		p.Deny = l.texts(rules, hint)
		l.rules(rules, false)
	}
	return p
}

// unattended are the client's permission modes in which it does not wait for a person, or
// in which our hook answers for that one.
var unattended = []string{"dontAsk", "default", "acceptEdits", "bypassPermissions"}

// permissionMode says of a mode in which the client waits for a person what it would wait for.
func (l *loader) permissionMode(t table, otherwise string) string {
	p, text, ok := l.wordOf(t, "mode")
	why := client.Claude.Attended[text]
	if !ok || why == "" || !isText(p) {
		return enum(l, t, "mode", otherwise, unattended)
	}
	l.problem(p, fmt.Sprintf("%q is not allowed: %s, and nobody is there", text, why), "allowed: "+strings.Join(unattended, ", "))
	return otherwise
}

// rules reports permission rules that the client rejects, and warns about rules
// that never match.
func (l *loader) rules(p place, allow bool) {
	p = p.here()
	for i, element := range p.node.Content {
		rule := follow(element)
		if rule.Kind != yaml.ScalarNode || strings.TrimSpace(rule.Value) == "" {
			continue // noted
		}
		wrong := client.Claude.Settings.CheckRule(rule.Value, allow)
		if wrong == nil {
			continue
		}
		hint := wrong.Hint
		if near := Nearest(wrong.Tool, client.Claude.Settings.Tools); wrong.Tool != "" && near != nil {
			hint = "did you mean " + near[0] + "?"
		}
		if wrong.Refused {
			l.problem(p.below(i, element), fmt.Sprintf("Claude Code refuses %q: %s", cut(rule.Value), wrong.Message), hint)
			continue
		}
		l.warn(p.below(i, element), fmt.Sprintf("%q never matches: %s", cut(rule.Value), wrong.Message), hint)
	}
}

// kickoff reads the prompt that a session starts with; "" means the first entry.
func (l *loader) kickoff(t table) string {
	p, ok := t["kickoff"]
	if !ok {
		return ""
	}
	text, ok := l.filled(p)
	if !ok || text == "entry" {
		return ""
	}
	const hint = "begin with a word, for example: Read CLAUDE.md"
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	switch start := strings.TrimLeftFunc(text, unicode.IsSpace); {
	case strings.HasPrefix(start, "/"):
		l.problem(p, "a text that begins with / is a command to the client, not a prompt", hint)
	case strings.HasPrefix(start, "-"):
		l.problem(p, "a text that begins with - is a flag to the client, not a prompt", hint)
	case len(text) > mostKickoff:
		l.problem(p, fmt.Sprintf("is %d bytes long", len(text)), "at most 100000; put the rest into a file that it names")
	case strings.ContainsFunc(text, control):
		l.problem(p, "holds control characters, which the client strips", "remove them")
	default:
		return text
	}
	return ""
}
