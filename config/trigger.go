package config

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"gopkg.in/yaml.v3"

	"heartbeat/sources"
)

// Defaults of a trigger.
const (
	DefaultDebounce    = 500 * time.Millisecond
	DefaultEvery       = time.Minute
	DefaultPollTimeout = time.Minute
)

// leastEvery bounds how often a poll command runs: each run costs a process, even
// while the agent is idle.
const leastEvery = time.Second

// maxPromptFile is the size limit of a prompt file in bytes, the same as for the
// prompt that a template produces.
const maxPromptFile = 1 << 20

type triggerKind string

const (
	cronKind  triggerKind = "cron"
	watchKind triggerKind = "watch"
	pollKind  triggerKind = "poll"

	webhookKind triggerKind = "webhook"
)

var kindKeys = []string{string(cronKind), string(watchKind), string(pollKind), string(webhookKind)}

// triggers reads trigger or triggers, whichever is given.
func (l *loader) triggers(t table) []Trigger {
	zone := l.zone(t, time.Local)
	one, single := t["trigger"]
	several, list := t["triggers"]
	switch {
	case single && list:
		l.problem(several, "trigger and triggers are both given", "put all of them into triggers:")
		return nil
	case single:
		if one = one.here(); one.node.Kind == yaml.SequenceNode {
			l.problem(one, "must be a mapping, not a list", "write triggers: for several")
			return nil
		}
		return l.numbered([]place{one}, zone)
	case list:
		several = several.here()
		n := several.node
		if n.Kind != yaml.SequenceNode {
			l.problem(several, "must be a list, not "+kind(n), "write trigger: for one")
			return nil
		}
		places := make([]place, len(n.Content))
		for i, element := range n.Content {
			places[i] = several.below(i, element)
		}
		return l.numbered(places, zone)
	}
	return nil
}

// numbered reads triggers and names those without a name.
func (l *loader) numbered(places []place, zone *time.Location) []Trigger {
	var all []Trigger
	count := map[triggerKind]int{}
	lines := map[string]int{}
	for _, p := range places {
		trigger, kind, ok := l.trigger(p, zone)
		if !ok {
			continue
		}
		count[kind]++
		if trigger.Name == "" {
			trigger.Name = string(kind) + "-" + strconv.Itoa(count[kind])
		}
		if line, twice := lines[strings.ToLower(trigger.Name)]; twice {
			l.problem(p.lacking("name"), fmt.Sprintf("the name %q is taken by the trigger on line %d", trigger.Name, line), "give each a name: of its own")
		}
		lines[strings.ToLower(trigger.Name)] = trigger.Line
		all = append(all, trigger)
	}
	l.backedUp(all)
	return all
}

func (l *loader) trigger(p place, zone *time.Location) (Trigger, triggerKind, bool) {
	t, ok := l.table(p, triggerKeys, nil)
	if !ok {
		return Trigger{}, "", false
	}
	kind, ok := l.kindOf(p, t)
	if !ok {
		return Trigger{}, "", false
	}
	for key, value := range t {
		if !slices.Contains(keysOf[kind], key) {
			hint := "remove it"
			if key == "overlap" {
				hint += ": each state of a file, and each request, is a prompt of its own"
			}
			l.problem(value.named(), fmt.Sprintf("a %s trigger has no %s", kind, key), hint)
		}
	}
	trigger := Trigger{Line: follow(p.node).Line}
	if name, ok := t["name"]; ok {
		trigger.Name, trigger.Named = l.name(name), true
	}
	if gate, ok := t["gate"]; ok {
		trigger.Gate = l.command(gate, "[./is-it-time.sh]")
		trigger.GateProgram = l.runs(gate, trigger.Gate, false)
	}
	trigger.Until = l.until(t)
	if to, ok := t["reply-to"]; ok {
		trigger.ReplyTo = l.targetNamed(to)
	}
	trigger.Urgent = l.boolean(t, "urgent")
	trigger.Rate = l.rate(t)
	switch kind {
	case cronKind:
		trigger.Cron = l.cron(t, l.prompt(p, t, promptData{kind: kind}), zone)
	case watchKind:
		trigger.Watch = l.watch(t, l.prompt(p, t, promptData{kind: kind}))
	case pollKind:
		trigger.Poll = l.poll(t)
		trigger.Poll.Prompt = l.prompt(p, t, promptData{kind, trigger.Poll.Split})
	case webhookKind:
		trigger.Webhook = l.webhook(p, t, l.prompt(p, t, promptData{kind: kind}))
	}
	return trigger, kind, true
}

func (l *loader) kindOf(p place, t table) (triggerKind, bool) {
	var found []string
	for _, kind := range kindKeys {
		if _, ok := t[kind]; ok {
			found = append(found, kind)
		}
	}
	switch len(found) {
	case 1:
		return triggerKind(found[0]), true
	case 0:
		l.problem(p.here(), "does not say what triggers it", "write one of cron, watch, poll, webhook")
	default:
		l.problem(t[found[1]], strings.Join(found, " and ")+" are both given", "write triggers: with an element for each")
	}
	return "", false
}

// overlapRule reads the key overlap.
func (l *loader) overlapRule(t table) Overlap {
	return enum(l, t, "overlap", OverlapSkip, []Overlap{OverlapSkip, OverlapQueue})
}

