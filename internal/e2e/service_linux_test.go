package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heartbeat/hook/handover"
	"heartbeat/internal/promise"
	"heartbeat/internal/simulate/script"
	"heartbeat/internal/testbed"
)

// agentState is what `status` says the agent does.
func (f *fleet) agentState() string {
	f.t.Helper()
	for line := range strings.Lines(f.must("", "status")) {
		if name, rest, ok := strings.Cut(line, " "); ok && name == "a" {
			return strings.Fields(rest)[0]
		}
	}
	return ""
}

// goesOn waits until what the service has interrupted goes on.
func (f *fleet) goesOn(kind string) {
	f.t.Helper()
	if kind == "server_error" || kind == "unknown 408" {
		return // in a second or two
	}
	want := "parked"
	if kind == "authentication_failed" {
		want = "held"
	}
	f.Until("the agent is "+want, func() bool { return f.agentState() == want })
	f.must("", "resume", "a") // and not in a minute
}

// TestWhatTheServiceInterruptsGoesOn: in the same conversation, once the service
// is back, whatever on-orphan says of interrupted entries and context: of new
// ones; no tool runs twice and no attempt is used up.
func TestWhatTheServiceInterruptsGoesOn(t *testing.T) {
	t.Parallel()
	const tool = "echo x >>ran"
	ways := map[string]struct {
		fields []string
		kind   string
		first  []script.Step // until the failure
		second string        // what is handed over by the Stop hook, and fails
		ran    int
	}{
		"a limit after a tool, deadletter": {[]string{"on-orphan: deadletter"}, "rate_limit", []script.Step{bash(tool)}, "", 1},
		"overload after a tool, drop":      {[]string{"on-orphan: drop"}, "server_error", []script.Step{bash(tool)}, "", 1},
		"a login after a tool, retry":      {[]string{"on-orphan: retry"}, "authentication_failed", []script.Step{bash(tool)}, "", 1},
		"overload before a tool":           {nil, "server_error", nil, "", 0},
		"a proxy on the way, after a tool": {nil, "unknown 408", []script.Step{bash(tool)}, "", 1},
		"each entry a new session":         {[]string{"context: entry"}, "server_error", []script.Step{bash(tool)}, "", 1},
		"one conversation for ever":        {[]string{"context: resume"}, "server_error", []script.Step{bash(tool)}, "", 1},
		"handed over by a Stop hook":       {nil, "server_error", []script.Step{bash(tool)}, "before it", 1},
		"while background tasks run":       {nil, "server_error", []script.Step{bash(tool), background("sleep 1"), say("it runs")}, "", 1},
		"a kick-off of its own":            {[]string{`kickoff: "Say ready."`}, "server_error", []script.Step{bash(tool)}, "", 1},
	}
	for _, name := range testbed.SampleOf(t, slices.Sorted(maps.Keys(ways)), 3) {
		tt := ways[name]
		t.Run(name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, tt.fields)
				first := tt.first
				if len(first) == 0 || first[len(first)-1].Reply == nil { // else it fails when the session wakes itself
					first = append(first[:len(first):len(first)], fail(tt.kind))
				}
				f.turns(
					turn{match: "Go on with the task", steps: []script.Step{say("finished")}},
					turn{match: "task-notification", steps: []script.Step{fail(tt.kind)}},
					turn{match: "long work", steps: first},
				)
				want := []string{"finished", "ok"}
				if tt.second != "" {
					f.send(tt.second)
					want = append([]string{"ok"}, want...)
				}
				f.send("long work")
				f.send("the next")
				f.start()
				f.Until("the service fails", func() bool { return len(f.ends()) == 1 })
				f.goesOn(tt.kind)
				f.Until("all is done", func() bool { return len(f.outbox()) == len(want) })
				for i, d := range f.outbox() {
					if d.Reply != want[i] || d.Attempt != 1 {
						t.Errorf("entry %d: reply %q at attempt %d, want %q at the first", i, d.Reply, d.Attempt, want[i])
					}
				}
				if dead := f.dead(); len(dead) != 0 {
					t.Errorf("dead letters: %+v", dead)
				}
				if ran, _ := os.ReadFile(filepath.Join(f.Work, "ran")); len(ran) != 2*tt.ran {
					t.Errorf("the tool ran %d times, want %d", len(ran)/2, tt.ran)
				}
				all := strings.Join(f.prompts(), "|")
				if n := strings.Count(all, "long work"); n != 1 || strings.Count(all, handover.GoOnPrompt) != 1 {
					t.Errorf("prompts: %s", all)
				}
				if c.real {
					f.sameConversation("long work", handover.GoOnPrompt)
				}
			})
		})
	}
}

