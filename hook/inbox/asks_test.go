package inbox

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	form "heartbeat/queue/line"
)

// asking are the ways in which a queue comes to ask a person. Each leaves an inbox of
// which one, two and three are done.
var asking = map[string]func(*rig){
	"cut within what is done": func(r *rig) {
		r.send3()
		r.put("inbox.jsonl", r.firstLines(1))
	},
	"cut within what is done, in the middle of a line": func(r *rig) {
		r.send3()
		r.put("inbox.jsonl", r.get("inbox.jsonl")[:len(r.firstLines(1))+9])
	},
	"cut within what is done, lines without an id": func(r *rig) {
		r.echo(strings.Repeat("one", 100) + "\ntwo\nthree\n")
		r.do(3)
		r.put("inbox.jsonl", r.firstLines(1))
	},
	"restored from a backup": func(r *rig) {
		r.send3()
		r.put("new", r.firstLines(2))
		r.rename("new", "inbox.jsonl")
	},
	"edited before the cursor": func(r *rig) {
		r.send3()
		r.put("inbox.jsonl", strings.Replace(r.get("inbox.jsonl"), "three", "THREE", 1))
	},
	"another file with the same line over and over": func(r *rig) {
		r.echo("again\nagain\nagain\n")
		r.do(3)
		r.put("new", r.get("inbox.jsonl"))
		r.rename("new", "inbox.jsonl")
	},
	"cursor and sidecar removed": func(r *rig) {
		r.send3()
		r.remove(CursorFile)
		r.remove(metaFile)
	},
	"cut, and the sidecar removed": func(r *rig) {
		r.send3()
		r.put("inbox.jsonl", r.firstLines(1))
		r.remove(metaFile)
	},
	"a cursor behind the end, and the sidecar removed": func(r *rig) {
		r.send3()
		r.put(CursorFile, "999")
		r.remove(metaFile)
	},
	"a corrupt cursor without a sidecar": func(r *rig) {
		r.send3()
		r.put(CursorFile, "rubbish")
		r.remove(metaFile)
	},
}

// before are the things that others do before a person answers. Appending must not
// matter, whether anybody has seen the question by then or not; the others must not
// once somebody has.
var before = map[string]struct {
	seen bool
	do   func(*rig)
}{
	"nothing":           {do: func(*rig) {}},
	"a prompt is sent":  {do: func(r *rig) { r.send("x", "new") }},
	"many are sent":     {do: func(r *rig) { r.sendMany(40) }},
	"one that is large": {do: func(r *rig) { r.send("x", strings.Repeat("new ", 5000)) }},
	"a shell writes":    {do: func(r *rig) { r.echo(strings.Repeat("new\n", 300)) }},
	"half a line":       {do: func(r *rig) { r.echo("new") }},
	"an equal prompt":   {do: func(r *rig) { r.echo("three\n") }},
	"an equal prompt, more": {do: func(r *rig) {
		r.echo("three\n")
		r.sendMany(40)
	}},
	"the line that was done last is written again": {seen: true, do: func(r *rig) {
		r.sendMany(5)
		r.echo(r.third())
	}},
	"the inbox is emptied":                  {seen: true, do: func(r *rig) { r.put("inbox.jsonl", "") }},
	"the inbox is emptied, and one is sent": {seen: true, do: func(r *rig) { r.put("inbox.jsonl", ""); r.send("x", "new") }},
	"the inbox is removed":                  {seen: true, do: func(r *rig) { r.remove("inbox.jsonl") }},
	"the inbox is replaced": {seen: true, do: func(r *rig) {
		r.put("new", "another\n")
		r.rename("new", "inbox.jsonl")
	}},
}

