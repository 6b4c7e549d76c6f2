package config

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/sources"
)

// Fleet is a checked heartbeat.yaml.
type Fleet struct {
	// Path is the absolute path of the file.
	Path string
	// Texts are the files that were read: the file itself first, then the included
	// files and the prompt-files.
	Texts []Text
	// Folders are the agents' directories that are there and no links.
	Folders Folders
	// Missing are the agents whose directory was not there when the file was
	// read, by their names.
	Missing map[string]bool
	// Warnings are about what is allowed and most likely not meant.
	Warnings Problems
	// Name is `name:`, or the file's directory name, a dash and 8 hex digits of
	// its absolute path as it was typed: where links on it lead may change. Named
	// is true if it is `name:`.
	Name  string
	Named bool
	// Relative is true where a path begins at the folder of the file: the same
	// text means something else in another folder.
	Relative    bool
	MaxSessions int
	// MaxChecks is how many checks run at once; 0: as many as there are processors.
	MaxChecks int
	// Groups are how many sessions the agents of a group may have at once.
	Groups map[string]int
	// Budget is what all agents together may spend, Budgets what those of a group
	// may; their Entry is zero.
	Budget  Budget
	Budgets map[string]Budget
	// Listen are the addresses at which a run serves.
	Listen []Listen
	// Page is what is said of the page that an address of Listen serves.
	Page Page
	// SlotTime is how long a session may keep its slot while another agent
	// waits for one; 0 is as long as it has work.
	SlotTime time.Duration
	// ShutdownGrace is how long turns may take to finish once the run is
	// asked to stop; 0 ends them at once.
	ShutdownGrace time.Duration
	// Targets are who can be told something, by their names; Ping is nil where nobody
	// outside watches.
	Targets map[string]*Target
	Ping    *Ping
	// Agents stand in the order of the file, those of included files behind.
	Agents []*Agent

	byName map[string]*Agent
}

// Agent returns the agent with this name, or nil.
func (f *Fleet) Agent(name string) *Agent {
	if f.byName != nil {
		return f.byName[name]
	}
	for _, a := range f.Agents { // a fleet that was not loaded
		if a.Name == name {
			return a
		}
	}
	return nil
}

// SettingsTarget says which of the client's settings files get our entries.
type SettingsTarget string

// The settings targets.
const (
	SettingsProject SettingsTarget = "project" // .claude/settings.json
	SettingsLocal   SettingsTarget = "local"   // .claude/settings.local.json
	SettingsFlag    SettingsTarget = "flag"    // a file in the state directory, passed by --settings
	SettingsOnly    SettingsTarget = "only"    // the same, and the client reads no others but the administrator's
)

// Rendered reports whether our entries stand in a file of their own, outside of
// the agent's directory.
func (t SettingsTarget) Rendered() bool { return t == SettingsFlag || t == SettingsOnly }

// DriftRule says what follows when an agent's client does not do what heartbeat relies on.
type DriftRule string

// The drift rules.
const (
	DriftWarns DriftRule = "warn" // sessions are started, and people are told
	DriftHolds DriftRule = "hold" // none is started before another client is installed, or a person resumes the agent
)

// LimitRule says what follows when the usage limit of an agent's account is reached.
type LimitRule string

// The rules for limits.
const (
	LimitResumes LimitRule = "resume" // at the reset
	LimitHolds   LimitRule = "hold"   // until a person resumes the agent
)

