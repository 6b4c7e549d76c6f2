package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// holds are those that the fleet's store has.
func (w *world) holds() map[string]memory.Hold {
	w.t.Helper()
	holds, err := store.Ask(w.t.Context(), filepath.Join(w.dir, "state/fleet"), memory.ReadHolds)
	if err != nil {
		w.t.Fatal(err)
	}
	return holds
}

// TestAHoldOutlivesTheRun: an agent that was held after failures was started again
// by each run, also by each `run --once` of a cron job; and without a scheduler
// nothing could resume it.
func TestAHoldOutlivesTheRun(t *testing.T) {
	t.Parallel()
	const fleet = "version: 1\nname: fleet\nagents:\n  triage:\n    dir: agents/triage\n    command: [sh, -c, 'echo x >>started; exit 7', sh]\n" +
		"    max-attempts: 1\n    max-restarts: 1\n    on-orphan: retry\n"
	w := newWorld(t)
	w.put("heartbeat.yaml", fleet)
	w.ok("apply")
	starts := func() int { return strings.Count(w.get("agents/triage/started"), "x\n") }
	w.ok("send", "triage", "hello")
	r := w.background()
	until(t, "it is held", func() bool {
		return w.agent("triage").State == "held" && len(w.holds()) == 1
	})
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.ended()
	for _, how := range []string{"run --once", "status", "run --once"} {
		o := w.run(strings.Fields(how)...)
		if how != "status" && o.status != exitError || !strings.Contains(o.stdout, "exited with code 7") {
			t.Errorf("%s: %+v", how, o)
		}
	}
	if out := w.ok("status"); !strings.Contains(out, "! triage: held for ") || !strings.Contains(out, "and by the next run") ||
		!strings.Contains(out, "    do    heartbeat logs triage --raw\n    then  heartbeat resume triage   # when its cause is gone\n") {
		t.Errorf("status:\n%s", out)
	}
	if o := w.run("doctor"); o.status != exitError || !strings.Contains(o.stdout, "and by the next run") ||
		!strings.Contains(o.stdout, "fix the cause (heartbeat logs triage --raw), then heartbeat resume triage") {
		t.Errorf("doctor finds no hold that is kept: %+v", o)
	}
	if n := starts(); n != 2 {
		t.Errorf("started %d times", n)
	}
	if out := w.ok("resume", "triage"); out != "triage: resumed; the next run starts it\n" {
		t.Errorf("resume: %s", out)
	}
	if out := w.ok("status"); strings.Contains(out, "held") {
		t.Errorf("resumed, and status says\n%s", out)
	}
	if o := w.run("run", "--once"); o.status != exitError || starts() != 4 {
		t.Errorf("resumed: %+v, started %d times", o, starts())
	}
	w.put("heartbeat.yaml", strings.Replace(fleet, "exit 7", "exit 8", 1))
	if o := w.run("run", "--once"); starts() != 6 || !strings.Contains(o.stdout, "exited with code 8") {
		t.Errorf("another definition: %+v, started %d times", o, starts())
	}
	if out := w.ok("events"); strings.Count(out, "resumed") != 1 {
		t.Errorf("events:\n%s", out)
	}
}

// TestResumeSaysThatItLiftsNoBudget: it answered "parked", as if it had been tried.
func TestResumeSaysThatItLiftsNoBudget(t *testing.T) {
	t.Parallel()
	var p page
	h := held{Done: "resumed", Agents: []status.AgentState{{Agent: "a", State: status.Parked, OverBudget: true, Reason: "its budget for the hour is spent"}}, ours: "heartbeat"}
	h.text(&p)
	if got := statusOf(h.failure()); got != exitLater {
		t.Errorf("resume: exit %d", got)
	}
	if out := p.buf.String(); !strings.Contains(out, "its budget for the hour is spent; resume does not lift that: set a larger budget in the file, then heartbeat reload\n") {
		t.Errorf("resume: %s", out)
	}
	h.Agents[0] = status.AgentState{Agent: "a", State: status.Parked, LeavesRoom: true, Reason: "96% is used"}
	p = page{}
	h.text(&p)
	if out := p.buf.String(); statusOf(h.failure()) != exitLater || !strings.Contains(out, "96% is used; resume does not lift that: raise limits: in the file, then heartbeat reload\n") {
		t.Errorf("of one that leaves room to people: %s", out)
	}
}

// TestAResumeThatLiftsAPauseSucceeds: with a spent budget it said "cannot resume", although
// the pause was lifted.
func TestAResumeThatLiftsAPauseSucceeds(t *testing.T) {
	t.Parallel()
	before := &status.Live{Agents: []status.AgentState{{Agent: "a", Paused: time.Now()}, {Agent: "b"}}}
	parked := status.AgentState{State: status.Parked, OverBudget: true, Reason: "its budget for the hour is spent"}
	a, b := parked, parked
	a.Agent, b.Agent = "a", "b"
	h := held{Done: "resumed", Agents: []status.AgentState{a}, ours: "heartbeat", lifted: pausedIn(before)}
	var p page
	h.text(&p)
	if err := h.failure(); err != nil || !strings.HasPrefix(p.buf.String(), "a: no longer paused; parked: its budget for the hour is spent; resume does not lift that: ") {
		t.Errorf("%v: %s", err, p.buf.String())
	}
	h.Agents = append(h.Agents, b)
	if err := h.failure(); err == nil || strings.Contains(err.Error(), `"a"`) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("one that was not paused: %v", err)
	}
}
