package promise

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Wrong is what a finding says.
type Wrong string

// What may not be.
const (
	// Lost: it was accepted, and neither given nor rightly filed, nor is it left.
	Lost Wrong = "lost"
	// Waiting: when all should be done, something is still queued or in flight.
	Waiting Wrong = "waiting"
	// Doubled: it was given again, and no interruption of its agent (or a
	// person's retry) lies in between that explains this repeat and no other.
	Doubled Wrong = "doubled"
	// Unmarked: it was given again as if for the first time.
	Unmarked Wrong = "unmarked"
	// Repeated: it was given again after a tool had run for it, against the policy.
	Repeated Wrong = "repeated"
	// Garbled: what was given or filed is not what was sent, or nobody sent it.
	Garbled Wrong = "garbled"
	// Misled: it came to another agent.
	Misled Wrong = "misled"
	// Disordered: a sender's later prompt was given before an earlier one.
	Disordered Wrong = "out of order"
	// NotRefused: its sender was told that it is refused, and it was given.
	NotRefused Wrong = "refused and given"
	// WronglyFiled: a dead letter stands twice in the file, or for a reason that
	// cannot be.
	WronglyFiled Wrong = "dead letter"
	// WronglyAnswered: it was acknowledged twice, or has another prompt's reply.
	WronglyAnswered Wrong = "reply"
	// Noticed: what a harness saw, see [Seen].
	Noticed Wrong = "seen"
)

// Finding is one thing that is wrong.
type Finding struct {
	Wrong  Wrong  `json:"wrong"`
	Prompt string `json:"prompt,omitempty"` // "" where it is none that anybody could name
	What   string `json:"what"`
	Lines  []int  `json:"lines"` // of the record, that prove it
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s (lines %s)", f.Wrong, f.What, strings.Trim(fmt.Sprint(f.Lines), "[]"))
}

// Count is how much there was of what.
type Count struct {
	Prompts  int            `json:"prompts"` // that were meant to be sent
	ByWay    map[string]int `json:"by_way"`  // by What
	Accepted int            `json:"accepted"`
	Refused  int            `json:"refused"`
	Given    int            `json:"given"`     // at least once
	OnlyDead int            `json:"only_dead"` // filed and never given
	Repeats  int            `json:"repeats"`   // times that one was given again
	// Dead letters by their reasons, acknowledgements, interruptions, and all that
	// was done to the fleet, by What.
	Dead          map[Reason]int `json:"dead"`
	Acknowledged  int            `json:"acknowledged"`
	Interruptions int            `json:"interruptions"`
	Done          map[string]int `json:"done"`
}

// Unknown is how many prompts nobody knows whether they were accepted.
func (c Count) Unknown() int { return c.Prompts - c.Accepted - c.Refused }

// Verdict is what a judge says of a record.
type Verdict struct {
	Count
	Findings []Finding `json:"findings"`
}

// Has reports whether anything is wrong in a way.
func (v *Verdict) Has(w Wrong) bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Wrong == w })
}

// Judge judges a record of which no more is to come.
func (r Record) Judge() *Verdict {
	j := r.read()
	for _, p := range j.order {
		j.arrived(p)
		j.repeats(p)
		for _, i := range p.filed {
			j.letter(p, r[i], i)
		}
	}
	j.vanished()
	j.doubled()
	j.ordered()
	j.once(Filed, WronglyFiled, "stands twice in the file")
	j.once(Replied, WronglyAnswered, "was acknowledged twice")
	j.answers()
	for _, i := range j.lines[Left] {
		j.find(Waiting, r[i].Prompt, "%s of %s is left: %s", []int{i}, named(r[i].Prompt), r[i].Agent, r[i].Note)
	}
	for _, i := range j.lines[Seen] {
		j.find(Noticed, "", "%s at %s", []int{i}, r[i].Note, clock(r[i]))
	}
	return j.verdict
}

// Open returns the prompts, in the order in which they were sent, that are
// accepted and neither given nor filed so far.
func (r Record) Open() (open []string) {
	for _, p := range r.read().order {
		if p.word(r) == Accepted && len(p.given)+len(p.filed) == 0 {
			open = append(open, p.Prompt)
		}
	}
	return open
}

// Count counts what is in a record.
func (r Record) Count() Count { return r.read().verdict.Count }

func named(prompt string) string { return cmp.Or(prompt, "something") }

func clock(f Fact) string { return f.At.Format("15:04:05.000") }

