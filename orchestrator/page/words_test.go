package page

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/page/changes"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
)

// TestNoButtonThatDoesNothing: who waits for what a resume does not lift has none, in the
// list and where troubles are; who is paused has one, whatever else is wrong.
func TestNoButtonThatDoesNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	now := time.Now()
	l.fleet.Agents = []status.Agent{
		{AgentState: status.AgentState{Agent: "over", State: status.Parked, OverBudget: true, Since: now, Until: now.Add(time.Hour)}},
		{AgentState: status.AgentState{Agent: "limited", State: status.Parked, Since: now, Until: now.Add(time.Hour)}},
		{AgentState: status.AgentState{Agent: "held", State: status.Held, Since: now, Reason: "a login"}},
		{AgentState: status.AgentState{Agent: "paused", State: status.Held, Since: now, Paused: now, PausedBy: "a person"}},
	}
	for _, a := range l.fleet.Agents {
		l.fleet.Troubles = append(l.fleet.Troubles, a.Troubles("heartbeat", now)...)
	}
	_, body := l.ask(l.enter(access.Act), http.MethodGet, Root, nil)
	for _, a := range l.fleet.Agents {
		want := 2 // beside the trouble, and in the list
		if _, stays := a.Stays("heartbeat"); stays {
			want = 0
		}
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
				want = `href="` + approvalURL(c[len(c)-1]) + `"`
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
	for i, want := range map[int]bool{1: true, 4: false, 5: true, 8: false} {
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
		for _, where := range []string{"<dd>" + want + "</dd>", "0 tokens, " + sums[0].Price() + "</dd>", "0 tokens, " + sums[1].Price() + "</dd>", want + " of $5.00"} {
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
		{Agent: "a", What: status.IsParked, Text: "x", Do: "heartbeat usage a --by entry   # what it was spent on", Then: "heartbeat reload   # after a larger budget"},
		{Agent: "a", What: status.HasDeadLetters, Text: "1 dead letter", Do: "heartbeat dead-letter a"},
		{Agent: "b", What: status.HasDeadLetters, Text: "2 dead letters", Do: "heartbeat dead-letter b"},
		{Agent: "b", What: status.CannotWork, Text: "y", Do: "install the client"},
	}
	_, body := l.ask(l.enter(access.Look), http.MethodGet, Root, nil)
	for _, want := range []string{
		`<li><code>heartbeat usage a --by entry</code> <span class="muted">what it was spent on</span></li>`,
		`<li><code>heartbeat reload</code> <span class="muted">after a larger budget</span></li>`, `<li>install the client</li>`,
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

// TestATroubleIsTappedWhereItIsSaid: a question that is all that there is to read has a yes
// and a no there, one with more, or of something grave, the way to its page; dead letters
// have one line of each agent; a reload of a file that may be as it was is no first choice.
func TestATroubleIsTappedWhereItIsSaid(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	now := time.Now()
	l.fleet.Agents = nil
	l.mu.Lock()
	requests := []approval.Request{
		{ID: "4f1c02d1", Agent: "plain", Question: "Go on?", State: approval.Asked, At: now},
		{ID: "4f1c02d2", Agent: "long", Question: "Go on?", Payload: "a plan", State: approval.Asked, At: now},
		{ID: "4f1c02d3", Agent: "grave", Question: "Drop it?", Category: "destroy", State: approval.Asked, At: now},
	}
	l.mu.Unlock()
	for _, r := range requests {
		a := status.Agent{AgentState: status.AgentState{Agent: r.Agent, State: status.Held, Since: now, Reason: status.ForApproval + r.Question, Approval: &status.Approval{ID: r.ID, Question: r.Question}}}
		l.fleet.Agents = append(l.fleet.Agents, a)
	}
	l.fleet.Agents = append(l.fleet.Agents, status.Agent{AgentState: status.AgentState{Agent: "dead", State: status.Idle}, Dead: 3},
		status.Agent{AgentState: status.AgentState{Agent: "over", State: status.Parked, OverBudget: true, Since: now, Until: now.Add(time.Hour)}})
	for _, a := range l.fleet.Agents {
		l.fleet.Troubles = append(l.fleet.Troubles, a.Troubles("heartbeat", now)...)
	}
	d := drawer{page: New(Options{Approvals: these{l, requests}, Read: l, Guard: l.guard}), acts: true}
	html := string(d.troubles(l.fleet).HTML)
	for want, times := range map[string]int{
		`name="do" value="approve plain 4f1c02d1">Approve<`: 1, `class="quiet" form="act" name="do" value="reject plain 4f1c02d1"`: 1, `value="approve long`: 0, `value="approve grave`: 0,
		`<a class="button" href="/page/approvals/4f1c02d2">Answer</a>`: 1, `<a class="button" href="/page/approvals/4f1c02d3">Answer</a>`: 1,
		`value="retry-all dead"`: 1, `href="/page/agents/dead`: 1, `class="quiet" form="act" name="do" value="reload"`: 1, `href="/page/agents/over/plots"`: 1,
		`Needs attention <span class="muted num">5</span>`: 1,
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
	html, err := newLab(t).page.draw("agent-queue", struct {
		Queue
		Agent string
		Acts  bool
	}{q, "a", true})
	for want, times := range map[string]int{"It used up its attempts. It stays.": 1, "GIVEN": 0, "The line is torn.": 1, "What “odd”": 0} {
		if n := strings.Count(string(html), want); err != nil || n != times {
			t.Errorf("%d times %q, want %d: %v %s", n, want, times, err, html)
		}
	}
}

// TestADeadLetterWithoutItsTextSaysWhatCanBeDone: it was an empty prompt without a button.
func TestADeadLetterWithoutItsTextSaysWhatCanBeDone(t *testing.T) {
	t.Parallel()
	html, err := newLab(t).page.draw("agent-queue", struct {
		Queue
		Agent string
		Acts  bool
	}{Queue{Dead: []Dead{{ID: "d1", Reason: "lost", Textless: "order-17"}}}, "a", true})
	if err != nil || !strings.Contains(string(html), "Nobody has the text of order-17 any more") || strings.Contains(string(html), "Retry") {
		t.Errorf("%v %s", err, html)
	}
}
