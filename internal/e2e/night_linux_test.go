package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/handover"
	"heartbeat/internal/fakeapi"
	"heartbeat/orchestrator/journal"
)

// The accounts of the night: the first one's five-hour limit falls, the second one's
// weekly limit; the third one's stands at 96 percent and does not fall.
const (
	fiveHourly = "sk-ant-oat01-made-up-five-hourly"
	weekly     = "sk-ant-oat01-made-up-weekly"
	spacious   = "sk-ant-oat01-made-up-spacious"
)

// night is a fleet in mid-tool when the limits of its accounts fall.
type night struct {
	*fleet
	working      []string // whose limit falls
	idle         []string // too, while they do nothing
	fell, resets time.Time
}

// tryAfter is how long the model takes to answer the first that asks after a reset:
// nobody else may ask meanwhile.
const tryAfter = time.Second

// newNight declares many agents on two accounts, of which the first one waits for a
// person after a limit, and a few on a third.
func newNight(t *testing.T, c client, many int) *night {
	n := &night{}
	var members []member
	for i := range many {
		m := member{name: fmt.Sprintf("w%02d", i), token: []string{fiveHourly, weekly}[i%2]}
		if i == 0 {
			m.fields = []string{"on-limit: hold"}
		}
		members, n.working = append(members, m), append(n.working, m.name)
	}
	for i, token := range []string{fiveHourly, weekly} {
		m := member{name: fmt.Sprintf("idle%d", i), token: token}
		members, n.idle = append(members, m), append(n.idle, m.name)
	}
	now := time.Now().UTC()
	asleep := fmt.Sprintf("%02d:00-%02d:00", (now.Hour()+8)%24, (now.Hour()+10)%24)
	members = append(
		members,
		member{"polite", spacious, []string{"limits: {five-hour: 95%}"}},
		member{"nightly", spacious, []string{"limits: {five-hour: 95%, active-hours: " + fmt.Sprintf("%q}", asleep), "timezone: UTC"}},
		member{"greedy", spacious, nil},
	)
	n.fleet = newCrew(t, c, members,
		fakeapi.Rule{Match: "Go on with the task", Answer: fakeapi.Answer{Text: "finished", Delay: tryAfter}},
		fakeapi.Rule{
			Match:  "long work of",
			Answer: fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.Bash("echo x >>ran; python3 -c 'open(\"../gate\").read()'")}},
			Then:   []fakeapi.Answer{{Text: "it was not interrupted"}},
		},
		// The figures come a moment after the first turn.
		fakeapi.Rule{Match: "of polite", Answer: fakeapi.Answer{Text: "ok", Delay: 2 * time.Second}},
		fakeapi.Rule{Answer: fakeapi.Answer{Text: "ok"}},
	)
	if err := syscall.Mkfifo(filepath.Join(n.Dir, "agents", "gate"), 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *night) sendTo(agent, text string) {
	n.t.Helper()
	n.must(text, "send", agent, "-")
}

// inMidTool waits until all work and wait at the gate.
func (n *night) inMidTool() {
	n.t.Helper()
	n.Until("all are in mid-tool", func() bool {
		return !slices.ContainsFunc(n.working, func(name string) bool {
			_, err := os.Stat(filepath.Join(n.Dir, "agents", name, "ran"))
			return err != nil
		})
	})
}

// openGate lets the tools of all end that wait there, and of those that are about to.
func (n *night) openGate(until func() bool) {
	n.t.Helper()
	n.Until("the tools have ended", func() bool {
		if gate, err := os.OpenFile(filepath.Join(n.Dir, "agents", "gate"), os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
			gate.Close()
		}
		return until()
	})
}

// limitsFall for a while.
func (n *night) limitsFall(d time.Duration) {
	n.fell = time.Now()
	n.resets = n.fell.Add(d).Truncate(time.Second)
	n.API.Limit(fiveHourly, fakeapi.Limit{Falls: n.fell, Resets: n.resets})
	n.API.Limit(weekly, fakeapi.Limit{Weekly: true, Falls: n.fell, Resets: n.resets})
}

// refused are the requests that were not let through, by the client's conversation.
func (n *night) refused() map[string][]*fakeapi.Request {
	all := map[string][]*fakeapi.Request{}
	for _, r := range n.API.Requests() {
		if r.Refused {
			all[r.Session] = append(all[r.Session], r)
		}
	}
	return all
}

