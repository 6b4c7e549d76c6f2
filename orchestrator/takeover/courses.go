package takeover

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/check"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/orchestrator/status"
	"heartbeat/queue"
)

// mostVerdicts bounds how many are made of a course.
const mostVerdicts = 10_000

// prove adds to an entry that has not ended what is known of its checks. prompt is what the agent
// was handed over, until what it has to pass.
func (r *row) prove(c *course, until *config.Until, prompt string) {
	if c == nil || c.Past.Iterations < 0 || c.Past.Iterations > mostVerdicts || c.Asks < 0 || c.Asks > mostVerdicts {
		return
	}
	stands := r.stands(c.Verdict, until)
	r.Verdicts = c.verdicts()
	if n := len(r.Verdicts); n > 0 {
		last := &r.Verdicts[n-1]
		last.Files = c.Files
		next := last.Iteration + 1
		switch {
		case stands:
			r.Check, next = last.Check, last.Iteration
			r.Shown = queue.Shown{Output: last.Output, Answers: last.Answers}
		case r.State == queue.Checking || r.State == queue.Suspended:
			r.Check = max(r.Check, last.Check+1)
		default:
			r.Check = max(r.Check, last.Check)
		}
		r.Iteration = max(r.Iteration, next)
	}
	a := c.Answered
	if a != nil && !stands && a.Check == r.asked && a.Claimed.Equal(r.Claimed) && (r.State == queue.Checking || r.State == queue.Suspended) {
		r.check.Passed = &check.Passed{Check: r.Check, Definition: a.Definition, Output: a.Output, Files: c.Files, Took: a.Took, At: a.At}
		r.about = c.about(prompt, r.Reply)
	}
	if v := c.Vain; v != nil && r.State == queue.Checking {
		r.check.Vain = &status.Vain{Since: v.Since, Times: v.Times, As: status.ProofState(v.As), Why: foreign.Text(v.Why)}
	}
}

// stands reports whether a verdict is about the check that the entry awaits, and is yet to be
// carried out.
func (r *row) stands(v *verdict, until *config.Until) bool {
	return v != nil && (r.State == queue.Checking || r.State == queue.Suspended) && (v.Passed || !v.Applied) &&
		v.Entry == r.EntryID && v.Check == r.asked && v.Claimed.Equal(r.Claimed) && v.Definition == check.Definition(until)
}

// verdicts are those of which a course knows the sums, and the last one as it was: made of them,
// guard.Past is the same.
func (c *course) verdicts() []entries.Verdict {
	told := c.Asks
	var all []entries.Verdict
	add := func(i guard.Iteration, isTold bool) {
		v := entries.Verdict{Iteration: len(all) + 1, By: "check", Worked: i.Worked, Said: i.Said, Same: i.Same, Told: isTold}
		if isTold {
			v.By = "people"
		}
		all = append(all, v)
	}
	v := c.Verdict
	if v != nil && v.Answers != "" {
		told--
	}
	for range told {
		add(guard.Iteration{}, true)
	}
	for _, i := range iterationsOf(c.Past) {
		add(i, false)
	}
	if v != nil && (v.Answers != "" || v.Passed) {
		add(guard.Iteration{}, v.Answers != "")
	}
	number := len(all)
	if v != nil && number > 0 {
		last := &all[number-1]
		last.Passed, last.GiveUp, last.By, last.Why, last.Took = v.Passed, v.GiveUp, v.By, v.Why, v.Took
		last.Output, last.Answers = v.Output, v.Answers
		number = max(number, v.Check)
	}
	for i := range all {
		all[i].Check = number - (len(all) - 1 - i)
		if v != nil {
			all[i].At = v.At
		}
	}
	return all
}

// iterationsOf are iterations that make a Past, as far as it tells: of those before the last three
// it knows only for how long they took together, and how often the agent had to wait at last.
func iterationsOf(p guard.Past) []guard.Iteration {
	known := p.Last[max(0, len(p.Last)-min(len(p.Last), p.Iterations)):]
	all := append(make([]guard.Iteration, p.Iterations-len(known)), known...)
	rest := p.Worked
	for _, i := range known {
		rest -= max(0, i.Worked)
	}
	if before := p.Iterations - len(known); before > 0 && rest > 0 {
		all[min(before, max(1, p.Iterations-p.Waits-2))-1].Worked = rest // what did not rush
	}
	return all
}

// about is the hash of what people were shown of an entry whose check has passed, as requests
// have it.
func (c *course) about(prompt string, reply *queue.Reply) string {
	what := struct {
		Answered             answered
		Prompt, Reply, Files string
	}{Answered: *c.Answered, Prompt: prompt, Files: c.Files}
	what.Answered.At, what.Answered.Claimed = what.Answered.At.UTC(), what.Answered.Claimed.UTC()
	if reply != nil {
		what.Reply = reply.Text
	}
	data, err := json.Marshal(what)
	if err != nil { // it is plain data
		data = []byte(err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// demandOf returns what the state directory demands of the entry with an id.
func (k *kept) demandOf(id string) *check.Demand {
	d, is := k.demands[id]
	if !is || id == "" {
		return nil
	}
	return &check.Demand{Trigger: d.Trigger, Until: d.Until}
}

// isUnknown reports whether an entry has to pass something, and nobody knows what.
func (k *kept) isUnknown(a *config.Agent, d *check.Demand, c *course) bool {
	from := ""
	if c != nil {
		from = c.From
	}
	return d == nil && (from == fromEntry || a.Until == nil && from == "" && !k.book.Until)
}

// gone are the demands of entries that were queued, and have left the queue without an end.
func (f *former) gone(seen map[string]bool) (all []demand) {
	for id, d := range f.demands {
		switch {
		case seen[id], d.Nothing, d.GivenUp, d.Passed != "", !d.Queued, d.Text == "",
			slices.ContainsFunc(f.book.Proven, func(p struct{ Delivery, ID string }) bool { return p.ID == id }):
		default:
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(x, y demand) int { return x.At.Compare(y.At) })
	return all
}
