package main

import (
	"cmp"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/doctor"
	"heartbeat/orchestrator/explain"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/service"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
)

// TestSentencesAreWrapped: the line below the table of usage had 114 columns, and others
// were as long.
func TestSentencesAreWrapped(t *testing.T) {
	t.Parallel()
	now := time.Now()
	event := journal.Event{At: now, Agent: "agent-with-name-1", Kind: journal.Ended, Reason: "start-timeout (the client did not begin within 30s; the client asks whether the folder is trusted)"}
	for name, r := range map[string]interface{ text(*page) }{
		"usage":             spending{Since: now, ListPrice: true, WholeSince: now, Rows: []usage.Row{{Key: "a"}}, Total: usage.Sum{Unseen: 2, Unpriced: 2, Guessed: 2}},
		"series":            happenings{Since: now},
		"the service":       serviceState{Name: "heartbeat-fleet", Manager: "systemd", Path: "/home/user/.config/systemd/user/heartbeat-fleet.service", Found: service.Other},
		"an event":          shownEvent(event),
		"an event's reason": shownEvent(journal.Event{At: now, Agent: "a", Kind: journal.Recovered, Reason: "requeued"}),
	} {
		for _, columns := range []int{80, 60} {
			p := page{columns: columns}
			r.text(&p)
			for line := range strings.Lines(p.buf.String()) {
				if line = strings.TrimSuffix(line, "\n"); width(line) > columns && len(strings.Fields(line)) > 1 {
					t.Errorf("%s has %d columns on %d: %s", name, width(line), columns, line)
				}
			}
			if name == "an event" && !strings.Contains(strings.Join(strings.Fields(p.buf.String()), " "), "ended, 0 done: "+event.Reason.String()) {
				t.Errorf("on %d columns:\n%s", columns, p.buf.String())
			}
		}
	}
	var p page
	if eventText(&p, event); strings.Count(p.buf.String(), "\n") != 1 {
		t.Errorf("without a terminal an event is several lines:\n%s", p.buf.String())
	}
}

type shownEvent journal.Event

func (e shownEvent) text(p *page) { eventText(p, journal.Event(e)) }

// TestHelpOnANarrowTerminal: the paragraphs of a topic kept their 79 columns. Its tables
// and commands still do.
func TestHelpOnANarrowTerminal(t *testing.T) {
	t.Parallel()
	all, err := readTopics()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		p := page{columns: 40}
		one.text(&p)
		out := p.buf.String()
		for line := range strings.Lines(out) {
			if line = strings.TrimSuffix(line, "\n"); width(line) > 40 && !strings.HasPrefix(line, "    ") && len(strings.Fields(line)) > 1 {
				t.Errorf("%s: %s", one.Name, line)
			}
		}
		if !slices.Equal(strings.Fields(out), strings.Fields(one.Text)) {
			t.Errorf("%s has other words on a narrow terminal", one.Name)
		}
		for line := range strings.Lines(one.Text) {
			if strings.HasPrefix(line, "    ") && !strings.Contains(out, line) {
				t.Errorf("%s: a command was wrapped: %s", one.Name, line)
			}
		}
		p = page{columns: 80}
		if one.text(&p); p.buf.String() != one.Text {
			t.Errorf("%s is not as it was written on 80 columns", one.Name)
		}
	}
}

// TestNothingIsBrokenInAWord: on terminals below 80 columns errors, hints and warnings, what
// doctor says to do, and what stands before the text of an event were broken in mid-word;
// the list of explain cut what words mean.
func TestNothingIsBrokenInAWord(t *testing.T) {
	t.Parallel()
	finding := examined{ours: "heartbeat", Mended: []doctor.Mended{{Agent: "triage", Codes: []string{"not-applied"}, Done: "the hooks of the directory are as they are declared"}}, Findings: []doctor.Finding{{
		Severity: doctor.Warning, Code: "was-held", Agent: "triage", Seen: "held when its last run ended: its sessions failed too often", Why: "nothing starts until a person resumes it, and 3 prompts wait",
		Fix: "check the service's status page; heartbeat logs triage, then heartbeat resume triage",
	}}}
	event := journal.Event{At: time.Now(), Agent: "agent-with-name-1", Kind: journal.Reloaded, Detail: "added: builder, clerk; changed: triage; removed: nobody; unchanged: 17"}
	for name, text := range map[string]func(p *page){
		"an error": func(p *page) {
			o := output{err: &p.buf, columnsErr: p.columns}
			o.printWarning("the directory of agent \"triage\" is not as declared in the file")
			o.printError(&failure{err: errors.New("cannot take back \"abc\": no prompt with this id waits for its time\nits client said:\n    nothing that anybody could have understood"), hint: "heartbeat next lists those that wait; heartbeat inbox drop abc drops it"})
		},
		"doctor":   finding.text,
		"an event": shownEvent(event).text,
		"explain":  explanations(explain.Words()).text,
		"a sentence": func(p *page) {
			p.saidf("detached from %s; its session continues: heartbeat attach triage joins it", "triage")
		},
		"a told picture": func(p *page) { p.told("    ", "│ a box │\n\n"+strings.Repeat("a line that is long ", 5)) },
	} {
		var plain page
		text(&plain)
		for _, columns := range []int{80, 60, 40, 24} {
			p := page{columns: columns}
			text(&p)
			for line := range strings.Lines(p.buf.String()) {
				if line = strings.TrimSuffix(line, "\n"); width(line) > columns && len(strings.Fields(line)) > 1 {
					t.Errorf("%s has %d columns on %d: %s", name, width(line), columns, line)
				}
			}
			if said := p.buf.String(); name != "explain" && !slices.Equal(strings.Fields(said), strings.Fields(plain.buf.String())) {
				t.Errorf("%s has other words on %d columns:\n%s", name, columns, said)
			}
		}
	}
	for _, columns := range []int{80, 60, 40} {
		p := page{columns: columns}
		if explanations(explain.Words()).text(&p); strings.Contains(p.buf.String(), "…") {
			t.Errorf("explain cuts what a word means on %d columns:\n%s", columns, p.buf.String())
		}
	}
}

