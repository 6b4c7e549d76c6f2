package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/status"
)

// TestACommandForSeveralAgentsNamesThem: of two agents that were paused, the printed
// command resumed one.
func TestACommandForSeveralAgentsNamesThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated+"  builder: {dir: agents/builder, command: [heartbeat, simulate]}\n")
	w.ok("apply")
	w.ok("pause", "--all")
	out := w.ok("status")
	_, command, found := strings.Cut(out, "heartbeat resume ")
	if command, _, _ = strings.Cut(command, "\n"); !found {
		t.Fatalf("status:\n%s", out)
	}
	w.ok(append([]string{"resume"}, strings.Fields(command)...)...)
	if out := w.ok("status"); strings.Contains(out, "paused") {
		t.Errorf("after resume %s:\n%s", command, out)
	}
	many := status.Alike{Trouble: status.Trouble{Agent: "a", Do: " resume a"}}
	for range 20 {
		many.Others = append(many.Others, "x")
	}
	if got := many.ForAll().Do; got != " resume a   # and the others: it takes several names, or --all" {
		t.Errorf("for many: %q", got)
	}
}

// TestWhatAPromptWaitsForIsSaidOnce: it waited: waiting, and waited: waits for approval.
func TestWhatAPromptWaitsForIsSaidOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"waiting: no slot is free":        "It waits: no slot is free; heartbeat status a\n",
		"waits for approval for 5m: Go?":  "It waits for approval for 5m: Go?; heartbeat status a\n",
		"paused by a person for 5 s":      "It waits: paused by a person for 5 s; heartbeat status a\n",
		"its session ends: it is drained": "It waits: its session ends: it is drained; heartbeat status a\n",
	} {
		var p page
		waitsText(&p, status.Trouble{Text: text, Do: "heartbeat status a"})
		if got := p.buf.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestADeadLetterWasGivenAsOftenAsTheListSays: the list counted iterations, and show did not.
func TestADeadLetterWasGivenAsOftenAsTheListSays(t *testing.T) {
	t.Parallel()
	d := dead{DeadEntry: inbox.DeadEntry{ID: "x", Reason: inbox.Poison, Attempts: 1, Iterations: 3, At: time.Now()}}
	var p page
	if row := d.row(&p); row[2].text != "3" {
		t.Errorf("the list: %+v", row)
	}
	d.whole(&p, "heartbeat", "a")
	if out := p.buf.String(); !strings.Contains(out, "given:    3 times; 3 iterations\n") {
		t.Errorf("show:\n%s", out)
	}
}

// TestAnAnswerIsInTheJournal, with what it means: it said "resumed by a person".
func TestAnAnswerIsInTheJournal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	askingOfLess(t, w)
	w.ok("answer", "triage", "end")
	if out := w.ok("events", "triage"); !strings.Contains(out, " triage answered: a person says: ") || !strings.Contains(out, "; hands over 0, repeats 0, loses 2") {
		t.Errorf("events:\n%s", out)
	}
	if out := w.ok("explain", "answered"); !strings.Contains(out, "where the agent's queue continues") {
		t.Errorf("explain:\n%s", out)
	}
}

// TestTheOtherRunIsEndedByStop: the hint was to kill it.
func TestTheOtherRunIsEndedByStop(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]*claim.HeldError{
		"heartbeat -f '/a b/heartbeat.yaml' stop ends the other one;":  {PID: 7, By: owner.Origin{File: "/a b/heartbeat.yaml"}},
		"heartbeat stop where the other one's file is, or kill 7 ends": {PID: 7},
	} {
		if got := e.Hint(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSendWaitWarnsInWords: a line of the log came first.
func TestSendWaitWarnsInWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.ok("apply")
	o := w.run("send", "--wait", "--timeout", "1s", "triage", "hello")
	if o.status != exitTimeout || strings.Contains(o.stderr, "WARN") || !strings.HasPrefix(o.stderr, "warning: the prompt is queued for triage, and waits: no scheduler runs the agent; heartbeat run\n") {
		t.Errorf("%+v", o)
	}
}

// TestTheTopicsSayWhatTheFlagsSay: the statuses of --host, and where a fleet's file is
// looked for.
func TestTheTopicsSayWhatTheFlagsSay(t *testing.T) {
	t.Parallel()
	codes, err := os.ReadFile("help/exit-codes.md")
	if err != nil || !strings.Contains(string(codes), "    127  --host") || !strings.Contains(string(codes), "    255  --host") {
		t.Errorf("exit-codes: %v", err)
	}
}
