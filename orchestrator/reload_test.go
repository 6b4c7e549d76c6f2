package orchestrator

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/sources"
)

// with is another version of the rig's fleet.
func (r *rig) with(agents ...*config.Agent) *config.Fleet {
	f := *r.fleet
	f.Agents = agents
	return &f
}

func cron(t *testing.T, name, spec string) config.Trigger {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Rome") // anew each time, as a file that is loaded again
	if err != nil {
		t.Fatal(err)
	}
	schedule, err := sources.ParseSchedule(spec, zone)
	if err != nil {
		t.Fatal(err)
	}
	return config.Trigger{Name: name, Cron: &config.CronTrigger{
		Schedule: schedule, Prompt: "x", Missed: sources.MissedSkip, Overlap: config.OverlapQueue,
	}}
}

func TestReloadLeavesUnchangedAgentsAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		r.agent("a").Triggers = []config.Trigger{cron(t, "hourly", "0 * * * *")}
		r.agent("a").Mode = hook.Persist
		r.set("a", persists)
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(time.Minute)
		same := r.declare("a")
		same.Triggers, same.Mode, same.Line = []config.Trigger{cron(t, "hourly", "0 * * * *")}, hook.Persist, 17
		fleet := r.with(same, r.declare("b"))
		fleet.MaxSessions = 9
		plan, err := r.s.Reload(fleet)
		if err != nil {
			t.Fatal(err)
		}
		want := &Plan{Unchanged: []string{"a", "b"}, Fleet: []string{"max-sessions 4 → 9"}}
		if diff := cmp.Diff(want, plan); diff != "" {
			t.Error(diff)
		}
		r.sleep(2 * time.Minute)
		r.want("a", Running)
		if len(r.started("")) != 1 {
			t.Errorf("started %v", r.order())
		}
	})
}

func TestReloadAddsRemovesAndChanges(t *testing.T) {
	t.Parallel()
	inBubble(t, "gone changed stays", func(t *testing.T, r *rig) {
		r.agent("changed").Triggers = []config.Trigger{cron(t, "hourly", "0 * * * *")}
		for _, name := range []string{"gone", "changed", "stays"} {
			r.send(name, 2)
		}
		stop := r.run()
		defer stop()
		r.sleep(boot + entry/2)
		changed := r.declare("changed")
		changed.Command = []string{"other"}
		changed.Triggers = []config.Trigger{cron(t, "minutely", "* * * * *")}
		plan, err := r.s.Reload(r.with(changed, r.declare("stays"), r.declare("new")))
		if err != nil {
			t.Fatal(err)
		}
		want := &Plan{Added: []string{"new"}, Removed: []string{"gone"}, Changed: []string{"changed"}, Unchanged: []string{"stays"}}
		if diff := cmp.Diff(want, plan); diff != "" {
			t.Error(diff)
		}
		r.want("gone", Running) // its turn ends first
		if !flock.Held(r.declare("gone").Dir) {
			t.Error("the directory of a session that lives was given back")
		}
		r.send("new", 1)
		r.sleep(entry)
		if slices.ContainsFunc(r.s.Snapshot(), func(a status.AgentState) bool { return a.Agent == "gone" }) {
			t.Error("the removed agent is still there")
		}
		if flock.Held(r.declare("gone").Dir) || !flock.Held(r.declare("new").Dir) {
			t.Error("the directories' locks do not follow")
		}
		r.sleep(3 * time.Minute) // the new trigger has fired
		if a := r.state("changed"); a.Acknowledged < 4 {
			t.Errorf("changed: %+v; want the minutely prompts done, too", a)
		}
		if a := r.state("new"); a.Acknowledged != 1 {
			t.Errorf("new: %+v", a)
		}
		for _, e := range r.journal("ended") {
			if e.Agent == "gone" && (e.Acknowledged != 1 || !strings.Contains(e.Reason.String(), agent.FinishRemoved)) {
				t.Errorf("the removed agent's session: %+v", e)
			}
		}
	})
}

