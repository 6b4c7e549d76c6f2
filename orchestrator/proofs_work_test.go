package orchestrator

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// TestMaxTimeIsOfOurClock: the record of the entry in flight lies in the agent's
// directory. One that says that the work has just begun does not stretch max-time.
func TestMaxTimeIsOfOurClock(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		u := config.NewUntil("make", "test")
		u.MaxTime = 100 * time.Minute
		r.proves(u, fails("a"), fails("b"), fails("c"), passing)
		r.set("a", func(f *fakeSession) session.Outcome {
			o := claims(40 * time.Minute)(f)
			shorten(f, filepath.Join(filepath.Dir(r.agent("a").Inbox), inbox.FlightFile))
			return o
		})
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(5 * time.Hour)
		if got, want := r.verdicts(), []string{"unproven", "unproven", "max-time"}; !slices.Equal(got, want) {
			t.Errorf("verdicts %v, want %v", got, want)
		}
	})
}

// shorten has a record say that what is claimed took a second.
func shorten(f *fakeSession, path string) {
	data, err := os.ReadFile(path)
	var record map[string]json.RawMessage
	var claim inbox.Claim
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err == nil {
		err = json.Unmarshal(record["claim"], &claim)
	}
	if err == nil {
		record["delivered_at"], err = json.Marshal(claim.Since.Add(-time.Second))
	}
	if err == nil {
		data, err = json.Marshal(record)
	}
	if err == nil {
		err = os.WriteFile(path, append(bytes.TrimSpace(data), '\n'), 0o600)
	}
	if err != nil {
		f.r.t.Error(err)
	}
}

// TestWaitingForAVerdictIsNoWork: a session that waits for hours for its check has
// worked for as long as its turns took, and the work on a prompt that is done counts
// for no other one.
func TestWaitingForAVerdictIsNoWork(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		u := config.NewUntil("make", "test")
		u.MaxTime = time.Hour
		r.proves(u, asksLater, asksLater, asksLater, asksLater, asksLater, asksLater, asksLater, asksLater, passing, fails("x"), passing)
		r.set("a", claims(40*time.Minute))
		r.send("a", 2)
		stop := r.run()
		defer stop()
		r.sleep(6 * time.Hour)
		if len(r.replies("a")) != 2 || len(r.dead("a")) != 0 {
			t.Errorf("%d replies, dead letters %+v", len(r.replies("a")), r.dead("a"))
		}
	})
}

// TestATriggersOwnCheck: its prompts have to pass that, and no other ones.
func TestATriggersOwnCheck(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		c := r.proves(config.NewUntil("make", "test"), passing)
		a := r.agent("a")
		a.Triggers = []config.Trigger{cron(t, "release", "0 * * * *")}
		a.Triggers[0].Until = config.NewUntil("make", "release")
		r.mkdir(a.Home)
		r.set("a", claims(entry))
		stop := r.run()
		defer stop()
		r.sleep(10 * time.Minute)
		r.send("a", 1)
		r.sleep(time.Hour)
		var ran []string
		for _, check := range c.asked {
			ran = append(ran, check.Argv[1])
		}
		if want := []string{"test", "release"}; !slices.Equal(ran, want) || len(r.replies("a")) != 2 {
			t.Errorf("checks %v, want %v; %d replies", ran, want, len(r.replies("a")))
		}
	})
}

// TestASessionWhoseWorkIsCheckedYields: another agent gets its slot, and the next
// iteration is another session's.
func TestASessionWhoseWorkIsCheckedYields(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		r.fleet.MaxSessions = 1
		r.proves(config.NewUntil("make", "test"), proof.Result{Answer: proof.Later}, proof.Result{Answer: proof.Later}, passing)
		r.set("a", func(f *fakeSession) session.Outcome {
			o := claims(entry)(f)
			f.say(hook.Checking)
			if order := <-f.orders; !order.Yield {
				f.r.t.Errorf("it is told %+v", order)
			}
			o.Why = hook.EndReleased
			return o
		})
		r.set("b", claims(entry))
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(boot + entry + 2*time.Second)
		r.want("a", Running)
		r.send("b", 1)
		r.sleep(3 * time.Second)
		if got := r.order(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("started %v", got)
		}
		r.want("a", status.Checking)
		r.sleep(time.Hour)
		if r.most != 1 || len(r.replies("a")) != 1 || len(r.replies("b")) != 1 {
			t.Errorf("%d at once, %d and %d replies", r.most, len(r.replies("a")), len(r.replies("b")))
		}
	})
}
