package e2e

// The tests in this file wait longest, for clocks of the client's and the product's.
// Of parallel tests Go lets the last ones begin first (what waits for a channel is woken in
// reverse when that is closed, Go 1.26), and so these, in the file whose name comes last:
// the package does not wait for them at its end. A parallel test within a parallel one
// waits behind all others.

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/handover"
	"heartbeat/internal/simulate/script"
	"heartbeat/internal/testbed"
)

// TestAppendWakesAWaitingSession: an entry appended while the Stop hook waits
// reaches the model within 50 ms (median of 20), and waiting costs no model
// call.
func TestAppendWakesAWaitingSession(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		f := newFleet(t, c, persist)
		f.teach()
		f.start()
		f.send("first")
		f.phase(hook.Waiting)
		var took []time.Duration
		for n := range 20 {
			f.phase(hook.Waiting)
			text := fmt.Sprintf("wake %02d\n", n)
			inboxFile, err := os.OpenFile(filepath.Join(f.home(), "inbox.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			_, err = inboxFile.WriteString(text)
			inboxFile.Close()
			if err != nil {
				t.Fatal(err)
			}
			f.Until("the prompt", func() bool { return len(f.calls()) >= n+2 })
			took = append(took, f.reached(n+1).Sub(begun))
		}
		slices.Sort(took)
		t.Logf("append to model call: median %v, slowest %v", took[10], took[19])
		// The target is 50 ms on a machine that does nothing else; here both
		// cores may run other tests, so the bound only finds polling, every 5 s.
		if took[10] > 2*time.Second {
			t.Errorf("append to model call: median %v", took[10])
		}
		f.phase(hook.Waiting)
		before := len(f.calls())
		idle := 15 * time.Second
		if *testbed.Full {
			idle = time.Minute
		}
		time.Sleep(idle) // nothing may happen
		if n := len(f.calls()); n != before {
			t.Errorf("%d model calls while idle", n-before)
		}
		if got := len(f.outbox()); got != 21 {
			t.Errorf("%d entries acknowledged, want 21", got)
		}
	})
}

// reached is when the nth model call came in.
func (f *fleet) reached(n int) time.Time {
	f.t.Helper()
	if f.client.real {
		return f.API.Requests()[n].At
	}
	return readLines[struct{ At time.Time }](f.t, filepath.Join(f.Dir, "model.jsonl"))[n].At
}

// TestATurnsToolIsShownAndBounded: status names the tool that runs, which counts for
// no stall; tool-timeouts ends one that takes too long, and the prompt counts as
// interrupted.
func TestATurnsToolIsShownAndBounded(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"stall-timeout: 15s", "tool-timeouts: {Bash: 18s}", "on-orphan: deadletter"})
		f.turns(turn{match: "long work", steps: []script.Step{bash("python3 -c 'import time; time.sleep(100)'"), say("never")}})
		f.send("long work")
		f.start()
		f.Until("status names the tool", func() bool { return strings.Contains(f.must("", "status"), "the tool Bash has run for") })
		f.Until("it was ended", func() bool { return len(f.ends()) == 1 })
		if e := f.ends()[0]; !strings.Contains(e, "the tool Bash not done within 18s") {
			t.Errorf("it ended as %s", e)
		}
		f.Until("its dead letter", func() bool { return len(f.dead()) == 1 })
	})
}

// TestALimitThatSaysWhenItEnds: the agent is parked until then, by what the client
// told its hook and wrote into its record, and goes on within a minute: with one
// refused call, in the same conversation, at the first attempt.
func TestALimitThatSaysWhenItEnds(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"on-orphan: deadletter"})
		f.Setenv("TZ=Asia/Kathmandu")
		const soon = 45 * time.Second // it has to be refused and seen before
		reset := time.Now().Add(soon).Truncate(time.Second)
		limit := script.Step{Fail: "rate_limit", Resets: reset}
		f.turns(
			turn{match: "Go on with the task", steps: []script.Step{say("finished")}},
			turn{match: "long work", steps: []script.Step{bash("echo x >>ran"), limit}},
		)
		if c.real { // a subscription's limits stand in the answers' headers
			f.Setenv("ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-made-up-0123456789")
		}
		f.send("long work")
		f.start()
		f.Until("the agent is parked", func() bool { return f.agentState() == "parked" })
		events := f.must("", "events", "a", "-o", "json")
		if !strings.Contains(events, `"source":"two-signals"`) && !strings.Contains(events, `"source":"status-line"`) {
			t.Errorf("the events do not say by what the reset is known:\n%s", events)
		}
		calls := f.requests()
		f.UntilWithin("all is done", soon+patience, func() bool { return len(f.outbox()) == 1 })
		late := time.Since(reset)
		d := f.outbox()[0]
		if d.Reply != "finished" || d.Attempt != 1 || len(f.dead()) != 0 || late > patience {
			t.Errorf("%v after the reset: %+v, dead letters %+v", late, d, f.dead())
		}
		if n := f.requests() - calls; n != 1 {
			t.Errorf("%d calls after the refused one, want 1", n)
		}
		if c.real {
			f.sameConversation("long work", handover.GoOnPrompt)
		}
		_, source, _ := strings.Cut(events, `"source":"`)
		source, _, _ = strings.Cut(source, `"`)
		t.Logf("%d calls, one refused; known by %s; done %v after the reset", f.requests(), source, late.Round(time.Second))
	})
}

