package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/page/changes"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
)

// TestNoButtonThatDoesNothing: who waits for what a resume does not lift, or continues when the
// cause is gone, has none, in the list and where troubles are; who continues at a time can be
// tried before; who is paused has one, whatever else is wrong.
func TestNoButtonThatDoesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	now := time.Now()
	l.fleet.Agents = []status.Agent{
		{AgentState: status.AgentState{Agent: "over", State: status.Parked, OverBudget: true, Since: now, Until: now.Add(time.Hour)}},
		{AgentState: status.AgentState{Agent: "limited", State: status.Parked, Since: now, Until: now.Add(time.Hour)}},
		{AgentState: status.AgentState{Agent: "held", State: status.Held, Since: now, Reason: "a login"}},
		{AgentState: status.AgentState{Agent: "paused", State: status.Held, Since: now, Paused: now, PausedBy: "a person"}},
		{AgentState: status.AgentState{Agent: "goes-on", State: status.Held, Since: now, Reason: "no client", Fix: "install it", GoesOn: true}},
	}
	for _, a := range l.fleet.Agents {
		l.fleet.Troubles = append(l.fleet.Troubles, a.Troubles("heartbeat", now)...)
	}
	_, body := l.ask(l.enter(access.Act), http.MethodGet, Root, nil)
	for _, a := range l.fleet.Agents {
		want := map[string]int{"over": 0, "limited": 1, "held": 2, "paused": 2, "goes-on": 0}[a.Agent] // beside the trouble, and in the list
		if n := strings.Count(body, `value="resume `+a.Agent+`"`); n != want {
			t.Errorf("%s: %d buttons, want %d", a.Agent, n, want)
		}
	}
}

// TestWhatStatusSaysToTypeHasItsTap: each command of each kind of trouble is a button or a
// link of the page, or one that only shows what the page shows or that a terminal needs.
func TestWhatStatusSaysToTypeHasItsTap(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	now := time.Now()
	agents := []status.AgentState{
		{State: status.Idle},
		{State: status.Held, Reason: "no-such-client", Fix: "install it", GoesOn: true},
		{State: status.Held, Reason: "6 failures"},
		{State: status.Held, Paused: now, PausedBy: "a person"},
		{State: status.Held, Approval: &status.Approval{ID: "4f1c02d3"}, Reason: status.ForApproval},
		{State: status.Held, Approval: &status.Approval{ID: "4f1c02d4"}, Reason: "no-such-client"}, // asks aside, and is held
		{State: status.Stopped, Lasts: true, Reason: "6 failures"},
		{State: status.Parked, Until: now.Add(time.Hour)},
		{State: status.Parked, Until: now.Add(time.Hour), OverBudget: true},
		{State: status.BackingOff, Until: now.Add(time.Hour)},
		{State: status.Idle, QueueLost: &status.QueueLoss{At: now}},
		{State: status.Checking, Proof: &status.Proof{Delivery: "d1", Vain: &status.Vain{As: status.CheckTrouble, Since: now.Add(-time.Hour), Times: 9}}},
		{State: status.Idle, Failing: []firing.Failing{{Trigger: "mails", Since: now}}},
		{State: status.Idle, Stuck: &status.Stuck{Told: true}},
	}
	l.fleet.Agents = nil
	for i, s := range agents {
		s.Agent, s.Since = fmt.Sprintf("agent-%d", i), now
		a := status.Agent{AgentState: s, Was: status.Held, Dead: 1 - min(i, 1), Asks: i == 0, Problem: map[int]string{0: "a copy?"}[i]}
		l.fleet.Agents = append(l.fleet.Agents, a)
		l.fleet.Troubles = append(l.fleet.Troubles, a.Troubles("heartbeat -f 'a b.yaml'", now)...)
	}
	_, body := l.ask(l.enter(access.Act), http.MethodGet, Root, nil)
	terminal := map[string]bool{"doctor": true, "logs": true, "usage": true, "inbox": true}
	met := map[string]bool{}
	for _, trouble := range l.fleet.Troubles {
		for _, c := range trouble.Commands() {
			want := `value="` + strings.Join(c, " ") + `"`
			switch met[c[0]] = true; {
			case terminal[c[0]]:
				continue
			case c[0] == "approval":
				want = `href="` + Root + `approvals"`
			case c[0] == "answer":
				want = `href="` + agentURL(c[1]) + `#agent-queue"`
			case c[0] == "dead-letter":
				want = `href="` + agentURL(c[1]) + `#agent-dead"`
			}
			if !strings.Contains(body, want) {
				t.Errorf("%s %s: %q has no %s", trouble.Agent, trouble.What, c, want)
			}
		}
	}
	for _, c := range []string{"resume", "trigger", "reload", "answer", "approval", "dead-letter"} {
		if !met[c] {
			t.Errorf("no trouble says %s", c)
		}
	}
	for i, want := range map[int]bool{1: false, 4: false, 5: true, 8: false} {
		if value := fmt.Sprintf(`value="resume agent-%d">Resume<`, i); strings.Contains(body, value) != want {
			t.Errorf("%s: %v, want %v", value, !want, want)
		}
	}
}

