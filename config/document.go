package config

import (
	"reflect"
	"slices"
	"strings"
)

// The types of this file say which keys a heartbeat.yaml may have. They are
// read by reflection alone: the loader takes its lists of known keys from
// them, and the JSON Schema (schema.json) is generated from them with their
// comments as descriptions. Values are checked by the loader, which knows more
// than a schema can say.

// heartbeat.yaml declares a fleet of agents.
type fileKeys struct {
	// The version of this format: 1.
	Version int `yaml:"version" jsonschema:"required,enum=1"`
	// The fleet's name, for its state directory. Without it the name is made of the directory's name and the file's path.
	Name nameText `yaml:"name,omitempty"`
	// Further files, as paths relative to this one; globs are allowed. Their agents belong to this fleet, and this file's defaults apply to them below their own.
	Include []pathText `yaml:"include,omitempty"`
	// How many sessions may be open at once, over all agents.
	MaxSessions int `yaml:"max-sessions,omitempty" jsonschema:"minimum=1,maximum=2147483647,default=4"`
	// Groups of agents that share a smaller number of sessions, by name.
	Groups map[string]groupKeys `yaml:"groups,omitempty"`
	// How long a session may keep its slot while another agent waits for one and no session is idle; it ends after its turn then. Sessions with on-idle: tick keep theirs.
	SlotTime limit `yaml:"slot-time,omitempty" jsonschema:"default=30m"`
	// How long turns may take to finish once the run is asked to stop.
	ShutdownGrace limit `yaml:"shutdown-grace,omitempty" jsonschema:"default=30s"`
	// Any field of an agent; agents override it field by field.
	Defaults agentKeySet `yaml:"defaults,omitempty"`
	// The agents by name.
	Agents map[string]agentKeySet `yaml:"agents,omitempty"`
}

// A group of agents.
type groupKeys struct {
	// How many sessions the group's agents may have open at once.
	MaxSessions int `yaml:"max-sessions" jsonschema:"required,minimum=1,maximum=2147483647"`
	// What each session of its agents may take, below what they say themselves.
	Resources resourceKeySet `yaml:"resources,omitempty"`
}

// What each session may take of the machine, with all that it starts; kept by a control group (Linux, cgroup version 2).
type resourceKeySet struct {
	// How much memory, in bytes or with a unit (512MiB, 4GiB). A session that needs more is ended as out-of-memory.
	Memory memorySize `yaml:"memory,omitempty"`
	// How many processes and threads at once. What would be one more is refused.
	Processes int `yaml:"processes,omitempty" jsonschema:"minimum=64,maximum=2147483647"`
	// How many processor cores, for example 1.5.
	CPU float64 `yaml:"cpu,omitempty" jsonschema:"minimum=0.01,maximum=4096"`
	// Whether no session starts where these cannot be kept. Otherwise it starts without them, and that is said.
	Required bool `yaml:"required,omitempty" jsonschema:"default=false"`
}