func theLimitNight(t *testing.T, c client, many int) {
	n := newNight(t, c, many)
	n.API.Limit(spacious, fakeapi.Limit{Used: 0.96, Resets: time.Now().Add(time.Hour)})
	for _, name := range n.working {
		n.sendTo(name, "long work of "+name)
		n.sendTo(name, "afterwards, "+name)
	}
	n.sendTo("polite", "first of polite")
	n.sendTo("polite", "second of polite")
	n.sendTo("polite", "third of polite")
	s := n.start()
	n.inMidTool()
	n.Until("polite has learned", func() bool { return n.states()["polite"] == "parked" })
	polite := len(n.doneBy("polite"))
	n.limitsFall(9*time.Second + time.Duration(many)*400*time.Millisecond)
	n.openGate(func() bool { return len(n.refused()) == len(n.working) })
	n.Until("all are parked", func() bool {
		states := n.states()
		return states[n.working[0]] == "held" && !slices.ContainsFunc(n.working[1:], func(name string) bool { return states[name] != "parked" })
	})
	for _, name := range append([]string{"polite", "nightly", "greedy"}, n.idle...) {
		n.sendTo(name, "meanwhile, "+name)
	}
	n.sendTo(n.working[1], "meanwhile, "+n.working[1])
	_ = s.cmd.Process.Kill()
	<-s.done
	n.start()
	n.Until("the third account works", func() bool { return len(n.doneBy("greedy")) == 1 && len(n.doneBy("nightly")) == 1 })
	awaited := map[string]int{n.working[0]: 0, n.working[1]: 3, "polite": polite, "idle0": 1, "idle1": 1}
	n.UntilWithin("all is done", 2*time.Minute, func() bool {
		return !slices.ContainsFunc(append(n.working[1:], n.idle...), func(name string) bool {
			want, named := awaited[name]
			if !named {
				want = 2
			}
			return len(n.doneBy(name)) != want
		})
	})
	if got := n.states()[n.working[0]]; got != "held" || len(n.doneBy(n.working[0])) != 0 {
		t.Errorf("after the reset, with on-limit: hold, the agent is %s and has done %d entries", got, len(n.doneBy(n.working[0])))
	}
	n.must("", "resume", n.working[0])
	n.Until("the one that waited for a person is done", func() bool { return len(n.doneBy(n.working[0])) == 2 })
	n.count()
	for name, want := range awaited {
		if name != n.working[0] && len(n.doneBy(name)) != want {
			t.Errorf("%s has done %d entries, want %d", name, len(n.doneBy(name)), want)
		}
	}
	if got := n.states()["polite"]; got != "parked" {
		t.Errorf("above limits: the agent is %s", got)
	}
}

// count is what the API has counted, and what it means.
func (n *night) count() {
	t := n.t
	all, refused := n.API.Requests(), n.refused()
	before := map[string]bool{} // conversations that were in a turn when the limit fell
	for _, r := range all {
		if r.At.Before(n.fell) {
			before[r.Session] = true
		}
	}
	calls := 0
	for conversation, rs := range refused {
		if calls += len(rs); len(rs) > 1 || !before[conversation] {
			t.Errorf("conversation %s was refused %d times; in a turn before: %t", conversation, len(rs), before[conversation])
		}
	}
	late := map[string]time.Duration{}
	for _, token := range []string{fiveHourly, weekly} {
		late[token] = n.first(token, all)
	}
	for _, name := range n.working {
		n.went(name, all)
	}
	sources := map[string]int{}
	for _, e := range n.journal(journal.Refused) {
		sources[e.Source]++
	}
	if sources["back-off"]+sources["words"] > 0 {
		t.Errorf("the journal says by what the resets were known: %v", sources)
	}
	t.Logf("%d agents in a turn, %d calls, %d refused; known by %v; the first turns %v and %v after the reset",
		len(n.working), len(all), calls, sources, late[fiveHourly].Round(time.Millisecond), late[weekly].Round(time.Millisecond))
}

