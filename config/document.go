package config

import (
	"reflect"
	"slices"
	"strings"
)

// The types in document*.go define the keys of heartbeat.yaml. They are read by reflection only: the loader takes its lists of known keys from them, and the JSON Schema (schema.json) is generated from them, with their comments as descriptions. The loader checks values; it knows more than a schema can express.

// heartbeat.yaml declares a fleet of agents.
type fileKeys struct {
	// The version of this format: 1.
	Version int `yaml:"version" jsonschema:"required,enum=1"`
	// The fleet's name, for its state directory. By default it is made from the directory's name and the file's path as it was typed.
	Name nameText `yaml:"name,omitempty"`
	// More files, as paths relative to this one; globs are allowed, and take no hidden files and no copies that editors leave. Their agents belong to this fleet. This file's defaults apply to them where their own say nothing.
	Include []pathText `yaml:"include,omitempty"`
	// How many sessions may be open at once, over all agents.
	MaxSessions int `yaml:"max-sessions,omitempty" jsonschema:"minimum=1,maximum=2147483647,default=4"`
	// What all agents together may spend. Over it no agent starts anything until the period ends.
	Budget sharedBudgetKeySet `yaml:"budget,omitempty"`
	// How many checks of until: may run at once, over all agents. By default as many as there are processors.
	MaxChecks int `yaml:"max-checks,omitempty" jsonschema:"minimum=1,maximum=2147483647"`
	// Groups of agents that share a smaller number of sessions, by name.
	Groups map[string]groupKeys `yaml:"groups,omitempty"`
	// How long a session may keep its slot while another agent waits for one and no session is idle; then it ends after its current turn. Sessions with on-idle: tick keep theirs.
	SlotTime limit `yaml:"slot-time,omitempty" jsonschema:"default=30m"`
	// How long running turns may take to finish after the run is asked to stop.
	ShutdownGrace limit `yaml:"shutdown-grace,omitempty" jsonschema:"default=30s"`
	// Addresses at which heartbeat run serves: webhooks, metrics, the page in a browser.
	Listen []listenKeySet `yaml:"listen,omitempty"`
	// The page in a browser, which an address of listen serves.
	Page pageKeySet `yaml:"page,omitempty"`
	// Whom to tell what needs a person, and where replies go, by name.
	Notify map[string]targetKeySet `yaml:"notify,omitempty"`
	// A sign of life for a watch outside of this machine, which raises the alarm when it stays away.
	Ping pingKeySet `yaml:"ping,omitempty"`
	// Which requests for an approval are answered without a person, and who answers the others, for all agents; defaults and agents override it key by key.
	Approvals approvalKeySet `yaml:"approvals,omitempty"`
	// Any field of an agent; agents override it field by field.
	Defaults agentKeySet `yaml:"defaults,omitempty"`
	// The agents by name.
	Agents map[string]agentKeySet `yaml:"agents,omitempty"`
}

// An address at which heartbeat run serves, without TLS: that is for a proxy in front of it.
type listenKeySet struct {
	// HOST:PORT, :PORT for this machine alone, or unix:PATH for a socket, relative to this file.
	Address pathText `yaml:"address" jsonschema:"required"`
	// What is served there: webhooks (the paths of webhook triggers), metrics (/metrics, /healthz, /readyz), page (below /page/).
	Serve []serviceName `yaml:"serve" jsonschema:"required,minItems=1"`
	// A file with the secret that a request for metrics needs (Authorization: Bearer SECRET); required for an address that other machines reach. Others must not be able to read it.
	SecretFile pathText `yaml:"secret-file,omitempty"`
	// Who may connect to a socket: the user that runs heartbeat, the group of the socket's folder (where the folder has the setgid bit), or everybody.
	Access string `yaml:"access,omitempty" jsonschema:"enum=owner,enum=group,enum=everybody,default=owner"`
	// Whether the user that runs heartbeat may look at the page over this socket without a token. No proxy may connect to it: all that it lets in could look.
	Open bool `yaml:"open,omitempty"`
}

// The page in a browser.
type pageKeySet struct {
	// Where people find it, for example https://fleet.example.org: other names than this one and localhost are refused, and links begin with it.
	Address webAddress `yaml:"address,omitempty"`
	// The addresses or networks of proxies before it, whose X-Forwarded-Proto and X-Forwarded-For are believed; socket means who connects to a socket.
	Proxies []filledText `yaml:"proxies,omitempty"`
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
	// A file that holds the address, relative to this one. Others must not be able to read it.
	WebhookFile pathText `yaml:"webhook-file,omitempty"`
	// The variable of the scheduler's environment that holds the address.
	WebhookEnv variableName `yaml:"webhook-env,omitempty"`
	// What is sent to the address: JSON with all facts, or what Slack, ntfy or Telegram take.
	Body string `yaml:"body,omitempty" jsonschema:"enum=json,enum=slack,enum=ntfy,enum=telegram,default=json"`
	// A file that holds the token that the server wants: the bearer token, or a Telegram bot's. Others must not be able to read it.
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
	// A file that holds the address, relative to this one. Others must not be able to read it.
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
	approvalWord  string // a category
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
	untilKeys      = keys[untilKeySet]()
	resourceKeys   = keys[resourceKeySet]()
	limitKeys      = keys[accountLimitKeySet]()
	approvalKeys   = keys[approvalKeySet]()
	// ApprovalCategories are the kinds of acts that an agent may ask a person for.
	ApprovalCategories = keys[approvalCountKeySet]()
	allowanceKeys      = keys[allowanceKeySet]()
	targetKeys         = keys[targetKeySet]()
	pingKeys           = keys[pingKeySet]()
	keysOf             = map[triggerKind][]string{
		cronKind:  keys[cronKeySet](),
		watchKind: keys[watchKeySet](),
		pollKind:  keys[pollKeySet](),

		webhookKind: keys[webhookKeySet](),
	}
	triggerKeys = unique(keysOf[cronKind], keysOf[watchKind], keysOf[pollKind], keysOf[webhookKind])
	listenKeys  = keys[listenKeySet]()
	pageKeys    = keys[pageKeySet]()
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