// An agent: a workspace in which Claude Code works through a queue of prompts.
type agentKeySet struct {
	// The workspace, relative to the file that says so. ~ and ${VAR} are replaced. It is no home and no folder of the system.
	Dir pathText `yaml:"dir,omitempty"`
	// What starts a session, as a list of words. A first word "heartbeat" is the running binary; one with a slash begins at the folder of the file that says so.
	Command argv `yaml:"command,omitempty"`
	// Which of Claude Code's settings files gets our hooks: .claude/settings.json, .claude/settings.local.json, or one outside of the workspace, given by --settings together with what command passes by that flag itself (flag). With only, nothing else is read: not the settings, .mcp.json and CLAUDE.md of the workspace, nor those of the user.
	Settings string `yaml:"settings,omitempty" jsonschema:"enum=project,enum=local,enum=flag,enum=only,default=project"`
	// Lets what decides what runs lie in the workspace, where the agent could rewrite it: the fleet's file, those that it includes, the programs of command, poll and gate, env-file, prompt-file. The client's own tools are kept from it.
	TrustDir bool `yaml:"trust-dir,omitempty" jsonschema:"default=false"`
	// What the sessions may do without asking.
	Permissions permissionKeySet `yaml:"permissions,omitempty"`
	// What wakes the agent.
	Trigger triggerKeySet `yaml:"trigger,omitempty"`
	// Several of what wakes the agent, instead of trigger.
	Triggers []triggerKeySet `yaml:"triggers,omitempty"`
	// The time zone of cron expressions, for example Europe/Rome. The machine's own where it is not given.
	Timezone filledText `yaml:"timezone,omitempty"`
	// drain ends the session when the queue is empty; persist keeps it, waiting.
	Mode string `yaml:"mode,omitempty" jsonschema:"enum=drain,enum=persist,default=drain"`
	// How long a waiting session of mode persist waits for work before on-idle applies.
	IdleInterval span `yaml:"idle-interval,omitempty" jsonschema:"default=30m"`
	// After idle-interval: tick gives the session a turn (which is paid), release ends it until something is queued.
	OnIdle string `yaml:"on-idle,omitempty" jsonschema:"enum=tick,enum=release,default=release"`
	// What a session starts with: entry is the first queued prompt (one that the client would change on its command line comes a turn later), anything else is a text of its own.
	Kickoff kickoffText `yaml:"kickoff,omitempty" jsonschema:"default=entry"`
	// How much conversation sessions share: entry starts a new one for each prompt, session has one for each launch, resume goes on with the last one.
	Context string `yaml:"context,omitempty" jsonschema:"enum=entry,enum=session,enum=resume,default=session"`
	// Whether a prompt is done only when the background tasks that it started have ended.
	Background string `yaml:"background,omitempty" jsonschema:"enum=wait,enum=ignore,default=wait"`
	// How long background tasks are waited for.
	BackgroundTimeout span `yaml:"background-timeout,omitempty" jsonschema:"default=10m"`
	// What Stop hooks that are not heartbeat's mean: learn lets one that has had the client go on finish its work from then on, gate does so from the start (a session takes one prompt, the next one goes on in its conversation), free hands prompts over whatever they say.
	ForeignStopHooks string `yaml:"foreign-stop-hooks,omitempty" jsonschema:"enum=learn,enum=gate,enum=free,default=learn"`
	// What happens with a prompt whose session died after a tool had run for it: retry it, put it aside as a dead letter, or drop it.
	OnOrphan string `yaml:"on-orphan,omitempty" jsonschema:"enum=retry,enum=deadletter,enum=drop,default=deadletter"`
	// How often a prompt is given before it is put aside as poison.
	MaxAttempts int `yaml:"max-attempts,omitempty" jsonschema:"minimum=1,maximum=2147483647,default=5"`
	// How many turns hooks may cause, heartbeat's or others, without a prompt done before the session ends as runaway.
	MaxContinuations int `yaml:"max-continuations,omitempty" jsonschema:"minimum=1,maximum=2147483647,default=20"`
	// The largest prompt, in bytes or with a unit (64KiB, 1MB).
	MaxEntry byteSize `yaml:"max-entry,omitempty" jsonschema:"default=1MiB"`
	// How long one prompt may take, from hand-over to done.
	Timeout limit `yaml:"timeout,omitempty" jsonschema:"default=1h"`
	// How long a session may live; it ends between prompts.
	SessionTimeout limit `yaml:"session-timeout,omitempty" jsonschema:"default=none"`
	// How long a session may take to start.
	StartTimeout span `yaml:"start-timeout,omitempty" jsonschema:"default=30s"`
	// How long a session may be alive without a turn and without waiting for work.
	IdleGrace span `yaml:"idle-grace,omitempty" jsonschema:"default=10s"`
	// How long a turn may go without a sign of life.
	StallTimeout limit `yaml:"stall-timeout,omitempty" jsonschema:"default=none"`
	// How long the service may fail at the head of the queue before that is told.
	StuckAfter limit `yaml:"stuck-after,omitempty" jsonschema:"default=30m"`
	// How long a session gets to end after SIGTERM before it is killed.
	EndGrace span `yaml:"end-grace,omitempty" jsonschema:"default=10s"`
	// How many restarts without a prompt done the agent gets within restart-window before it is held. Never less than max-attempts by default.
	MaxRestarts int `yaml:"max-restarts,omitempty" jsonschema:"minimum=0,maximum=2147483647,default=5"`
	// The window of max-restarts.
	RestartWindow span `yaml:"restart-window,omitempty" jsonschema:"default=30m"`
	// What each session may take of the machine.
	Resources resourceKeySet `yaml:"resources,omitempty"`
	// The group that the agent belongs to, a key of groups.
	Group filledText `yaml:"group,omitempty"`
	// Environment variables of the sessions and of poll commands.
	Env map[string]word `yaml:"env,omitempty"`
	// A file with further variables, a line NAME=VALUE each, relative to the file that says so. Only its owner may read it.
	EnvFile pathText `yaml:"env-file,omitempty"`
	// Which variables of the scheduler's own environment the sessions get, as globs for names.
	EnvAllow []variableGlob `yaml:"env-allow,omitempty"`
	// Which of them they do not get.
	EnvDeny []variableGlob `yaml:"env-deny,omitempty"`
	// The queue's file, in the workspace and relative to it.
	Inbox pathText `yaml:"inbox,omitempty" jsonschema:"default=.heartbeat/inbox.jsonl"`
}