// first is how long after the reset an account's first turn came. Nobody else has
// asked before that was answered.
func (n *night) first(token string, all []*fakeapi.Request) time.Duration {
	var first *fakeapi.Request
	for _, r := range all {
		switch {
		case r.Credential() != token || r.At.Before(n.resets):
		case first == nil:
			first = r
		case r.At.Before(first.At.Add(tryAfter)) && r.Copies(handover.GoOnPrompt) > 0 && first.Copies(handover.GoOnPrompt) > 0:
			n.t.Errorf("request %d did not wait for the one that tried the account first, %d", r.Number, first.Number)
		}
	}
	if first == nil {
		n.t.Errorf("no turn after the reset")
		return 0
	}
	late := first.At.Sub(n.resets)
	if late > time.Minute {
		n.t.Errorf("the first turn came %v after the reset", late)
	}
	return late
}

// went checks how an agent's work went on.
func (n *night) went(name string, all []*fakeapi.Request) {
	t := n.t
	for _, d := range n.doneBy(name) {
		if d.Attempt != 1 {
			t.Errorf("%s: %q was done at attempt %d", name, d.ID, d.Attempt)
		}
	}
	if first := n.doneBy(name)[0]; first.Reply != "finished" {
		t.Errorf("%s: the interrupted work ended with %q", name, first.Reply)
	}
	if dead := of[map[string]any](n.fleet, name, ".dead-letter.jsonl"); len(dead) != 0 {
		t.Errorf("%s: dead letters %v", name, dead)
	}
	if ran, _ := os.ReadFile(filepath.Join(n.Dir, "agents", name, "ran")); string(ran) != "x\n" {
		t.Errorf("%s: the tool ran %d times", name, len(ran)/2)
	}
	asked, wentOn := map[string]int{}, 0
	conversation := ""
	for _, r := range all {
		for _, p := range r.Prompts() {
			if p = unframe(p); strings.HasSuffix(p, name) {
				asked[p]++
			}
		}
		switch mine := r.Copies("long work of "+name) > 0; {
		case mine && conversation == "":
			conversation = r.Session
		case r.Session == conversation && slices.ContainsFunc(r.Prompts(), func(p string) bool { return strings.Contains(p, handover.GoOnPrompt) }):
			if wentOn++; !mine {
				t.Errorf("%s: request %d goes on without the turns before", name, r.Number)
			}
		}
	}
	if wentOn != 1 {
		t.Errorf("%s: its conversation went on %d times", name, wentOn)
	}
	for p, times := range asked {
		if times != 1 {
			t.Errorf("%s: the model was asked %q %d times", name, p, times)
		}
	}
}

// TestALimitWithAKey: the client repeats a refused request itself then, which are calls,
// too: three for each session. Nothing says when the limit ends, so the agent waits for a
// minute at first, and goes on at the first attempt.
func TestALimitWithAKey(t *testing.T) {
	standInFirst(t, func(t *testing.T, c client) {
		f := newCrew(t, c, []member{{"a", apiKey, nil}}, fakeapi.Rule{Answer: fakeapi.Answer{Text: "ok"}})
		f.API.Limit(apiKey, fakeapi.Limit{Falls: time.Now(), Resets: time.Now().Add(time.Hour)})
		f.send("work")
		f.start()
		f.Until("the agent is parked", func() bool { return f.agentState() == "parked" })
		if n := len(f.API.Requests()); n != 3 {
			t.Errorf("%d calls, want 3", n)
		}
		f.send("more work") // it is not tried again for a minute
		time.Sleep(3 * time.Second)
		if n := len(f.API.Requests()); n != 3 || f.agentState() != "parked" {
			t.Errorf("%d calls later, the agent is %s", n, f.agentState())
		}
		if e := f.journal(journal.Refused); len(e) != 1 || e[0].Source != "back-off" {
			t.Errorf("the journal: %+v", e)
		}
		f.API.Limit(apiKey, fakeapi.Limit{})
		f.must("", "resume", "a")
		f.Until("both are done", func() bool { return len(f.doneBy("a")) == 2 })
		for _, d := range f.doneBy("a") {
			if d.Attempt != 1 {
				t.Errorf("%q was done at attempt %d", d.ID, d.Attempt)
			}
		}
		if dead := of[map[string]any](f, "a", ".dead-letter.jsonl"); len(dead) != 0 {
			t.Errorf("dead letters %v", dead)
		}
	})
}