// sameConversation checks that two prompts came in one conversation.
func (f *fleet) sameConversation(one, two string) {
	f.t.Helper()
	for _, r := range f.API.Requests() {
		if r.Copies(two) > 0 && r.Copies(one) == 0 {
			f.t.Errorf("request %d asks %q without knowing %q", r.Number, two, one)
		}
	}
}

// TestTheServiceInterruptsAndTheSchedulerIsKilled: what goes on, and where, is
// on disk.
func TestTheServiceInterruptsAndTheSchedulerIsKilled(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"on-orphan: deadletter"})
		f.turns(
			turn{match: "Go on with the task", steps: []script.Step{say("finished")}},
			turn{match: "long work", steps: []script.Step{bash("echo x >>ran"), fail("rate_limit")}},
		)
		f.send("long work")
		s := f.start()
		f.Until("the agent is parked", func() bool { return f.agentState() == "parked" })
		_ = s.cmd.Process.Kill()
		<-s.done
		if err := os.Remove(filepath.Join(f.home(), "session.json")); err != nil {
			t.Fatal(err)
		}
		f.must("", "run", "--once")
		done := f.outbox()
		if len(done) != 1 || done[0].Reply != "finished" || done[0].Attempt != 1 || len(f.dead()) != 0 {
			t.Errorf("acknowledged: %+v, dead: %+v", done, f.dead())
		}
	})
}

// TestTheInterruptedConversationIsGone: then on-orphan decides.
func TestTheInterruptedConversationIsGone(t *testing.T) {
	t.Parallel()
	for policy, again := range map[string]bool{"deadletter": false, "retry": true} {
		t.Run(policy, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, []string{"on-orphan: " + policy})
				f.turns(
					turn{match: "attempt 2", steps: []script.Step{say("again")}},
					turn{match: "long work", steps: []script.Step{bash("echo x >>ran"), fail("rate_limit")}},
				)
				f.send("long work")
				f.send("the next")
				f.start()
				f.Until("the agent is parked", func() bool { return f.agentState() == "parked" })
				if err := os.RemoveAll(filepath.Join(f.Home, ".claude", "projects")); err != nil {
					t.Fatal(err)
				}
				f.must("", "resume", "a")
				want := 1
				if again {
					want = 2
				}
				f.Until("the rest is done", func() bool { return len(f.outbox()) == want })
				dead := f.dead()
				if !again && (len(dead) != 1 || dead[0].Reason != promise.ByInterruption) || again && (len(dead) != 0 || f.outbox()[0].Reply != "again") {
					t.Errorf("acknowledged %+v, dead letters %+v", f.outbox(), dead)
				}
				if events := f.must("", "events", "a"); !strings.Contains(events, "has no conversation") {
					t.Errorf("events:\n%s", events)
				}
			})
		})
	}
}

// TestWhatTheClientCannotTellIsPoison: an answer that always fails as "unknown"
// held the agent, and what stood behind it waited.
func TestWhatTheClientCannotTellIsPoison(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{"max-restarts: 2", "max-attempts: 2"})
		f.turns(turn{match: "filtered", steps: []script.Step{fail("unknown")}})
		f.send("filtered")
		f.send("the next")
		f.start()
		f.Until("the one behind it is done", func() bool { return len(f.outbox()) == 1 })
		if dead := f.dead(); len(dead) != 1 || dead[0].Reason != promise.ByPoison {
			t.Errorf("dead letters: %+v", dead)
		}
	})
}
