package config

import (
	"reflect"
	"slices"
	"strings"
)

// The types in this file define the keys of heartbeat.yaml. They are read by reflection only: the loader takes its lists of known keys from them, and the JSON Schema (schema.json) is generated from them, with their comments as descriptions. The loader checks values; it knows more than a schema can express.

// heartbeat.yaml declares a fleet of agents.
type fileKeys struct {
	// The version of this format: 1.
	Version int `yaml:"version" jsonschema:"required,enum=1"`
	// The fleet's name, for its state directory. By default it is made from the directory's name and the file's path.
	Name nameText `yaml:"name,omitempty"`
	// More files, as paths relative to this one; globs are allowed. Their agents belong to this fleet. This file's defaults apply to them where their own say nothing.
	Include []pathText `yaml:"include,omitempty"`
	// How many sessions may be open at once, over all agents.
	MaxSessions int `yaml:"max-sessions,omitempty" jsonschema:"minimum=1,maximum=2147483647,default=4"`
	// What all agents together may spend. Over it no agent starts anything until the period ends.
	Budget sharedBudgetKeySet `yaml:"budget,omitempty"`
	// Groups of agents that share a smaller number of sessions, by name.
	Groups map[string]groupKeys `yaml:"groups,omitempty"`
	// How long a session may keep its slot while another agent waits for one and no session is idle; then it ends after its current turn. Sessions with on-idle: tick keep theirs.
	SlotTime limit `yaml:"slot-time,omitempty" jsonschema:"default=30m"`
	// How long running turns may take to finish after the run is asked to stop.
	ShutdownGrace limit `yaml:"shutdown-grace,omitempty" jsonschema:"default=30s"`
	// Addresses at which heartbeat run serves: webhooks, metrics.
	Listen []listenKeySet `yaml:"listen,omitempty"`
	// Whom to tell what needs a person, and where replies go, by name.
	Notify map[string]targetKeySet `yaml:"notify,omitempty"`
	// A sign of life for a watch outside of this machine, which raises the alarm when it stays away.
	Ping pingKeySet `yaml:"ping,omitempty"`
	// Any field of an agent; agents override it field by field.
	Defaults agentKeySet `yaml:"defaults,omitempty"`
	// The agents by name.
	Agents map[string]agentKeySet `yaml:"agents,omitempty"`
}

// An address at which heartbeat run serves, without TLS: that is for a proxy in front of it.
type listenKeySet struct {
	// HOST:PORT, :PORT for this machine alone, or unix:PATH for a socket, relative to this file.
	Address pathText `yaml:"address" jsonschema:"required"`
	// What is served there: webhooks (the paths of webhook triggers), metrics (/metrics, /healthz, /readyz).
	Serve []serviceName `yaml:"serve" jsonschema:"required,minItems=1"`
	// A file with the secret that a request for metrics needs (Authorization: Bearer SECRET); required for an address that other machines reach. Only its owner may be able to read it.
	SecretFile pathText `yaml:"secret-file,omitempty"`
	// Who may connect to a socket: the user that runs heartbeat, the group of the socket's folder (where the folder has the setgid bit), or everybody.
	Access string `yaml:"access,omitempty" jsonschema:"enum=owner,enum=group,enum=everybody,default=owner"`
}

// A group of agents.
type groupKeys struct {
	// How many sessions the group's agents may have open at once.
	MaxSessions int `yaml:"max-sessions" jsonschema:"required,minimum=1,maximum=2147483647"`
	// Limits for each session of its agents; what an agent says itself overrides them.
	Resources resourceKeySet `yaml:"resources,omitempty"`
	// What the group's agents together may spend. Over it none of them starts anything until the period ends.
	Budget sharedBudgetKeySet `yaml:"budget,omitempty"`
	// Who is told of its agents, as keys of the fleet's notify; an agent's own notify overrides it.
	Notify []nameText `yaml:"notify,omitempty"`
}

