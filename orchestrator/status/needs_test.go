package status

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/explain"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/store"
	"heartbeat/sources/webhook"
)

// Each kind of trouble says what it is, for how long, why, and what to type.
func TestTroubles(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	agent := func(change func(*Agent)) Agent {
		a := Agent{AgentState: AgentState{Agent: "triage", State: Idle, Since: ago(time.Hour)}}
		change(&a)
		return a
	}
	tests := map[Word]struct {
		agent Agent
		want  []string
	}{
		"":        {agent(func(a *Agent) { a.Depth.Entries = 3 }), nil},
		QueueAsks: {agent(func(a *Agent) { a.State, a.Problem, a.Unread, a.Asks = Held, "a copy or a new inbox?", true, true }), []string{"a copy or a new inbox?", "heartbeat answer triage"}},
		DirectoryLost: {
			agent(func(a *Agent) { a.Lost = "its directory was replaced" }), []string{"its directory was replaced", "heartbeat doctor triage"},
		},
		Unusable: {
			agent(func(a *Agent) {
				a.Problem, a.Lost, a.Untended = "x is not there", "x is not there", &Unable{Since: now, Why: "x is gone"}
			}),
			[]string{"x is not there", "heartbeat doctor triage"},
		},
		NeedsApproval: {
			agent(func(a *Agent) {
				a.State, a.Reason, a.GoesOn, a.Depth.Entries = Held, "waits for approval: Deploy? (destroy)", true, 200
				a.Approval = &Approval{ID: "4f1c02d3", Question: "Deploy? (destroy)", Since: ago(3 * time.Hour), More: 1}
			}),
			[]string{
				"waits for approval for 3h, and for 1 more; 200 prompts wait behind it: Deploy? (destroy)", "heartbeat approval show 4f1c02d3",
				"heartbeat approval approve 4f1c02d3   # or reject 4f1c02d3 --note WHY",
			},
		},
		IsHeld: {
			agent(func(a *Agent) { a.State, a.Reason = Held, "6 failures within 30m0s" }),
			[]string{"held for 1h: 6 failures within 30m0s", "heartbeat doctor triage", "heartbeat resume triage   # when its cause is gone"},
		},
		LostPrompts: {
			agent(func(a *Agent) { a.QueueLost = &QueueLoss{ago(time.Minute), session.Loss{What: "x is gone", Queued: 3}} }),
			[]string{"its queue was lost 1m ago: x is gone; 3 prompts were queued", "heartbeat resume triage   # when you have seen it"},
		},
		StrayPrompts: {
			agent(func(a *Agent) {
				a.Strays = []session.Stray{{Number: 1, At: ago(time.Hour), By: client.Timetable, Prompt: "x"}, {Number: 2, At: ago(time.Minute), By: client.OtherSession, From: "work-c6", Prompt: "send it"}}
			}),
			[]string{`in its last session 2 prompts came past the queue, the last from another session (work-c6): "send it"`, "heartbeat doctor triage"},
		},
		ToolsRefused: {
			agent(func(a *Agent) {
				a.Denied = []session.Denied{{Rule: "Bash(git *)", Times: 2}, {Rule: "WebFetch", Times: 1}}
			}),
			[]string{"in its last session 3 tool calls were refused: Bash(git *) 2 times, WebFetch", "add Bash(git *), WebFetch to permissions: allow: of the agent in the file, then heartbeat reload"},
		},
		ServerFails: {
			agent(func(a *Agent) {
				a.Servers = []session.Server{{Name: "mail", Why: "Connection closed"}, {Name: "calendar", Why: "x"}, {Name: "wiki", Why: "y"}}
			}),
			[]string{"in its last session MCP server mail did not connect: Connection closed; nor did calendar and 1 more", "heartbeat doctor triage"},
		},
		ServiceFails: {
			agent(func(a *Agent) { a.Stuck = &Stuck{Since: ago(time.Hour), Why: "overloaded", Told: true} }),
			[]string{"the service has failed for 1h: overloaded", "heartbeat logs triage"},
		},
		TriggerFails: {
			agent(func(a *Agent) {
				a.Failing = []firing.Failing{{Trigger: "mails", Since: ago(time.Minute), Times: 3, Retry: now.Add(5 * time.Second), Why: "exit status 3"}}
			}),
			[]string{"trigger mails has failed for 1m, 3 times, next try in 5s: exit status 3", "heartbeat trigger triage mails   # when you have mended that"},
		},
		NotSent: {
			agent(func(a *Agent) { a.Unsent = &Unable{Since: ago(time.Hour), Why: "the queue is full: 1 of 1"} }),
			[]string{"prompts whose time has come cannot be queued for 1h0m: the queue is full: 1 of 1", "heartbeat next triage   # which prompts; it is tried again"},
		},
		RefusesRequests: {
			agent(func(a *Agent) {
				a.RefusedRequests = []firing.RefusedRequests{{Trigger: "issues", Refused: memory.Refused{Sender: "GitHub", Fault: webhook.OldSignature, Since: ago(time.Hour), Last: ago(time.Minute), Times: 8}}}
			}),
			[]string{
				"webhook issues has refused 8 requests of GitHub: signed more than 5 minutes before or after what the clock here says (since 1h ago, the last 1m ago)",
				"compare the clocks of both machines; a request that is sent again has to be signed again",
			},
		},
		IsParked: {
			agent(func(a *Agent) { a.State, a.Until, a.Reason = Parked, now.Add(90*time.Second), "rate_limit" }),
			[]string{"parked for another 1m30s: rate_limit", "heartbeat resume triage   # tries at once; otherwise it continues by itself"},
		},
		OverBudget: {
			agent(func(a *Agent) {
				a.State, a.Until, a.Reason, a.OverBudget = Parked, now.Add(90*time.Second), "its budget for the day is spent: $5.02 of $5.00", true
			}),
			[]string{"parked for another 1m30s: its budget for the day is spent: $5.02 of $5.00", "heartbeat usage triage --by entry   # what it was spent on", "heartbeat reload   # after a larger budget in the file; otherwise it continues by itself"},
		},
		CheckFails: {
			agent(func(a *Agent) {
				a.State = Checking
				a.Proof = &Proof{Delivery: "d1", State: CheckRuns, Iteration: 2, Vain: &Vain{As: CheckTrouble, Since: ago(time.Minute), Times: 3, Why: "make is not found in PATH"}}
			}),
			[]string{"prompt d1: its check has given no answer for 1m, 3 times: make is not found in PATH", "heartbeat doctor triage", "heartbeat resume triage   # tries at once"},
		},
		ClientDrifts: {
			agent(func(a *Agent) {
				a.Client = &Drift{Client: "Claude Code 2.2.0", Breaks: "hand-over: it came twice", Fix: "go back"}
			}), []string{"Claude Code 2.2.0 does not do what heartbeat relies on: hand-over: it came twice", "go back"},
		},
		BacksOff: {
			agent(func(a *Agent) { a.State, a.Until, a.Reason = BackingOff, now.Add(8*time.Second), "crashed" }),
			[]string{"backing off for another 8s: crashed", "heartbeat doctor triage", "it continues by itself"},
		},
		WasHeld: {
			agent(func(a *Agent) { a.State, a.Was, a.Reason = Stopped, Held, "hooks-do-not-run" }),
			[]string{"held when its last run ended: hooks-do-not-run", "heartbeat doctor triage"},
		},
		CannotWork: {
			agent(func(a *Agent) {
				a.State, a.Was, a.Reason, a.Blocked = Stopped, Held, "/a is not trusted", &Blocked{"/a is not trusted", "heartbeat apply --trust triage"}
			}),
			[]string{"no session could start: /a is not trusted", "heartbeat apply --trust triage"},
		},
		WasFailing: {
			agent(func(a *Agent) { a.State, a.Was, a.Reason = Stopped, BackingOff, "exited with code 127" }),
			[]string{"its sessions failed when its last run ended: exited with code 127", "heartbeat doctor triage"},
		},
		QueueFull: {
			agent(func(a *Agent) { a.MaxQueue, a.Depth.Entries = 2, 2 }), []string{"its queue is full: 2 of 2 prompts; more is refused", "heartbeat inbox triage"},
		},
		HasDeadLetters: {agent(func(a *Agent) { a.Dead, a.DeadMore = 2, true }), []string{"at least 2 dead letters", "heartbeat dead-letter triage"}},
		IsPaused: {
			agent(func(a *Agent) {
				a.State, a.Paused, a.PausedBy, a.Reason = Held, ago(2*time.Hour), "clerk", "paused"
			}),
			[]string{`paused by a session of agent "clerk" for 2h`, "heartbeat resume triage"},
		},
		TriggerPaused: {
			agent(func(a *Agent) {
				a.PausedTriggers = []memory.PausedTrigger{{Trigger: "mails", Paused: memory.Paused{Since: ago(2 * time.Hour)}}}
			}),
			[]string{"trigger mails is paused by a person for 2h", "heartbeat resume triage --trigger mails"},
		},
	}
	kinds := slices.DeleteFunc(Words(), func(w Word) bool {
		return w == NobodyRuns || w == Behind || w == NoAnswer || w == SchedulerEnded || w == StoreFails || w == NotListening || w == TargetFails || w == PingFails || w == OldQueues || w == LoginEnds
	}) // see TestObstacle, TestMute, TestEnds, TestDoors, TestStoreFails, TestUntold, TestALoginThatEndsIsSaid
	if diff := cmp.Diff(slices.Sorted(slices.Values(kinds)), slices.Sorted(maps.Keys(tests))[1:]); diff != "" {
		t.Errorf("kinds without a case: %s", diff)
	}
	for what, c := range tests {
		t.Run(string(what), func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, x := range c.agent.Troubles("heartbeat", now) {
				if x.What != what || x.Agent != "triage" {
					t.Errorf("it is %+v", x)
				}
				got = append(got, x.Text, x.Do)
				if x.Then != "" {
					got = append(got, x.Then)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is wrong with answers is said where nothing else is the cause.
func TestWhatWaitsForApprovalAndCannotBeSeenTo(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a := Agent{AgentState: AgentState{Agent: "triage", State: Idle, Untended: &Unable{Since: now.Add(-2 * time.Minute), Why: "x is gone"}}}
	all := a.Troubles("heartbeat", now)
	if len(all) != 1 || all[0].What != Unusable || all[0].Text != "approvals have been stuck for 2m: x is gone" || all[0].Do != "heartbeat doctor triage" {
		t.Errorf("%+v", all)
	}
}

// What is queued waits for what stops the agent, or for who comes first.
func TestObstacle(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		agent Agent
		want  Word
	}{
		"it runs":           {Agent{AgentState: AgentState{State: Running, Phase: hook.Turn}, Depth: inbox.Depth{Entries: 2}, InFlight: &inbox.InFlight{}}, ""},
		"it is idle":        {Agent{AgentState: AgentState{State: Idle}, Depth: inbox.Depth{Entries: 1}, Dead: 3}, ""},
		"nobody runs":       {Agent{AgentState: AgentState{State: Stopped, Paused: now}}, NobodyRuns},
		"paused":            {Agent{AgentState: AgentState{State: Held, Paused: now}, Dead: 3}, IsPaused},
		"paused, in a turn": {Agent{AgentState: AgentState{State: Ending, Paused: now}}, IsPaused},
		"held":              {Agent{AgentState: AgentState{State: Held}}, IsHeld},
		"parked":            {Agent{AgentState: AgentState{State: Parked, Until: now.Add(time.Hour)}}, IsParked},
		"no slot":           {Agent{AgentState: AgentState{State: Waiting, Reason: "2 of 2 sessions live"}}, Behind},
		"a person":          {Agent{AgentState: AgentState{State: Running, Phase: hook.Waiting, Hush: now.Add(time.Minute)}, Depth: inbox.Depth{Entries: 1}}, Behind},
		"aside":             {Agent{AgentState: AgentState{State: Idle}, Depth: inbox.Depth{Entries: 1, Aside: 2}}, ""},
		"aside, and stuck":  {Agent{AgentState: AgentState{State: Idle, Untended: &Unable{Since: now, Why: "x is gone"}}}, ""},
		"aside, and paused": {Agent{AgentState: AgentState{State: Held, Paused: now}, Depth: inbox.Depth{Aside: 2}}, IsPaused},
		"a lost queue":      {Agent{AgentState: AgentState{State: Idle, QueueLost: &QueueLoss{}}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, there := c.agent.Obstacle("heartbeat", now)
			if got.What != c.want || there != (c.want != "") || there && (got.Text == "" || got.Do == "") {
				t.Errorf("got %+v, want %q", got, c.want)
			}
		})
	}
}

// The most pressing trouble of a fleet comes first, whoever has it.
func TestTheMostPressingTroubleIsFirst(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := Fleet{Agents: []Agent{
		{AgentState: AgentState{Agent: "a", State: Held, Paused: now}, Dead: 2},
		{AgentState: AgentState{Agent: "b", State: Running, Phase: hook.Turn}, Depth: inbox.Depth{Entries: 4}},
		{AgentState: AgentState{Agent: "c", State: Held}, Dead: 1},
		{AgentState: AgentState{Agent: "d", State: Stopped}, Depth: inbox.Depth{Entries: 3}, InFlight: &inbox.InFlight{}},
	}}
	var got []string
	for _, x := range f.Troubles("heartbeat", now) {
		got = append(got, x.Agent+" "+string(x.What))
	}
	if diff := cmp.Diff([]string{"c held", "a dead-letters", "c dead-letters", "a paused"}, got); diff != "" {
		t.Error(diff)
	}
	if got, want := f.Headline(), "4 agents: 1 running, 1 held, 1 stopped, 1 paused · 7 queued · 3 dead letters"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := f.Unrun(); got != 4 {
		t.Errorf("%d prompts wait where nobody runs the agent", got)
	}
}

// TestTroublesNameTheCommandThatShowsTheCause: of a client that ends by itself
// nobody has said anything that logs would have, and how to log in stood only in
// explain.
func TestTroublesNameTheCommandThatShowsTheCause(t *testing.T) {
	t.Parallel()
	const screen, login, resume = "heartbeat logs a --raw", "claude, and in it /login (for a token: claude setup-token)", "heartbeat resume a   # when its cause is gone"
	const byItself = "it continues by itself"
	exited := &session.Outcome{Why: hook.EndExited, ExitCode: 3}
	for name, c := range map[string]struct {
		agent    AgentState
		was      State
		do, then string
	}{
		"held":                      {AgentState{State: Held, Reason: "3 failures, the last: exited with code 3", Last: exited}, "", screen, resume},
		"also by the next run":      {AgentState{State: Stopped, Lasts: true, Reason: "3 failures, the last: exited with code 3", Last: exited}, Held, screen, resume},
		"failing at the end":        {AgentState{State: Stopped, Reason: "exited with code 3", Last: exited}, BackingOff, screen, ""},
		"failing":                   {AgentState{State: BackingOff, Reason: "exited with code 3", Last: exited}, "", screen, byItself},
		"for another reason":        {AgentState{State: Held, Reason: "runaway", Last: exited}, "", "heartbeat doctor a", resume},
		"held for its login":        {AgentState{State: Held, Reason: "api-failure (authentication_failed)"}, "", login, resume},
		"parked for its login":      {AgentState{State: Parked, Reason: "api-failure (authentication_failed)"}, "", login, resume},
		"and also by the next run":  {AgentState{State: Stopped, Lasts: true, Reason: "api-failure (authentication_failed)"}, Held, login, resume},
		"another organisation only": {AgentState{State: Held, Reason: "api-failure (oauth_org_not_allowed)"}, "", "log in with another organisation", resume},
		"a bill":                    {AgentState{State: Held, Reason: "the account of a: api-failure (billing_error)"}, "", "settle what the account owes", resume},
		"a limit":                   {AgentState{State: Held, Reason: "the account of a: api-failure (rate_limit); on-limit: hold"}, "", "heartbeat doctor a", resume},
		"until it is mended":        {AgentState{State: Held, Reason: "/a is not trusted", Fix: "heartbeat apply --trust a", GoesOn: true}, "", "heartbeat apply --trust a", byItself},
		"what a person mends":       {AgentState{State: Held, Reason: "runaway", Fix: "remove that hook"}, "", "remove that hook", resume},
		"a full disk":               {AgentState{State: BackingOff, Reason: "cannot write x: no space left on device", Fix: "df -h /a"}, "", "df -h /a", byItself},
	} {
		c.agent.Agent = "a"
		if got := (Agent{AgentState: c.agent, Was: c.was}).Troubles("heartbeat", time.Now()); len(got) != 1 || got[0].Do != c.do || got[0].Then != c.then {
			t.Errorf("%s: %+v, want %q and %q", name, got, c.do, c.then)
		}
	}
}

// TestOneCauseIsOneTrouble: of a machine without a client, each of fifty agents said
// the same on two lines, and the first of them scrolled away.
func TestOneCauseIsOneTrouble(t *testing.T) {
	t.Parallel()
	now := time.Now()
	fleet := func(agents ...Agent) []Alike { return Together(Fleet{Agents: agents}.Troubles("heartbeat", now)) }
	held := func(name, why, fix string) Agent {
		return Agent{AgentState: AgentState{Agent: name, State: Held, Since: now, Reason: foreign.Text(why), Fix: foreign.Text(fix), GoesOn: true}}
	}
	refused := func(name string, times int, rule string) Agent {
		return Agent{AgentState: AgentState{Agent: name, Denied: []session.Denied{{Rule: rule, Times: times}}}}
	}
	for name, c := range map[string]struct {
		all  []Alike
		want []string // the first, the others
	}{
		"the same":                  {fleet(held("a", "no client", "install it"), held("b", "no client", "install it")), []string{"a b"}},
		"but for the name":          {fleet(held("a", "/x/a is not trusted", "trust a"), held("b", "/x/b is not trusted", "trust b")), []string{"a b"}},
		"a name within words":       {fleet(held("a", "a bad rule", "read it"), held("read", "a bad rule", "read it")), []string{"a", "read"}},
		"another cause":             {fleet(held("a", "no client", "install it"), held("b", "no trust", "trust b")), []string{"a", "b"}},
		"in the order of the first": {fleet(held("a", "x", "x"), held("b", "y", "y"), held("c", "x", "x")), []string{"a c", "b"}},
		"tools":                     {fleet(refused("a", 1, "Agent"), refused("b", 2, "Agent")), []string{"a b"}},
		"another tool":              {fleet(refused("a", 1, "Agent"), refused("b", 1, "Read")), []string{"a", "b"}},
		"paused by others": {
			fleet(Agent{AgentState: AgentState{Agent: "a", State: Held, Paused: now}}, Agent{AgentState: AgentState{Agent: "b", State: Held, Paused: now, PausedBy: "c"}}),
			[]string{"a", "b"},
		},
	} {
		var got []string
		for _, x := range c.all {
			got = append(got, strings.Join(append([]string{x.Agent}, x.Others...), " "))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	one := Agent{AgentState: AgentState{Agent: "a"}, Dead: 1, DeadSince: now.Add(-time.Hour)}
	if got := one.Troubles("heartbeat", now); len(got) != 1 || got[0].Text != "1 dead letter, 1h old" || !got[0].Since.Equal(one.DeadSince) {
		t.Errorf("%+v", got)
	}
	letters := fleet(one, Agent{AgentState: AgentState{Agent: "b"}, Dead: 2, DeadMore: true, DeadSince: now.Add(-48 * time.Hour)})
	if len(letters) != 1 || letters[0].Text != "at least 3 dead letters, the oldest 2d old" || letters[0].Do != "heartbeat dead-letter" {
		t.Errorf("%+v", letters)
	}
}

// TestARefusedLoginIsSaidInWords: status had the client's code for it, and nothing that
// somebody who does not know it could understand.
func TestARefusedLoginIsSaidInWords(t *testing.T) {
	t.Parallel()
	a := Agent{AgentState: AgentState{Agent: "a", State: Held, Since: time.Now(), Reason: "the account of a: api-failure (authentication_failed)"}}
	const want = "held for 0s: the API refuses the login or the key (the account of a: authentication_failed)"
	if got := a.Troubles("heartbeat", time.Now()); len(got) != 1 || got[0].Text != want {
		t.Errorf("%+v, want %q", got, want)
	}
}

// TestAFailureOfTheServiceIsSaidInWords, each of them, and what mends it where a person can: of
// a model that does not exist status said api-failure (model_not_found), and "heartbeat doctor",
// which said to look at the log.
func TestAFailureOfTheServiceIsSaidInWords(t *testing.T) {
	t.Parallel()
	for _, w := range explain.Words() {
		if !slices.Contains(w.Of, "API failure") {
			continue
		}
		a := Agent{AgentState: AgentState{Agent: "a", State: BackingOff, Since: time.Now(), Reason: foreign.Text("api-failure (" + w.Word + ")")}}
		got := a.Troubles("heartbeat", time.Now())
		if len(got) != 1 || strings.Contains(got[0].Text, "api-failure") || !strings.HasSuffix(got[0].Text, " ("+w.Word+")") {
			t.Errorf("%s: %+v", w.Word, got)
		}
		if w.Word == "model_not_found" && (got[0].Do != "correct the model in command: or in the settings" || !strings.Contains(got[0].Text, "the model does not exist")) {
			t.Errorf("%+v", got)
		}
	}
}

// TestDoors: an address that is not served is the fleet's trouble.
func TestDoors(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := Fleet{Doors: []Door{
		{Address: "127.0.0.1:1"},
		{Address: "unix:/x", Serves: []string{"page", "webhooks"}, Since: now.Add(-time.Minute), Problem: "cannot listen on unix:/x: there is no folder /"},
	}}
	all := f.Troubles("heartbeat", now)
	if len(all) != 1 || all[0].What != NotListening || all[0].Agent != "" || !strings.HasSuffix(all[0].Do, "below listen: in the file, then heartbeat reload") ||
		all[0].Text != "the page and webhooks have been down for 1m: cannot listen on unix:/x: there is no folder /" {
		t.Errorf("%+v", all)
	}
	f.Doors[0].Problem = "another"
	if together := Together(f.Troubles("heartbeat", now)); len(together) != 2 {
		t.Errorf("two addresses are one trouble: %+v", together)
	}
}

// TestStoreFails: what is wrong with the store is the fleet's trouble, before any agent's.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := Fleet{Store: []store.Trouble{{Kind: store.Full, Since: now.Add(-time.Minute), Text: "no space is left", Do: "make room"}}, Agents: []Agent{{AgentState: AgentState{Agent: "a", State: Held, Reason: "x"}}}}
	all := f.Troubles("heartbeat", now)
	if len(all) != 2 || all[0].What != StoreFails || all[0].Agent != "" || all[0].Part != "full" || all[0].Text != "no space is left" || all[0].Do != "make room" || !all[0].What.Alarming() || !all[0].What.Person() {
		t.Errorf("%+v", all)
	}
}

// TestAPauseHasOneWord: the same pause was held in one command, stopped in another
// and paused in a third, and send did not mention it while no scheduler ran.
func TestAPauseHasOneWord(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, state := range []State{Held, Stopped} {
		a := Agent{AgentState: AgentState{Agent: "a", State: state, Paused: now.Add(-time.Minute), Reason: "paused by a person"}}
		if a.Shown() != State(IsPaused) {
			t.Errorf("%s: shown as %s", state, a.Shown())
		}
		if o, there := a.Obstacle("heartbeat", now); !there || !strings.Contains(o.Text, "paused by a person") || !strings.Contains(o.Do, "heartbeat resume a") {
			t.Errorf("%s: %+v", state, o)
		}
		if line := (Fleet{Agents: []Agent{a}}).Headline(); line != "1 agent: 1 paused" {
			t.Errorf("%s: %s", state, line)
		}
	}
	if a := (AgentState{State: Running, Paused: now}); a.Shown() != Running {
		t.Errorf("a turn that still runs: %s", a.Shown())
	}
}

// A target that does not get its notices is a trouble of the fleet, each one its own.
func TestUntold(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := Fleet{Untold: []Untold{
		{Target: "phone", Since: now.Add(-2 * time.Hour), Why: "connection refused"},
		{Target: "team", Since: now.Add(-time.Hour), Why: "notify: does not name it", Unnamed: true},
	}, Unpinged: &Unpinged{Since: now.Add(-30 * time.Minute), Why: "connection refused"}}
	all := f.Troubles("heartbeat", now)
	if len(all) != 3 || all[2].What != PingFails || all[2].Text != "the ping has not arrived for 30m: connection refused" || all[0].What != TargetFails || all[0].Agent != "" || all[0].Text != "notices to phone have failed for 2h: connection refused" || all[0].Do != "heartbeat notify test phone" || all[1].Do != "heartbeat validate" {
		t.Errorf("%+v", all)
	}
	if together := Together(all); len(together) != 3 {
		t.Errorf("two targets are one trouble: %+v", together)
	}
}

// TestHoldsThatLastAreCounted: of two agents without a scheduler the first line said that
// both were stopped, and the next one that the next run holds one of them, too.
func TestHoldsThatLastAreCounted(t *testing.T) {
	t.Parallel()
	since := time.Now().Add(-time.Hour)
	lasts := Agent{AgentState: AgentState{Agent: "a", State: Stopped, Lasts: true, Since: since}, Was: Held}
	paused := lasts
	paused.Paused = since.Add(time.Minute)
	asked := lasts
	asked.Lasts = false
	f := Fleet{Agents: []Agent{lasts, paused, asked}}
	if got, want := f.Headline(), "3 agents: 1 held, 1 stopped, 1 paused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := []time.Time{lasts.ShownSince(), paused.ShownSince(), asked.ShownSince()}; got[0] != since || got[1] != paused.Paused || !got[2].IsZero() {
		t.Errorf("since %v", got)
	}
}

// TestATriggerThatFailsForItsQueueIsNoTroubleOfItsOwn: of a queue that asked a person, each
// trigger said the same once more, with something else to type.
func TestATriggerThatFailsForItsQueueIsNoTroubleOfItsOwn(t *testing.T) {
	t.Parallel()
	const asks = "the queue needs a person: it was cut"
	a := Agent{AgentState: AgentState{Agent: "a", State: Held, Failing: []firing.Failing{{Trigger: "poll-1", Why: asks}, {Trigger: "poll-2", Why: "exit status 1"}}}, Problem: asks, Asks: true}
	all := a.Troubles("heartbeat", time.Now())
	if len(all) != 2 || all[0].What != QueueAsks || all[1].What != TriggerFails || !strings.Contains(all[1].Text, "poll-2") {
		t.Errorf("%+v", all)
	}
}
