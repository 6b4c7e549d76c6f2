package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/service"
	"heartbeat/orchestrator/usage"
)

// TestSentencesAreWrapped: the line below the table of usage had 114 columns, and others
// were as long.
func TestSentencesAreWrapped(t *testing.T) {
	t.Parallel()
	now := time.Now()
	event := journal.Event{At: now, Agent: "agent-with-name-1", Kind: journal.Ended, Reason: "start-timeout (no SessionStart within 30s; the client asks whether the folder is trusted)"}
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