func TestAChangedPersistSessionMakesWay(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		var commands []string
		r.agent("a").Mode = hook.Persist
		r.set("a", func(f *fakeSession) session.Outcome {
			commands = append(commands, f.spec.Command[0])
			return persists(f)
		})
		r.send("a", 1)
		stop := r.run()
		r.sleep(time.Minute)
		changed := r.declare("a")
		changed.Mode, changed.Command = hook.Persist, []string{"other"}
		if _, err := r.s.Reload(r.with(changed)); err != nil {
			t.Fatal(err)
		}
		r.sleep(5 * time.Second)
		r.want("a", Idle)
		r.send("a", 1)
		r.sleep(time.Minute)
		r.want("a", Running)
		stop()
		if !slices.Equal(commands, []string{"claude", "other"}) {
			t.Errorf("started %q", commands)
		}
	})
}

func TestABadReloadChangesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		r.mkdir(r.declare("b").Dir)
		r.mkdir(r.declare("c").Home)
		unlock, err := flock.TryLock(r.declare("b").Dir) // another scheduler runs there
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unlock() }()
		_, err = r.s.Reload(r.with(r.declare("c"), r.declare("b")))
		if held, ok := errors.AsType[*claim.HeldError](err); !ok || len(held.Agents) != 1 {
			t.Errorf("Reload = %v, want a HeldError", err)
		}
		other := r.with(r.declare("a"))
		other.Name = "other"
		if _, err := r.s.Reload(other); err == nil {
			t.Error("another fleet was loaded")
		}
		if all := r.s.Snapshot(); len(all) != 1 || all[0].Agent != "a" {
			t.Errorf("agents %+v", all)
		}
		if flock.Held(r.declare("c").Dir) {
			t.Error("the directory of an agent that did not come is locked")
		}
		if e := r.journal("reload-failed"); len(e) != 2 {
			t.Errorf("%d failures in the journal, want 2", len(e))
		}
	})
}

func TestAFixedDefinitionEndsAHold(t *testing.T) {
	t.Parallel()
	inBubble(t, "a paused", func(t *testing.T, r *rig) {
		r.set("a", ends(session.Outcome{Why: hook.EndExited, ExitCode: 127}))
		r.send("a", 1)
		stop := r.run()
		defer stop()
		if _, err := r.s.Pause("paused"); err != nil {
			t.Fatal(err)
		}
		r.sleep(2 * time.Minute)
		r.want("a", Held)
		r.set("a", drains)
		fixed, paused := r.declare("a"), r.declare("paused")
		fixed.Command, paused.Command = []string{"right"}, []string{"right"}
		if _, err := r.s.Reload(r.with(fixed, paused)); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		r.want("a", Idle)
		r.want("paused", Held)
		if a := r.state("a"); a.Acknowledged != 1 {
			t.Errorf("%+v", a)
		}
	})
}

func TestTriggersThatGoFireNoMore(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.agent("a").Triggers = []config.Trigger{cron(t, "one", "0 * * * *"), cron(t, "two", "30 * * * *")}
		stop := r.run()
		defer stop()
		r.sleep(2*time.Hour + 5*time.Minute)
		left := r.declare("a")
		left.Triggers = []config.Trigger{cron(t, "two", "30 * * * *")}
		if _, err := r.s.Reload(r.with(left)); err != nil {
			t.Fatal(err)
		}
		before := r.state("a").Acknowledged
		r.sleep(2 * time.Hour)
		if n := r.state("a").Acknowledged - before; n != 2 {
			t.Errorf("%d fires in two hours, want those of the trigger that is left", n)
		}
	})
}

// TestReloadToNoSlotTime says so in the words of the file (it said 0s).
func TestReloadToNoSlotTime(t *testing.T) {
	t.Parallel()
	old, now := &config.Fleet{SlotTime: 5 * time.Second}, &config.Fleet{}
	if got := fleetChanges(old, now); !slices.Equal(got, []string{"slot-time 5s → none"}) {
		t.Errorf("got %q", got)
	}
	if got := fleetChanges(now, old); !slices.Equal(got, []string{"slot-time none → 5s"}) {
		t.Errorf("got %q", got)
	}
}