// What sessions may do without asking.
type permissionKeySet struct {
	// What happens with what no rule allows: dontAsk refuses it, and nothing waits for a person.
	Mode string `yaml:"mode,omitempty" jsonschema:"enum=dontAsk,enum=default,enum=acceptEdits,enum=plan,enum=bypassPermissions,default=dontAsk"`
	// Claude Code's permission rules for what is allowed.
	Allow []filledText `yaml:"allow,omitempty"`
	// Claude Code's permission rules for what is refused.
	Deny []filledText `yaml:"deny,omitempty"`
}

// commonKeySet are the keys of every trigger.
type commonKeySet struct {
	// The trigger's name; cron-1, watch-1, poll-1 and so on without it.
	Name nameText `yaml:"name,omitempty"`
	// The prompt, a Go text/template.
	Prompt filledText `yaml:"prompt,omitempty"`
	// A file with the prompt, relative to the file that says so, instead of prompt.
	PromptFile pathText `yaml:"prompt-file,omitempty"`
	// A command that decides whether a fire becomes a prompt, as a list of words; it runs in the workspace without a shell. Exit 0: go; 1: not this one; anything else is tried again.
	Gate argv `yaml:"gate,omitempty"`
}

// A schedule. Its prompt knows {{.At}} and {{.Label}}.
type cronKeySet struct {
	commonKeySet
	// crontab(5)'s five fields (minute, hour, day of month, month, day of week), @daily and its like, or @every 90m.
	Cron filledText `yaml:"cron" jsonschema:"required"`
	// The schedule may have a sixth field in front, the second, and @every may be shorter than a minute.
	Seconds bool `yaml:"seconds,omitempty" jsonschema:"default=false"`
	// The time zone of this trigger alone.
	Timezone filledText `yaml:"timezone,omitempty"`
	// What happens with fires that fell due while nothing ran: nothing, one for all of them, or each (at most 10).
	Missed string `yaml:"missed,omitempty" jsonschema:"enum=skip,enum=once,enum=all,default=once"`
	// Fires that would be later than this are dropped.
	Grace limit `yaml:"grace,omitempty" jsonschema:"default=none"`
	// Each fire is this much later at most, always the same for one trigger of one agent, so that many agents do not start in one second.
	Jitter limit `yaml:"jitter,omitempty" jsonschema:"default=none"`
	// What a fire does while the last one is still queued or being worked on.
	Overlap string `yaml:"overlap,omitempty" jsonschema:"enum=skip,enum=queue,default=skip"`
}