func (l *loader) cron(t table, prompt string, zone *time.Location) *CronTrigger {
	c := &CronTrigger{
		Prompt: prompt, Overlap: l.overlapRule(t),
		Missed: enum(l, t, "missed", sources.MissedOnce, []sources.Missed{sources.MissedSkip, sources.MissedOnce, sources.MissedAll}),
		Grace:  l.duration(t, "grace", 0, bounds{none: true}),
		Jitter: l.duration(t, "jitter", 0, bounds{none: true, most: day}),
	}
	l.missedAll(t, c)
	zone = l.zone(t, zone)
	seconds := l.boolean(t, "seconds")
	spec, ok := l.filled(t["cron"])
	if !ok {
		return c
	}
	key := scheduleKey{spec, zone.String(), seconds}
	parsed, ok := l.cached.schedules[key]
	if !ok {
		parse := sources.ParseSchedule
		if key.seconds {
			parse = sources.ParseScheduleWithSeconds
		}
		parsed.schedule, parsed.err = parse(spec, zone)
		l.cached.schedules[key] = parsed
	}
	if parsed.err != nil {
		l.badSchedule(t["cron"], spec, parsed.err)
	}
	c.Schedule = parsed.schedule
	return c
}

// badSchedule reports each problem of a schedule at its own place.
func (l *loader) badSchedule(p place, spec string, err error) {
	wrong, ok := errors.AsType[*sources.ScheduleError](err)
	if !ok {
		l.problem(p, fmt.Sprintf("%q: %v", cut(spec), err), "")
		return
	}
	for _, f := range wrong.Faults {
		l.problem(p.within(f.Offset), fmt.Sprintf("%q: %s", cut(spec), f.Message), f.Hint)
	}
}

// zone reads the key timezone.
func (l *loader) zone(t table, otherwise *time.Location) *time.Location {
	p, ok := t["timezone"]
	if !ok {
		return otherwise
	}
	name, ok := l.filled(p)
	if !ok {
		return otherwise
	}
	zone, known := l.cached.zones[name]
	if !known {
		zone, _ = time.LoadLocation(name)
		l.cached.zones[name] = zone
	}
	if zone == nil {
		if _, asked := l.cached.zoneHints[name]; !asked {
			l.cached.zoneHints[name] = zoneHint(name)
		}
		l.problem(p, fmt.Sprintf("the time zone %q is not known", cut(name)), l.cached.zoneHints[name])
		return otherwise
	}
	return zone
}

func (l *loader) watch(t table, prompt string) *WatchTrigger {
	w := &WatchTrigger{
		Prompt:   prompt,
		Debounce: l.duration(t, "debounce", DefaultDebounce, bounds{none: true, most: day}),
		Removed:  l.boolean(t, "removed"), IgnoreOwn: l.boolean(t, "ignore-own"), Batch: l.boolean(t, "batch"),
	}
	p := t["watch"]
	const hint = `for example ["incoming/**/*.md"]`
	w.Patterns = l.texts(p, hint)
	p = p.here()
	if p.node.Kind == yaml.SequenceNode && len(p.node.Content) == 0 {
		l.problem(p, "is empty", hint)
	}
	for i, element := range p.node.Content {
		if element = follow(element); p.node.Kind == yaml.SequenceNode && element.Kind == yaml.ScalarNode {
			l.pattern(p.below(i, element), element.Value)
		}
	}
	return w
}

const patternHint = `*, ?, **, [a-z] and {a,b} are known; \ takes the meaning away`

// pattern checks one glob. It is relative to the agent's directory.
func (l *loader) pattern(p place, pattern string) {
	if pattern == "" {
		return // noted
	}
	const inside = "patterns are relative to the agent's dir"
	parts := strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune("/{},", r) })
	switch {
	case !doublestar.ValidatePattern(pattern):
		l.problem(p, fmt.Sprintf("%q is not a valid pattern", cut(pattern)), patternHint)
	case path.IsAbs(pattern) || strings.HasPrefix(pattern, "~"):
		l.problem(p, fmt.Sprintf("%q is absolute", cut(pattern)), inside)
	case slices.Contains(parts, ".."):
		l.problem(p, fmt.Sprintf("%q leads outside the agent's dir", cut(pattern)), inside)
	case len(parts) == 0: // {} and its like
		l.problem(p, fmt.Sprintf("%q never matches", cut(pattern)), patternHint)
	case path.Clean(pattern) != pattern:
		l.problem(p, fmt.Sprintf("%q never matches", cut(pattern)), "write "+path.Clean(pattern))
	case parts[0] == ".heartbeat":
		l.problem(p, "heartbeat's own files change all the time", "watch another directory")
	default:
		l.claims.watched = append(l.claims.watched, watched{where: p, pattern: pattern})
	}
}

// poll reads a poll trigger except its prompt, which depends on the split.
func (l *loader) poll(t table) *PollTrigger {
	command := l.command(t["poll"], "[./next-ticket.sh]")
	p := &PollTrigger{
		Command: command, Program: l.runs(t["poll"], command, false), Overlap: l.overlapRule(t),
		Every:   l.duration(t, "every", DefaultEvery, bounds{least: leastEvery, why: "each run starts a process"}),
		Timeout: l.duration(t, "timeout", DefaultPollTimeout, bounds{most: day}),
		Split:   enum(l, t, "split", sources.SplitWhole, []sources.Split{sources.SplitWhole, sources.SplitLines, sources.SplitJSON}),
	}
	dedupe := enum(l, t, "dedupe", "none", []string{"none", "content", "key"})
	p.Dedupe = dedupe != "none"
	switch key, has := t["key"]; {
	case has && dedupe != "key":
		l.problem(key, "is only used with dedupe: key", "write dedupe: key, or remove it")
	case has:
		p.Key, _ = l.filled(key)
		l.template(key, p.Key, promptData{pollKind, p.Split}, false)
	case dedupe == "key":
		l.problem(t["dedupe"], "needs a key", `write key: "{{.JSON.id}}" beside split: json, for example`)
	}
	if where, ok := t["backs-up"]; ok {
		p.BacksUp = l.name(where)
		l.claims.backups = append(l.claims.backups, backup{p, where})
	}
	return p
}
