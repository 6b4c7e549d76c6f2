package main

import (
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// A row says what a person asks: since when, what is worked on and for which
// time, what failed, what comes next. It stands in 80 columns.
func TestStatusTable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	before := func(d time.Duration) time.Time { return now.Add(-d) }
	of := func(name string, s status.State, since time.Duration, reason string) status.Agent {
		return status.Agent{AgentState: status.AgentState{Agent: name, State: s, Since: before(since), Reason: foreign.Text(reason)}}
	}
	busy := of("triage", status.Running, 90*time.Second, "session started")
	busy.InFlight = &inbox.InFlight{Source: "triage/mails@2026-03-01T11:58", Tries: inbox.Tries{Attempt: 2}, DeliveredAt: before(2 * time.Minute)}
	busy.Depth.Entries, busy.Dead, busy.Next = 120, 3, now.Add(50*time.Hour)
	busy.Last = &session.Outcome{Why: hook.EndTimeout, Acknowledged: 2}
	waits := of("builder", status.Running, 3*time.Hour, "")
	waits.Phase, waits.Watches, waits.Polls = hook.Waiting, 1, 1
	waits.Last = &session.Outcome{Why: hook.EndReleased, Acknowledged: 41}
	ends := of("reviewer", status.Ending, 5*time.Second, "timeout (over 1h)")
	ends.InFlight = &inbox.InFlight{Tries: inbox.Tries{Attempt: 1}, DeliveredAt: before(time.Hour)}
	ends.Phase = hook.Ending
	stopped := of("clerk", status.Stopped, time.Hour, "")
	stopped.InFlight = &inbox.InFlight{Source: "send", Tries: inbox.Tries{Attempt: 1}, DeliveredAt: before(30 * time.Second)}

	typed := of("writer", status.Running, time.Minute, "")
	typed.Phase, typed.Depth.Entries, typed.Attached, typed.Hush = hook.Waiting, 2, 1, now.Add(80*time.Second)
	broken := of("editor", status.Running, time.Minute, "")
	broken.Phase, broken.Depth.Entries = hook.Unattended, 1

	var p page
	newStatusPage(status.Fleet{Agents: []status.Agent{busy, waits, ends, stopped, typed, broken}}, "heartbeat", now).text(&p)
	want := `6 agents: 4 running, 1 ending, 1 stopped · 123 queued · 3 dead letters
1 prompt waits, and nobody runs its agent: heartbeat run
! triage: 3 dead letters; heartbeat dead-letter triage

AGENT     STATE       QUEUED  IN FLIGHT             DEAD  NEXT         LAST SESSION
triage    running 1m  120     mails 2m, try 2   3     in 2d     timeout, 2 done
builder   running 3h  0       none, it waits        0     any time  41 done
reviewer  ending 5s   0       a line 1h         0     -            -
clerk     stopped     0       send 30s          0     -            -
writer    running 1m  2       none, it waits        0     -            -
editor    running 1m  1       none, unattended      0     -            -
reviewer: its session ends: timeout (over 1h)
writer: a person has typed in its session; prompts continue in 1m20s
editor: its turn was interrupted: its session cannot take a prompt and ends soon

heartbeat explain dead-letters says more
`
	if got := strings.ReplaceAll(p.buf.String(), " \n", "\n"); squeeze(got) != squeeze(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for line := range strings.Lines(p.buf.String()) {
		if width(line) > 81 {
			t.Errorf("%d columns: %s", width(line), line)
		}
	}
}

// squeeze makes runs of blanks one: how wide columns are is not the point.
func squeeze(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// A trigger that fails is no secret: status says so until it works again.
func TestStatusShowsFailingTriggers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", `version: 1
name: fleet
agents:
  triage:
    dir: agents/triage
    command: [heartbeat, simulate]
    trigger: {name: tickets, poll: [sh, -c, "test -e works || { echo no server >&2; exit 3; }"], every: 1s}
  broken:
    dir: agents/broken
    command: [heartbeat, simulate]
    trigger: {name: other, poll: [sh, -c, "exit 4"], every: 1s}
`)
	w.put("agents/triage/x", "")
	w.put("agents/broken/x", "")
	r := w.background()
	shows := func() string { return w.run("status").stdout }
	until(t, "both failures are shown", func() bool {
		text := shows()
		return strings.Contains(text, "! triage: trigger tickets has failed for ") && strings.Contains(text, "exit status 3; it said: no server") &&
			strings.Contains(text, "! broken: trigger other has failed for ") && strings.Contains(text, "exit status 4")
	})
	w.put("agents/triage/works", "")
	until(t, "the command works", func() bool { return !strings.Contains(shows(), "triage: trigger") })
	if text := shows(); !strings.Contains(text, "! broken: ") {
		t.Errorf("what still fails is not shown:\n%s", text)
	}
	if status := r.stop(); status != 0 {
		t.Errorf("status %d", status)
	}
	if text := shows(); strings.Contains(text, "has failed") {
		t.Errorf("a stopped fleet's triggers fail:\n%s", text)
	}
}

// TestAZoneThatWasNotMeantShows: a schedule in the wrong zone had nothing in status
// that told it from a right one.
func TestAZoneThatWasNotMeantShows(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "TZ=Europe/Rome")
	w.put("heartbeat.yaml", `version: 1
name: fleet
agents:
  here: {dir: agents/here, command: [heartbeat, simulate], trigger: {cron: "30 9 * * *", prompt: x}}
  far: {dir: agents/far, command: [heartbeat, simulate], trigger: {cron: "30 9 * * *", timezone: Asia/Tokyo, prompt: x}}
`)
	w.ok("apply")
	if out := w.ok("status"); strings.Count(out, "(09:30 ") != 1 || !strings.Contains(out, "(09:30 JST)") {
		t.Errorf("%s", out)
	}
}
