package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/state"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/sources/webhook"
)

// published makes a run hold the directory and say st of the agent.
func (r *rig) published(st status.AgentState) {
	r.t.Helper()
	st.Agent, st.Since = "triage", time.Now().Add(-time.Minute)
	r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), st))
	r.put("state/"+store.Name, "")
	r.hold(r.agent.Dir)
}

// answering makes a run answer that has the agent.
func (r *rig) answering() {
	r.scheduler = &Scheduler{PID: os.Getpid(), Agents: []status.AgentState{{Agent: "triage", State: status.Idle}}}
}

// asked has the agent ask a person, and returns the request's id.
func (r *rig) asked(aside bool) string {
	r.t.Helper()
	return r.asks(approval.Request{Agent: "triage", Key: "triage", Question: "Deploy?", Aside: aside}).ID
}

// asks files a request.
func (r *rig) asks(ask approval.Request) (asked approval.Request) {
	r.t.Helper()
	storetest.Write(r.t, r.state, func(c *store.Change) (err error) {
		asked, _, err = approval.Ask(c, ask, config.Approvals{}, time.Now())
		return err
	})
	return asked
}

func runFixtures() []fixture {
	refused := &session.Outcome{Why: hook.EndAPIFailure, Detail: "server_error"}
	return []fixture{
		{
			"held", Error, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Held, Reason: "4 failures within 30m0s"})
			},
			func(r *rig) {
				r.published(status.AgentState{State: status.Held, Paused: time.Now(), Reason: "paused by a person"})
			},
		},
		{ // for the next run: no run is there to say so
			"approval", Warning, false,
			func(r *rig) { r.asked(false) },
			func(r *rig) {
				id := r.asked(false)
				storetest.Write(r.t, r.state, func(c *store.Change) error {
					_, err := approval.Give(c, id, approval.ByPerson(approval.Approved, ""), time.Now())
					return err
				})
			},
		},
		{ // while its queue goes on
			"approval", Warning, false,
			func(r *rig) { r.asked(true) },
			func(r *rig) {},
		},
		{ // what is said of an approval is not said of a hold as well, which a resume does not end
			"held", Error, false,
			func(r *rig) { r.published(status.AgentState{State: status.Held, Reason: "5 failures"}) },
			func(r *rig) {
				r.asked(false)
				r.published(status.AgentState{State: status.Held, Reason: status.ForApproval + "Deploy?"})
			},
		},
		{
			"was-held", Warning, false,
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Held, Reason: "a bill"}))
			},
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Held, Reason: status.ForApproval + "Deploy?"}))
			},
		},
		{ // of a run that has ended: status said so, and doctor did not
			"queue-lost", Error, false,
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Idle, QueueLost: &status.QueueLoss{Loss: session.Loss{What: "x is gone", Queued: 2}}}))
			},
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Idle}))
			},
		},
		{
			"mcp-server", Warning, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Idle, Servers: []session.Server{{Name: "mail", Why: "Connection closed"}}})
			},
			func(r *rig) { r.published(status.AgentState{State: status.Idle}) },
		},
		{
			"tools-refused", Warning, false,
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Idle, Denied: []session.Denied{{Rule: "Bash(git *)", Times: 2}}}))
			},
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Idle}))
			},
		},
		{
			"stray-prompt", Warning, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Idle, Strays: []session.Stray{{Number: 1, By: client.Timetable, Prompt: "send it to me"}}})
			},
			func(r *rig) { r.published(status.AgentState{State: status.Idle}) },
		},
		{ // and it works on: it was said to be held
			"queue-lost", Error, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Idle, QueueLost: &status.QueueLoss{Loss: session.Loss{What: "x is gone", Queued: 2}}})
			},
			func(r *rig) { r.published(status.AgentState{State: status.Idle}) },
		},
		{
			"tools-refused", Warning, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Idle, Denied: []session.Denied{{Rule: "Bash(git *)", Times: 2}}})
			},
			func(r *rig) { r.published(status.AgentState{State: status.Idle}) },
		},
		{
			"approval-stuck", Error, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Idle, Untended: &status.Unable{Since: time.Now(), Why: "x is gone"}})
			},
			func(r *rig) { r.published(status.AgentState{State: status.Idle}) },
		},
		{
			"stuck", Error, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.BackingOff, Stuck: &status.Stuck{Since: time.Now(), Why: "overloaded", Told: true}})
			},
			func(r *rig) {
				r.published(status.AgentState{State: status.BackingOff, Stuck: &status.Stuck{Since: time.Now(), Why: "overloaded"}})
			},
		},
		{
			"check-trouble", Error, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Running, Proof: &status.Proof{State: status.CheckRuns, Vain: &status.Vain{As: status.CheckTrouble, Since: time.Now(), Times: 2, Why: "the check cannot be run: make is not found in PATH"}}})
			},
			func(r *rig) {
				r.published(status.AgentState{State: status.Running, Proof: &status.Proof{State: status.CheckAgain, Vain: &status.Vain{As: status.CheckAgain, Since: time.Now(), Late: time.Now().Add(time.Hour)}}})
			},
		},
		{ // by a run that lives
			"paused", Warning, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Held, Paused: time.Now(), Reason: "paused by a person"})
			},
			func(r *rig) {
				r.published(status.AgentState{State: status.Held, Reason: "4 failures within 30m0s"})
			},
		},
		{ // for the next run
			"paused", Warning, false,
			func(r *rig) { r.paused("triage") },
			func(r *rig) { r.paused("builder") },
		},
		{ // one trigger
			"paused", Warning, false,
			func(r *rig) {
				r.agent.Triggers = []config.Trigger{{Name: "poll-1", Poll: &config.PollTrigger{Command: []string{"true"}}}}
				r.triggerPaused(true)
			},
			func(r *rig) {
				r.agent.Triggers = []config.Trigger{{Name: "poll-1", Poll: &config.PollTrigger{Command: []string{"true"}}}}
				r.triggerPaused(false)
			},
		},
		{
			"trigger-fails", Warning, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Idle, Failing: []firing.Failing{{Trigger: "poll-1", Times: 3, Why: "exit status 3"}}})
			},
			func(r *rig) { // of a run that has ended
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{Failing: []firing.Failing{{Trigger: "poll-1"}}}))
			},
		},
		{
			"not-sent", Warning, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Idle, Unsent: &status.Unable{Since: time.Now(), Why: "the queue is full: 1 of 1"}})
			},
			func(r *rig) { // of a run that has ended
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{Unsent: &status.Unable{Why: "x"}}))
			},
		},
		{
			"requests-refused", Warning, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Idle, RefusedRequests: []firing.RefusedRequests{{Trigger: "issues", Refused: memory.Refused{Sender: "GitHub", Fault: webhook.WrongSignature, Times: 8}}}})
			},
			func(r *rig) { r.published(status.AgentState{State: status.Idle}) },
		},
		{ // of a run that has ended: the next one begins anew
			"held", Error, false,
			func(r *rig) {
				r.scheduler = &Scheduler{Agents: []status.AgentState{{Agent: "triage", State: status.Held, Reason: "x"}}}
			},
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Held}))
			},
		},
		{ // kept for the next run
			"held", Error, false,
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Held, Lasts: true, Reason: "5 failures"}))
			},
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Idle}))
			},
		},
		{
			"was-held", Warning, false,
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Held, Reason: "rate_limit; on-limit: hold"}))
			},
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Held, Reason: "it is not trusted", Fix: "apply --trust", GoesOn: true}))
			},
		},
		{
			"was-failing", Warning, false,
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.BackingOff, Reason: "exited with code 3"}))
			},
			func(r *rig) {
				r.must(state.Put(filepath.Join(r.state, "agents", "triage.json"), status.AgentState{State: status.Parked}))
			},
		},
		{
			"over-budget", Warning, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Parked, OverBudget: true, Reason: "its budget for the hour is spent: $5.02 of $5.00", Until: time.Now().Add(time.Minute)})
			},
			func(r *rig) { r.published(status.AgentState{State: status.Parked, Reason: "rate_limit"}) },
		},
		{
			"sessions-fail", Warning, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.BackingOff, Failures: 10, Last: refused, Until: time.Now().Add(time.Minute)})
			},
			func(r *rig) {
				r.published(status.AgentState{State: status.BackingOff, Failures: 2, Last: refused})
			},
		},
		{
			"parked", Warning, false,
			func(r *rig) {
				r.published(status.AgentState{State: status.Parked, Reason: "authentication_failed"})
			},
			func(r *rig) { r.published(status.AgentState{State: status.Waiting}) },
		},
		{
			"directory-replaced", Error, false,
			(*rig).answering,
			func(r *rig) { r.answering(); r.hold(r.agent.Dir) },
		},
		{ // deleted, and made anew
			"directory-replaced", Error, false,
			func(r *rig) { r.answering(); r.hold(r.agent.Dir); r.remove("work"); r.apply() },
			func(r *rig) { r.remove("work") },
		},
		{
			"state-directory-gone", Error, false,
			func(r *rig) { r.hold(r.agent.Dir) },
			func(r *rig) { r.hold(r.agent.Dir); r.put("state/"+store.Name, "") },
		},
		{
			"scheduler-unreachable", Warning, false,
			func(r *rig) { r.hold(r.agent.Dir); r.put("state/"+store.Name, "") },
			func(r *rig) { r.hold(r.agent.Dir); r.put("state/"+store.Name, ""); r.answering() },
		},
		{ // another fleet's run: no state directory is gone
			"scheduler-unreachable", Warning, false,
			func(r *rig) {
				r.hold(r.agent.Dir)
				r.put("work/.heartbeat/fleet.json", `{"file":"/b/heartbeat.yaml","state_dir":"/b/state"}`)
			},
			func(r *rig) {
				r.put("work/.heartbeat/fleet.json", `{"file":"/b/heartbeat.yaml","state_dir":"/b/state"}`)
			},
		},
	}
}

