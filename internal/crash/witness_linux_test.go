package crash

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/crash/stepper"
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

// atEnd is the record with what the exports tell now.
func (l *lab) atEnd() promise.Record {
	told := promise.Told{
		Dead:    lines[promise.Dead](l.t, filepath.Join(l.home, ".dead-letter.jsonl")),
		Replies: lines[promise.Reply](l.t, filepath.Join(l.home, "outbox.jsonl")),
	}
	return append(slices.Clip(l.record), promise.Teller{Agent: agent, Named: l.named}.Facts(told)...)
}

func lines[T any](t testing.TB, path string) []T {
	t.Helper()
	all, err := promise.Lines[T](strings.NewReader(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// left asks what is in flight and queued.
func (l *lab) left() []promise.Queued {
	l.t.Helper()
	all, err := l.person().ask(l.t).Inbox(agent)
	if err != nil {
		l.t.Fatal(err)
	}
	return all
}

// must runs a command of heartbeat where only success will do.
func (l *lab) must(stdin string, args ...string) {
	l.t.Helper()
	c := l.person().command(l.t, args...)
	c.Stdin = stdin
	if o := stepper.Plain(l.t, c); o.Status != 0 {
		l.t.Fatalf("heartbeat %q: %+v", args, o)
	}
}

// person is somebody whose fleet has one agent, "a", and who types commands.
type person struct {
	dir         string // of the fleet
	work, inbox string // of the agent
}

func (l *lab) person() person { return person{dir: l.dir() + "-fleet", work: l.dir(), inbox: l.inbox} }

func (p person) command(t testing.TB, args ...string) stepper.Program {
	t.Helper()
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(p.dir, "heartbeat.yaml"),
		fmt.Sprintf("version: 1\nagents:\n  %s:\n    dir: %q\n    inbox: %q\n    command: [\"true\"]\n", agent, p.work, p.inbox))
	return stepper.Program{
		Path: program(t, "heartbeat"), Dir: p.dir, Args: args, Env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(p.dir, "home"), "HEARTBEAT_STATE_DIR=" + filepath.Join(p.dir, "state"),
			"XDG_RUNTIME_DIR=" + filepath.Join(p.dir, "run"),
		},
	}
}

func (p person) ask(t testing.TB) promise.Ask {
	return func(args ...string) ([]byte, error) {
		o := stepper.Plain(t, p.command(t, args...))
		if o.Status != 0 {
			return nil, fmt.Errorf("heartbeat %q: %+v", args, o)
		}
		return []byte(o.Stdout), nil
	}
}

// verdict judges the run, and says with proof what is wrong.
func (l *lab) verdict() (v *promise.Verdict, wrong string) {
	told := promise.Told{Queued: l.left(), Tail: !strings.HasSuffix(cmp.Or(read(l.t, l.inbox), "\n"), "\n")}
	r := append(l.atEnd(), promise.Teller{Agent: agent, Named: l.named}.Facts(told)...)
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

func (l *lab) inFlight() bool { return slices.ContainsFunc(l.left(), promise.Queued.InFlight) }