// TestWhatIsUnknownIsNotZero: costs, of an agent, of all and of a budget.
func TestWhatIsUnknownIsNotZero(t *testing.T) {
	t.Parallel()
	none, some := usage.Sum{Turns: 1, Unpriced: 1}, usage.Sum{Turns: 2, Unpriced: 1, Cost: 0.0004}
	for want, sums := range map[string][]usage.Sum{"?": {none, none}, "$0.0004+": {none, some}} {
		l := newLab(t)
		sum := sums[0].Plus(sums[1])
		for i, s := range sums {
			l.fleet.Agents[i].Today = s
		}
		l.fleet.Budgets = []Budget{{Of: "the fleet", Period: "day", What: "cost", Spent: sum.Cost, Price: sum.Price(), Most: 5}}
		_, body := l.ask(l.enter(access.Look), http.MethodGet, Root, nil)
		for _, where := range []string{"0 tokens, " + want + "</span>", ">" + sums[0].Price() + " today</span>", ">" + sums[1].Price() + " today</span>", want + " of $5.00"} {
			if !strings.Contains(strings.ReplaceAll(body, "&#43;", "+"), where) {
				t.Errorf("without %q: %s", where, body)
			}
		}
		if strings.Contains(body, "$0.00<") {
			t.Errorf("it says zero: %s", body)
		}
	}
}

// TestAStepIsALineOfItsOwn: each command alone, so that it can be copied; dead letters
// lead to them, whoever else has some.
func TestAStepIsALineOfItsOwn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.fleet.Troubles = []status.Trouble{
		{Agent: "a", What: status.IsHeld, Text: "held", Do: "heartbeat doctor a   # what is wrong", Then: "heartbeat reload   # after a larger budget"},
		{Agent: "a", What: status.HasDeadLetters, Text: "1 dead letter", Do: "heartbeat dead-letter a"},
		{Agent: "b", What: status.HasDeadLetters, Text: "2 dead letters", Do: "heartbeat dead-letter b"},
		{Agent: "b", What: status.CannotWork, Text: "y", Do: "install the client"},
	}
	_, body := l.ask(l.enter(access.Look), http.MethodGet, Root, nil)
	for _, want := range []string{
		`<li><code>heartbeat doctor a</code> <span class="muted">what is wrong</span></li>`,
		`<li><code>heartbeat reload</code> <span class="muted">after a larger budget</span></li>`, `<li>To do: install the client.</li>`,
		`href="/page/agents/a#agent-dead"`, `href="/page/agents/b#agent-dead"`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("without %q: %s", want, body)
		}
	}
}

