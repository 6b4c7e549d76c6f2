package orchestrator

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// set is what a machine's clock is set by, and, with righted, back by after a while.
type set struct {
	by      time.Duration
	righted bool
}

// sets are what time servers, people, empty batteries and suspended machines do.
var sets = []set{
	{-7 * 365 * 24 * time.Hour, false},
	{7 * 365 * 24 * time.Hour, true},
	{-2 * time.Hour, false},
	{2 * time.Hour, true},
	{-40 * time.Minute, false},
	{25 * time.Hour, true},
	{-7 * 365 * 24 * time.Hour, true},
	{7 * 365 * 24 * time.Hour, false},
	{-2 * time.Hour, true},
	{2 * time.Hour, false},
	{-25 * time.Hour, false},
	{0, false},
}

// TestAnAgentWaitsNoLongerThanItWasTo: whatever the machine's clock is set to while agents
// wait for a time, each goes on after no more than the longest that it could have been told,
// and until then says why it waits, and never for longer than that.
func TestAnAgentWaitsNoLongerThanItWasTo(t *testing.T) {
	t.Parallel()
	longest := map[string]time.Duration{"hour": time.Hour, "day": 24 * time.Hour, "limit": 5*time.Hour + time.Minute, "pause": 3 * time.Hour, "asks": 4 * time.Hour}
	const look, lookEveryRequest = 10 * time.Minute, 30 * time.Second
	for _, c := range testbed.SampleOf(t, sets, 2) {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			inBubble(t, "hour day limit pause asks", func(t *testing.T, r *rig) {
				clock := testbed.NewClock()
				r.opt.Now = clock.Now
				spends(r, "hour", "day")
				r.fleet.MaxSessions = 5
				r.agent("hour").Budget = config.Budget{Hour: config.Allowance{Turns: 3}}
				r.agent("day").Budget = config.Budget{Day: config.Allowance{Turns: 3}}
				r.agent("limit").Env = map[string]string{"ANTHROPIC_API_KEY": "another"}
				var specs []session.Spec
				reached, resumes := false, goesOn(&specs)
				r.set("limit", func(f *fakeSession) session.Outcome {
					if reached {
						return resumes(f)
					}
					reached = true
					at := clock.Now().Round(0).Add(5 * time.Hour)
					return limitedUntil(func() *session.Refused {
						return &session.Refused{Limits: client.Limits{FiveHour: client.Limit{Used: 100, Resets: at}}}
					})(f)
				})
				time.Sleep(25 * time.Minute) // the bubble begins at midnight
				stop := r.run()
				defer stop()
				if _, err := r.s.PauseBy("", longest["pause"], "pause"); err != nil {
					t.Fatal(err)
				}
				r.s.mu.Lock()
				asked := approval.Request{Agent: "asks", Key: r.s.fleet.find("asks").key, Question: "Deploy?"}
				r.s.mu.Unlock()
				r.files(asked, clock.Now().Add(longest["asks"]-approval.Lasts))
				r.sleep(lookEveryRequest)
				begun, waits := map[string]int{}, maps.Clone(longest)
				for name := range waits {
					r.send(name, 10)
				}
				r.sleep(look)
				for name := range waits {
					begun[name] = r.done(name)
				}
				clock.Set(c.by)
				for passed := time.Duration(0); len(waits) > 0; passed += look {
					if passed == look && c.righted {
						clock.Set(-c.by)
						r.sleep(sweepEvery)
					}
					for name, most := range waits {
						switch a := r.state(name); {
						case r.done(name) > begun[name]:
							delete(waits, name)
						case passed > most:
							t.Errorf("%s: after %v nothing more is done: %+v", name, passed, a)
							delete(waits, name)
						case a.State == Idle:
							t.Errorf("%s is idle, with prompts: %+v", name, a)
						case passed > 0 && !a.Until.IsZero() && a.Until.Round(0).Sub(clock.Now().Round(0)) > most:
							t.Errorf("%s: after %v it is to wait for another %v: %+v", name, passed, a.Until.Round(0).Sub(clock.Now().Round(0)), a)
						}
					}
					r.sleep(look)
				}
			})
		})
	}
}

// TestWhatAnotherClockHasLeft: a run in a wrong year has paused an agent, parked an account
// and held an agent for a question. The next run, in the right year, waits no longer than
// these were to take.
func TestWhatAnotherClockHasLeft(t *testing.T) {
	t.Parallel()
	inBubble(t, "pause limit asks", func(t *testing.T, r *rig) {
		r.mkdir(filepath.Join(r.dir, "state"))
		state := filepath.Join(r.dir, "state")
		r.agent("limit").Env = map[string]string{"ANTHROPIC_API_KEY": "another"}
		r.opt.Prepare = func(*config.Agent) (launch.Prepared, error) { return launch.Prepared{Answers: "the same"}, nil }
		who := memory.Identities{}.Follow(r.fleet.Agents, time.Now()).Declared()
		ahead := time.Now().Add(7 * 365 * 24 * time.Hour)
		id := account.Of([]string{"ANTHROPIC_API_KEY=another"})
		storetest.Write(t, state, func(c *store.Change) error {
			return errors.Join(
				memory.KeepHold(c, who["asks"].Key, memory.Hold{Since: ahead, Held: memory.Held{Why: "the client asks", Answers: "the same"}, Definition: memory.DefinitionOf(r.agent("asks"))}),
				memory.KeepPause(c, who["pause"].Key, memory.Paused{Since: ahead, Until: ahead.Add(time.Hour)}),
				account.Keep(c, map[account.ID]account.Kept{id: {Until: ahead.Add(time.Hour), Since: ahead, Source: account.ByStatusLine, Reason: "its limit"}}),
			)
		})
		stop := r.run()
		defer stop()
		all := []string{"pause", "limit", "asks"}
		for _, name := range all {
			r.send(name, 1)
		}
		r.sleep(20 * time.Minute)
		if n := r.done(all...); n != 0 {
			t.Errorf("%d entries were done at once", n)
		}
		r.sleep(45 * time.Minute)
		for _, name := range all {
			if r.done(name) != 1 {
				t.Errorf("%s waits: %+v", name, r.state(name))
			}
		}
	})
}