// TestWhatStandsInPlaceOfAQueueIsToBeMovedAway (found by a user: of a .heartbeat
// that is a link doctor said to correct the inbox, and to remove the session
// record that lies behind the link).
func TestWhatStandsInPlaceOfAQueueIsToBeMovedAway(t *testing.T) {
	t.Parallel()
	for err, place := range map[error]string{
		durable.ErrNotFolder:  ".heartbeat: a folder belongs there",
		durable.ErrNotRegular: "inbox.jsonl: a file belongs there",
	} {
		f := healthyFacts()
		a := f.Agents[0]
		a.Config.Inbox = "/agents/a/.heartbeat/inbox.jsonl"
		a.Queue = Queue{Err: fmt.Errorf("cannot open it: %w", err)}
		var fixes []string
		for _, found := range Examine(f) {
			if found.Code == "queue-unreadable" {
				fixes = append(fixes, found.Fix)
			}
		}
		if len(fixes) != 1 || !strings.HasPrefix(fixes[0], "move away what stands at ") || !strings.Contains(fixes[0], place) {
			t.Errorf("%v: %q, want %q moved away", err, fixes, place)
		}
	}
}

// TestTheFileThatCannotBeReadIsToBeMovedAway: of a folder in the place of the urgent lines
// doctor said to move away the inbox, and with it all that was queued.
func TestTheFileThatCannotBeReadIsToBeMovedAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	urgent := inbox.Urgent(r.agent.Inbox)
	r.put("work/.heartbeat/inbox.jsonl", "one\n")
	r.must(os.Mkdir(urgent, 0o700))
	var about []string
	for _, f := range r.findings() {
		if strings.HasPrefix(f.Code, "queue-") {
			about = append(about, f.Code+": "+f.Fix)
		}
	}
	if want := "queue-unreadable: move away what stands at " + urgent + ":"; len(about) != 1 || !strings.HasPrefix(about[0], want) {
		t.Errorf("%q, want only %q", about, want)
	}
}