// Somebody to tell, by a command or a webhook.
type targetKeySet struct {
	// A command that is run with the text on its stdin and the facts in HEARTBEAT_ variables, as a list of words; it runs in the folder of this file.
	Command argv `yaml:"command,omitempty"`
	// The address that the text is sent to. An address that is a secret itself belongs in webhook-file.
	Webhook webAddress `yaml:"webhook,omitempty"`
	// A file that holds the address, relative to this one. Only its owner may be able to read it.
	WebhookFile pathText `yaml:"webhook-file,omitempty"`
	// The variable of the scheduler's environment that holds the address.
	WebhookEnv variableName `yaml:"webhook-env,omitempty"`
	// What is sent to the address: JSON with all facts, or what Slack, ntfy or Telegram take.
	Body string `yaml:"body,omitempty" jsonschema:"enum=json,enum=slack,enum=ntfy,enum=telegram,default=json"`
	// A file that holds the token that the server wants: the bearer token, or a Telegram bot's. Only its owner may be able to read it.
	TokenFile pathText `yaml:"token-file,omitempty"`
	// The variable of the scheduler's environment that holds the token.
	TokenEnv variableName `yaml:"token-env,omitempty"`
	// The chat that a Telegram bot writes to.
	Chat word `yaml:"chat,omitempty"`
	// What it is told: urgent only what needs a person, info also what ends by itself, replies only what --reply-to and reply-to send it.
	Tier string `yaml:"tier,omitempty" jsonschema:"enum=urgent,enum=info,enum=replies,default=urgent"`
	// When only urgent notices are sent, in the target's time zone, for example "22:00-07:00" or "Sat,Sun 00:00-24:00"; the others wait.
	QuietHours filledText `yaml:"quiet-hours,omitempty"`
	// The time zone of quiet-hours. By default the machine's own.
	Timezone filledText `yaml:"timezone,omitempty"`
	// Notices that are not urgent are collected for so long and sent as one.
	Digest limit `yaml:"digest,omitempty" jsonschema:"default=none"`
	// How long one attempt may take.
	Timeout span `yaml:"timeout,omitempty" jsonschema:"default=30s"`
}

// A sign of life, while the scheduler demonstrably works.
type pingKeySet struct {
	// The address that is asked for. One that is a secret itself belongs in url-file.
	URL webAddress `yaml:"url,omitempty"`
	// A file that holds the address, relative to this one. Only its owner may be able to read it.
	URLFile pathText `yaml:"url-file,omitempty"`
	// The variable of the scheduler's environment that holds the address.
	URLEnv variableName `yaml:"url-env,omitempty"`
	// A command instead of an address, as a list of words; HEARTBEAT_PING is start, ok or fail.
	Command argv `yaml:"command,omitempty"`
	// How often.
	Every span `yaml:"every,omitempty" jsonschema:"default=5m"`
	// healthchecks adds /start when the scheduler begins and /fail when it does not work, as Healthchecks knows them; plain asks for the address only while all is well.
	Form string `yaml:"form,omitempty" jsonschema:"enum=healthchecks,enum=plain,default=healthchecks"`
}

// What several agents together may spend, by the hours and days of each agent's own time zone.
type sharedBudgetKeySet struct {
	// In an hour of the clock.
	Hour allowanceKeySet `yaml:"hour,omitempty"`
	// From midnight to midnight.
	Day allowanceKeySet `yaml:"day,omitempty"`
}

// What an agent may spend. Over the hour's or the day's it is parked until the period ends; a turn that has begun is not cut off.
type budgetKeySet struct {
	sharedBudgetKeySet
	// On one prompt, all its attempts together. Over it the turn is cut off and the prompt filed as a dead letter (over-budget).
	Entry allowanceKeySet `yaml:"entry,omitempty"`
}

