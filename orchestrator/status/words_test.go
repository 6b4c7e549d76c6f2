package status

import (
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/firing"

	"heartbeat/hook"
	"heartbeat/orchestrator/session"
)

// TestNotesOfATurn: what takes a while in a turn is said, and what the session says of
// itself is shown as its words, on one line, and never beyond its turn.
func TestNotesOfATurn(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	const silent = "no sign of life for 1m0s: the client waits for the service, or repeats its request"
	for name, tt := range map[string]struct {
		state AgentState
		want  string
	}{
		"nothing": {AgentState{Phase: hook.Turn}, ""},
		"silence": {AgentState{Phase: hook.Turn, Silent: ago(time.Minute)}, silent},
		"a tool":  {AgentState{Phase: hook.Turn, Tool: &session.Tool{Name: "Bash", Since: ago(time.Minute)}}, "the tool Bash has run for 1m0s"},
		"words":   {AgentState{Phase: hook.Turn, Said: &Said{ago(5 * time.Second), "half\x1b[31m\nof it"}}, `it said 5s ago: "half�[31m of it"`},
		"no word": {AgentState{Phase: hook.Background, Said: &Said{At: ago(5 * time.Second)}}, "it said 5s ago that it lives"},
		"both": {
			AgentState{Phase: hook.Turn, Tool: &session.Tool{Name: "Bash", Since: ago(time.Minute)}, Said: &Said{ago(5 * time.Second), "half"}},
			`the tool Bash has run for 1m0s; it said 5s ago: "half"`,
		},
		"too late": {AgentState{Phase: hook.Waiting, Said: &Said{ago(5 * time.Second), "half"}}, ""},
	} {
		tt.state.State = Running
		if got := (Agent{AgentState: tt.state}).Note(now); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestNotesOfWhatWaits: each reason why a queued prompt is not worked on has its line,
// and without a queued prompt none is said.
func TestNotesOfWhatWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for want, a := range map[string]Agent{
		"waiting: all slots are taken":                                                          {AgentState: AgentState{State: Waiting, Reason: "all slots are taken"}},
		"its session ends: drained":                                                             {AgentState: AgentState{State: Ending, Reason: "drained"}},
		"a person uses its session; prompts continue when they have left":                       {AgentState: AgentState{State: Running, Phase: hook.Unattended, Attached: 1}},
		"its turn was interrupted: its session cannot take a prompt and ends soon":              {AgentState: AgentState{State: Running, Phase: hook.Unattended}},
		"a person has typed in its session; prompts continue in 1m0s":                           {AgentState: AgentState{State: Running, Phase: hook.Waiting, Hush: now.Add(time.Minute)}},
		"a turn is running that did not come from the queue; a person may have started it":      {AgentState: AgentState{State: Running, Phase: hook.Turn}},
		"Stop hooks other than heartbeat's run at the end of its turn; prompts come after them": {AgentState: AgentState{State: Running, Phase: hook.Settling}},
		"background tasks of its last turn still run; prompts come after them":                  {AgentState: AgentState{State: Running, Phase: hook.Background}},
		"waiting: claude is new here":                                                           {AgentState: AgentState{State: Idle, Reason: "claude is new here", GoesOn: true}},
		"":                                                                                      {AgentState: AgentState{State: Running, Phase: hook.Waiting}},
	} {
		a.Depth.Entries = 1
		if got := a.Note(now); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if a.Depth.Entries = 0; (a.State == Running || a.State == Idle) && a.Note(now) != "" {
			t.Errorf("with nothing queued: %q", a.Note(now))
		}
	}
}

// TestWhatAnAgentSaidLast: one line, whatever it writes.
func TestWhatAnAgentSaidLast(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		at         time.Time
		tool, text string
		want       string
	}{
		{now.Add(-time.Minute), "", "\n\nI look.\nThen I do.", "said 1m ago: I look."},
		{now.Add(-3 * time.Second), "Bash", `{"command":"ls"}`, `called Bash 3s ago: {"command":"ls"}`},
		{now.Add(time.Hour), "", "a\x1b[2Jb\ttriage: held", "said 0s ago: a\uFFFD[2Jb triage: held"},
		{time.Time{}, "", "", "said: "},
		{time.Time{}, "", strings.Repeat("ä", 300), "said: " + strings.Repeat("ä", 200) + "…"},
	} {
		if got := LineOf(tt.at, tt.tool, tt.text).Words(now); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestRefusals: how often triggers found no room, as long as that is news.
func TestRefusals(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	a := Agent{AgentState: AgentState{State: Running, RefusedFires: []firing.RefusedFires{
		{Trigger: "github", Why: "queue-full", Times: 3, At: now.Add(-2 * time.Minute)},
		{Trigger: "cron-1", Why: "rate", Times: 1, At: now.Add(-2 * time.Hour)},
		{Trigger: "nightly", Why: "missed", Times: 2, At: now.Add(-2 * time.Hour)},
		{Trigger: "hourly", Why: "missed", Times: 2, At: now.Add(-25 * time.Hour)},
	}}}
	want := []string{
		"trigger github was refused 3 times by max-queue, the last time 2m ago",
		"trigger nightly was due 2 times while nothing ran, and that is not made up for (found 2h ago)",
	}
	if got := a.Refusals(now); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	a.State = Stopped
	if got := a.Refusals(now); len(got) != 0 {
		t.Errorf("of a run that has ended: %q", got)
	}
}
