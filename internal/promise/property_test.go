package promise

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// right makes a record of a run that kept its promise: a few agents, each of
// which takes what two senders sent, one prompt after the other, while it is
// interrupted now and then.
func right(t *rapid.T) (r Record) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	add := func(f Fact) {
		now = now.Add(time.Second)
		f.At = now
		r = append(r, f)
	}
	policies := []Policy{Retry, DeadLetter, Drop}
	for a := range rapid.IntRange(2, 3).Draw(t, "agents") {
		agent, policy := fmt.Sprintf("a%d", a), rapid.SampledFrom(policies).Draw(t, "policy")
		add(Fact{Kind: Declared, Agent: agent, Policy: policy, Attempts: 2, Acknowledges: true})
		for n := range rapid.IntRange(2, 6).Draw(t, "prompts") {
			p := Fact{Agent: agent, Prompt: fmt.Sprintf("%s-%d", agent, n), Sender: rapid.SampledFrom([]string{"s", "s", "t"}).Draw(t, "sender")}
			p.Text, p.Replies = Text(p.Prompt+" hello"), []string{Text("done: " + p.Prompt)}
			for _, word := range []Kind{Meant, Accepted} {
				p.Kind = word
				add(p)
			}
			give := func(attempt int) {
				add(Fact{Kind: Given, Agent: agent, Prompt: p.Prompt, Session: p.Prompt, Text: p.Text, Attempt: attempt})
			}
			interrupt := func() { add(Fact{Kind: Interrupted, Agent: agent, What: "kill"}) }
			file := func(why Reason) {
				add(Fact{Kind: Filed, Agent: agent, Prompt: p.Prompt, Delivery: p.Prompt, Reason: why})
			}
			give(1)
			repeats := rapid.IntRange(0, 2).Draw(t, "repeats")
			for i := range repeats {
				interrupt()
				give(i + 2)
			}
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); {
			case what == 0 && policy == DeadLetter:
				add(Fact{Kind: ToolRan, Session: p.Prompt})
				interrupt()
				file(ByInterruption)
			case what == 1 && repeats > 0:
				interrupt()
				file(ByPoison)
			default:
				add(Fact{Kind: Replied, Agent: agent, Prompt: p.Prompt, Delivery: p.Prompt, Text: p.Replies[0]})
			}
		}
	}
	return r
}

// mutation breaks a record at one of the lines that it fits.
type mutation struct {
	want Wrong
	fits func(r Record, i int) bool
	do   func(r Record, i int) Record
}

func of(kind Kind) func(Record, int) bool {
	return func(r Record, i int) bool { return r[i].Kind == kind }
}

func change(do func(f *Fact)) func(Record, int) Record {
	return func(r Record, i int) Record { do(&r[i]); return r }
}

func remove(r Record, i int) Record { return slices.Delete(r, i, i+1) }

// again inserts a changed copy of a line a moment after it.
func again(do func(f *Fact)) func(Record, int) Record {
	return func(r Record, i int) Record {
		f := r[i]
		f.At = f.At.Add(time.Millisecond)
		do(&f)
		return slices.Insert(r, i+1, f)
	}
}

// only reports whether a prompt was given once and is no dead letter.
func only(r Record, i int) bool {
	return r[i].Kind == Given && !slices.ContainsFunc(r, func(f Fact) bool {
		return f.Prompt == r[i].Prompt && (f.Kind == Filed || f.Kind == Given && f.Attempt > 1)
	})
}

func repeated(r Record, i int) bool { return r[i].Kind == Given && r[i].Attempt > 1 }

// next is the next line of the same kind and attempt about another prompt of the
// same sender; 0: none.
func next(r Record, i int) int {
	sender := func(f Fact) string {
		return r[slices.IndexFunc(r, func(s Fact) bool { return s.Kind == Meant && s.Prompt == f.Prompt })].Sender
	}
	for j := i + 1; j < len(r); j++ {
		if r[j].Kind == r[i].Kind && r[j].Agent == r[i].Agent && r[j].Prompt != r[i].Prompt && r[j].Attempt == r[i].Attempt && sender(r[j]) == sender(r[i]) {
			return j
		}
	}
	return 0
}

