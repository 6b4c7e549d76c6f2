package orchestrator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/internal/testbed"
)

// TestDrainAndPersistShareSlots: agents of both modes, a third of them in a
// group with one slot, get a prompt every ten minutes, and everybody's is done
// before the next one. Sessions that wait for work make way for that.
func TestDrainAndPersistShareSlots(t *testing.T) {
	t.Parallel()
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("agent-%02d", i))
	}
	inBubble(t, strings.Join(names, " "), func(t *testing.T, r *rig) {
		r.fleet.MaxSessions, r.fleet.Groups = 3, map[string]int{"one": 1}
		for i, name := range names {
			if i%2 == 0 {
				r.agent(name).Mode = hook.Persist
				r.set(name, persists)
			}
			if i%3 == 0 {
				r.agent(name).Group = "one"
			}
		}
		stop := r.run()
		chance := testbed.Chance(t, "the order of prompts")
		const rounds = 3
		for round := range rounds {
			for _, i := range chance.Perm(len(names)) {
				r.send(names[i], 1)
			}
			r.sleep(10 * time.Minute)
			for _, name := range names {
				if got := r.state(name).Acknowledged; got != round+1 {
					t.Errorf("%s has done %d of %d prompts", name, got, round+1)
				}
			}
		}
		stop()
		if r.most != 3 {
			t.Errorf("%d sessions at once, want 3", r.most)
		}
	})
}

// An agent whose queue never empties does not keep its slot for ever: its
// session ends after the turn in which its slot-time is over, and it gets the
// slot again when those who waited had theirs.
func TestAnEndlessQueueStarvesNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, "endless tick short", func(t *testing.T, r *rig) {
		r.fleet.MaxSessions, r.fleet.SlotTime = 2, 30*time.Minute
		r.agent("tick").Mode, r.agent("tick").OnIdle = hook.Persist, hook.IdleTick
		r.set("tick", persists)
		r.send("tick", 1)
		r.send("endless", 1000)
		stop := r.run()
		defer stop()
		r.sleep(time.Minute)
		r.send("short", 1)
		r.sleep(28 * time.Minute)
		if got := r.state("short").Acknowledged; got != 0 {
			t.Errorf("before slot-time was over %d prompts of the other agent were done", got)
		}
		r.sleep(3 * time.Minute)
		if got := r.state("short").Acknowledged; got != 1 {
			t.Errorf("%d prompts of the agent that waited are done, want 1", got)
		}
		r.want("endless", Running)
		if got := r.started("endless"); len(got) != 2 {
			t.Errorf("the endless agent had %d sessions, want 2", len(got))
		}
		r.sleep(2 * time.Hour) // nobody waits
		if got := r.started("endless"); len(got) != 2 {
			t.Errorf("with nobody waiting it had %d sessions, want 2", len(got))
		}
		if got := r.started("tick"); len(got) != 1 {
			t.Errorf("the tick agent had %d sessions, want 1", len(got))
		}
	})
}

// TestTheLongestWaitingSessionYieldsFirst: three sessions wait for work, and
// those who need a slot get them in the order in which the sessions went idle.
func TestTheLongestWaitingSessionYieldsFirst(t *testing.T) {
	t.Parallel()
	inBubble(t, "p1 p2 p3 n1 n2 n3", func(t *testing.T, r *rig) {
		r.fleet.MaxSessions = 3
		for i, name := range []string{"p2", "p3", "p1"} {
			r.agent(name).Mode = hook.Persist
			r.set(name, persists)
			r.send(name, i+1) // p2 waits first, p1 last
		}
		stop := r.run()
		defer stop()
		r.sleep(5 * time.Minute)
		yielded := []string{"p2", "p3", "p1"}
		for i, needy := range []string{"n1", "n2", "n3"} {
			r.send(needy, 10)
			r.sleep(10 * time.Second)
			r.want(needy, Running)
			for j, name := range yielded {
				want := Running
				if j <= i {
					want = Idle
				}
				r.want(name, want)
			}
		}
		if !slices.Contains(r.order(), "n3") || r.most != 3 {
			t.Errorf("started %v, %d at once", r.order(), r.most)
		}
	})
}