// work is all that may run while the queue asks.
func (r *rig) work() {
	r.t.Helper()
	for name, err := range map[string]error{
		"recover": second(func() (Outcome, error) {
			o, _, err := r.Recover(Interruption{Policy: Retry, MaxAttempts: 5, Counts: true})
			return o, err
		}),
		"reclaim": r.Reclaim(),
		"settle":  r.Settle(),
		"restore": second(func() (*InFlight, error) { return r.Restore("0123456789ab", 1, Offering{}) }),
		"depth":   second(func() (Depth, error) { return r.Depth(0) }),
		"next":    second(func() (*Entry, error) { return r.Next() }),
		"drop":    second(func() (int, error) { return r.DropQueued("x") }),
		"flight":  second(r.InFlight),
	} {
		if !errors.Is(err, ErrNeedsOperator) {
			r.t.Errorf("%s: %v, want that it needs a person", name, err)
		}
	}
}

func second[T any](do func() (T, error)) error {
	_, err := do()
	return err
}

// TestAQuestionStandsUntilItIsAnswered: an inbox that was cut asked a person, and no
// more once enough had been sent that it was longer than before; then what was done
// was handed over again.
func TestAQuestionStandsUntilItIsAnswered(t *testing.T) {
	t.Parallel()
	for way, ask := range asking {
		for what, then := range before {
			for _, seen := range []bool{true, false} {
				// Of a cursor that was wrong from the start nothing tells later, where nobody
				// has looked in time.
				if !seen && (then.seen || way == "a cursor behind the end, and the sidecar removed") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/seen %v", way, what, seen), func(t *testing.T) {
					t.Parallel()
					r := &rig{t: t, dir: scratch(t)}
					r.unsyncedLater().reopen()
					t.Cleanup(func() { r.Queue.Close() })
					ask(r)
					if seen {
						r.reopen()
						r.work()
					}
					then.do(r)
					for range 2 {
						r.reopen()
						r.work()
					}
					asked, err := r.Question()
					if err != nil || asked == nil {
						t.Fatalf("%+v, %v", asked, err)
					}
					end := asked.Answers[len(asked.Answers)-1]
					if err := r.StartAt(end.Offset); err != nil {
						t.Fatal(err)
					}
					r.send("after", "after the answer")
					r.reopen()
					if got := r.drain(); len(got) == 0 || got[len(got)-1] != "after the answer" || len(got) > 2 {
						t.Errorf("after the answer %+v: %q", end, got)
					}
				})
			}
		}
	}
}

// TestAQuestionEndsWhenTheInboxIsPutBack: then nothing is in doubt any more.
func TestAQuestionEndsWhenTheInboxIsPutBack(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.send3()
	whole := r.get("inbox.jsonl")
	r.put("inbox.jsonl", r.firstLines(1))
	r.work()
	r.put("inbox.jsonl", whole)
	r.send("x", "new")
	if got := join(r.drain()); got != "new" {
		t.Errorf("drained %q", got)
	}
	if asked, err := r.Question(); asked != nil || err != nil {
		t.Errorf("%+v, %v", asked, err)
	}
}

// TestAnInboxThatWasCutHasAnAnswerThatRepeatsAndLosesNothing: there were the first byte
// and the last one only.
func TestAnInboxThatWasCutHasAnAnswerThatRepeatsAndLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	asking["cut within what is done"](r)
	r.sendMany(10)
	asked, err := r.Question()
	if err != nil || asked == nil {
		t.Fatalf("%+v, %v", asked, err)
	}
	for _, a := range asked.Answers {
		if a.Name == "last" && a.Repeats == 0 && a.Loses == 0 && a.Given == 10 {
			return
		}
	}
	t.Errorf("%+v", asked.Answers)
}

// send3 queues three prompts and does them.
func (r *rig) send3() {
	r.send("1", "one")
	r.send("2", "two")
	r.send("3", "three")
	r.do(3)
}

func (r *rig) sendMany(n int) {
	for i := range n {
		r.send(fmt.Sprintf("x%d", i), fmt.Sprintf("new %d", i))
	}
}

// firstLines are the first lines of the inbox.
func (r *rig) firstLines(n int) string {
	return strings.Join(strings.SplitAfter(r.get("inbox.jsonl"), "\n")[:n], "")
}

// third is the line of the third prompt.
func (r *rig) third() string {
	line, err := form.Encode(form.Envelope{ID: "3", Source: "send", Prompt: "three"})
	if err != nil {
		r.t.Fatal(err)
	}
	return string(line)
}
