package promise

import (
	"fmt"
	"slices"
)

// judge is a record that was read. Lines are counted from 0 here.
type judge struct {
	record  Record
	lines   map[Kind][]int
	agents  map[string]Fact // :: agent → Declared
	prompts map[string]*prompt
	order   []*prompt // as they were sent
	again   map[string][]repeat
	verdict *Verdict
}

// prompt is all that the record tells of one. The numbers are lines.
type prompt struct {
	Fact                                 // its first one
	line                             int // of the line above
	last                             int // its sender's last word
	given, ran, filed, replied, left []int
	// again is true if its sender was killed, and has sent it again under the same id: half
	// of it may stand there, too.
	again bool
}

func (p *prompt) String() string {
	if p.What == "" {
		return p.Prompt
	}
	return p.Prompt + " (" + p.What + ")"
}

func (p *prompt) word(r Record) Kind { return r[p.last].Kind }

func (j *judge) find(w Wrong, prompt, format string, lines []int, args ...any) {
	lines = slices.Clone(lines)
	for i := range lines {
		lines[i]++
	}
	slices.Sort(lines)
	j.verdict.Findings = append(j.verdict.Findings, Finding{w, prompt, fmt.Sprintf(format, args...), slices.Compact(lines)})
}

// read sorts a record's facts by prompt: first what senders say and what was
// done, then what came of it.
func (r Record) read() *judge {
	j := &judge{
		record: r, lines: map[Kind][]int{}, agents: map[string]Fact{}, prompts: map[string]*prompt{}, again: map[string][]repeat{},
		verdict: &Verdict{Count: Count{ByWay: map[string]int{}, Dead: map[Reason]int{}, Done: map[string]int{}}},
	}
	for i, f := range r {
		j.lines[f.Kind] = append(j.lines[f.Kind], i)
		switch f.Kind {
		case Declared:
			j.agents[f.Agent] = f
		case Meant, Accepted, Refused, Unknown:
			j.sent(i, f)
		}
	}
	j.given()
	for i, f := range r {
		p := j.prompts[f.Prompt]
		switch {
		case p == nil && f.Kind == Filed && (f.Reason != ByTorn || !j.cutOff(f.Agent)):
			j.find(Garbled, "", "nobody sent %s, which is a dead letter of %s as %s", []int{i}, f.Text, f.Agent, f.Reason)
		case p == nil:
		case f.Kind == Filed:
			p.filed = append(p.filed, i)
		case f.Kind == Replied:
			p.replied = append(p.replied, i)
		case f.Kind == Left:
			p.left = append(p.left, i)
		}
	}
	j.count()
	return j
}

func (j *judge) sent(i int, f Fact) {
	p := j.prompts[f.Prompt]
	if p == nil {
		p = &prompt{Fact: f, line: i}
		j.prompts[f.Prompt] = p
		j.order = append(j.order, p)
	}
	p.again = p.again || f.Kind == Accepted && p.word(j.record) == Unknown
	p.last = i
}

// given sorts what models were given, and then the tools: each ran for what its
// session was given last. What nobody sent is a finding.
func (j *judge) given() {
	sessions := map[string][]int{}
	for _, i := range j.lines[Given] {
		f := j.record[i]
		p := j.prompts[f.Prompt]
		if p == nil {
			j.find(Garbled, "", "nobody sent %s, which was given to %s at %s", []int{i}, f.Text, named(f.Agent), clock(f))
			continue
		}
		p.given = append(p.given, i)
		sessions[f.Session] = append(sessions[f.Session], i)
	}
	for _, i := range j.lines[ToolRan] {
		of := -1
		for _, g := range sessions[j.record[i].Session] {
			if j.record[g].At.Before(j.record[i].At) {
				of = g
			}
		}
		if of >= 0 {
			p := j.prompts[j.record[of].Prompt]
			p.ran = append(p.ran, i)
		}
	}
}

// cutOff reports whether a sender of an agent was killed or failed, who may have
// left half a line.
func (j *judge) cutOff(agent string) bool {
	return slices.ContainsFunc(j.order, func(p *prompt) bool {
		word := p.word(j.record)
		return p.Agent == agent && (word == Meant || word == Unknown || p.again)
	})
}

func (j *judge) count() {
	c := &j.verdict.Count
	c.Acknowledged, c.Interruptions = len(j.lines[Replied]), len(j.lines[Interrupted])
	for _, kind := range []Kind{Interrupted, Requeued, Acted} {
		for _, i := range j.lines[kind] {
			c.Done[j.record[i].What]++
		}
	}
	for _, i := range j.lines[Filed] {
		c.Dead[j.record[i].Reason]++
	}
	for _, p := range j.order {
		c.Prompts++
		c.ByWay[p.What]++
		switch p.word(j.record) {
		case Accepted:
			c.Accepted++
		case Refused:
			c.Refused++
		}
		switch {
		case len(p.given) > 0:
			c.Given++
			c.Repeats += len(p.given) - 1
		case len(p.filed) > 0:
			c.OnlyDead++
		}
	}
}