// How much may be spent; what is not named has no limit.
type allowanceKeySet struct {
	// How many turns: from a prompt to the end of its answer, tools included.
	Turns int `yaml:"turns,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
	// How many tokens in, out and into the prompt cache, as a number or with a unit (500k, 2M).
	Tokens tokenCount `yaml:"tokens,omitempty"`
	// How many tokens of what was sent before, read from the prompt cache: a long conversation sends them again with each call.
	Resent tokenCount `yaml:"resent,omitempty"`
	// How many US dollars at list price, by the client's own figure.
	Cost dollars `yaml:"cost,omitempty"`
}

// Limits on the machine's resources for each session, with everything that it starts; enforced by a control group (Linux, cgroup version 2).
type resourceKeySet struct {
	// How much memory, in bytes or with a unit (512MiB, 4GiB). A session that needs more is ended as out-of-memory.
	Memory memorySize `yaml:"memory,omitempty"`
	// How many processes and threads may run at once. One more is refused.
	Processes int `yaml:"processes,omitempty" jsonschema:"minimum=64,maximum=2147483647"`
	// How many processor cores, for example 1.5.
	CPU float64 `yaml:"cpu,omitempty" jsonschema:"minimum=0.01,maximum=4096"`
	// true: no session starts where these limits cannot be enforced. Otherwise it starts without them, and heartbeat says so.
	Required bool `yaml:"required,omitempty" jsonschema:"default=false"`
}

// An agent: a workspace in which Claude Code works through a queue of prompts.
type agentKeySet struct {
	// The workspace, relative to the file that declares it. ~ and ${VAR} are expanded. It must not be a home directory or a system directory.
	Dir pathText `yaml:"dir,omitempty"`
	// What starts a session, as a list of words. A first word "heartbeat" is the running binary; one with a slash is relative to the file that declares it.
	Command argv `yaml:"command,omitempty"`
	// Which of Claude Code's settings files gets our hooks: .claude/settings.json, .claude/settings.local.json, or one outside the workspace, passed with --settings and merged with what command itself passes by that flag (flag). With only, nothing else is read: not the settings, .mcp.json and CLAUDE.md of the workspace, nor those of the user.
	Settings string `yaml:"settings,omitempty" jsonschema:"enum=project,enum=local,enum=flag,enum=only,default=project"`
	// Allows files that decide what runs to be in the workspace, where the agent could rewrite them: the fleet's file, the files that it includes, the programs of command, poll and gate, env-file, prompt-file. Permission rules keep the client's own tools away from them.
	TrustDir bool `yaml:"trust-dir,omitempty" jsonschema:"default=false"`
	// What the sessions may do without asking.
	Permissions permissionKeySet `yaml:"permissions,omitempty"`
	// What wakes the agent.
	Trigger triggerKeySet `yaml:"trigger,omitempty"`
	// Several triggers, instead of trigger.
	Triggers []triggerKeySet `yaml:"triggers,omitempty"`
	// The time zone of cron expressions, and of the hours and days of budgets, for example Europe/Rome. By default the machine's own.
	Timezone filledText `yaml:"timezone,omitempty"`
	// drain ends the session when the queue is empty; persist keeps it waiting for work.
	Mode string `yaml:"mode,omitempty" jsonschema:"enum=drain,enum=persist,default=drain"`
	// How long a waiting session of mode persist waits for work before on-idle applies.
	IdleInterval span `yaml:"idle-interval,omitempty" jsonschema:"default=30m"`
	// After idle-interval: tick gives the session a turn (which is paid), release ends it until something is queued.
	OnIdle string `yaml:"on-idle,omitempty" jsonschema:"enum=tick,enum=release,default=release"`
	// What a session starts with: entry is the first queued prompt (one that the client would change on its command line comes a turn later); any other text is used as the prompt itself.
	Kickoff kickoffText `yaml:"kickoff,omitempty" jsonschema:"default=entry"`
	// How long one conversation lasts: entry starts a new one for each prompt, session starts one for each launch, resume continues the last one.
	Context string `yaml:"context,omitempty" jsonschema:"enum=entry,enum=session,enum=resume,default=session"`
	// How full a conversation's context may get, in percent of the model's window: a session that is fuller ends after its prompt, and the next one begins a new conversation, which is the one that context: resume continues.
	MaxContext percentage `yaml:"max-context,omitempty" jsonschema:"default=none"`
	// Whether a prompt counts as done only when the background tasks that it started have ended.
	Background string `yaml:"background,omitempty" jsonschema:"enum=wait,enum=ignore,default=wait"`
	// How long to wait for background tasks.
	BackgroundTimeout span `yaml:"background-timeout,omitempty" jsonschema:"default=10m"`
	// What to do about Stop hooks that are not heartbeat's: gate lets them finish their work before the next prompt (a session takes one prompt, the next session continues its conversation); learn does the same once one of them has made the client go on; free hands prompts over whatever they say.
	ForeignStopHooks string `yaml:"foreign-stop-hooks,omitempty" jsonschema:"enum=learn,enum=gate,enum=free,default=learn"`
	// What happens to a prompt whose session died after a tool had run for it: retry it, file it as a dead letter, or drop it.
	OnOrphan string `yaml:"on-orphan,omitempty" jsonschema:"enum=retry,enum=deadletter,enum=drop,default=deadletter"`
	// What follows when the account's usage limit is reached: resume goes on as soon as the limit resets, hold waits for a person's heartbeat resume.
	OnLimit string `yaml:"on-limit,omitempty" jsonschema:"enum=resume,enum=hold,default=resume"`
	// What follows when the installed client does not do what heartbeat relies on, as a probe of it has found: warn starts sessions all the same and tells people, hold starts none before another client is installed or a person resumes the agent.
	ClientDrift string `yaml:"client-drift,omitempty" jsonschema:"enum=warn,enum=hold,default=warn"`
	// How much of its account's usage limits the agent may use: nothing is started for it above.
	Limits accountLimitKeySet `yaml:"limits,omitempty"`
	// How many times a prompt is tried before it is filed as a dead letter (poison).
	MaxAttempts int `yaml:"max-attempts,omitempty" jsonschema:"minimum=1,maximum=2147483647,default=5"`
	// How many turns in a row hooks, heartbeat's or others, may cause without finishing a prompt before the session ends as runaway.
	MaxContinuations int `yaml:"max-continuations,omitempty" jsonschema:"minimum=1,maximum=2147483647,default=20"`
	// The largest prompt, in bytes or with a unit (64KiB, 1MB).
	MaxEntry byteSize `yaml:"max-entry,omitempty" jsonschema:"default=1MiB"`
	// How many prompts may be queued. Over it, heartbeat send and webhooks are refused, schedules skip, files and polls are found again later; a line that somebody appends to the inbox is taken.
	MaxQueue int `yaml:"max-queue,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
	// How long one prompt may take, from handing it over until it is done.
	Timeout limit `yaml:"timeout,omitempty" jsonschema:"default=1h"`
	// How long a session may live; it then ends between prompts.
	SessionTimeout limit `yaml:"session-timeout,omitempty" jsonschema:"default=none"`
	// How long a session may take to start.
	StartTimeout span `yaml:"start-timeout,omitempty" jsonschema:"default=30s"`
	// How long a session may stay alive while it neither runs a turn nor waits for work.
	IdleGrace span `yaml:"idle-grace,omitempty" jsonschema:"default=10s"`
	// How long a turn may go without a sign of life (a hook, a line in the transcript, more on the terminal than a spinner) while no tool runs.
	StallTimeout limit `yaml:"stall-timeout,omitempty" jsonschema:"default=15m"`
	// How long one tool may run.
	ToolTimeout limit `yaml:"tool-timeout,omitempty" jsonschema:"default=none"`
	// The same by the tool's name, for example {WebFetch: 2m}.
	ToolTimeouts map[string]limit `yaml:"tool-timeouts,omitempty"`
	// How long the service may keep failing for the first prompt in the queue before heartbeat reports it.
	StuckAfter limit `yaml:"stuck-after,omitempty" jsonschema:"default=30m"`
	// How long a session gets to end after SIGTERM before it is killed.
	EndGrace span `yaml:"end-grace,omitempty" jsonschema:"default=10s"`
	// How many times the agent may restart within restart-window without finishing a prompt before it is held. The default is never less than max-attempts.
	MaxRestarts int `yaml:"max-restarts,omitempty" jsonschema:"minimum=0,maximum=2147483647,default=5"`
	// The time window for max-restarts.
	RestartWindow span `yaml:"restart-window,omitempty" jsonschema:"default=30m"`
	// Limits on the machine's resources for each session.
	Resources resourceKeySet `yaml:"resources,omitempty"`
	// What the agent may spend.
	Budget budgetKeySet `yaml:"budget,omitempty"`
	// The group that the agent belongs to, a key of groups.
	Group filledText `yaml:"group,omitempty"`
	// Who is told of this agent, as keys of the fleet's notify. By default all of them; [] is nobody.
	Notify []nameText `yaml:"notify,omitempty"`
	// What heartbeat send does while the agent cannot work: queue the prompt, or refuse it.
	WhileDown string `yaml:"while-down,omitempty" jsonschema:"enum=queue,enum=refuse,default=queue"`
	// What whoever sends a prompt is told meanwhile, beside the cause.
	DownText filledText `yaml:"down-text,omitempty"`
	// Whether the client may update itself while its sessions run.
	AutoUpdate bool `yaml:"auto-update,omitempty" jsonschema:"default=false"`
	// Environment variables of the sessions and of poll commands.
	Env map[string]word `yaml:"env,omitempty"`
	// A file with more variables, one NAME=VALUE per line, relative to the file that declares it. Only its owner may be able to read it.
	EnvFile pathText `yaml:"env-file,omitempty"`
	// Which variables of the scheduler's own environment the sessions get, as globs for names.
	EnvAllow []variableGlob `yaml:"env-allow,omitempty"`
	// Which of these variables the sessions never get.
	EnvDeny []variableGlob `yaml:"env-deny,omitempty"`
	// The queue's file, in the workspace and relative to it.
	Inbox pathText `yaml:"inbox,omitempty" jsonschema:"default=.heartbeat/inbox.jsonl"`
}

