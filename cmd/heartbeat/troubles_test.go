package main

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/status"
)

// threeAgents is a fleet that does what it is sent: one agent gives up what it
// began, as its client crashes after a tool.
const threeAgents = `version: 1
name: fleet
agents:
  clerk: {dir: agents/clerk, command: [heartbeat, simulate]}
  careful:
    dir: agents/careful
    command: [heartbeat, simulate, --script, ../../crash.json]
    max-restarts: 100
  quiet: {dir: agents/quiet, command: [heartbeat, simulate]}
`

// letterAge is how old a dead letter is said to be.
var letterAge = regexp.MustCompile(`dead letter, \d+[sm] old;`)

// TestWhatNeedsAPersonIsSaid: what was given up and who was paused stood in one
// column of a table, or nowhere: status, a run that begins, and the end of a run
// with --once say it, with what to type, also without a scheduler.
func TestWhatNeedsAPersonIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", threeAgents)
	w.put("crash.json", `{"rules": [{"match": "begin", "steps": [{"tool": "Bash", "command": "true"}, {"crash": true}]}]}`)
	w.ok("apply")
	w.ok("send", "careful", "begin")
	const letter = "! careful: 1 dead letter; heartbeat dead-letter careful\n"
	ageless := func(out string) string { return letterAge.ReplaceAllString(out, "dead letter;") }
	o := w.run("run", "--once")
	if o.status != exitError || !letterAge.MatchString(o.stdout) || !strings.HasSuffix(ageless(o.stdout), letter) {
		t.Fatalf("run --once: %+v", o)
	}
	w.ok("send", "clerk", "later")
	out := regexp.MustCompile(`(?m)^not running: the last run, with --once, ended at [^\n]+\n`).ReplaceAllString(ageless(w.ok("status")), "")
	if !strings.HasPrefix(out, "3 agents: 3 stopped · 1 queued · 1 dead letter\n1 prompt waits, and nobody runs its agent: heartbeat run\n"+letter+"\nAGENT ") {
		t.Errorf("without a scheduler:\n%s", out)
	}

	r := w.background()
	w.ok("pause", "quiet")
	until(t, "the prompt is done", func() bool { a := w.agent("clerk"); return a.Acknowledged == 1 && a.State == "idle" })
	out = ageless(w.ok("status"))
	if !strings.HasPrefix(out, "3 agents: 2 idle, 1 paused · 1 dead letter\nscheduler: running for ") ||
		!strings.Contains(out, letter+"! quiet: paused by a person for ") || !strings.Contains(out, "; heartbeat resume quiet\n") {
		t.Errorf("with a scheduler:\n%s", out)
	}
	until(t, "the log says so", func() bool { return strings.Contains(r.stderr.String(), `do="heartbeat dead-letter careful"`) })
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}

	if out := w.ok("status"); !strings.Contains(out, "! quiet: paused by a person for ") {
		t.Errorf("when it has ended:\n%s", out)
	}
	r = w.background()
	until(t, "the next run says who is paused", func() bool { return strings.Contains(r.stderr.String(), `do="heartbeat resume quiet"`) })
	r.stop()
	var data struct {
		Summary  string
		Troubles []struct{ Agent, What, Text, Do string }
	}
	w.into(&data, "status")
	if len(data.Troubles) != 2 || data.Troubles[0].What != "dead-letters" || data.Troubles[1].What != "paused" || data.Summary == "" {
		t.Errorf("as JSON: %+v", data)
	}
}

// TestWhatIsWatchedFitsTheTerminal: with many troubles, of one cause or of many, long
// lines and a small window scrolled the first line away.
func TestWhatIsWatchedFitsTheTerminal(t *testing.T) {
	t.Parallel()
	now := time.Now()
	fleet := func(agents int, why func(i int) string) status.Fleet {
		var f status.Fleet
		for i := range agents {
			f.Agents = append(f.Agents, status.Agent{AgentState: status.AgentState{
				Agent: fmt.Sprintf("agent-%d", i), State: status.Held, Since: now, Reason: foreign.Text(why(i)), Fix: foreign.Text(strings.Repeat("do this ", 20)),
			}})
		}
		return f
	}
	for name, f := range map[string]status.Fleet{
		"one cause":   fleet(50, func(int) string { return strings.Repeat("a cause ", 20) }),
		"many causes": fleet(50, func(i int) string { return fmt.Sprintf("%d %s", i, strings.Repeat("a cause ", 20)) }),
		"little":      fleet(2, func(i int) string { return "x" }),
	} {
		for _, columns := range []int{20, 60, 200} {
			for _, rows := range []int{5, 23, 100} {
				p := page{palette: palette{red: "\x1b[31m", reset: "\x1b[0m"}, columns: columns, rows: rows}
				newStatusPage(f, "heartbeat", now).text(&p)
				text := p.buf.String()
				if columns >= 60 && rows >= 23 && p.height(0) > rows {
					t.Errorf("%s, %d×%d: %d rows\n%s", name, columns, rows, p.height(0), text)
				}
				if !strings.HasPrefix(text, f.Headline()+"\n\x1b[31m! \x1b[0magent-0") {
					t.Errorf("%s, %d×%d:\n%s", name, columns, rows, text)
				}
				if name == "many causes" && rows < 100 && !strings.Contains(text, " other troubles: name agents, or -o json") || name == "one cause" && columns > 20 && rows > 5 && (!strings.Contains(text, "agent-0 and 49 more: held") || !strings.Contains(text, "    also  agent-1")) {
					t.Errorf("%s, %d×%d:\n%s", name, columns, rows, text)
				}
			}
		}
	}
}
