package orchestrator

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/session"
)

// replace makes another directory under an agent's path.
func (r *rig) replace(agent string) {
	r.t.Helper()
	dir := r.agent(agent).Dir
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		r.t.Fatal(err)
	}
}

// After a directory was removed and cloned again while its fleet ran, nobody
// had the lock of the new one, and what was queued in it was found by chance.
func TestADirectoryThatIsRemovedAndMadeAgainIsLockedAnew(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		dir := r.agent("a").Dir
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		r.sleep(sweepEvery + time.Second)
		if a := r.state("a"); !strings.Contains(a.Lost, dir+" is not there") || !a.NeedsPerson() || a.State != Idle {
			t.Errorf("without its directory: %+v", a)
		}
		if e := r.journal("directory-lost"); len(e) != 1 || e[0].Agent != "a" {
			t.Errorf("the journal: %+v", e)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		r.sleep(agent.InspectEvery + 100*time.Millisecond)
		if !flock.Held(dir) {
			t.Error("a second run could have the new directory")
		}
		if a := r.state("a"); a.Lost != "" || a.NeedsPerson() {
			t.Errorf("with its new directory: %+v", a)
		}
		if e := r.journal("directory-found"); len(e) != 1 {
			t.Errorf("the journal: %+v", e)
		}
		r.send("a", 1)
		r.sleep(boot + entry + time.Second)
		r.want("a", Idle)
		if a := r.state("a"); a.Acknowledged != 1 {
			t.Errorf("%+v", a)
		}
	})
}

func TestADirectoryThatIsReplacedIsLockedAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a")
	synctest.Test(t, func(t *testing.T) {
		r.t = t
		stop := r.run()
		defer stop()
		r.replace("a")
		r.sleep(sweepEvery + time.Second)
		if !flock.Held(r.agent("a").Dir) || r.state("a").Lost != "" {
			t.Errorf("%+v", r.state("a"))
		}
		r.send("a", 1)
		r.sleep(boot + entry + time.Second)
		if a := r.state("a"); a.Acknowledged != 1 {
			t.Errorf("%+v", a)
		}
	})
	if flock.Held(r.agent("a").Dir) {
		t.Error("the lock outlives the run")
	}
}

// A directory that is away and comes back is the one that is locked.
func TestADirectoryThatComesBackIsTheOneThatWasLocked(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		dir := r.agent("a").Dir
		r.set("a", func(f *fakeSession) session.Outcome { return finished(<-f.orders) })
		r.send("a", 1)
		r.sleep(time.Second)
		if err := os.Rename(dir, dir+".away"); err != nil {
			t.Fatal(err)
		}
		r.sleep(sweepEvery + time.Second)
		if r.state("a").Lost == "" {
			t.Error("nothing was noticed")
		}
		if err := os.Rename(dir+".away", dir); err != nil {
			t.Fatal(err)
		}
		r.sleep(2 * agent.InspectEvery)
		if a := r.state("a"); a.Lost != "" || a.State != Running {
			t.Errorf("%+v, want its session to live", a)
		}
	})
}

func TestASessionWhoseDirectoryIsReplacedEnds(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.agent("a").Mode = hook.Persist
		r.set("a", func(f *fakeSession) session.Outcome {
			f.say(hook.Waiting)
			return finished(<-f.orders)
		})
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(boot)
		r.want("a", Running)
		r.replace("a")
		r.sleep(sweepEvery + time.Second)
		r.want("a", Idle)
		if e := r.journal("ended"); len(e) != 1 || e[0].Reason != "finished ("+agent.FinishReplaced+")" {
			t.Errorf("%+v", e)
		}
	})
}

// What stands in the place of a directory may be another fleet's.
func TestAReplacedDirectoryOfAnotherRunIsLeftAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		r.replace("a")
		unlock, err := flock.TryLock(r.agent("a").Dir)
		if err != nil {
			t.Fatal(err)
		}
		r.send("a", 1)
		r.sleep(sweepEvery + time.Second)
		if a := r.state("a"); !strings.Contains(a.Lost, "another heartbeat") {
			t.Errorf("%+v", a)
		}
		r.sleep(time.Hour)
		if n := len(r.started("a")); n != 0 {
			t.Errorf("%d sessions in a directory that another run has", n)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		r.sleep(agent.InspectEvery + boot + entry + time.Second)
		if a := r.state("a"); a.Acknowledged != 1 || a.Lost != "" {
			t.Errorf("%+v", a)
		}
	})
}

// An agent that waits for a slot and loses its directory is in nobody's way.
func TestAnAgentWithoutItsDirectoryLeavesTheLineForASlot(t *testing.T) {
	t.Parallel()
	inBubble(t, "busy lost next", func(t *testing.T, r *rig) {
		r.fleet.MaxSessions = 1
		r.send("busy", 4)
		stop := r.run()
		defer stop()
		r.sleep(time.Second)
		r.send("lost", 1)
		r.sleep(time.Second)
		r.send("next", 1)
		r.sleep(time.Second)
		r.want("lost", Waiting)
		if err := os.RemoveAll(r.agent("lost").Dir); err != nil {
			t.Fatal(err)
		}
		r.sleep(5 * time.Minute)
		r.want("next", Idle)
		if a := r.state("next"); a.Acknowledged != 1 {
			t.Errorf("%+v", a)
		}
	})
}

// It was held as if its queue could not be read.
func TestAFolderOfTheQueueThatIsGoneHoldsNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		if err := os.RemoveAll(r.agent("a").Home); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Hour)
		r.want("a", Idle)
		r.send("a", 1)
		r.sleep(boot + entry + time.Second)
		if a := r.state("a"); a.Acknowledged != 1 {
			t.Errorf("%+v", a)
		}
	})
}