// How much of a subscription's usage limits an agent may use, so that a person's own work has room.
type accountLimitKeySet struct {
	// Of the limit of five hours, for example 95%.
	FiveHour percentage `yaml:"five-hour,omitempty"`
	// Of the weekly limit, for example 90%.
	SevenDay percentage `yaml:"seven-day,omitempty"`
	// When these hold, in the agent's time zone, for example "Mon-Fri 09:00-18:00". By default always.
	ActiveHours filledText `yaml:"active-hours,omitempty"`
}

// What sessions may do without asking.
type permissionKeySet struct {
	// What happens to a tool call that no rule allows: dontAsk refuses it, so that nothing waits for a person.
	Mode string `yaml:"mode,omitempty" jsonschema:"enum=dontAsk,enum=default,enum=acceptEdits,enum=plan,enum=bypassPermissions,default=dontAsk"`
	// Claude Code's permission rules for what is allowed.
	Allow []filledText `yaml:"allow,omitempty"`
	// Claude Code's permission rules for what is refused.
	Deny []filledText `yaml:"deny,omitempty"`
}

// commonKeySet are the keys of every trigger.
type commonKeySet struct {
	// The trigger's name. By default cron-1, watch-1, poll-1, webhook-1 and so on.
	Name nameText `yaml:"name,omitempty"`
	// The prompt, a Go text/template.
	Prompt filledText `yaml:"prompt,omitempty"`
	// A file that holds the prompt, instead of prompt; relative to the file that declares it.
	PromptFile pathText `yaml:"prompt-file,omitempty"`
	// A command that decides whether a fire becomes a prompt, as a list of words; it runs in the workspace without a shell. Exit status 0: queue the prompt; 1: drop this fire; any other: try again.
	Gate argv `yaml:"gate,omitempty"`
	// Who gets the reply to its prompts, or learns that one was given up: a key of the fleet's notify.
	ReplyTo nameText `yaml:"reply-to,omitempty"`
	// How often the trigger may fire, for example 10/1h: so many times within any hour. Over it a schedule skips, a request is answered with 429, and files and polls are found again later.
	Rate rateText `yaml:"rate,omitempty"`
}

