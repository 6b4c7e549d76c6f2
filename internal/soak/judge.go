package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
	"heartbeat/internal/simulate/script"
)

// evidence is all that is known at the end, read from the records.
type evidence struct {
	*fleet
	prompts map[string]*prompt // :: key
	order   []*prompt          // as they were intended
	faults  []fault
	broken  []string
}

// prompt is one prompt that a sender meant to send.
type prompt struct {
	sending           // as it was intended
	last    step      // how far it came
	at      time.Time // then
	given   []delivery
	tools   []time.Time
	dead    []inbox.DeadEntry // that stand in the file at the end
}

func (e *evidence) fail(format string, args ...any) {
	e.broken = append(e.broken, fmt.Sprintf(format, args...))
}

// gather reads the records. What they say that cannot be is noted at once.
func (f *fleet) gather() (*evidence, error) {
	e := &evidence{fleet: f, prompts: map[string]*prompt{}}
	sent, err := readLines[sending](f.Dir, "sent.jsonl")
	if err != nil {
		return nil, err
	}
	for _, x := range sent {
		if x.Step == intended {
			p := &prompt{sending: x, last: unknown, at: x.At}
			e.prompts[x.Key] = p
			e.order = append(e.order, p)
		} else {
			e.prompts[x.Key].last, e.prompts[x.Key].at = x.Step, x.At
		}
	}
	if e.faults, err = readLines[fault](f.Dir, "faults.jsonl"); err != nil {
		return nil, err
	}
	surprises, err := readLines[surprise](f.Dir, "surprises.jsonl")
	if err != nil {
		return nil, err
	}
	for _, s := range surprises {
		e.fail("%s at %s", s.What, s.At.Format("15:04:05.000"))
	}
	if err := e.gatherDeliveries(); err != nil {
		return nil, err
	}
	return e, e.gatherDead()
}

func (e *evidence) gatherDeliveries() error {
	given, err := e.deliveries()
	if err != nil {
		return err
	}
	tools, err := e.toolUses()
	if err != nil {
		return err
	}
	for _, d := range given {
		p := e.prompts[d.key]
		if p == nil && strings.HasPrefix(d.key, "cron ") && d.text == d.key {
			p = &prompt{sending: sending{Agent: d.agent, Key: d.key, How: "cron", Prompt: d.text, At: d.at.Add(-cronAge)}, last: accepted, at: d.at}
			e.prompts[d.key] = p
			e.order = append(e.order, p)
		}
		switch {
		case p == nil:
			e.fail("garbled: nobody sent %s, which was given to %s at %s", short(d.text), d.agent, d.at.Format("15:04:05.000"))
			continue
		case d.agent != p.Agent:
			e.fail("misled: %s of %s was given to %q", d.key, p.Agent, d.agent)
		case unescape(d.text) != unescape(p.Prompt):
			e.fail("garbled: %s (%s) was sent as %s and given as %s", d.key, p.How, short(p.Prompt), short(d.text))
		}
		p.given = append(p.given, d)
	}
	for _, t := range tools {
		var of *delivery
		for i := range given {
			if given[i].session == t.session && given[i].key != "" && given[i].at.Before(t.at) {
				of = &given[i]
			}
		}
		if of != nil && e.prompts[of.key] != nil {
			e.prompts[of.key].tools = append(e.prompts[of.key].tools, t.at)
		}
	}
	return nil
}