// Files that appear or change. Its prompt knows {{.Path}}, {{.AbsPath}}, {{.Name}} and {{.Event}}. Each state of a file is a prompt of its own.
type watchKeySet struct {
	commonKeySet
	// Globs relative to the workspace; ** stands for any folders. What lies in .git, .claude or .heartbeat, and what editors keep beside an open file (swap files, backups), is meant only where a glob names it.
	Watch []filledText `yaml:"watch" jsonschema:"required,minItems=1"`
	// How long a file must have been quiet.
	Debounce limit `yaml:"debounce,omitempty" jsonschema:"default=500ms"`
	// Fire also when a file that has fired is gone.
	Removed bool `yaml:"removed,omitempty" jsonschema:"default=false"`
	// Do not fire for what changes while the agent's own session is in a turn, whoever changes it.
	IgnoreOwn bool `yaml:"ignore-own,omitempty" jsonschema:"default=false"`
	// One prompt for all files that are found together (at most 1000); it knows {{.Paths}} and the first one's {{.Path}}, {{.AbsPath}}, {{.Name}} and {{.Event}}.
	Batch bool `yaml:"batch,omitempty" jsonschema:"default=false"`
}

// A command that has something to say. Its prompt knows {{.Output}} and, with split: json, the value as {{.JSON}}, for example {{.JSON.title}}; without a prompt the output is the prompt. The command's environment tells it the agent (HEARTBEAT_AGENT) and when the last run began whose prompts are all queued (HEARTBEAT_LAST_SUCCESS, RFC 3339).
type pollKeySet struct {
	commonKeySet
	// The command as a list of words; it runs in the workspace without a shell. Exit 0 and output make a prompt.
	Poll argv `yaml:"poll" jsonschema:"required"`
	// The time from the start of one run to that of the next.
	Every span `yaml:"every,omitempty" jsonschema:"default=1m"`
	// How long the command may run.
	Timeout span `yaml:"timeout,omitempty" jsonschema:"default=1m"`
	// How the output becomes prompts: as a whole, a line each, or a JSON value each.
	Split string `yaml:"split,omitempty" jsonschema:"enum=whole,enum=lines,enum=json,default=whole"`
	// content fires only for output that is not among the last 1000 that fired, key only for output whose key is not. What a gate declined has not fired: it is asked about again at the next run.
	Dedupe string `yaml:"dedupe,omitempty" jsonschema:"enum=none,enum=content,enum=key,default=none"`
	// For dedupe: key, what tells output apart, a Go text/template as the prompt is, for example {{.JSON.id}}.
	Key filledText `yaml:"key,omitempty"`
	// skip does not run the command while something that it printed is still queued or being worked on.
	Overlap string `yaml:"overlap,omitempty" jsonschema:"enum=skip,enum=queue,default=skip"`
}

// Kinds of values that the schema describes by more than a Go type.
type (
	triggerKeySet struct{} // one of cronKeySet, watchKeySet and pollKeySet
	nameText      string   // of an agent, a trigger, a group, a fleet
	filledText    string   // not blank
	pathText      string   // not blank, variables as ${NAME}
	kickoffText   string   // begins with a word
	variableGlob  string   // for names of variables
	word          string   // text, or a number or bool as it is written
	argv          []word   // at least one, the first one not blank
	span          string   // a duration
	limit         string   // a duration, or none
	byteSize      string
	memorySize    string
)

// keys lists the keys of a mapping in the order of its type's fields.
func keys[T any]() []string { return keysOfType(reflect.TypeFor[T]()) }

func keysOfType(t reflect.Type) []string {
	var all []string
	for f := range t.Fields() {
		if f.Anonymous {
			all = append(all, keysOfType(f.Type)...)
			continue
		}
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		all = append(all, key)
	}
	return all
}

var (
	topKeys        = keys[fileKeys]()
	agentKeys      = keys[agentKeySet]()
	permissionKeys = keys[permissionKeySet]()
	resourceKeys   = keys[resourceKeySet]()
	keysOf         = map[triggerKind][]string{
		cronKind:  keys[cronKeySet](),
		watchKind: keys[watchKeySet](),
		pollKind:  keys[pollKeySet](),
	}
	triggerKeys = unique(keysOf[cronKind], keysOf[watchKind], keysOf[pollKind])
)

// unique lists what is in any of the lists once.
func unique(lists ...[]string) []string {
	var all []string
	for _, s := range slices.Concat(lists...) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}
