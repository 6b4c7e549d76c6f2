package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/internal/promise"
)

// agent is the one whose folder a lab is.
const agent = "a"

// note adds to the record of the run: what the senders know to be accepted, and
// what the model of the client knows it was given.
func (l *lab) note(f promise.Fact) {
	f.At = time.Now()
	f.Agent = agent
	l.record = append(l.record, f)
}

// nameOf is a prompt's first word, which no other prompt has.
func nameOf(prompt string) string {
	name, _, _ := strings.Cut(strings.TrimSpace(prompt), " ")
	return name
}

// sent notes prompts of one sender, in the order in which they come.
func (l *lab) sent(word promise.Kind, sender string, prompts ...string) {
	for _, p := range prompts {
		l.note(promise.Fact{Kind: word, Prompt: nameOf(p), Sender: sender, Text: promise.Text(p)})
	}
}

func (l *lab) accepted(prompts ...string) { l.sent(promise.Accepted, "test", prompts...) }

// hurried is accepted for what goes before the others.
func (l *lab) hurried(prompts ...string) { l.sent(promise.Accepted, "somebody in a hurry", prompts...) }

// fault notes what no kill excuses.
func (l *lab) fault(format string, args ...any) {
	l.note(promise.Fact{Kind: promise.Seen, Note: fmt.Sprintf("%.600s", fmt.Sprintf(format, args...))})
}

// interrupted notes a kill or the like that had its effects until now.
func (l *lab) interrupted(from time.Time, what string) {
	l.record = append(l.record, promise.Fact{At: from, Until: time.Now(), Kind: promise.Interrupted, Agent: agent, What: what})
}

// hand notes that the client got a text, and returns the prompt that it is.
func (l *lab) hand(text string) string {
	text, iteration := entryOf(text)
	prompt, attempt := promise.Unmark(text)
	f := promise.Fact{Kind: promise.Given, Session: l.name(), Prompt: nameOf(prompt), Text: promise.Text(prompt), Attempt: attempt}
	if iteration != "" { // it is no repeat of the one before: as if it were sent now
		f.Prompt += "#" + iteration
		if !l.knows(f.Prompt) {
			l.note(promise.Fact{Kind: promise.Accepted, Prompt: f.Prompt, Text: f.Text})
		}
	}
	if !l.knows(f.Prompt) {
		f.Prompt, prompt = "", ""
	}
	l.note(f)
	return prompt
}

func (l *lab) knows(prompt string) bool {
	return slices.ContainsFunc(l.record, func(f promise.Fact) bool { return f.Prompt == prompt })
}

// named finds a prompt in a line of whatever form.
func (l *lab) named(line string) string {
	for _, f := range l.record {
		if f.Prompt != "" && strings.Contains(line, f.Prompt) {
			return f.Prompt
		}
	}
	return ""
}

// atEnd is the record with what stands in the queue's files now.
func (l *lab) atEnd() (r promise.Record) {
	r = slices.Clip(l.record)
	l.queue(func(q *inbox.Queue) {
		facts, err := promise.Queue{Agent: agent, Named: l.named}.Facts(q)
		if r = append(r, facts...); err != nil {
			r = append(r, promise.Fact{Kind: promise.Seen, Note: err.Error()})
		}
	})
	return r
}

// verdict judges the run, and says with proof what is wrong.
func (l *lab) verdict() (v *promise.Verdict, wrong string) {
	r := l.atEnd()
	if l.inFlight() {
		r = append(r, promise.Fact{Kind: promise.Left, Agent: agent, Note: "a record in flight"})
	}
	if l.form == checked {
		r = append(r, l.proofs()...)
	}
	v = r.Judge()
	for _, f := range v.Findings[:min(len(v.Findings), 20)] {
		wrong += "\n" + r.Prove(f)
	}
	if wrong != "" {
		wrong += l.files()
	}
	return v, wrong
}

// check fails where anything is wrong.
func (l *lab) check(where string) {
	l.t.Helper()
	if _, wrong := l.verdict(); wrong != "" {
		l.t.Errorf("%s: %s", where, wrong)
	}
}

func (l *lab) inFlight() bool {
	return slices.ContainsFunc(inbox.FlightFiles(l.inbox), func(path string) bool {
		_, err := os.Lstat(path)
		return !errors.Is(err, fs.ErrNotExist)
	})
}
