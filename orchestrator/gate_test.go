package orchestrator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/operator"
	"heartbeat/sources"
)

// gated is a scheduler that does not run, and a trigger with a gate: a shell
// script.
func gated(t *testing.T, script string) (*rig, *Scheduler, trigger) {
	t.Helper()
	r := newRig(t, "a")
	state := filepath.Join(r.dir, "state")
	r.mkdir(state)
	r.mkdir(r.declare("a").Home)
	s, err := New(Options{Fleet: r.fleet, StateDir: state})
	if err != nil {
		t.Fatal(err)
	}
	if s.journal, err = journal.Open(state); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.journal.Close() })
	s.stopping = true // nothing is started here
	return r, s, trigger{
		&config.Trigger{Name: "nightly", Gate: []string{"sh", "-c", script}, Cron: &config.CronTrigger{Overlap: config.OverlapQueue}},
		s.agents[0], r.agent("a"), "a/nightly",
	}
}

func entries(t *testing.T, a *config.Agent) []inbox.Entry {
	t.Helper()
	q, err := operator.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	all, err := q.List(100)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestGate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script, skipped, failure string
		queued                         int
	}{
		{name: "go", script: "exit 0", queued: 1},
		{name: "no", script: "exit 1", skipped: skippedGate},
		{name: "broken", script: "echo no such thing >&2; exit 127", failure: `cannot ask the gate of trigger "nightly": the command failed: exit status 127; it said: no such thing`},
		{name: "killed", script: "kill -9 $$", failure: "signal: killed"},
		// What it prints is not asked for: over 1 MiB of it failed the gate for ever.
		{name: "verbose", script: "head -c 3000000 /dev/zero", queued: 1},
		{name: "verbosely no", script: "head -c 3000000 /dev/zero; exit 1", skipped: skippedGate},
		{name: "later", script: "exit 75", failure: "tried again later"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, s, trigger := gated(t, tt.script)
			skipped, err := s.enqueue(t.Context(), trigger, sources.Prompt{Label: "one", Text: "x", At: time.Now()})
			if skipped != tt.skipped || (err == nil) != (tt.failure == "") || err != nil && !strings.Contains(err.Error(), tt.failure) {
				t.Errorf("enqueue = %q, %v", skipped, err)
			}
			if all := entries(t, r.agent("a")); len(all) != tt.queued {
				t.Errorf("queued %d", len(all))
			}
			if e := r.journal("skipped"); (len(e) == 1) != (tt.skipped != "") {
				t.Errorf("the journal: %+v", e)
			}
		})
	}
}

func TestGateKnowsWhatItDecidesAbout(t *testing.T) {
	t.Parallel()
	r, s, trigger := gated(t, `echo "$HEARTBEAT_AGENT $HEARTBEAT_TRIGGER $HEARTBEAT_LABEL $EXTRA" > asked`)
	r.agent("a").Env = map[string]string{"EXTRA": "own"}
	if _, err := s.enqueue(t.Context(), trigger, sources.Prompt{Label: "2026-11-21T09:00", Text: "x"}); err != nil {
		t.Fatal(err)
	}
	asked, err := os.ReadFile(filepath.Join(r.agent("a").Dir, "asked"))
	if err != nil || string(asked) != "a nightly 2026-11-21T09:00 own\n" {
		t.Errorf("asked %q, %v", asked, err)
	}
}

func TestTurnsAreRemembered(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	_, s, trigger := gated(t, "exit 0")
	a := trigger.a
	if s.inTurn(a, at) {
		t.Error("a turn before any")
	}
	for i, p := range []hook.Phase{hook.Starting, hook.Turn, hook.Turn, hook.Background, hook.Waiting, hook.Turn, hook.Ending, hook.Ended, hook.Turn} {
		a.turnsLocked(p, at.Add(time.Duration(i)*time.Minute))
	}
	for minutes, want := range map[float64]bool{0.5: false, 1: true, 2.5: true, 4: true, 4.5: false, 5.5: true, 6.5: false, 7.5: false, 8: true, 99: true} {
		if got := s.inTurn(a, at.Add(time.Duration(minutes*float64(time.Minute)))); got != want {
			t.Errorf("in a turn at %v minutes: %t, want %t", minutes, got, want)
		}
	}
	for i := range 1000 {
		a.turnsLocked(hook.Waiting, at.Add(time.Duration(i)*time.Hour))
		a.turnsLocked(hook.Turn, at.Add(time.Duration(i)*time.Hour))
	}
	if len(a.turns) > keepTurns {
		t.Errorf("%d turns are kept", len(a.turns))
	}
}