// TestTheLimitNight: a five-hour and a weekly limit fall while agents of two accounts
// are in mid-tool, a third account's does not. The API counts: each session that was
// in a turn is refused once, and no other, whatever is sent meanwhile and though the
// scheduler is killed; within a minute of the reset one agent of each account tries,
// and the others when it has worked; the same conversations go on, at the first
// attempt, with nothing repeated or given up.
func TestTheLimitNight(t *testing.T) {
	t.Parallel()
	t.Run("simulate", func(t *testing.T) { // at once: see above
		many := 6
		if *testbed.Full {
			many = 45
		}
		theLimitNight(t, client{name: "simulate"}, many)
	})
	t.Run("real", func(t *testing.T) {
		t.Parallel()
		if !*testbed.Full {
			t.Skip("a minute of several real clients is for -full; TestALimitThatSaysWhenItEnds has one in each run")
		}
		theLimitNight(t, realClient(t), 4)
	})
}

// TestEscapeInTheMiddleOfATurn: no hook says so, only the terminal falls
// silent; the entry is given again.
func TestEscapeInTheMiddleOfATurn(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"idle-grace: 1s"})
		f.teach(behaviour{match: "hangs", times: 1, hang: true})
		f.send("hangs")
		f.start()
		f.Until("the model call", func() bool { return len(f.calls()) == 1 })
		f.phase(hook.Turn)
		time.Sleep(time.Second) // the client draws its turn before it takes ESC
		f.typeInto("\x1b")
		if !testbed.Await(patience, func() bool { return len(f.outbox()) > 0 }) {
			t.Fatalf("the queue stands still %v after ESC; the session is %+v", patience, f.session())
		}
		if d := f.outbox()[0]; d.Attempt != 2 {
			t.Errorf("attempt %d, want 2", d.Attempt)
		}
	})
}

// TestAPersonPressesEscapeInALiveSession is another of TestAPersonInALiveSession: no hook
// may say so, either.
func TestAPersonPressesEscapeInALiveSession(t *testing.T) {
	disturbed(t, func(f *fleet) { f.typeInto("\x1b") })
}

// TestTheClientAsksForTrust is one of TestWhatTheClientAsksHoldsAtOnce.
func TestTheClientAsksForTrust(t *testing.T) {
	asks{
		sick: func(f *fleet) { f.Trust() }, mend: answered, simulated: "--require-trust",
		says: "the client asks whether the folder is trusted", do: "heartbeat apply --trust a",
	}.holds(t)
}

// TestTheClientAsksWhetherToBypass is one, too.
func TestTheClientAsksWhetherToBypass(t *testing.T) {
	asks{
		sick: func(f *fleet) {
			f.Setenv("IS_SANDBOX=1")
			yaml, err := os.ReadFile(f.file)
			if err != nil {
				f.t.Fatal(err)
			}
			f.write(f.file, strings.Replace(string(yaml), "allow: [Bash]", "mode: bypassPermissions", 1))
		},
		mend: func(f *fleet) { put(f.Lab, userFile, `{"skipDangerousModePermissionPrompt":true}`) },
		says: "the client asks whether to bypass permissions", do: "heartbeat doctor a",
	}.holds(t)
}

// TestAnotherLoginIsTriedByItself: an agent that is held for its login goes on when the
// person has logged in anew, without a resume, and asks nothing before.
func TestAnotherLoginIsTriedByItself(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"on-orphan: deadletter"})
		f.turns(
			turn{match: "Go on with the task", steps: []script.Step{say("finished")}},
			turn{match: "long work", steps: []script.Step{bash("echo x >>ran"), fail("authentication_failed")}},
		)
		f.send("long work")
		f.start()
		f.Until("the agent is held", func() bool { return f.agentState() == "held" })
		calls := f.requests()
		time.Sleep(12 * time.Second) // it is looked at twice
		if n := f.requests(); n != calls || f.agentState() != "held" {
			t.Errorf("%d calls meanwhile, and it is %s", n-calls, f.agentState())
		}
		if err := os.MkdirAll(filepath.Join(f.Home, ".claude"), 0o700); err != nil {
			t.Fatal(err)
		}
		f.WriteJSON(filepath.Join(f.Home, ".claude", ".credentials.json"), map[string]any{"claudeAiOauth": map[string]any{
			"accessToken": "sk-ant-oat01-made-up", "refreshToken": "sk-ant-ort01-made-up", "expiresAt": time.Now().Add(time.Hour).UnixMilli(),
			"scopes": []string{"user:inference"}, "subscriptionType": "max",
		}})
		f.Until("the prompt is done", func() bool { return len(f.outbox()) == 1 })
		if d := f.outbox()[0]; d.Reply != "finished" || d.Attempt != 1 {
			t.Errorf("%+v", d)
		}
	})
}

// lanes are the scenarios of TestStandInConforms that take longest, those of a lane one
// after the other.
var lanes = [...][]string{{"stop-timeout", "stop-ends"}, {"typed-in-a-turn", "permission-hangs", "stop-records"}}

func TestStandInConformsInTheFirstLane(t *testing.T)  { conformsInLane(t, lanes[0]) }
func TestStandInConformsInTheSecondLane(t *testing.T) { conformsInLane(t, lanes[1]) }

func conformsInLane(t *testing.T, names []string) {
	t.Parallel()
	c := standIn(t)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			all := scenarios()
			s := all[slices.IndexFunc(all, func(s scenario) bool { return s.name == name })]
			s.compare(t, s.run(t, c))
		})
	}
}