// A schedule. Its prompt can use {{.At}} and {{.Label}}.
type cronKeySet struct {
	commonKeySet
	// crontab(5)'s five fields (minute, hour, day of month, month, day of week), @daily and the like, or @every 90m.
	Cron filledText `yaml:"cron" jsonschema:"required"`
	// The schedule may have a sixth field in front, the seconds, and @every may be shorter than a minute.
	Seconds bool `yaml:"seconds,omitempty" jsonschema:"default=false"`
	// The time zone of this trigger alone.
	Timezone filledText `yaml:"timezone,omitempty"`
	// What happens to fires that fell due while heartbeat was not running: skip drops them, once makes one fire of them, all fires each (at most 10).
	Missed string `yaml:"missed,omitempty" jsonschema:"enum=skip,enum=once,enum=all,default=once"`
	// Fires that would be later than this are dropped.
	Grace limit `yaml:"grace,omitempty" jsonschema:"default=none"`
	// Delays each fire by up to this much, always the same for one trigger of one agent, so that many agents do not start in the same second.
	Jitter limit `yaml:"jitter,omitempty" jsonschema:"default=none"`
	// What happens to a fire while the previous one is still queued or being worked on.
	Overlap string `yaml:"overlap,omitempty" jsonschema:"enum=skip,enum=queue,default=skip"`
}

