package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Target is somebody to tell: a command, or an address.
type Target struct {
	Name string
	// Command is run in Dir. Program is the absolute path of Command[0] where that has
	// a slash.
	Command []string
	Program string
	Dir     string
	// Webhook is the address; Token is what its server wants, Chat a Telegram bot's.
	Webhook, Token Secret
	Chat           string
	Body           Body
	Tier           Tier
	// Quiet is when it is sent only what is urgent, in Zone; nil: the machine's own.
	Quiet *Hours
	Zone  *time.Location
	// Digest is how long notices that are not urgent are collected; 0: not at all.
	Digest  time.Duration
	Timeout time.Duration
}

// Argv is the target's command with its program's path.
func (t *Target) Argv() []string { return located(t.Program, t.Command) }

// Body is the form of what is sent to an address.
type Body string

// The forms.
const (
	BodyJSON     Body = "json"
	BodySlack    Body = "slack"
	BodyNtfy     Body = "ntfy"
	BodyTelegram Body = "telegram"
)

// Tier says how much a target is told. A higher tier includes the lower ones.
type Tier string

// The tiers.
const (
	TierUrgent  Tier = "urgent"  // what needs a person
	TierInfo    Tier = "info"    // also what ends by itself
	TierReplies Tier = "replies" // only what is addressed to it
)

// WhileDown says what becomes of a prompt that is sent while its agent cannot work.
type WhileDown string

// The rules for such prompts.
const (
	DownQueues  WhileDown = "queue"
	DownRefuses WhileDown = "refuse"
)

// Ping is a sign of life for a watch outside of this machine: a command, or an
// address.
type Ping struct {
	Command []string
	Program string
	Dir     string
	URL     Secret
	Every   time.Duration
	// Plain is true where there is only the address itself, asked for while all is
	// well.
	Plain bool
}

// Argv is the ping's command with its program's path.
func (p *Ping) Argv() []string { return located(p.Program, p.Command) }

// Defaults of what is told.
const (
	DefaultNotifyTimeout = 30 * time.Second
	DefaultPingEvery     = 5 * time.Minute
)

// telegramAPI is where Telegram's bots are, unless a target names a server of its own.
const telegramAPI = "https://api.telegram.org"

const (
	mostNotifyTimeout = 5 * time.Minute
	leastPing         = 10 * time.Second
)

// recipient is a place that names a target.
type recipient struct {
	where place
	name  string
}

// targets reads who can be told.
func (l *loader) targets(t table) map[string]*Target {
	p, ok := t["notify"]
	if !ok {
		return nil
	}
	all := map[string]*Target{}
	for name, entry := range l.entries(p) {
		l.checkName(entry.named(), name)
		fields, ok := l.table(entry, targetKeys, func(key string) string {
			switch key {
			case "url":
				return "did you mean webhook?"
			case "token":
				return "a token does not belong in this file: write token-file: PATH, or token-env: VARIABLE"
			}
			return ""
		})
		if ok {
			all[name] = l.target(name, entry, fields)
		}
	}
	return all
}

func (l *loader) target(name string, p place, t table) *Target {
	to := &Target{
		Name: name, Dir: p.from.base,
		Body:    enum(l, t, "body", BodyJSON, []Body{BodyJSON, BodySlack, BodyNtfy, BodyTelegram}),
		Tier:    enum(l, t, "tier", TierUrgent, []Tier{TierUrgent, TierInfo, TierReplies}),
		Digest:  l.duration(t, "digest", 0, bounds{none: true, most: day}),
		Timeout: l.duration(t, "timeout", DefaultNotifyTimeout, bounds{most: mostNotifyTimeout}),
	}
	to.Zone = l.zone(t, nil)
	to.Quiet = l.quiet(t)
	to.Webhook, to.Token = l.secret(t, "webhook"), l.secret(t, "token")
	to.Command, to.Program = l.teller(t)
	if chat, ok := t["chat"]; ok {
		to.Chat, _ = l.word(chat)
	}
	l.oneWay(p, t, to)
	return to
}

