package e2e

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/handover"
	"heartbeat/internal/fakeapi"
	"heartbeat/internal/testbed"
)

// fails is what the service does beside a check.
type fails struct {
	name string
	// next is its first answer to the second iteration; nil: the account's limit has
	// fallen, by another agent of the account if elsewhere is true.
	next      *fakeapi.Answer
	elsewhere bool
	// wentOn is true where the interrupted turn is gone on with.
	wentOn bool
}

func failsBeside() []fails {
	atOnce := http.Header{"X-Should-Retry": {"false"}}
	return []fails{
		{name: "a limit falls while the check runs", elsewhere: true},
		{name: "a limit falls before the next iteration", wentOn: true},
		{name: "500", wentOn: true, next: &fakeapi.Answer{Status: 500, ErrorType: "api_error", Message: "made up", Header: atOnce}},
		{name: "overloaded", wentOn: true, next: &fakeapi.Answer{Status: 529, ErrorType: "overloaded_error", Message: "Overloaded", Header: atOnce}},
		{name: "the connection is cut", next: &fakeapi.Answer{Text: "half a text, and the rest of it", Break: fakeapi.BreakCut}},
	}
}

// TestTheServiceFailsBesideACheck: the verdict counts all the same, the next iteration is
// handed over once, when the account may be asked again, and goes on in its conversation.
// It is no attempt.
func TestTheServiceFailsBesideACheck(t *testing.T) {
	t.Parallel()
	for _, x := range testbed.SampleOf(t, failsBeside(), 5) {
		t.Run(x.name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) { x.play(t, c) })
		})
	}
}

func (x fails) play(t *testing.T, c client) {
	var rules []fakeapi.Rule
	if x.next != nil {
		rules = append(rules, fakeapi.Rule{Match: "iteration 2", Times: 1, Answer: *x.next})
	}
	f := newCrew(t, c, []member{{"a", fiveHourly, []string{notOnce}}, {"b", fiveHourly, nil}}, append(rules, fakeapi.Rule{Answer: fakeapi.Answer{Text: "done"}})...)
	f.Work = filepath.Join(f.Dir, "agents", "a")
	f.sendAs("work of a")
	f.start()
	f.Until("the check to begin", func() bool { return f.runs() == 1 && f.session().Waiter > 0 })
	if x.next == nil {
		f.API.Limit(fiveHourly, fakeapi.Limit{Falls: time.Now(), Resets: time.Now().Add(time.Hour)})
	}
	if x.elsewhere {
		f.must("work of b", "send", "b", "-")
		f.Until("b is parked", func() bool { return f.states()["b"] == "parked" })
		f.Until("the session's end", func() bool { return f.session().Phase == hook.Ended })
	}
	f.write(filepath.Join(f.Work, "go"), "")
	if x.next == nil {
		f.Until("a is parked", func() bool { return f.states()["a"] == "parked" })
		n := len(f.asked())
		time.Sleep(3 * time.Second)
		if more := len(f.asked()) - n; more != 0 || n != 2 || len(f.outbox()) > 0 {
			t.Errorf("%d requests up to the limit, %d beyond it, done: %+v", n, more, f.outbox())
		}
		f.API.Limit(fiveHourly, fakeapi.Limit{})
		f.must("", "resume", "a")
	}
	f.Until("the verdict", func() bool { return len(f.outbox()) > 0 })
	if done := f.outbox(); len(done) != 1 || done[0].Verdict == nil || done[0].Verdict.Iteration != 2 || done[0].Attempt != 1 || f.runs() != 2 {
		t.Errorf("after %d checks: %+v", f.runs(), done)
	}
	if dead := f.dead(); len(dead) > 0 {
		t.Errorf("dead letters: %+v", dead)
	}
	x.check(f)
}

// check checks what the model was asked, in one conversation.
func (x fails) check(f *fleet) {
	first, second, wentOn := 0, 0, 0
	conversation := ""
	for _, r := range f.asked() {
		if r.Copies("work of b") > 0 {
			continue
		}
		asked := strings.Join(r.Prompts(), "\n")
		switch {
		case strings.Contains(asked, handover.GoOnPrompt):
			wentOn++
		case strings.Contains(asked, "iteration 2"):
			second++
		case strings.Contains(asked, "work of a"):
			first++
		}
		if conversation == "" {
			conversation = r.Session
		}
		if r.Session != conversation || r.Copies("Task from the queue:\n\nwork of a") != 1 {
			f.t.Errorf("request %d is of conversation %s, not of %s, or lacks its beginning", r.Number, r.Session, conversation)
		}
	}
	if first != 1 || second != 1 || (wentOn == 1) != x.wentOn || wentOn > 1 {
		f.t.Errorf("the first iteration was handed over %d times, the second one %d times, and gone on with %d times", first, second, wentOn)
	}
}

// TestTasksInTheBackgroundComeBeforeTheCheck: a command that the agent has left running,
// and a subagent, have ended when the check begins.
func TestTasksInTheBackgroundComeBeforeTheCheck(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newFleet(t, c, []string{`until: {check: [sh, -c, "echo x >> runs; [ -e task ] && { [ $(wc -l < runs) = 1 ] || [ -e sub ]; }"]}`})
		f.allowAgents()
		sub := fakeapi.ToolUse{Name: "Agent", Input: map[string]any{"description": "a task", "prompt": subagentTask, "subagent_type": "general-purpose"}}
		if c.real {
			f.API.Add(
				fakeapi.Rule{Match: subagentTask, Answer: fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.Bash("sleep 3; touch sub")}}, Then: []fakeapi.Answer{{Text: "sub done"}}},
				fakeapi.Rule{Match: "with a subagent", Answer: fakeapi.Answer{Tools: []fakeapi.ToolUse{sub}}, Then: []fakeapi.Answer{{Text: "started it"}}},
			)
		}
		f.teach(behaviour{match: "with a task", background: "sleep 3; touch task", reply: "started it"})
		prompts := []string{"with a task", "with a subagent"}
		if !c.real { // its subagents have no tools
			prompts = prompts[:1]
		}
		for _, p := range prompts {
			f.sendAs(p)
		}
		f.must("", "run", "--once")
		f.gone()
		done := f.outbox()
		if len(done) != len(prompts) || f.runs() != len(prompts) {
			t.Errorf("after %d checks: %+v", f.runs(), done)
		}
		for _, d := range done {
			if d.Verdict == nil || d.Verdict.Iteration != 1 || d.Attempt != 1 || len(d.Abandoned) > 0 {
				t.Errorf("done: %+v", d)
			}
		}
	})
}