// TestACommandToCopyIsNotWrapped, and prose that names one is.
func TestACommandToCopyIsNotWrapped(t *testing.T) {
	t.Parallel()
	command := "heartbeat -f /home/user/fleets/production/heartbeat.yaml recover triage"
	for _, text := range []string{command, command + "; then look again"} {
		p := page{columns: 40}
		p.advice(doctorIndent, text)
		if lines := strings.Count(p.buf.String(), "\n"); (lines == 1) != (text == command) {
			t.Errorf("%d lines:\n%s", lines, p.buf.String())
		}
	}
}

// TestACommandInProseIsInOneLine as far as a line has room for it: it is there to be copied.
func TestACommandInProseIsInOneLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"it is paused by a person; heartbeat resume triage":                                       "it is paused by a person;|heartbeat resume triage",
		"heartbeat next lists them; heartbeat -f a.yaml inbox triage drop one. It is queued then": "heartbeat next lists them;|heartbeat -f a.yaml inbox triage|drop one. It is queued then",
		"once more (heartbeat send a --cancel one), or so":                                        "once more|(heartbeat send a --cancel one),|or so",
		"what heartbeat does not run is not run by it at all":                                     "what heartbeat does not run is|not run by it at all",
	} {
		if got := strings.Join(wrap(text, 32), "|"); got != want {
			t.Errorf("%q is %q", text, got)
		}
	}
}

// TestEachCommandIsOfAFleetOrNot: the lists by which command lines are found in texts stand
// apart from the commands.
func TestEachCommandIsOfAFleetOrNot(t *testing.T) {
	t.Parallel()
	p, err := newParser(&cli{}, stdio{os.Stdin, os.Stdout, os.Stderr}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range p.Model.Children {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	known := strings.Split(fleetCommands+"|"+otherCommands, "|")
	slices.Sort(names)
	slices.Sort(known)
	if !slices.Equal(names, known) {
		t.Errorf("the commands are %q, known are %q", names, known)
	}
}

// TestATellingTable has all of its last column, also where nobody says how wide the page is.
func TestATellingTable(t *testing.T) {
	t.Parallel()
	header := []string{"AGENT", "STATE", "WHY"}
	rows := func() [][]cell {
		return [][]cell{plain("triage", "held", "the client asks whether the folder is trusted, and nobody is there who could answer"), plain("builder", "idle", "")}
	}
	beside := `AGENT    STATE  WHY
triage   held   the client asks whether the folder is trusted, and nobody is
                there who could answer
builder  idle
`
	for columns, want := range map[int]string{
		0: beside, 80: beside,
		40: `AGENT    STATE
triage   held
    the client asks whether the folder
    is trusted, and nobody is there who
    could answer
builder  idle
`,
		12: `AGENT triage
STATE held
WHY   the
      client
      asks
`,
	} {
		p := page{columns: columns}
		if p.telling(header, rows()); !strings.HasPrefix(p.buf.String(), want) || columns != 12 && p.buf.String() != want {
			t.Errorf("on %d columns:\n%s", columns, p.buf.String())
		}
	}
}

// TestTheSummaryOfARunHasWholeReasons: on a pipe the last table of run --once was as wide as
// its longest reason, and on a terminal that was cut.
func TestTheSummaryOfARunHasWholeReasons(t *testing.T) {
	t.Parallel()
	why := "the client asks whether the folder /home/user/agents/triage is trusted, and nobody is there who could answer"
	r := ran{Summary: &status.Summary{Agents: []status.AgentSummary{{AgentState: status.AgentState{Agent: "triage", State: status.Held, Reason: foreign.Text(why)}}}}}
	for _, columns := range []int{0, 80, 60, 30} {
		p := page{columns: columns}
		r.text(&p)
		for line := range strings.Lines(p.buf.String()) {
			if line = strings.TrimSuffix(line, "\n"); width(line) > cmp.Or(columns, pageColumns) {
				t.Errorf("%d columns on %d: %s", width(line), columns, line)
			}
		}
		if said := strings.Join(strings.Fields(p.buf.String()), " "); columns != 30 && !strings.Contains(said, "nobody is there who could answer") || strings.Contains(said, "…") {
			t.Errorf("a reason is cut on %d columns:\n%s", columns, p.buf.String())
		}
	}
}
