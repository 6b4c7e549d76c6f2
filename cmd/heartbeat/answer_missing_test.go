package main

import (
	"slices"
	"strings"
	"testing"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/status"
)

// askingOfLess makes triage's queue ask a person: two prompts are done, two are queued, and
// its inbox is cut to the first line.
func askingOfLess(t *testing.T, w *world) {
	t.Helper()
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "agents/triage\n", "agents/triage\n    command: [heartbeat, simulate]\n", 1))
	w.ok("apply")
	for _, id := range []string{"one", "two"} {
		w.ok("send", "triage", "--id", id, "prompt "+id)
	}
	w.done("run", "--once")
	for _, id := range []string{"three", "four"} {
		w.ok("send", "triage", "--id", id, "prompt "+id)
	}
	lines := slices.Collect(strings.Lines(w.get("agents/triage/.heartbeat/inbox.jsonl")))
	w.put("agents/triage/.heartbeat/inbox.jsonl", lines[0])
}

// TestAnAnswerNamesBeforehandWhatTheInboxLacks: that prompts were missing, and which, was
// known only after the answer.
func TestAnAnswerNamesBeforehandWhatTheInboxLacks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	askingOfLess(t, w)
	out := w.ok("answer", "triage")
	for _, want := range []string{
		"\n2 prompts that were queued and not done are not in the inbox any more.",
		"\n    three: its text is gone\n    four: its text is gone\n",
		"\n    loses 2 that are not in the inbox any more: three, four\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the question lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "repeats and loses nothing") {
		t.Errorf("an answer that loses two says that it loses nothing:\n%s", out)
	}
	var data struct {
		Question struct {
			Missing []struct{ ID string }
			Answers []struct {
				Missing    int
				MissingIDs []string `json:"missing_ids"`
			}
		}
	}
	if w.into(&data, "answer", "triage"); len(data.Question.Missing) != 2 || data.Question.Answers[0].Missing != 2 || !slices.Equal(data.Question.Answers[0].MissingIDs, []string{"three", "four"}) {
		t.Errorf("as JSON: %+v", data)
	}
	shown := w.ok("status")
	if !strings.Contains(shown, "(three, four)") || !strings.Contains(shown, "heartbeat answer triage   # it says which") || strings.Contains(shown, "retry") {
		t.Errorf("status:\n%s", shown)
	}
	if out := w.run("doctor", "triage").stdout; !strings.Contains(out, "(three, four)") {
		t.Errorf("doctor:\n%s", out)
	}
}

// TestADeadLetterWithoutItsTextIsNotAdvisedToBeRetried: the next command was "retry",
// which cannot work for a text that nobody has.
func TestADeadLetterWithoutItsTextIsNotAdvisedToBeRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	askingOfLess(t, w)
	w.ok("answer", "triage", "end")
	for _, asked := range [][]string{{"status"}, {"dead-letter"}, {"dead-letter", "triage"}, {"dead-letter", "show", "three"}, {"doctor", "triage"}} {
		out := strings.Join(strings.Fields(w.run(asked...).stdout), " ")
		if !strings.Contains(out, "backup of the inbox") || strings.Contains(out, "retry three") || asked[0] == "status" && strings.Contains(out, "retry") {
			t.Errorf("%q: %s", asked, out)
		}
	}
	o := w.run("dead-letter", "triage", "retry", "three")
	if o.status != exitError || !strings.Contains(o.stderr, "its text went with the inbox") || !strings.Contains(o.stderr, "heartbeat send triage") {
		t.Errorf("retry: %+v", o)
	}
	o = w.run("-f", "./heartbeat.yaml", "dead-letter", "triage", "retry", "three")
	if !strings.Contains(o.stderr, `hint: heartbeat -f ./heartbeat.yaml send triage "TEXT", then heartbeat -f ./heartbeat.yaml dead-letter triage purge ID`) {
		t.Errorf("retry by another name of the file: %+v", o)
	}
	if out := w.ok("dead-letter", "triage", "purge", "three"); !strings.Contains(out, "1") {
		t.Errorf("purge: %s", out)
	}
	some := status.TakenOut{Entries: 2, Textless: 1}
	if got := some.Remedy(); !strings.Contains(got, "retry ID") || !strings.Contains(got, "send the others again") {
		t.Errorf("where one has its text: %s", got)
	}
}

// TestAnAnswerOfWhichTheLossIsUnknownDoesNotSayThatItLosesNothing.
func TestAnAnswerOfWhichTheLossIsUnknownDoesNotSayThatItLosesNothing(t *testing.T) {
	t.Parallel()
	a := inbox.Answer{Name: "start", MissingUnknown: true}
	if got := strings.Join(meaning(a), "; "); !strings.HasSuffix(got, "could not be told") || strings.Contains(got, "loses nothing") {
		t.Error(got)
	}
	var shown page
	asked := &inbox.Question{Why: "why", MissingUnknown: "the disk is slow", Answers: []inbox.Answer{a}}
	question{"triage", asked, "heartbeat"}.text(&shown)
	if got := strings.Join(strings.Fields(shown.buf.String()), " "); !strings.Contains(got, "not in the inbox any more: the disk is slow.") {
		t.Error(got)
	}
}
