package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/clients"
	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/probe"
	"heartbeat/orchestrator/resources"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/workspace"
	"heartbeat/ptyrun"
)

// Look says what to look at.
type Look struct {
	Agents      []*config.Agent
	MaxSessions int
	StateDir    string
	// StateProblem is why StateDir cannot be used, or nil.
	StateProblem error
	// Broken is why the fleet's file cannot be used: what is looked at is what
	// it said before. Nil where it can.
	Broken error
	// File is the fleet's.
	File string
	// Scheduler is the run that answers for the fleet, or nil.
	Scheduler *Scheduler
	// Mute is a run that has the fleet and does not answer, or nil.
	Mute *status.Mute
	// LastRun is how the last run of the fleet has ended; nil: one has it, or none is known.
	LastRun *lastrun.Past
	// Doors are the addresses that the run serves, or that one could or could not open.
	Doors []status.Door
	// Store is what is wrong with the fleet's store.
	Store []store.Trouble
	// Untold are the targets that do not get their notices; Unwatched is true where
	// people are told things, and nobody would tell them that the scheduler is gone.
	Untold    []status.Untold
	Unpinged  *status.Unpinged
	Unwatched bool
	// OldQueues are queues with prompts in them that no agent of the file has any more.
	OldQueues []status.OldQueue
	// Elsewhere are agents whose directories are those of another store, or agent.
	Elsewhere []owner.Elsewhere
	// Self is the path of the running binary.
	Self string
	// Env is the environment that sessions would be started from.
	Env []string
	// Managed is the folder of the administrator's settings: the
	// client's own place for it where it is "".
	Managed string
	// Ours is how a command line of ours begins: "heartbeat" where it is "".
	Ours string
	// Budgets, when not nil, tells which budgets are used up.
	Budgets *status.Budgets
	// Step, when not nil, is told which agent is being looked at, and how many were.
	Step func(done, of int, agent string)
	// probed returns what the last probe of a client has found, or nil: clients.Recall
	// where it is nil.
	probed func(clients.Program) (*probe.Result, error)
	// FileWarnings are what loading the fleet's file says.
	FileWarnings []config.Problem
	// terminals looks for pseudo-terminals: terminalsOf where it is nil.
	terminals func() Terminals
	// inotify reads what the machine has of it: inotifyLimits where it is nil.
	inotify func() Inotify
}

// Scheduler is a run that answers for the fleet.
type Scheduler struct {
	PID     int
	Started time.Time
	Agents  []status.AgentState
	// OtherProgram says that it is another version of heartbeat than this one, or is "".
	OtherProgram string
}

// collector gathers facts; what several agents share is looked at once.
type collector struct {
	Look
	ctx      context.Context
	now      time.Time
	hook     *workspace.Hook
	base     []string
	versions map[string]versionOf
	programs map[string]Program
}