// arrived: what was accepted was given, or is a dead letter, or is left.
func (j *judge) arrived(p *prompt) {
	proof := append([]int{p.last}, p.replied...)
	switch word := p.word(j.record); {
	case word == Refused && len(p.given) > 0:
		j.find(NotRefused, p.Prompt, "%s", append(proof, p.given[0]), p)
	case word == Accepted && len(p.given)+len(p.filed)+len(p.left) == 0:
		j.find(Lost, p.Prompt, "%s was accepted at %s and never given", proof, p, clock(j.record[p.last]))
	}
}

// vanished: something came of each prompt that was given: a reply, a dead letter, or
// that it is left. A reply without a name is that of one which has none.
func (j *judge) vanished() {
	unnamed := map[string]int{}
	for _, i := range j.lines[Replied] {
		if f := j.record[i]; j.prompts[f.Prompt] == nil {
			unnamed[f.Agent]++
		}
	}
	for _, p := range j.order {
		a := j.agents[p.Agent]
		if !a.Acknowledges || a.Policy == Drop || p.word(j.record) != Accepted ||
			len(p.given) == 0 || len(p.replied)+len(p.filed)+len(p.left) > 0 {
			continue
		}
		if unnamed[p.Agent]--; unnamed[p.Agent] < 0 {
			j.find(Lost, p.Prompt, "%s was given at %s, and neither answered nor filed", append([]int{p.last}, p.given...), p, clock(j.record[p.given[0]]))
		}
	}
}

// repeats: each giving is what was sent, and says that it is one again; and an
// agent that is not to try again does not, once a tool has run.
func (j *judge) repeats(p *prompt) {
	for n, i := range p.given {
		now := j.record[i]
		if now.Agent != p.Agent {
			j.find(Misled, p.Prompt, "%s of %s was given to %s", []int{p.line, i}, p.Prompt, p.Agent, named(now.Agent))
		} else if now.Text != p.Text {
			j.find(Garbled, p.Prompt, "%s was sent as %s and given as %s", []int{p.line, i}, p, p.Text, now.Text)
		}
		if n == 0 || len(j.during(Requeued, p.Agent, p.At, now.At)) > 0 {
			continue
		}
		if now.Attempt < 2 {
			j.find(Unmarked, p.Prompt, "%s was given again at %s as if for the first time", []int{p.given[n-1], i}, p.Prompt, clock(now))
		}
		if !p.SelfInterrupting {
			j.again[p.Agent] = append(j.again[p.Agent], repeat{p, p.given[n-1], i})
		}
		j.afterTool(p, p.given[n-1], i)
	}
}

func (j *judge) afterTool(p *prompt, before, now int) {
	from, to, policy := j.record[before].At, j.record[now].At, j.agents[p.Agent].Policy
	if policy == Retry {
		return
	}
	for _, i := range p.ran {
		ran := j.record[i].At
		if ran.Before(from) || !ran.Before(to) {
			continue
		}
		unseen := slices.ContainsFunc(j.during(Interrupted, p.Agent, from, ran), func(i int) bool { return j.record[i].Unwitnessed })
		if !unseen {
			j.find(Repeated, p.Prompt, "%s (%s) was given again at %s after a tool ran for it at %s", []int{before, i, now},
				p.Prompt, policy, clock(j.record[now]), clock(j.record[i]))
		}
	}
}

// letter: a dead letter has a reason that its agent's policy knows, and was
// given before, or could not be.
func (j *judge) letter(p *prompt, d Fact, i int) {
	agent, accepted := j.agents[d.Agent], p.word(j.record) == Accepted
	wrong := func(w Wrong, format string, args ...any) {
		j.find(w, p.Prompt, format, append([]int{p.last}, append(slices.Clone(p.given), i)...), args...)
	}
	switch {
	case d.Agent != p.Agent:
		wrong(Misled, "%s of %s is a dead letter of %s", p.Prompt, p.Agent, d.Agent)
	case d.Reason == ByTorn && accepted && (!p.again || len(p.given) == 0):
		wrong(Garbled, "the accepted %s is a dead letter as %s: %s", p, d.Reason, d.Text)
	case d.Reason == ByTorn:
	case d.Reason != ByPoison && (d.Reason != ByInterruption || agent.Policy != DeadLetter):
		wrong(WronglyFiled, "%s as %q under %s", p.Prompt, d.Reason, agent.Policy)
	case d.Reason == ByPoison && len(p.given) < agent.Attempts:
		wrong(WronglyFiled, "%s as %s after it was given %d times", p.Prompt, d.Reason, len(p.given))
	case len(p.given) > 0 || d.Reason == ByPoison || agent.FilesUnproven:
	case accepted:
		wrong(Lost, "%s was accepted and never given, and is a dead letter as %s", p, d.Reason)
	default:
		wrong(WronglyFiled, "%s as %s, and was never given", p.Prompt, d.Reason)
	}
}

