package status

import (
	"strings"
	"testing"
	"time"
)

// TestMute: a scheduler that does not answer is a trouble, with since when, why as far as the
// system tells, and what helps against that.
func TestMute(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, tt := range []struct {
		m              Mute
		text, do, then string
	}{
		{Mute{PID: 7, Seen: now.Add(-3 * time.Minute), State: "T"}, "the scheduler (process 7) does not answer: a signal has stopped it; it was last seen 3m ago, at ", "kill -CONT 7", "it goes on where it was"},
		{Mute{PID: 7, Seen: time.Time{}, State: "t"}, "(process 7) does not answer: a debugger has stopped it", "the debugger", ""},
		{Mute{PID: 7, Seen: time.Time{}, State: "D"}, "(process 7) does not answer: it waits for a disk", "look at the disk", ""},
		{Mute{PID: 7, Seen: time.Time{}, State: "S"}, "(process 7) does not answer", "kill 7, or kill -KILL 7 if that does not help: it ends with its sessions; then heartbeat -f x.yaml run", ""},
		{Mute{PID: 7, Seen: time.Time{}, State: ""}, "(process 7) does not answer", "if that prints T, kill -CONT 7; if it still does not answer, kill 7", ""},
		{Mute{PID: 7, Seen: now, NoSocket: true}, "(process 7) runs, and commands cannot reach it: its socket is not there", "it makes its socket again; if it does not, kill 7, then heartbeat -f x.yaml run", ""},
		{Mute{}, "the scheduler does not answer", "ps -C heartbeat", ""},
	} {
		all := Fleet{Mute: &tt.m, Agents: []Agent{{AgentState: AgentState{Agent: "a", State: Held, Reason: "x"}}}}.Troubles("heartbeat -f x.yaml", now)
		got := all[0]
		if got.What != NoAnswer || !got.What.Alarming() || !got.Since.Equal(tt.m.Seen) || !strings.Contains(got.Text, tt.text) || !strings.Contains(got.Do, tt.do) || !strings.Contains(got.Then, tt.then) {
			t.Errorf("%+v: %+v", tt.m, got)
		}
		if tt.m.Seen.IsZero() && strings.Contains(got.Text, "last seen") {
			t.Errorf("%+v: %s", tt.m, got.Text)
		}
	}
}