// Collect gathers the facts. It changes nothing; of other programs it runs
// only `claude --version`.
func Collect(ctx context.Context, l Look) (*Facts, error) {
	if _, ok := errors.AsType[*owner.TakenError](l.StateProblem); ok {
		return &Facts{ours: l.Ours, Now: time.Now(), LocalZone: true, StateProblem: l.StateProblem}, nil // what stands there is about others
	}
	h, err := workspace.FindHook(l.Self, l.StateDir)
	if err != nil {
		return nil, err
	}
	c := &collector{
		Look: l, ctx: ctx, now: time.Now(), hook: h, base: ptyrun.CleanEnv(l.Env),
		versions: map[string]versionOf{}, programs: map[string]Program{},
	}
	f := &Facts{
		ours: l.Ours, Scheduler: l.Scheduler, Mute: l.Mute, LastRun: l.LastRun, Doors: l.Doors, Store: l.Store, Untold: l.Untold, Unpinged: l.Unpinged, Unwatched: l.Unwatched, OldQueues: l.OldQueues, Elsewhere: l.Elsewhere, Logins: preflight.EndingLogins(l.Agents, l.Env, c.now), Journalled: store.Exists(l.StateDir), Broken: l.Broken, StateProblem: l.StateProblem, StateDenied: deniedState(l.StateDir), Now: c.now, Self: c.program(l.Self), StateDir: l.StateDir,
		State: volumeOf(l.StateDir), StateTemps: stateTemps(l.StateDir, c.now),
	}
	if c.probed == nil {
		c.probed = clients.Recall
	}
	if l.inotify == nil {
		l.inotify = inotifyLimits
	}
	f.Inotify, f.FileWarnings = l.inotify(), l.FileWarnings
	if l.terminals == nil {
		l.terminals = terminalsOf
	}
	f.Terminals = l.terminals()
	f.Terminals.Need = cmp.Or(l.MaxSessions, len(l.Agents))
	run := 0
	if l.Scheduler != nil {
		run = l.Scheduler.PID
	}
	f.Limits = resources.Lacking(l.Agents, run)
	c.zones(f)
	f.Markers = markers(l.Env)
	f.Leftovers = leftovers(l.StateDir)
	f.Attempts, _ = attempts.All(l.StateDir) // checkState says that it cannot be read
	f.Left = owner.LeftBehind(l.Agents, owner.Origin{File: l.File, StateDir: l.StateDir})
	paused, _ := memory.PausedOf(l.StateDir, l.Agents) // no run begins with a store that cannot be read
	pausedTriggers := memory.PausedTriggersOf(l.StateDir, l.Agents)
	waiting, _ := store.Ask(ctx, l.StateDir, approval.Waiting)
	for i, a := range l.Agents {
		if c.Step != nil {
			c.Step(i, len(l.Agents), a.Name)
		}
		seen := c.agent(a)
		seen.approvals(waiting)
		seen.PausedTriggers = pausedTriggers[a.Name]
		if seen.Paused = paused[a.Name].Since; !seen.State.Paused.IsZero() {
			seen.Paused = seen.State.Paused
		}
		f.Agents = append(f.Agents, seen)
	}
	c.settle(f.Agents)
	c.needs(&f.Inotify)
	return f, nil
}

