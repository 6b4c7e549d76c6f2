package status

import (
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/lastrun"
)

// TestEnds: a run that ended without anybody having wanted that is a trouble, with when and
// how; one that was asked to end is said in a line, and is none.
func TestEnds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := now.Add(-3 * time.Minute)
	for name, tt := range map[string]struct {
		p             lastrun.Past
		trouble, line string
	}{
		"a kill":               {lastrun.Past{PID: 7, Ended: at, Within: lastrun.Every, How: lastrun.Killed}, "the scheduler (process 7) was killed, or crashed, at " + at.Format(time.DateTime) + " or up to 5s later; since then nothing fires and no prompt is worked on", ""},
		"no memory":            {lastrun.Past{Ended: at, How: lastrun.Killed, Why: "memory ran out"}, "was killed at " + at.Format(time.DateTime) + ": memory ran out", ""},
		"a power loss":         {lastrun.Past{Ended: at, How: lastrun.Rebooted, Rebooted: true}, "the machine stopped, and has been started since", ""},
		"a reboot":             {lastrun.Past{Ended: at, How: lastrun.Stopped, Why: lastrun.BySignal, Rebooted: true}, "on SIGTERM, and the machine has been started since", ""},
		"an error":             {lastrun.Past{Ended: at, How: lastrun.Failed, Why: "no room"}, "with an error: no room", ""},
		"stop":                 {lastrun.Past{PID: 7, Ended: at, How: lastrun.Stopped, Why: lastrun.ByCommand}, "", "not running: the scheduler (process 7) was stopped at " + at.Format(time.DateTime) + " by heartbeat stop, 3m ago"},
		"stop before a reboot": {lastrun.Past{Ended: at, How: lastrun.Stopped, Why: lastrun.ByCommand, Rebooted: true}, "", "by heartbeat stop"},
		"the service's stop":   {lastrun.Past{Ended: at, How: lastrun.Stopped, Why: lastrun.BySignal}, "", "by SIGTERM"},
		"a person at the keys": {lastrun.Past{Ended: at, How: lastrun.Stopped, Why: lastrun.ByKeys}, "", "by Ctrl-C"},
		"once":                 {lastrun.Past{Ended: at, How: lastrun.Finished, Once: true}, "", "nothing was left to do"},
		"once, for too long":   {lastrun.Past{Ended: at, How: lastrun.TimedOut, Once: true}, "", "--once-timeout was over"},
		"once, killed":         {lastrun.Past{Ended: at, How: lastrun.Killed, Once: true}, "", "was killed, or crashed"},
	} {
		f := Fleet{LastRun: &tt.p, Agents: []Agent{{AgentState: AgentState{Agent: "a", State: Stopped}}}}
		all := f.Troubles("heartbeat", now)
		switch {
		case tt.trouble == "" && len(all) > 0:
			t.Errorf("%s is a trouble: %+v", name, all)
		case tt.trouble != "" && (len(all) != 1 || all[0].What != SchedulerEnded || !all[0].What.Alarming() || !strings.Contains(all[0].Text, tt.trouble) || all[0].Do != "heartbeat run"):
			t.Errorf("%s: %+v", name, all)
		}
		if got := f.NotRunText(now); !strings.Contains(got, tt.line) || tt.line == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, tt.line)
		}
	}
	begins := Fleet{Begun: now.Add(-time.Minute)}
	if got := begins.NotRunText(now); !strings.Contains(got, "a scheduler begins, for 1m0s") {
		t.Error(got)
	}
	if got := (Fleet{}).NotRunText(now); got != "" {
		t.Errorf("a fleet that never ran: %q", got)
	}
}
