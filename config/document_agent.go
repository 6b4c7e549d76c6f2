package config

// An agent: a workspace in which Claude Code works through a queue of prompts.
type agentKeySet struct {
	// The workspace, relative to the file that declares it. ~ and ${VAR} are expanded; $$ is a $. It must not be a home directory or a system directory.
	Dir pathText `yaml:"dir,omitempty"`
	// What starts a session, as a list of words. A first word "heartbeat" is the running binary; one with a slash is relative to the file that declares it.
	Command argv `yaml:"command,omitempty"`
	// Which of Claude Code's settings files gets our hooks: .claude/settings.json, .claude/settings.local.json, or one outside the workspace, passed with --settings and merged with what command itself passes by that flag (flag). With only, nothing else is read: not the settings, .mcp.json and CLAUDE.md of the workspace, nor those of the user.
	Settings string `yaml:"settings,omitempty" jsonschema:"enum=project,enum=local,enum=flag,enum=only,default=project"`
	// Allows files that decide what runs to be in the workspace, where the agent could rewrite them: the fleet's file, the files that it includes, the programs of command, poll and gate, env-file, prompt-file. Permission rules keep the client's own tools away from them.
	TrustDir bool `yaml:"trust-dir,omitempty" jsonschema:"default=false"`
	// What the sessions may do without asking.
	Permissions permissionKeySet `yaml:"permissions,omitempty"`
	// When a prompt is done: a check that has to pass, instead of the end of its turn.
	Until untilKeySet `yaml:"until,omitempty"`
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
	// Which of the agent's requests for an approval are answered without a person.
	Approvals approvalKeySet `yaml:"approvals,omitempty"`
	// The group that the agent belongs to, a key of groups.
	Group filledText `yaml:"group,omitempty"`
	// Who is told of this agent, as keys of the fleet's notify. By default all of them; [] is nobody.
	Notify []nameText `yaml:"notify,omitempty"`
	// What heartbeat send does while the agent cannot work: queue the prompt, or refuse it.
	WhileDown string `yaml:"while-down,omitempty" jsonschema:"enum=queue,enum=refuse,default=queue"`
	// A text for those who send a prompt while the agent cannot work, shown with the cause.
	DownText filledText `yaml:"down-text,omitempty"`
	// Whether the client may update itself while its sessions run.
	AutoUpdate bool `yaml:"auto-update,omitempty" jsonschema:"default=false"`
	// Environment variables of the sessions and of poll commands.
	Env map[string]word `yaml:"env,omitempty"`
	// A file with more variables, one NAME=VALUE per line, relative to the file that declares it. Others must not be able to read it.
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

// Which requests for an approval are answered without a person, by their category: read, write, execute, destroy, network or auth. A person answers all others.
type approvalKeySet struct {
	// What is approved.
	Always []approvalWord `yaml:"always,omitempty"`
	// What is rejected, whatever else is said here.
	Never []approvalWord `yaml:"never,omitempty"`
	// What is approved once a person has approved it so many times without rejecting it, for example {write: 3}.
	After approvalCountKeySet `yaml:"after,omitempty"`
	// Who answers the others: any person, or with page only who proves it with a token, on the page with one that may act, in a command with one of heartbeat page token.
	By string `yaml:"by,omitempty" jsonschema:"enum=person,enum=page,default=person"`
}

// How many times in a row a person has to have approved it.
type approvalCountKeySet struct {
	// Of reading.
	Read int `yaml:"read,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
	// Of writing.
	Write int `yaml:"write,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
	// Of running a program.
	Execute int `yaml:"execute,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
	// Of what cannot be undone.
	Destroy int `yaml:"destroy,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
	// Of reaching other machines.
	Network int `yaml:"network,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
	// Of logins, keys and rights.
	Auth int `yaml:"auth,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
}

// When a prompt is done. Until then it is handed over again, each time with what the check has said, as another iteration.
type untilKeySet struct {
	// The check as a list of words; the scheduler runs it in the workspace without a shell, with PATH, HOME, LANG and AGENT_DIR only. Exit status 0: the prompt is done; 75: ask again later; any other: not done. A program with a slash is relative to the file that declares it.
	Check argv `yaml:"check" jsonschema:"required"`
	// How long the check may run; one that takes longer has not passed.
	CheckTimeout span `yaml:"check-timeout,omitempty" jsonschema:"default=10m"`
	// What a person has to say yes to once the check has passed, by names like release; a rule of approvals may answer for a name that is a category.
	Approve []nameText `yaml:"approve,omitempty" jsonschema:"uniqueItems=true"`
	// Whether the queue goes on while a prompt waits for that yes. The answer puts the prompt first. With approve.
	Aside bool `yaml:"aside,omitempty" jsonschema:"default=false"`
	// What the agent has to claim itself beside the check that passes, as <promise>TEXT</promise> in its last message.
	Promise filledText `yaml:"promise,omitempty"`
	// After how many iterations that were not proven the prompt is given up; 0: no limit.
	MaxIterations int `yaml:"max-iterations,omitempty" jsonschema:"minimum=0,maximum=2147483647,default=10"`
	// How long the agent may work on the prompt, all iterations together, before it is given up. Checks and waiting do not count.
	MaxTime limit `yaml:"max-time,omitempty" jsonschema:"default=2h"`
	// More environment variables of the check.
	Env map[string]word `yaml:"env,omitempty"`
	// How long a session stays open for a check; then it ends, and the next iteration goes on in its conversation.
	Hold span `yaml:"hold,omitempty" jsonschema:"default=15m"`
}

// What sessions may do without asking.
type permissionKeySet struct {
	// What happens to a tool call that no rule allows: dontAsk refuses it, so that nothing waits for a person.
	Mode string `yaml:"mode,omitempty" jsonschema:"enum=dontAsk,enum=default,enum=acceptEdits,enum=bypassPermissions,default=dontAsk"`
	// Claude Code's permission rules for what is allowed.
	Allow []filledText `yaml:"allow,omitempty"`
	// Claude Code's permission rules for what is refused.
	Deny []filledText `yaml:"deny,omitempty"`
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
