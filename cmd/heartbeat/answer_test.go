package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A queue that asks a person says so in status, shows what each answer means, and
// goes on where it is told, in a scheduler that runs.
func TestAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "agents/triage\n", "agents/triage\n    command: [heartbeat, simulate]\n", 1))
	w.ok("apply")
	if out := w.ok("answer", "triage"); out != "the queue of triage is fine: there is nothing to answer\n" {
		t.Errorf("asked before: %s", out)
	}
	if o := w.run("answer", "triage", "end"); o.status != exitError || !strings.Contains(o.stderr, "asks nothing") {
		t.Errorf("answered before: %+v", o)
	}
	w.put("agents/triage/.heartbeat/inbox.jsonl", "one\ntwo\nthree\n")
	w.put("agents/triage/.heartbeat/.inbox-offset", "rubbish")
	r := w.background()
	until(t, "it is held", func() bool { return w.agent("triage").State == "held" })
	if out := w.ok("status"); strings.Count(out, "! ") != 1 || !strings.Contains(out, "\n    do    heartbeat answer triage\n") {
		t.Errorf("status:\n%s", out)
	}
	out := w.ok("answer", "triage")
	for _, want := range []string{
		"nothing else tells which prompts are done\n", "\nWhere should it continue?\n",
		"\nstart (from the first prompt on)\n    hands over 3 prompts, from this on: \"one\"\n    repeats and loses nothing\n",
		"\n    hands over nothing\n    loses 3 that were not done, the first one: \"one\"\n",
		"\n    heartbeat answer triage ANSWER\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the question lacks %q:\n%s", want, out)
		}
	}
	for _, wrong := range []string{"middle", "5", "99"} {
		if o := w.run("answer", "triage", wrong); o.status != exitError || o.stdout != "" || w.get("agents/triage/.heartbeat/.inbox-offset") != "rubbish" {
			t.Errorf("%s: %+v", wrong, o)
		}
	}
	if out := w.ok("answer", "triage", "4"); out != "triage: its queue continues\n    hands over 2 prompts, from this on: \"two\"\n    loses 1 that was not done: \"one\"\n" {
		t.Errorf("answered: %s", out)
	}
	until(t, "the rest is done", func() bool { return w.agent("triage").Acknowledged == 2 })
	if out := w.get("agents/triage/.heartbeat/outbox.jsonl"); strings.Count(out, "\n") != 2 {
		t.Errorf("done:\n%s", out)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if err := os.Remove(filepath.Join(w.dir, "agents/triage/.heartbeat/.inbox-meta")); err != nil {
		t.Fatal(err)
	}
	w.put("agents/triage/.heartbeat/.inbox-offset", "rubbish")
	var data struct {
		Question struct{ Answers []struct{ Name string } }
	}
	if w.into(&data, "answer", "triage"); len(data.Question.Answers) != 2 {
		t.Errorf("as JSON: %+v", data)
	}
	if out := w.ok("answer", "triage", "end"); !strings.HasSuffix(out, "No scheduler runs it now.\n") {
		t.Errorf("answered without a scheduler: %s", out)
	}
}

// TestAnAnswerDoesNotEndAPause: what somebody else wants is theirs to end.
func TestAnAnswerDoesNotEndAPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "agents/triage\n", "agents/triage\n    command: [heartbeat, simulate]\n", 1))
	w.ok("apply")
	w.put("agents/triage/.heartbeat/inbox.jsonl", "one\ntwo\nthree\n")
	w.put("agents/triage/.heartbeat/.inbox-offset", "rubbish")
	r := w.background()
	until(t, "it is held", func() bool { return w.agent("triage").State == "held" })
	w.ok("pause", "triage")
	if out := w.ok("answer", "triage", "4"); out != "triage: its queue continues\n    hands over 2 prompts, from this on: \"two\"\n    loses 1 that was not done: \"one\"\nIt is paused: heartbeat resume triage\n" {
		t.Errorf("answered: %s", out)
	}
	if a := w.agent("triage"); a.State != "held" || a.Acknowledged != 0 {
		t.Errorf("after the answer: %+v", a)
	}
	w.ok("resume", "triage")
	until(t, "the rest is done", func() bool { return w.agent("triage").Acknowledged == 2 })
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestTheListOfAQueueThatAsksSaysThatItIsNotKnown: inbox said "nothing is queued" of a queue
// that asks a person.
func TestTheListOfAQueueThatAsksSaysThatItIsNotKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "agents/triage\n", "agents/triage\n    command: [heartbeat, simulate]\n", 1))
	w.ok("apply")
	w.put("agents/triage/.heartbeat/inbox.jsonl", "one\n")
	w.put("agents/triage/.heartbeat/.inbox-offset", "rubbish")
	if o := w.run("inbox"); o.stdout != "it is not known what is queued for triage: heartbeat answer triage\n" {
		t.Errorf("of the fleet: %+v", o)
	}
	if o := w.run("inbox", "triage"); o.status != exitError || o.stdout != "" || !strings.Contains(o.stderr, "\nhint: heartbeat answer triage\n") ||
		!strings.Contains(o.stderr, `cannot tell what is queued for agent "triage": `) {
		t.Errorf("of the agent: %+v", o)
	}
	if o := w.run("run", "--once"); o.status != exitError || !strings.Contains(o.stderr, `do="heartbeat answer triage"`) || strings.Contains(o.stderr, "resume triage") {
		t.Errorf("the run: %+v", o)
	}
}