// Agent is one declared agent with all defaults filled in.
type Agent struct {
	Name string
	// File, absolute, and Line say where the agent is declared.
	File string
	Line int
	// Group is "" or a key of Fleet.Groups.
	Group string
	// Dir is AGENT_DIR: absolute, links resolved as far as it exists.
	Dir string
	// Inbox is absolute; Home is Dir/.heartbeat.
	Inbox, Home string
	// TrustDir says that what decides what runs may lie in Dir; Guarded are such
	// files, relative to it.
	TrustDir bool
	// AutoUpdate lets the client update itself.
	AutoUpdate bool
	Guarded    []string
	Command    []string
	// Program is the absolute path of Command[0] where that has a slash.
	Program string
	// Self is true when Command begins with "heartbeat": the running binary.
	Self        bool
	Settings    SettingsTarget
	Permissions Permissions
	// Until says when its prompts are done; nil: at the end of their turn.
	Until    *Until
	Triggers []Trigger

	Mode         hook.Mode
	IdleInterval time.Duration
	OnIdle       hook.OnIdle
	Context      hook.Context
	// MaxContext is how full a conversation may get, in percent; 0: as it comes.
	MaxContext int
	Background hook.BackgroundRule
	// Foreign says what Stop hooks that are not ours mean for a session.
	Foreign hook.ForeignRule
	// KickoffText is "" for `kickoff: entry`.
	KickoffText string

	// Limits are how much of its account's limits it may use.
	Limits           Limits
	OnLimit          LimitRule
	ClientDrift      DriftRule
	OnOrphan         inbox.OrphanPolicy
	MaxAttempts      int
	MaxContinuations int
	MaxEntry         int64 // bytes
	// MaxQueue is how many prompts may be queued for it; 0: as many as come.
	MaxQueue int

	Timeout           time.Duration // one entry
	SessionTimeout    time.Duration
	StartTimeout      time.Duration
	IdleGrace         time.Duration
	BackgroundTimeout time.Duration
	// StallTimeout is how long a turn in which no tool runs may go without a sign of
	// life, ToolTimeout how long a tool may run, ToolTimeouts the same by its name; 0:
	// for ever.
	StallTimeout time.Duration
	ToolTimeout  time.Duration
	ToolTimeouts map[string]time.Duration
	// StuckAfter is how long the service may fail at the head of the queue
	// before that is told; 0: for ever.
	StuckAfter time.Duration
	Grace      time.Duration

	MaxRestarts   int
	RestartWindow time.Duration

	Resources Resources
	// Budget is the agent's own. Zone is that of its hours and days; nil: the
	// machine's own.
	Budget Budget
	Zone   *time.Location

	// Approvals are the rules that answer the agent's requests instead of a person.
	Approvals Approvals

	// Notify are the names of the targets that are told of the agent; nil: all of them.
	Notify []string
	// WhileDown says what becomes of a prompt that is sent while the agent cannot work,
	// DownText what its sender is told then, or "".
	WhileDown WhileDown
	DownText  string

	Env map[string]string
	// EnvFile is the absolute path of a file with more variables, or "". It is
	// read when a session starts (readEnvFile).
	EnvFile string
	// EnvAllow and EnvDeny are globs of names in the caller's environment: with
	// EnvAllow only those are passed on (and a few that every program needs),
	// and those of EnvDeny never.
	EnvAllow, EnvDeny []string
}

// Placeless is the definition but for where it stands in the file.
func (a *Agent) Placeless() Agent {
	b := *a
	b.File, b.Line = "", 0
	b.Triggers = slices.Clone(b.Triggers)
	for i := range b.Triggers {
		b.Triggers[i].Line = 0
	}
	return b
}

// Resources are what each session may take of the machine, with all that it
// starts; 0 is no limit.
type Resources struct {
	Memory    int64 // bytes
	Processes int   // and threads
	CPU       float64
	// Required says that no session starts where these cannot be kept.
	Required bool
}

// Permissions are what apply merges into the settings' permissions and
// launch passes as --permission-mode.
type Permissions struct {
	Mode  string // dontAsk, default, acceptEdits, bypassPermissions
	Allow []string
	Deny  []string
}

// Trigger is one trigger: exactly one of Cron, Watch, Poll and Webhook is set.
type Trigger struct {
	// Name is unique within the agent: `name:`, or its kind and number. Named
	// says that it is the former.
	Name  string
	Named bool
	Line  int
	// Gate is a command that decides whether a fire becomes a prompt, or nil.
	Gate []string
	// GateProgram is the absolute path of Gate[0] where that has a slash.
	GateProgram string
	// Until says when its prompts are done; nil: as the agent's own says.
	Until *Until
	// ReplyTo is the target that gets the replies to its prompts, or "".
	ReplyTo string
	// Urgent puts its prompts before those that are not.
	Urgent bool
	// Rate is how often it may fire.
	Rate    Rate
	Cron    *CronTrigger
	Watch   *WatchTrigger
	Poll    *PollTrigger
	Webhook *WebhookTrigger
}

// Rate is a number of fires within any stretch of time of a length; the zero value is
// no limit.
type Rate struct {
	Fires  int
	Within time.Duration
}

// String returns the rate as it is written: 10/1h0m0s.
func (r Rate) String() string { return strconv.Itoa(r.Fires) + "/" + r.Within.String() }