// TestATimeToComeIsRounded: what has seven days has them a moment later, too.
func TestATimeToComeIsRounded(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	for d, want := range map[time.Duration]string{
		7*24*time.Hour - time.Minute: "in 7d", 6*24*time.Hour + 10*time.Hour: "in 6d", 48*time.Hour - time.Minute: "in 2d",
		5*time.Hour - time.Minute: "in 5h", 10*time.Minute - 5*time.Second: "in 10m", 59 * time.Second: "in 59s",
	} {
		if got := string(fillAges([]byte(timeTag("till", now.Add(d))), now)); !strings.Contains(got, ">"+want+"<") {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
}

// TestWhoseWordsAnApprovalShows: what heartbeat has put together is not said to be the
// agent's; a directory without a repository is no fault.
func TestWhoseWordsAnApprovalShows(t *testing.T) {
	t.Parallel()
	for name, theirs := range map[string]bool{"": true, "release": false} {
		a := asked{Acts: true}
		a.Name, a.Payload = name, foreign.Text("text")
		p := newLab(t).page
		html, err := p.draw("approval", a)
		if err != nil || strings.Contains(string(html), "in the agent's words") != theirs {
			t.Errorf("%q: %v %s", name, err, html)
		}
	}
}

// TestAnErrorIsASentence, whatever it begins with.
func TestAnErrorIsASentence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "élan is lost": "Élan is lost.", "no such agent.": "No such agent.", "\xff?": "\ufffd?"} {
		if got := sentence(errors.New(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestAnActLeadsBackToWhereItWasAskedFor: to the row or the part, and never out of the
// page.
func TestAnActLeadsBackToWhereItWasAskedFor(t *testing.T) {
	t.Parallel()
	for at, want := range map[string]string{
		Root: Root + "?done=k#agent-a", Root + "agents/a": Root + "agents/a?done=k#agent-dead", Root + "approvals?x=1": Root + "approvals?done=k&x=1",
		Root + "x/../../hook": Root + "?done=k#agent-a", Root + "../page/": Root + "?done=k#agent-a", "//evil.example/page/": Root + "?done=k#agent-a",
		"https://evil.example/page/": Root + "?done=k#agent-a", "": Root + "?done=k#agent-a", "/page": Root + "?done=k#agent-a", "/pages/": Root + "?done=k#agent-a",
	} {
		d, o, ok := parseDeed(url.Values{"do": {"retry a 4f1c"}})
		if got := backTo(at, "k", d, o); !ok || got != want {
			t.Errorf("%q leads to %q, want %q", at, got, want)
		}
	}
}

// TestATroubleIsASentenceWithItsActs: each request is one, with a yes and a no that weigh the
// same where all that there is to read stands there, and the way to its page where there is
// more, or something grave; what was refused is named, not the file's keys; dead letters of one
// agent have their acts, those of several a line of each; and each agent is named once.
func TestATroubleIsASentenceWithItsActs(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	now := time.Now()
	l.fleet.Agents = nil
	requests := []approval.Request{
		{ID: "4f1c02d1", Agent: "plain", Question: "Go on?", State: approval.Asked, At: now},
		{ID: "4f1c02d2", Agent: "some", Question: "Go on?", Payload: "a plan", State: approval.Asked, At: now},
		{ID: "4f1c02d3", Agent: "grave", Question: "Drop it?", Category: "destroy", State: approval.Asked, At: now},
		{ID: "4f1c02d4", Agent: "long", Question: "Go on?", Payload: foreign.Text(strings.Repeat("long ", longestWhole)), State: approval.Asked, At: now},
		{ID: "4f1c02d5", Agent: "plain", Question: "Aside?", State: approval.Asked, At: now, Aside: true},
		{ID: "4f1c02d6", Agent: "gone", Question: "Go on?", State: approval.Asked, At: now},
	}
	for _, r := range requests[:4] {
		a := status.Agent{AgentState: status.AgentState{Agent: r.Agent, State: status.Held, Since: now, Reason: status.ForApproval + r.Question, Approval: &status.Approval{ID: r.ID, Question: r.Question}}}
		l.fleet.Agents = append(l.fleet.Agents, a)
	}
	for name, a := range map[string]status.Agent{
		"dead":    {AgentState: status.AgentState{State: status.Idle}, Dead: 3},
		"over":    {AgentState: status.AgentState{State: status.Parked, OverBudget: true, Since: now, Until: now.Add(time.Hour)}},
		"refused": {AgentState: status.AgentState{State: status.Idle, Denied: []session.Denied{{Rule: "Bash(git *)", Times: 3}}}},
	} {
		a.Agent = name
		l.fleet.Agents = append(l.fleet.Agents, a)
	}
	for _, a := range l.fleet.Agents {
		l.fleet.Troubles = append(l.fleet.Troubles, a.Troubles("heartbeat", now)...)
	}
	p := New(Options{Approvals: these{l, requests}, Read: l, Guard: l.guard})
	d := drawer{page: p, acts: true}
	html := string(d.troubles(l.fleet, p.problems(l.fleet)).HTML)
	for want, times := range map[string]int{
		`<button class="yes" form="act" name="do" value="approve plain 4f1c02d1">Approve<`: 1, `<button class="no" form="act" name="do" value="reject plain 4f1c02d1">Reject<`: 1,
		`value="approve plain 4f1c02d5"`: 1, "its queue goes on": 1, `value="approve some 4f1c02d2"`: 1, `<pre class="text">a plan</pre>`: 1,
		`value="approve grave`: 0, `value="approve long`: 0, "long long": 0, `value="approve gone`: 0,
		`<a class="button" href="/page/approvals/4f1c02d3">Read and answer</a>`: 1, `<a class="button" href="/page/approvals/4f1c02d4">Read and answer</a>`: 1,
		`dead</a> has 3 dead letters.`: 1, `value="retry-all dead"`: 1, `href="/page/agents/dead#agent-dead"`: 1,
		`class="quiet" form="act" name="do" value="reload"`: 1, `href="/page/agents/over/plots"`: 1,
		`refused</a> was not allowed Bash(git *) in the last session.`: 1, `value="allow refused Bash%28git&#43;%2A%29">Allow Bash(git *)<`: 1, "permissions:": 0, "allow:": 0,
		`href="/page/agents/over"`: 1, `href="/page/agents/grave"`: 1,
		`Needs attention <span class="muted num">8</span>`: 1,
	} {
		if n := strings.Count(html, want); n != times || d.err != nil {
			t.Errorf("%d times %s, want %d: %v %s", n, want, times, d.err, html)
		}
	}
}

// these are the requests that wait.
type these struct {
	Approvals
	waiting []approval.Request
}

func (t these) Waiting() ([]approval.Request, error) { return t.waiting, nil }

// TestManyChangesAreFolded: few lines are shown at once, many files are a list with how
// much each has changed.
func TestManyChangesAreFolded(t *testing.T) {
	t.Parallel()
	p := newLab(t).page
	for files, open := range map[int]int{3: 3, 300: 0} {
		c := &changes.Changes{}
		for i := range files {
			c.Files = append(c.Files, changes.File{Name: foreign.Text(fmt.Sprint("f", i)), Lines: make([]changes.Line, 2), Added: 2})
		}
		html, err := p.draw("agent-changes", differenceOf(c))
		if n := strings.Count(string(html), `<details class="file" open>`); err != nil || n != open {
			t.Errorf("%d of %d files are unfolded, want %d: %v", n, files, open, err)
		}
		if want := fmt.Sprintf("%d files, +%d −0", files, 2*files); !strings.Contains(string(html), want) {
			t.Errorf("without %q: %.300s", want, html)
		}
	}
}

// TestTodaysTimesHaveNoDate, and which day it was is in their title.
func TestTodaysTimesHaveNoDate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 20, 0, 0, 0, time.Local)
	for at, want := range map[time.Time]string{
		now.Add(-time.Hour):      `title="2026-11-27 19:00:00">19:00<`,
		now.Add(-24 * time.Hour): `title="2026-11-26 20:00:00">26 Nov 20:00<`,
		now.AddDate(-1, 0, 0):    `title="2025-11-27 20:00:00">2025-11-27 20:00<`,
	} {
		if got := string(fillAges([]byte(timeTag("at", at)), now)); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestAReasonIsExplainedOnce, however many dead letters have it, and without the columns
// of commands.
func TestAReasonIsExplainedOnce(t *testing.T) {
	t.Parallel()
	q := Queue{Dead: []Dead{
		{ID: "d1", Reason: "poison", Means: "It used up its attempts. GIVEN counts them. It stays."},
		{ID: "d2", Reason: "poison", Means: "It used up its attempts. GIVEN counts them. It stays."},
		{ID: "d3", Reason: "torn", Means: "The line is torn."},
		{ID: "d4", Reason: "odd"},
	}}
	html, err := newLab(t).page.draw("agent-dead", queueView{q, "a", true})
	for want, times := range map[string]int{"It used up its attempts. It stays.": 1, "GIVEN": 0, "The line is torn.": 1, "What “odd”": 0} {
		if n := strings.Count(string(html), want); err != nil || n != times {
			t.Errorf("%d times %q, want %d: %v %s", n, want, times, err, html)
		}
	}
}

// TestADeadLetterWithoutItsTextSaysWhatCanBeDone: it was an empty prompt without a button.
func TestADeadLetterWithoutItsTextSaysWhatCanBeDone(t *testing.T) {
	t.Parallel()
	html, err := newLab(t).page.draw("agent-dead", queueView{Queue{Dead: []Dead{{ID: "d1", Reason: "lost", Textless: "order-17"}}}, "a", true})
	if err != nil || !strings.Contains(string(html), "The text of order-17 is lost") || strings.Contains(string(html), "Retry") {
		t.Errorf("%v %s", err, html)
	}
}

// TestARowSaysWhatItsAgentDoes now, or said last, and what is wrong before that; what is of
// today stands apart, and what is nothing does not stand there.
func TestARowSaysWhatItsAgentDoes(t *testing.T) {
	t.Parallel()
	p, now := newLab(t).page, time.Now()
	tool, said := &status.Line{At: now, Tool: "Bash", Text: "git <status>"}, &status.Line{At: now, Text: "All is done."}
	in := func(s status.State, do func(*status.Agent)) status.Agent {
		a := status.Agent{AgentState: status.AgentState{Agent: "a", State: s}}
		do(&a)
		return a
	}
	for name, c := range map[string]struct {
		a       status.Agent
		has, no []string
	}{
		"a tool": {in(status.Running, func(a *status.Agent) { a.Phase, a.Line = hook.Turn, tool }), []string{"<strong>Bash</strong> <code>git &lt;status&gt;</code>"}, []string{"queued", "today", "dead"}},
		"a slow tool": {in(status.Running, func(a *status.Agent) {
			a.Phase, a.Line, a.Tool = hook.Turn, tool, &session.Tool{Name: "Bash", Since: now.Add(-time.Hour)}
		}), []string{"<code>git &lt;status&gt;</code>"}, []string{"the tool Bash has run"}},
		"no sign of life":   {in(status.Running, func(a *status.Agent) { a.Phase, a.Line, a.Silent = hook.Turn, tool, now.Add(-time.Hour) }), []string{"no sign of life for 1h0m"}, []string{"git"}},
		"its last words":    {in(status.Idle, func(a *status.Agent) { a.Line, a.Depth.Entries = said, 2 }), []string{"<q>All is done.</q>", "2 queued"}, []string{"today"}},
		"nothing yet":       {in(status.Idle, func(*status.Agent) {}), []string{"It has said nothing yet."}, []string{"queued"}},
		"why it is held":    {in(status.Held, func(a *status.Agent) { a.Line, a.Reason = said, "no login" }), []string{"no login"}, []string{"All is done"}},
		"what today brings": {in(status.Idle, func(a *status.Agent) { a.Today.Turns, a.Today.Output, a.Today.Cost, a.Dead = 1, 12, 0.5, 1 }), []string{`<span class="today"><span class="roomy">12 tokens, </span>$0.50 today</span>`, "1 dead letter<"}, nil},
	} {
		html, err := p.draw("agent-row", rowOf(c.a, now, true))
		for _, want := range c.has {
			if err != nil || !strings.Contains(string(html), want) {
				t.Errorf("%s: without %q: %v %s", name, want, err, html)
			}
		}
		for _, not := range c.no {
			if strings.Contains(string(html), not) {
				t.Errorf("%s: with %q: %s", name, not, html)
			}
		}
	}
}

// TestALoginIsSaidAsOne: what to type, and a resume after it.
func TestALoginIsSaidAsOne(t *testing.T) {
	t.Parallel()
	l, now := newLab(t), time.Now()
	a := status.Agent{AgentState: status.AgentState{Agent: "a", State: status.Held, Since: now, Reason: "API failure authentication_failed"}}
	l.fleet.Agents, l.fleet.Troubles = []status.Agent{a}, a.Troubles("heartbeat", now)
	_, body := l.ask(l.enter(access.Act), http.MethodGet, Root, nil)
	for _, want := range []string{"Log in where the fleet runs: claude, and in it /login", "Resume when its cause is gone.", `value="resume a">Resume<`} {
		if !strings.Contains(body, want) {
			t.Errorf("without %q: %s", want, body)
		}
	}
}
