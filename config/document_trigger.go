package config

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
	// When its prompts are done, instead of the agent's own until.
	Until untilKeySet `yaml:"until,omitempty"`
	// Who gets the reply to its prompts, or learns that one was given up: a key of the fleet's notify.
	ReplyTo nameText `yaml:"reply-to,omitempty"`
	// Hand its prompts over before those that are not urgent. No turn ends for that.
	Urgent bool `yaml:"urgent,omitempty" jsonschema:"default=false"`
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
	// A file with the secret that a request has to prove it knows: by a signature of GitHub, GitLab, Gitea or Bitbucket, or as Authorization: Bearer SECRET (heartbeat help webhook). Required where other machines reach an address that serves webhooks. Others must not be able to read it.
	SecretFile pathText `yaml:"secret-file,omitempty"`
	// What a request has to say to become a prompt; others are answered and dropped.
	Match matchKeySet `yaml:"match,omitempty"`
	// What makes two requests the same, a Go text/template like the prompt, for example {{.JSON.id}}: the second one queues nothing. By default the header X-GitHub-Delivery or Idempotency-Key; without one, each request is new.
	Key filledText `yaml:"key,omitempty"`
}

// Conditions that all have to hold.
type matchKeySet struct {
	// Headers by their names, with the value or the values that are wanted.
	Headers map[string]wanted `yaml:"headers,omitempty"`
	// Fields of the body by their paths, with dots (issue.state; * is any element of a list: issue.labels.*.name), with the value or the values that are wanted.
	JSON map[string]wanted `yaml:"json,omitempty"`
}