// environ is an environment as a map; of duplicates the last counts.
func environ(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, kv := range list {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return env
}

// markers are the variables that sessions are not given because they mark the
// children of another session.
func markers(env []string) []string {
	var found []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if ptyrun.MarksSession(name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// zones looks at where the machine's local time comes from.
func (c *collector) zones(f *Facts) {
	_, err := os.Stat("/etc/localtime")
	f.LocalZone = err == nil
	tz, ok := environ(c.Env)["TZ"]
	if !ok {
		return
	}
	f.TZ, f.LocalZone = tz, true
	if name := strings.TrimPrefix(tz, ":"); name != "" && !filepath.IsAbs(name) {
		if _, err := time.LoadLocation(name); err != nil {
			f.BadTZ = err.Error()
		}
	} else if name != "" {
		if _, err := os.Stat(name); err != nil {
			f.BadTZ = err.Error()
		}
	}
}

func (c *collector) agent(cfg *config.Agent) *Agent {
	a := &Agent{Config: cfg, ours: c.Ours}
	env, err := cfg.Environ(c.base)
	a.Env, a.EnvProblem = environ(env), err
	_, err = os.Stat(cfg.Dir)
	a.Missing = os.IsNotExist(err)
	a.IsHome = same(cfg.Dir, a.Env["HOME"])
	a.Volume = volumeOf(cfg.Dir)
	a.Running = flock.Held(cfg.Dir)
	if a.Running {
		a.Holder = flock.Holder(cfg.Dir)
		if by, is := owner.HadByOther(cfg, owner.Origin{File: c.File, StateDir: c.StateDir}); is {
			a.Other = &by
		}
	}
	a.State, a.Scheduled = c.stateOf(a)
	if was, err := status.Published(c.StateDir, cfg.Name); err == nil && !a.Running && !a.Scheduled {
		a.Was = &was
	}
	if c.Budgets != nil && !a.Running && !a.Scheduled {
		a.Budget = c.Budgets.Spent(cfg)
	}
	a.Denied = deniedTo(cfg)
	for _, t := range cfg.Triggers {
		if t.Watch != nil && !a.Missing {
			a.watches(t)
		}
		if t.Webhook == nil || t.Webhook.SecretFile == "" {
			continue
		}
		if _, err := config.ReadSecret(t.Webhook.SecretFile); err != nil {
			a.SecretProblems = append(a.SecretProblems, SecretProblem{t.Name, t.Webhook.SecretFile, err})
		}
	}
	c.plan(a)
	c.settings(a)
	a.Queue = queueOf(cfg, c.StateDir, c.now)
	a.Checks = c.checksOf(cfg)
	return a
}

// watches takes down a folder that a trigger watches and that is not there.
func (a *Agent) watches(t config.Trigger) {
	for _, pattern := range t.Watch.Patterns {
		if folder := config.Absent(a.Config.Dir, pattern); folder != "" {
			if a.WatchesNothing == nil {
				a.WatchesNothing = map[string]string{}
			}
			a.WatchesNothing[t.Name] = folder
		}
	}
}

// stateOf is what the scheduler that runs an agent says of it, and whether the
// one that answers for the fleet does run it.
func (c *collector) stateOf(a *Agent) (st status.AgentState, scheduled bool) {
	if c.Scheduler != nil {
		for _, st := range c.Scheduler.Agents {
			if st.Agent == a.Config.Name {
				return st, true
			}
		}
	}
	if a.Running {
		st, _ = status.Published(c.StateDir, a.Config.Name) // nothing yet is idle
	}
	return st, false
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// plan asks what applying would change.
func (c *collector) plan(a *Agent) {
	p, err := workspace.New(a.Config, c.StateDir, c.hook)
	if err != nil {
		a.Unwired = err
		return
	}
	for _, i := range p.Items {
		if i.Change != workspace.Unchanged {
			a.Drift = append(a.Drift, fmt.Sprintf("%s (%s)", short(a.Config.Dir, i.Path), i.Change))
		}
	}
	a.Foreign, a.Timed, a.Timetable = p.Foreign, p.Timed, p.Timetable
	a.apply = func() error { return c.apply(a.Config) }
}

// apply plans again, as another repair may have changed what to apply.
func (c *collector) apply(cfg *config.Agent) error {
	h, err := workspace.FindHook(c.Self, c.StateDir)
	if err != nil {
		return err
	}
	_, err = workspace.Apply(cfg, c.StateDir, h)
	return err
}

// short is a path relative to dir where it lies in it.
func short(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// needs estimates what the fleet needs of inotify: one instance for all watch
// triggers, and two for each agent whose session waits: its hook's and its
// shim's.
func (c *collector) needs(in *Inotify) {
	waiting := 0
	for _, a := range c.Agents {
		if a.Mode == hook.Persist {
			waiting++
		}
		for _, t := range a.Triggers {
			if t.Watch != nil {
				in.WatchTriggers++
				in.NeedWatches += watched(a.Dir, t.Watch.Patterns)
			}
		}
	}
	in.WaitingAgents = min(waiting, cmp.Or(c.MaxSessions, waiting))
	in.NeedInstances, in.NeedWatches = 2*in.WaitingAgents, in.NeedWatches+3*in.WaitingAgents
	if in.WatchTriggers > 0 {
		in.NeedInstances++
	}
}

// mostDirectories bounds the count of watched directories for one pattern.
const mostDirectories = 50_000

// watched counts the directories that patterns make us watch.
func watched(dir string, patterns []string) int {
	n := 0
	for _, p := range patterns {
		parts := strings.Split(p, "/")
		fixed := 0
		for fixed < len(parts)-1 && !strings.ContainsAny(parts[fixed], `*?[{\`) {
			fixed++
		}
		depth := len(parts) - 1 - fixed
		if strings.Contains(p, "**") {
			depth = 64
		}
		n += directories(filepath.Join(dir, filepath.Join(parts[:fixed]...)), depth, mostDirectories)
	}
	return n
}

// directories counts dir and the directories below it, without links.
func directories(dir string, depth, most int) int {
	folder, err := durable.Open(dir)
	if err != nil || most <= 0 {
		return 0
	}
	entries, err := folder.Entries()
	if err = errors.Join(err, folder.Close()); err != nil {
		return 0
	}
	n := 1
	for _, e := range entries {
		if depth > 0 && e.IsDir() {
			n += directories(filepath.Join(dir, e.Name()), depth-1, most-n)
		}
	}
	return n
}

// leftovers lists the sessions whose shim is gone.
func leftovers(stateDir string) []Leftover {
	var found []Leftover
	for _, left := range session.Leftovers(stateDir) {
		l := Leftover{Leftover: left}
		procs, _ := l.Remains().Find() // without /proc none are named
		for _, p := range procs {
			l.Processes = append(l.Processes, p.PID)
		}
		found = append(found, l)
	}
	return found
}
