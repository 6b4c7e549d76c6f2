package main

import (
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// spentFleet is a fleet in which nothing runs, whose agent has spent the budget of the day.
func spentFleet(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	zone := "Etc/GMT-12" // where the test does not see midnight
	if time.Now().UTC().Hour() >= 6 && time.Now().UTC().Hour() < 18 {
		zone = "UTC"
	}
	w.put("heartbeat.yaml", strings.Replace(oneAgent, "agents/triage\n", "agents/triage\n    command: [heartbeat, simulate]\n    timezone: "+zone+"\n    budget: {day: {turns: 1}}\n", 1))
	w.ok("apply")
	w.ok("send", "triage", "one")
	w.run("run", "--once")
	w.ok("send", "triage", "two")
	return w
}

// TestASpentBudgetIsShownWhileNothingRuns: status showed "1 stopped" and doctor found nothing,
// and the hint of run --once was about a usage limit.
func TestASpentBudgetIsShownWhileNothingRuns(t *testing.T) {
	t.Parallel()
	w := spentFleet(t)
	const why = "its budget for the day is spent: 1 of 1 turns"
	o := w.run("run", "--once")
	if o.status != exitLater || !strings.Contains(o.stderr, `cannot finish: agent "triage" is parked: `+why) || !strings.Contains(o.stderr, "hint: run it again after ") ||
		!strings.Contains(o.stderr, ", or set a larger budget in the file\n") {
		t.Errorf("run --once: %+v", o)
	}
	if out := strings.Join(strings.Fields(w.ok("status")), " "); !strings.Contains(out, "the next run keeps it parked for another ") || !strings.Contains(out, why) ||
		!strings.Contains(out, "heartbeat usage triage --by entry") {
		t.Errorf("status: %s", out)
	}
	if out := w.run("doctor", "triage").stdout; !strings.Contains(out, why) || !strings.Contains(out, "set a larger budget in the file, then heartbeat run") {
		t.Errorf("doctor: %s", out)
	}
	w.put("heartbeat.yaml", strings.Replace(w.get("heartbeat.yaml"), "turns: 1", "turns: 9", 1))
	if out := w.ok("status"); strings.Contains(out, "budget") || strings.Contains(w.run("doctor").stdout, why) {
		t.Errorf("with a larger one: %s", out)
	}
}

// TestAResumeWithoutASchedulerSaysWhatKeepsTheAgent: it said "the next run starts it" of one
// that waits for an approval or has spent its budget.
func TestAResumeWithoutASchedulerSaysWhatKeepsTheAgent(t *testing.T) {
	t.Parallel()
	w := spentFleet(t)
	o := w.run("resume", "triage")
	if o.status != exitLater || !strings.HasPrefix(o.stdout, "triage: the next run does not start it until ") ||
		!strings.HasSuffix(o.stdout, ": its budget for the day is spent: 1 of 1 turns; resume does not lift that: set a larger budget in the file\n") {
		t.Errorf("over its budget: %+v", o)
	}
	w.ok("pause", "triage")
	if out := w.ok("resume", "triage"); !strings.HasPrefix(out, "triage: no longer paused; the next run does not start it until ") {
		t.Errorf("that was paused: %s", out)
	}
	w.put("heartbeat.yaml", strings.Replace(w.get("heartbeat.yaml"), "turns: 1", "turns: 9", 1))
	if out := w.ok("resume", "triage"); out != "triage: resumed; the next run starts it\n" {
		t.Errorf("with a larger budget: %s", out)
	}
	w.asks(approval.Request{Agent: "triage", Question: "Deploy?"})
	o = w.run("resume", "triage")
	if o.status != exitError || !strings.HasPrefix(o.stdout, "triage: the next run does not start it: waits for approval: Deploy?") ||
		!strings.Contains(o.stdout, "; resume does not lift that: heartbeat approval approve ") {
		t.Errorf("that waits for an approval: %+v", o)
	}
}

// asks files a request of a fleet that no run has, and returns its id.
func (w *world) asks(r approval.Request) string {
	w.t.Helper()
	storetest.Write(w.t, w.dir+"/state/fleet", func(c *store.Change) (err error) {
		r, _, err = approval.Ask(c, r, config.Approvals{}, time.Now())
		return err
	})
	return r.ID
}