// oneWay checks that there is one way to a target, and all that it needs.
func (l *loader) oneWay(p place, t table, to *Target) {
	_, command := t["command"]
	ways := l.given(t, "webhook", "webhook-file", "webhook-env")
	if to.Body == BodyTelegram && !command && len(ways) == 0 {
		to.Webhook, ways = Secret{Text: telegramAPI}, []string{"body"}
	}
	switch {
	case !command && len(ways) == 0:
		l.problem(p.named(), "does not say how it is told", "write webhook-file: PATH, webhook: ADDRESS or command: [PROGRAM]")
	case command && len(ways) > 0:
		l.problem(t[ways[0]].named(), "command and "+ways[0]+" are both given", "remove one of them")
	}
	if command {
		for _, key := range l.given(t, "body", "token-file", "token-env", "chat") {
			l.problem(t[key].named(), "a command has no "+key, "remove it")
		}
		return
	}
	switch chat, has := t["chat"]; {
	case to.Body == BodyTelegram && !has:
		l.absence(p.of(p.key, p.join("chat")), `write chat: "NUMBER", or chat: "@channel"`)
	case to.Body == BodyTelegram && to.Token == (Secret{}):
		l.absence(p.of(p.key, p.join("token-file")), "write token-file: PATH; the file holds the bot's token")
	case to.Body != BodyTelegram && has:
		l.problem(chat.named(), "is only used with body: telegram", "remove it")
	}
}

// given returns those of the keys that are there.
func (l *loader) given(t table, keys ...string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { _, is := t[key]; return !is })
}

// teller reads a command that tells something. It runs in the folder of the file.
func (l *loader) teller(t table) (argv []string, program string) {
	p, ok := t["command"]
	if !ok {
		return nil, ""
	}
	argv = l.command(p, "[./tell.sh]")
	before := len(l.claims.programs)
	program = l.runs(p, argv, false)
	for i := range l.claims.programs[before:] {
		l.claims.programs[before+i].agent = &Agent{Name: "notify", Dir: p.from.base}
	}
	return argv, program
}

// quiet reads when only what is urgent is told; nil: never.
func (l *loader) quiet(t table) *Hours {
	p, ok := t["quiet-hours"]
	if !ok {
		return nil
	}
	text, ok := l.filled(p)
	if !ok {
		return nil
	}
	hours, ok := parseHours(text)
	if !ok {
		l.problem(p, fmt.Sprintf("%q are not hours", cut(text)), `for example "22:00-07:00", or "Sat,Sun 00:00-24:00"`)
	}
	return &hours
}

// ping reads the sign of life; nil: there is none.
func (l *loader) ping(t table) *Ping {
	p, ok := t["ping"]
	if !ok {
		return nil
	}
	fields, ok := l.table(p, pingKeys, nil)
	if !ok {
		return nil
	}
	ping := &Ping{
		Dir: p.from.base, URL: l.secret(fields, "url"),
		Every: l.duration(fields, "every", DefaultPingEvery, bounds{least: leastPing, why: "each one asks the scheduler for a sign of life", most: day}),
		Plain: enum(l, fields, "form", "healthchecks", []string{"healthchecks", "plain"}) == "plain",
	}
	ping.Command, ping.Program = l.teller(fields)
	switch ways := l.given(fields, "url", "url-file", "url-env", "command"); len(ways) {
	case 0:
		l.problem(p.named(), "does not say where to", "write url-file: PATH, url: ADDRESS or command: [PROGRAM]")
	case 1:
	default:
		l.problem(fields[ways[1]].named(), ways[0]+" and "+ways[1]+" are both given", "remove one of them")
	}
	return ping
}

// told reads who is told of an agent, and what becomes of prompts while it is down.
func (l *loader) told(a *Agent, t table) {
	if p, ok := t["notify"]; ok {
		a.Notify = l.targetsNamed(p)
	}
	a.WhileDown = enum(l, t, "while-down", DownQueues, []WhileDown{DownQueues, DownRefuses})
	if p, ok := t["down-text"]; ok {
		a.DownText, _ = l.filled(p)
	}
}

// targetsNamed reads a list of targets; it is never nil.
func (l *loader) targetsNamed(p place) []string {
	names := []string{}
	for _, element := range l.listed(p, "for example [phone]") {
		if name := l.targetNamed(element); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func (l *loader) targetNamed(p place) string {
	name, ok := l.filled(p)
	if ok {
		l.claims.recipients = append(l.claims.recipients, recipient{p, name})
	}
	return name
}

// knownTargets checks that each target that is named is declared.
func (l *loader) knownTargets(f *Fleet) {
	names := slices.Sorted(maps.Keys(f.Targets))
	for _, r := range l.claims.recipients {
		if f.Targets[r.name] != nil {
			continue
		}
		hint := fmt.Sprintf("declare it at the top of the file: notify: {%s: {webhook-file: PATH}}", cut(r.name))
		if near := Nearest(r.name, names); near != nil {
			hint = "did you mean " + near[0] + "?"
		} else if len(names) > 0 {
			hint = "the targets are " + strings.Join(names, ", ")
		}
		l.problem(r.where, fmt.Sprintf("the target %q is not declared", cut(r.name)), hint)
	}
}