// CronTrigger fires on a schedule.
type CronTrigger struct {
	Schedule sources.Schedule // with its time zone
	Prompt   string           // a text/template
	Missed   sources.Missed
	// Grace drops fires that would be later than this; 0 drops none.
	Grace time.Duration
	// Jitter is the bound of what is added to each fire, see sources.Offset.
	Jitter  time.Duration
	Overlap Overlap
}

// WatchTrigger fires when files appear or change.
type WatchTrigger struct {
	Patterns []string // globs relative to Dir
	Prompt   string   // a text/template: Path, Name, Event
	Debounce time.Duration
	// Removed fires also when a file that has fired is gone.
	Removed bool
	// IgnoreOwn does not fire for what changes during the agent's own turns.
	IgnoreOwn bool
	// Batch makes one prompt of all files that are found together.
	Batch bool
}

// PollTrigger fires when a command has output.
type PollTrigger struct {
	Command []string
	// Program is the absolute path of Command[0] where that has a slash.
	Program string
	Every   time.Duration
	Timeout time.Duration
	Split   sources.Split
	Prompt  string // a text/template with .Output and .JSON; "" for the output itself
	// Dedupe fires only for output that did not fire before.
	Dedupe bool
	// Key is a text/template of what Dedupe tells output by; "": all of it.
	Key     string
	Overlap Overlap
	// BacksUp is a webhook of the agent, or "": what that has queued by the same key
	// is not queued again, nor the other way round.
	BacksUp string
}

// WebhookTrigger fires when a request is made to its path.
type WebhookTrigger struct {
	Path string
	// SecretFile is the absolute path of a file with the secret that a request has to
	// prove it knows (ReadSecret), or "".
	SecretFile string
	Prompt     string // a text/template with .JSON, .Body and .Header
	// Key is a text/template of what makes two requests the same; "": their delivery
	// id, where they have one.
	Key string
	// Match are the conditions that a request has to meet, all of them.
	Match []sources.Condition
}

// Policy is what the hooks of the agent's sessions obey, as far as it is
// declared.
func (a *Agent) Policy() hook.Policy {
	return hook.Policy{
		Mode: a.Mode, IdleInterval: a.IdleInterval, OnIdle: a.OnIdle, Deliver: hook.DeliverStderr,
		Background: a.Background, Foreign: a.Foreign, Context: a.Context, MaxContinuations: a.MaxContinuations, MaxEntry: a.MaxEntry,
		Checked: a.Until != nil, CheckTimeout: a.LongestCheck(),
	}
}

// StandsIn reports whether the client is the stand-in (heartbeat simulate).
func (a *Agent) StandsIn() bool { return a.Self && len(a.Command) > 1 && a.Command[1] == "simulate" }

// StandInHome is the home that the command gives the stand-in client (heartbeat
// simulate --home DIR), absolute; "" where it gives none.
func (a *Agent) StandInHome() string {
	if !a.StandsIn() {
		return ""
	}
	home := ""
	for i, word := range a.Command[2:] {
		if value, ok := strings.CutPrefix(word, "--home="); ok {
			home = value
		} else if word == "--home" && i+3 < len(a.Command) {
			home = a.Command[i+3]
		}
	}
	if home == "" || filepath.IsAbs(home) {
		return home
	}
	return filepath.Join(a.Dir, home)
}

// Argv is the agent's command with its program's path.
func (a *Agent) Argv() []string { return located(a.Program, a.Command) }

// Argv is the command of a poll with its program's path.
func (p *PollTrigger) Argv() []string { return located(p.Program, p.Command) }

// GateArgv is the gate with its program's path.
func (t *Trigger) GateArgv() []string { return located(t.GateProgram, t.Gate) }

func located(program string, command []string) []string {
	if program == "" {
		return command
	}
	return append([]string{program}, command[1:]...)
}

// Delay is how much later than its schedule one of the agent's cron triggers
// fires: with jitter, always the same for its name.
func (a *Agent) Delay(t *Trigger) time.Duration {
	if t.Cron == nil {
		return 0
	}
	return sources.Offset(t.Cron.Jitter, a.Name+"/"+t.Name)
}

// KeepsSlot reports whether the agent's session, once started, keeps its slot
// whatever others need: it is kept alive by idle ticks.
func (a *Agent) KeepsSlot() bool { return a.Mode == hook.Persist && a.OnIdle == hook.IdleTick }

// Overlap says what a fire does while the last one of the same trigger is
// still queued or in flight.
type Overlap string

// The overlap rules.
const (
	OverlapSkip  Overlap = "skip"
	OverlapQueue Overlap = "queue"
)