// Files that appear or change. Its prompt can use {{.Path}}, {{.AbsPath}}, {{.Name}} and {{.Event}}. Each new state of a file makes its own prompt.
type watchKeySet struct {
	commonKeySet
	// Globs relative to the workspace; ** stands for any folders. Files in .git, .claude or .heartbeat, and those that editors keep beside an open file (swap files, backups), match only where a glob names them.
	Watch []filledText `yaml:"watch" jsonschema:"required,minItems=1"`
	// How long a file must stay unchanged before it fires.
	Debounce limit `yaml:"debounce,omitempty" jsonschema:"default=500ms"`
	// Also fire when a file that has fired is removed.
	Removed bool `yaml:"removed,omitempty" jsonschema:"default=false"`
	// Do not fire for files that change while the agent's own session is in a turn, whoever changes them.
	IgnoreOwn bool `yaml:"ignore-own,omitempty" jsonschema:"default=false"`
	// One prompt for all files that are found together (at most 1000); it can use {{.Paths}} and the first one's {{.Path}}, {{.AbsPath}}, {{.Name}} and {{.Event}}.
	Batch bool `yaml:"batch,omitempty" jsonschema:"default=false"`
}

// A command whose output makes prompts. Its prompt can use {{.Output}} and, with split: json, the value as {{.JSON}}, for example {{.JSON.title}}; without a prompt the output is the prompt. The command's environment holds the agent's name (HEARTBEAT_AGENT) and the start time of the last run whose prompts were all queued (HEARTBEAT_LAST_SUCCESS, RFC 3339).
type pollKeySet struct {
	commonKeySet
	// The command as a list of words; it runs in the workspace without a shell. Exit status 0 with output makes a prompt.
	Poll argv `yaml:"poll" jsonschema:"required"`
	// The time from the start of one run to the start of the next.
	Every span `yaml:"every,omitempty" jsonschema:"default=1m"`
	// How long the command may run.
	Timeout span `yaml:"timeout,omitempty" jsonschema:"default=1m"`
	// How the output becomes prompts: one for the whole, one per line, or one per JSON value.
	Split string `yaml:"split,omitempty" jsonschema:"enum=whole,enum=lines,enum=json,default=whole"`
	// content fires only for output that is not among the last 1000 that fired, key only for output whose key is not. Output that a gate declined has not fired: the gate is asked again at the next run.
	Dedupe string `yaml:"dedupe,omitempty" jsonschema:"enum=none,enum=content,enum=key,default=none"`
	// For dedupe: key, what identifies an output: a Go text/template like the prompt, for example {{.JSON.id}}.
	Key filledText `yaml:"key,omitempty"`
	// The name of a webhook of the same agent that this poll backs up: what one of them has queued, the other does not queue again, told by the key of each. So the poll finds what was sent while heartbeat was down.
	BacksUp nameText `yaml:"backs-up,omitempty"`
	// skip does not run the command while a prompt made from its output is still queued or being worked on.
	Overlap string `yaml:"overlap,omitempty" jsonschema:"enum=skip,enum=queue,default=skip"`
}