var mutations = map[string]mutation{
	"what was given is dropped": {Lost, only, remove},
	"given, and lost after that": {Lost, func(r Record, i int) bool {
		return r[i].Kind == Replied && !slices.ContainsFunc(r, func(f Fact) bool {
			return f.Kind == Declared && f.Agent == r[i].Agent && f.Policy == Drop
		})
	}, remove},
	"the record of what came is cut off": {Lost, only, func(r Record, i int) Record {
		return append(r[:i:i], slices.DeleteFunc(slices.Clone(r[i:]), func(f Fact) bool { return f.Kind == Given || f.Kind == Filed || f.Kind == Replied })...)
	}},
	"given twice":             {Doubled, of(Given), again(func(f *Fact) { f.Attempt++ })},
	"nothing was in between":  {Doubled, func(r Record, i int) bool { return r[i].Kind == Interrupted && r[i+1].Kind == Given }, remove},
	"another was interrupted": {Doubled, func(r Record, i int) bool { return r[i].Kind == Interrupted && r[i+1].Kind == Given }, change(func(f *Fact) { f.Agent = "other" })},
	"given twice, unmarked":   {Unmarked, of(Given), again(func(f *Fact) { f.Attempt = 1 })},
	"the mark is lost":        {Unmarked, repeated, change(func(f *Fact) { f.Attempt = 1 })},
	"cut":                     {Garbled, of(Given), change(func(f *Fact) { f.Text = Text("hel") })},
	"another prompt's text":   {Garbled, func(r Record, i int) bool { return next(r, i) > 0 && r[i].Kind == Given }, func(r Record, i int) Record { r[i].Text = r[next(r, i)].Text; return r }},
	"nobody sent it":          {Garbled, of(Given), change(func(f *Fact) { f.Prompt = "" })},
	"given to another":        {Misled, of(Given), change(func(f *Fact) { f.Agent += "x" })},
	"filed by another":        {Misled, of(Filed), change(func(f *Fact) { f.Agent += "x" })},
	"refused":                 {NotRefused, of(Accepted), change(func(f *Fact) { f.Kind = Refused })},
	"filed twice":             {WronglyFiled, of(Filed), again(func(*Fact) {})},
	"filed without a reason":  {WronglyFiled, of(Filed), change(func(f *Fact) { f.Reason = "" })},
	"filed as torn":           {Garbled, of(Filed), change(func(f *Fact) { f.Reason = ByTorn })},
	"acknowledged twice":      {WronglyAnswered, of(Replied), again(func(*Fact) {})},
	"another prompt's reply":  {WronglyAnswered, of(Replied), change(func(f *Fact) { f.Text = Text("done: another") })},
	"left":                    {Waiting, of(Given), again(func(f *Fact) { f.Kind = Left })},
	"swapped": {
		Disordered,
		func(r Record, i int) bool { return r[i].Kind == Given && r[i].Attempt == 1 && next(r, i) > 0 },
		func(r Record, i int) Record {
			j := next(r, i)
			r[i].At, r[j].At = r[j].At, r[i].At
			return r
		},
	},
	"a tool ran before it was given again": {
		Repeated,
		func(r Record, i int) bool {
			return r[i].Kind == Given && r[i+1].Kind == Interrupted && r[i+2].Kind == Given && !slices.ContainsFunc(r, func(f Fact) bool {
				return f.Kind == Declared && f.Agent == r[i].Agent && f.Policy == Retry
			})
		},
		again(func(f *Fact) { f.Kind = ToolRan }),
	},
}

// TestWhatIsRightIsNotFound, and each way in which it can be broken is.
func TestWhatIsRightIsNotFound(t *testing.T) {
	t.Parallel()
	tried := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		r := right(t)
		if v := r.Judge(); len(v.Findings) > 0 {
			t.Fatalf("a right record: %v", v.Findings)
		}
		for _, name := range slices.Sorted(maps.Keys(mutations)) {
			m := mutations[name]
			var fit []int
			for i := range r {
				if m.fits(r, i) {
					fit = append(fit, i)
				}
			}
			if len(fit) == 0 {
				continue
			}
			tried[name]++
			i := rapid.SampledFrom(fit).Draw(t, name)
			broken := m.do(slices.Clone(r), i)
			if v := broken.Judge(); !v.Has(m.want) {
				t.Fatalf("%s at line %d: found %v, want %q", name, i+1, v.Findings, m.want)
			}
		}
	})
	for name := range mutations {
		if tried[name] == 0 && !t.Failed() {
			t.Errorf("%s: never tried", name)
		}
	}
}