// repeat is a prompt that was given on one line, and again on another.
type repeat struct {
	*prompt
	before, now int
}

// doubled: each repeat has an interruption in between, and one interruption
// repeats one prompt of an agent, unless it lasts. So as many repeats as can be
// are given an interruption of their own; those that come away empty are doubled.
func (j *judge) doubled() {
	for _, agent := range slices.Sorted(maps.Keys(j.again)) {
		repeats := j.again[agent]
		explains := map[int]int{} // :: interruption's line → repeat
		var place func(n int, tried map[int]bool) bool
		place = func(n int, tried map[int]bool) bool {
			for _, i := range j.during(Interrupted, agent, j.record[repeats[n].before].At, j.record[repeats[n].now].At) {
				if tried[i] {
					continue
				}
				tried[i] = true
				other, taken := explains[i]
				if j.record[i].Lasting || !taken || place(other, tried) {
					explains[i] = n
					return true
				}
			}
			return false
		}
		for n, again := range repeats {
			if !place(n, map[int]bool{}) {
				j.find(Doubled, again.Prompt, "%s was given at %s and again at %s, and nothing had happened in between that explains it",
					[]int{again.before, again.now}, again.prompt, clock(j.record[again.before]), clock(j.record[again.now]))
			}
		}
	}
}

// ordered: what one sender sent is given in that order, at first. What a person
// had queued again may have been a dead letter before it was ever given.
func (j *judge) ordered() {
	type who struct{ agent, sender string }
	last := map[who]*prompt{}
	for _, p := range j.order {
		if p.word(j.record) != Accepted || len(p.given) == 0 || p.Sender == "" {
			continue
		}
		first := j.record[p.given[0]].At
		if len(j.during(Requeued, p.Agent, p.At, first)) > 0 {
			continue
		}
		w := who{p.Agent, p.Sender}
		if before := last[w]; before != nil && first.Before(j.record[before.given[0]].At) {
			j.find(Disordered, p.Prompt, "%s was given before %s", []int{before.line, p.line, p.given[0], before.given[0]}, p, before)
			continue
		}
		last[w] = p
	}
}

// once: no delivery stands twice among the facts of a kind.
func (j *judge) once(kind Kind, w Wrong, twice string) {
	type delivery struct{ agent, id string }
	seen := map[delivery]int{}
	for _, i := range j.lines[kind] {
		f := j.record[i]
		if first, again := seen[delivery{f.Agent, f.Delivery}]; again {
			j.find(w, f.Prompt, "%s of %s %s (%s)", []int{first, i}, named(f.Prompt), f.Agent, twice, f.Delivery)
		} else {
			seen[delivery{f.Agent, f.Delivery}] = i
		}
	}
}

// answers: a reply is what a model says to that prompt, and it was given.
func (j *judge) answers() {
	for _, i := range j.lines[Replied] {
		f := j.record[i]
		p := j.prompts[f.Prompt]
		if p == nil || f.Text == Text("") {
			continue // the reply to a task's end, say
		}
		if len(p.given) == 0 {
			j.find(WronglyAnswered, p.Prompt, "%s has a reply to %s, which was never given: %s", []int{p.last, i}, f.Agent, p, f.Text)
		} else if len(p.Replies) > 0 && !slices.Contains(p.Replies, f.Text) {
			j.find(WronglyAnswered, p.Prompt, "the reply to %s is %s", []int{p.line, i}, p, f.Text)
		}
	}
}

// during returns the lines of a kind that touch an agent within a time.
func (j *judge) during(kind Kind, agent string, from, to time.Time) (lines []int) {
	for _, i := range j.lines[kind] {
		f := j.record[i]
		over := f.At.Before(from) && f.Until.Before(from)
		if (f.Agent == "" || f.Agent == agent) && !f.At.After(to) && !over {
			lines = append(lines, i)
		}
	}
	return lines
}