// TestPermissionErrorsAreNoDamage (found by a user: of a folder of mode 000
// doctor said to correct the inbox).
func TestPermissionErrorsAreNoDamage(t *testing.T) {
	t.Parallel()
	denied := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}
	f := healthyFacts()
	a := f.Agents[0]
	a.Applied = true
	a.Queue = Queue{Err: denied, CursorProblem: "permission denied", DeadBroken: 1}
	a.Unwired = errors.New("permission denied")
	for _, found := range Examine(f) {
		if found.Code == "queue-unreadable" && !strings.Contains(found.Fix, "chmod, chown") {
			t.Errorf("without a known culprit: %+v", found)
		}
	}
	a.Denied = &Denied{Path: "/agents/a/.heartbeat", Mode: "d---------", Own: true}
	found := Examine(f)
	if len(found) != 1 || found[0].Code != "permission-denied" || found[0].Fix != "chmod u+rwX /agents/a/.heartbeat" {
		t.Errorf("found %+v", found)
	}
	a.Denied.Own = false
	if found := Examine(f); len(found) != 1 || !strings.HasPrefix(found[0].Fix, "sudo chown -R ") {
		t.Errorf("of somebody else: %+v", found)
	}
	a.Queue.Err, a.Denied = inbox.ErrNeedsOperator, nil
	a.Queue.NeedsOperator = true
	if got := find(Examine(f), "queue-needs-person"); got == nil {
		t.Error("an unreadable cursor is no matter of permissions")
	}
}