func (e *evidence) gatherDead() error {
	for _, m := range e.Members {
		err := e.eachDead(m, func(d inbox.DeadEntry) {
			if p := e.prompts[keyIn(string(d.Raw()))]; p != nil {
				p.dead = append(p.dead, d)
			} else if key := keyIn(string(d.Raw())); d.Reason != inbox.Torn && !strings.Contains(string(d.Raw()), "cron a") {
				e.fail("garbled: a dead letter (%s) of %s that nobody sent: %q %s", d.Reason, m.Name, key, short(string(d.Raw())))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unescape undoes what the client does to its own tag, which nobody can undo
// exactly: so it is done to both sides.
func unescape(text string) string { return strings.ReplaceAll(text, "&lt;", "<") }

func short(text string) string {
	if len(text) > 300 {
		text = text[:150] + "…" + text[len(text)-150:]
	}
	return fmt.Sprintf("%q", text)
}

// judge checks the promise.
func (f *fleet) judge() (*report, error) {
	e, err := f.gather()
	if err != nil {
		return nil, err
	}
	r := &report{Seed: f.Seed, Agents: len(f.Members), LeftOut: f.LeftOut, Evidence: f.Dir}
	members := map[string]*member{}
	for _, m := range f.Members {
		members[m.Name] = m
	}
	for _, p := range e.order {
		e.arrived(p, r)
		e.repeats(p, members[p.Agent], r)
		e.deadLetters(p, members[p.Agent], r)
	}
	e.ordered()
	if err := e.replies(r); err != nil {
		return nil, err
	}
	for _, x := range e.faults {
		r.fault(x)
	}
	r.Broken = e.broken
	return r, nil
}

// arrived: an accepted prompt was given, or is a dead letter.
func (e *evidence) arrived(p *prompt, r *report) {
	r.Sent++
	r.how(p)
	switch {
	case p.last == accepted:
		r.Accepted++
	case p.last == unknown:
		r.Unknown++
	}
	switch {
	case len(p.given) > 0:
		r.Given++
	case len(p.dead) > 0:
		r.OnlyDead++
		if p.last == accepted && p.dead[0].Reason != inbox.Poison {
			e.fail("lost: %s (%s) was accepted and never given, and is a dead letter as %s", p.Key, p.How, p.dead[0].Reason)
		}
	case p.last == accepted:
		e.fail("lost: %s (%s) was accepted at %s and never given", p.Key, p.How, p.at.Format("15:04:05.000"))
	}
	if p.last == refused && len(p.given) > 0 {
		e.fail("refused and given: %s (%s)", p.Key, p.How)
	}
}

// slack is how long before an entry is given its hand-over can have begun to
// go wrong: a hook that proves that it arrived runs before the model is asked.
const slack = 3 * time.Second

// cronAge is how long before its first turn a cron's prompt can have been
// queued at most: a person who triggers it does so with the same words.
const cronAge = 10 * time.Minute

// repeats: each time after the first is explained by what was done in between.
func (e *evidence) repeats(p *prompt, m *member, r *report) {
	own := slices.ContainsFunc(mishaps, func(mark string) bool { return strings.Contains(p.Prompt, mark) })
	for i := 1; i < len(p.given); i++ {
		before, now := p.given[i-1], p.given[i]
		r.Repeats++
		requeued := e.any(p.Agent, p.At, now.at, fault.requeues)
		interrupted := own || e.any(p.Agent, before.at.Add(-slack), now.at, fault.interrupts)
		switch {
		case !requeued && !interrupted:
			e.fail("doubled: %s (%s, %s) was given at %s and again at %s, and nothing had happened in between",
				p.Key, p.How, m.Policy, before.at.Format("15:04:05.000"), now.at.Format("15:04:05.000"))
		case !requeued && now.attempt < 2:
			e.fail("unmarked: %s (%s) was given again at %s as if for the first time", p.Key, p.How, now.at.Format("15:04:05.000"))
		}
		if m.Policy == inbox.Retry || requeued {
			continue
		}
		for _, ran := range p.tools {
			if !ran.Before(now.at) || ran.Before(before.at) {
				continue
			}
			if !e.any(p.Agent, before.at.Add(-slack), ran, unwitnessed) {
				e.fail("repeated: %s (%s, %s) was given again at %s after a tool ran for it at %s", p.Key, p.How, m.Policy,
					now.at.Format("15:04:05.000"), ran.Format("15:04:05.000"))
			}
		}
	}
}

// unwitnessed reports whether a tool can run without a note of it: its hook
// was killed or stopped, or had no room to write.
func unwitnessed(f fault) bool {
	return f.Class == classHook || f.Class == classTool || f.Kind == faultDisk
}

// any reports whether a fault of a kind touches an agent within a time.
func (e *evidence) any(agent string, from, to time.Time, is func(fault) bool) bool {
	return slices.ContainsFunc(e.faults, func(f fault) bool {
		return (f.Agent == "" || f.Agent == agent) && is(f) && f.From.Before(to) && f.To.After(from)
	})
}

// deadLetters: each has a reason that its agent's policy knows, and stands
// there once.
func (e *evidence) deadLetters(p *prompt, m *member, r *report) {
	seen := map[string]int{}
	for _, d := range p.dead {
		r.dead(d.Reason)
		if seen[d.DeliveryID]++; seen[d.DeliveryID] > 1 {
			e.fail("dead letter twice: %s (%s)", p.Key, d.DeliveryID)
		}
		switch {
		case d.Reason == inbox.Interrupted && m.Policy != inbox.DeadLetter:
			e.fail("dead letter as %s under %s: %s", d.Reason, m.Policy, p.Key)
		case d.Reason == inbox.Interrupted && len(p.tools) == 0 && !strings.Contains(p.Prompt, "[background]") && len(p.given) == 0:
			e.fail("dead letter as %s, and no tool ran for it: %s", d.Reason, p.Key)
		case d.Reason == inbox.Torn && p.last == accepted:
			e.fail("garbled: the accepted %s (%s) is a dead letter as %s: %s", p.Key, p.How, d.Reason, short(string(d.Raw())))
		case d.Reason == inbox.Dropped || d.Reason == inbox.TooLarge || d.Reason == "":
			e.fail("dead letter as %q: %s", d.Reason, p.Key)
		}
	}
}

// ordered: what one sender sent is given in that order, at first.
func (e *evidence) ordered() {
	type who struct{ agent, sender string }
	last := map[who]*prompt{}
	for _, p := range e.order {
		if p.last != accepted || len(p.given) == 0 || !p.How.ordered() || p.How == "cron" {
			continue
		}
		if e.any(p.Agent, p.At, p.given[0].at, fault.requeues) {
			continue // it may have been a dead letter before it was ever given
		}
		w := who{p.Agent, p.Sender}
		if before := last[w]; before != nil && p.given[0].at.Before(before.given[0].at) {
			e.fail("out of order: %s (%s) was given before %s (%s)", p.Key, p.How, before.Key, before.How)
			continue
		}
		last[w] = p
	}
}

// replies: what the outbox says an entry was answered is what the model says
// to that entry.
func (e *evidence) replies(r *report) error {
	for _, m := range e.Members {
		q, err := e.queueOf(m)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for d, err := range q.Deliveries() {
			if err != nil {
				q.Close()
				return err
			}
			r.Acknowledged++
			if seen[d.DeliveryID] {
				e.fail("acknowledged twice: %s of %s", d.DeliveryID, m.Name)
			}
			seen[d.DeliveryID] = true
			e.reply(m, d)
		}
		q.Close()
	}
	return nil
}

func (e *evidence) reply(m *member, d inbox.Delivery) {
	key := keyIn(d.ID)
	p := e.prompts[key]
	if p == nil {
		if p = e.prompts[keyIn(d.Reply)]; p == nil {
			return // the reply to a task's end, say
		}
		if len(p.given) == 0 {
			e.fail("%s has a reply to %s, which was never given", m.Name, p.Key)
		}
		return
	}
	want := "done: " + script.First(p.Prompt)
	got := d.Reply
	if strings.Contains(p.Prompt, "[fail]") && got == "done: "+handover.GoOnPrompt {
		return // it went on when the service was back
	}
	if e.StopHook && m.Gate && got == gateReply {
		return // the last turn of it is about the tests
	}
	if d.ReplyCut {
		want = want[:min(len(want), len(got))]
	}
	if unescape(got) != unescape(want) && got != "" && !strings.Contains(p.Prompt, "[background]") {
		e.fail("the reply to %s is %s", p.Key, short(got))
	}
}