// A request to a path of the addresses that serve webhooks. Its prompt can use the body as {{.JSON}} ({{.JSON.issue.title}}) and {{.Body}}, and {{.Header "X-GitHub-Event"}}. A field that the request lacks is an error; one that is null is empty.
type webhookKeySet struct {
	commonKeySet
	// The path of the request, for example /github; each trigger has its own.
	Webhook webhookPath `yaml:"webhook" jsonschema:"required"`
	// A file with the secret that a request has to prove it knows: by GitHub's X-Hub-Signature-256, or as Authorization: Bearer SECRET. Required where other machines reach an address that serves webhooks. Only its owner may be able to read it.
	SecretFile pathText `yaml:"secret-file,omitempty"`
	// What a request has to say to become a prompt; others are answered and dropped.
	Match matchKeySet `yaml:"match,omitempty"`
	// What makes two requests the same, a Go text/template like the prompt, for example {{.JSON.id}}: the second one queues nothing. By default the header X-GitHub-Delivery or Idempotency-Key; without one, each request is new.
	Key filledText `yaml:"key,omitempty"`
}

// Conditions, all of which have to hold.
type matchKeySet struct {
	// Headers by their names, with the value or the values that are wanted.
	Headers map[string]wanted `yaml:"headers,omitempty"`
	// Fields of the body by their paths, with dots (issue.state; * is any element of a list: issue.labels.*.name), with the value or the values that are wanted.
	JSON map[string]wanted `yaml:"json,omitempty"`
}

// Kinds of values that the schema describes by more than a Go type.
type (
	triggerKeySet struct{} // one of cronKeySet, watchKeySet, pollKeySet and webhookKeySet
	webhookPath   string   // begins with a slash
	rateText      string   // a number, a slash and a duration
	serviceName   string
	wanted        []word // or one word
	nameText      string // of an agent, a trigger, a group, a fleet
	filledText    string // not blank
	pathText      string // not blank, variables as ${NAME}
	kickoffText   string // begins with a word
	variableGlob  string // for names of variables
	variableName  string // of one
	webAddress    string // http or https
	word          string // text, or a number or bool as it is written
	argv          []word // at least one, the first one not blank
	span          string // a duration
	limit         string // a duration, or none
	byteSize      string
	memorySize    string
	tokenCount    string
	percentage    string
	dollars       float64
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
	limitKeys      = keys[accountLimitKeySet]()
	allowanceKeys  = keys[allowanceKeySet]()
	targetKeys     = keys[targetKeySet]()
	pingKeys       = keys[pingKeySet]()
	keysOf         = map[triggerKind][]string{
		cronKind:  keys[cronKeySet](),
		watchKind: keys[watchKeySet](),
		pollKind:  keys[pollKeySet](),

		webhookKind: keys[webhookKeySet](),
	}
	triggerKeys = unique(keysOf[cronKind], keysOf[watchKind], keysOf[pollKind], keysOf[webhookKind])
	listenKeys  = keys[listenKeySet]()
	matchKeys   = keys[matchKeySet]()
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