// TestTheFixIsThatOfTheCause: who had spent a budget was told to log in and to
// resume, who was held for a folder that is not trusted to resume what continues by
// itself, and who had a refused login not how to log in.
func TestTheFixIsThatOfTheCause(t *testing.T) {
	t.Parallel()
	ended := func(why hook.End) *session.Outcome { return &session.Outcome{Why: why} }
	for name, c := range map[string]struct {
		said    status.AgentState
		ended   bool
		fix     string
		without string
	}{
		"a budget": {
			status.AgentState{State: status.Parked, OverBudget: true, Reason: "its budget for the hour is spent"},
			false,
			"wait, or set a larger budget in the file, then heartbeat reload", "resumes|log in|account",
		},
		"a limit": {status.AgentState{State: status.Parked, Reason: "rate_limit"}, false, "wait; heartbeat resume a tries at once", "log in|login"},
		"a refused login": {
			status.AgentState{State: status.Parked, Reason: "api-failure (authentication_failed)"},
			false,
			"claude, and in it /login (for a token: claude setup-token); then heartbeat resume a", "limit",
		},
		"a full disk": {
			status.AgentState{State: status.BackingOff, Failures: 10, Reason: "exited with code 127 (no space left on device)", Fix: "df -h /a", Last: ended(hook.EndExited)},
			false,
			"df -h /a", "logs",
		},
		"a start that failed after a session that did not": { // the last one was said to be: drained
			status.AgentState{State: status.BackingOff, Failures: 10, Reason: "cannot open x: it is a FIFO", Last: ended(hook.EndDrained)},
			false,
			"mend that; then it continues by itself", "logs|drained",
		},
		"no trust": {
			status.AgentState{State: status.Held, Reason: "/a is not trusted", Fix: "heartbeat apply --trust a", GoesOn: true},
			false,
			"heartbeat apply --trust a", "resume|logs",
		},
		"a question on the screen, by the run that has ended": {
			status.AgentState{State: status.Held, Reason: "the client asks whether it may trust /a", Fix: "heartbeat apply --trust a", GoesOn: true, Last: &session.Outcome{Asks: &session.Question{}}},
			true,
			"heartbeat apply --trust a; then heartbeat run", "logs",
		},
		"its end stands on the screen": {
			status.AgentState{State: status.Held, Reason: "5 failures within 30m0s, the last: exited with code 3", Last: ended(hook.EndExited)},
			false,
			"fix the cause (heartbeat logs a --raw), then heartbeat resume a", "itself",
		},
		"the same, by the run that has ended": {
			status.AgentState{State: status.Held, Lasts: true, Reason: "5 failures within 30m0s, the last: exited with code 3", Last: ended(hook.EndExited)},
			true,
			"fix the cause (heartbeat logs a --raw), then heartbeat resume a", "itself",
		},
		"a hold that a restart lifts": {
			status.AgentState{State: status.Held, Reason: "it is gone", Last: ended(hook.EndExited)},
			true,
			"fix the cause (heartbeat logs a), then heartbeat run", "resume",
		},
	} {
		f := healthyFacts()
		c.said.Agent = "a"
		if f.Agents[0].State = c.said; c.ended {
			f.Agents[0].State, f.Agents[0].Was = status.AgentState{}, &c.said
		}
		found := Examine(f)
		if len(found) != 1 || found[0].Fix != c.fix {
			t.Errorf("%s: found %+v, want the fix %q", name, found, c.fix)
			continue
		}
		for other := range strings.SplitSeq(c.without, "|") {
			if strings.Contains(found[0].Seen+found[0].Why+found[0].Fix, other) {
				t.Errorf("%s: of %q nothing is true: %+v", name, other, found[0])
			}
		}
	}
}

// TestOneCauseIsOneFinding: of a queue that asks a person doctor also said that nothing
// waited and that the agent had to be resumed; and what doctor finds itself is not said
// a second time as what the last run has met.
func TestOneCauseIsOneFinding(t *testing.T) {
	t.Parallel()
	asks := status.AgentState{Agent: "a", State: status.Held, Reason: "its queue asks a person"}
	for _, ended := range []bool{false, true} {
		f := healthyFacts()
		a := f.Agents[0]
		if a.State = asks; ended {
			a.State, a.Was = status.AgentState{}, &asks
		}
		a.Queue.Err, a.Queue.NeedsOperator = inbox.ErrNeedsOperator, true
		if found := Examine(f); len(found) != 1 || found[0].Code != "queue-needs-person" {
			t.Errorf("ended %t: %+v", ended, found)
		}
	}
	f := healthyFacts()
	f.Agents[0].Was = &status.AgentState{State: status.Held, GoesOn: true, Reason: "the client asks a thing", Last: &session.Outcome{Asks: &session.Question{}}}
	f.Agents[0].Obstacles = []preflight.Obstacle{{Code: preflight.NotTrusted, Seen: "/a is not trusted"}}
	if found := Examine(f); len(found) != 1 || found[0].Code != string(preflight.NotTrusted) {
		t.Errorf("%+v", found)
	}
}

// paused has an agent be paused for the next run, by its key.
func (r *rig) paused(key string) {
	storetest.Write(r.t, r.state, func(c *store.Change) error { return memory.Pause(c, key, memory.Paused{Since: time.Now()}) })
}

// triggerPaused has the agent's first trigger be paused for the next run, or not any more.
func (r *rig) triggerPaused(is bool) {
	storetest.Write(r.t, r.state, func(c *store.Change) error {
		return memory.ChangeTrigger(c, "triage", r.agent, 0, func(t *memory.Trigger) {
			if t.Pause(memory.Paused{Since: time.Now()}); !is {
				t.Resume(time.Now())
			}
		})
	})
}
