package main

import (
	"context"
	"strconv"
	"strings"

	"heartbeat/config"
	"heartbeat/orchestrator/explain"
)

type explainCmd struct {
	Word string `arg:"" optional:"" help:"The word; all words are listed without one." complete:"word"`
}

// Help implements kong's HelpProvider.
func (explainCmd) Help() string {
	return `Explains a word that status, the journal, doctor, dead letters, ends of sessions or
exit codes use: what it means, what happens next, and what to type.

Examples:

    heartbeat explain
    heartbeat explain held
    heartbeat explain poison`
}

// explained is what a word means.
type explained struct{ explain.Word }

// severalExplained are the words within a text.
type severalExplained []explain.Word

// explanations are all words.
type explanations []explain.Word

func (c explainCmd) run(context.Context, *app) (result, error) {
	if c.Word == "" {
		return explanations(explain.Words()), nil
	}
	w, there := explain.Find(c.Word)
	if !there {
		switch within := explain.Within(c.Word); len(within) {
		case 0:
		case 1:
			return explained{within[0]}, nil
		default:
			return severalExplained(within), nil
		}
		var words []string
		for _, w := range explain.Words() {
			words = append(words, w.Word)
		}
		hint := "heartbeat explain lists the words; heartbeat help lists topics and commands"
		if _, err := strconv.Atoi(c.Word); err == nil {
			hint = "heartbeat help exit-codes lists the exit codes"
		}
		if near := config.Nearest(c.Word, words); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, ", ") + "?"
		}
		return nil, usagef(hint, "%q is not a word that heartbeat explains", c.Word)
	}
	return explained{w}, nil
}

func (e explained) text(p *page) {
	p.coloured(p.cyan, e.Word.Word)
	p.printf(" (%s)\n\n", strings.Join(e.Of, ", "))
	for _, part := range [][2]string{{"", e.Means}, {"then  ", e.Then}, {"do    ", e.Do}} {
		for i, line := range wrap(part[1], p.prose()-len(part[0])) {
			label := part[0]
			if i > 0 {
				label = strings.Repeat(" ", len(label))
			}
			p.coloured(p.dim, label)
			p.printf("%s\n", line)
		}
		if part[0] == "" {
			p.printf("\n")
		}
	}
}

func (e severalExplained) text(p *page) {
	for i, w := range e {
		if i > 0 {
			p.printf("\n")
		}
		explained{w}.text(p)
	}
}

func (e explanations) text(p *page) {
	var rows [][]cell
	for _, w := range e {
		rows = append(rows, plain(w.Word, w.Of[0], w.Means))
	}
	header := []string{"WORD", "OF", "MEANS"}
	if p.columns == 0 {
		p.table(header, rows) // each in one line: others search in it
	} else {
		p.telling(header, rows)
	}
	p.printf("\n")
	p.saidf("heartbeat explain WORD says what follows, and what to type.")
}

// wordOffers are the words as completions.
func wordOffers() (found offers) {
	for _, w := range explain.Words() {
		found = append(found, offer{w.Word, strings.Join(w.Of, ", ")})
	}
	return found
}

// elsewhere are commands of other programs, and what does the same here.
var elsewhere = map[string]string{
	"ps": "heartbeat status", "ls": "heartbeat status", "list": "heartbeat status", "top": "heartbeat status --watch", "agents": "heartbeat status",
	"up": "heartbeat run", "start": "heartbeat run",
	"down": "heartbeat stop", "quit": "heartbeat stop",
	"outbox": "heartbeat replies", "reply": "heartbeat replies", "queue": "heartbeat inbox", "log": "heartbeat logs", "tail": "heartbeat logs -f",
	"exec": "heartbeat attach AGENT", "enter": "heartbeat attach AGENT", "plan": "heartbeat diff", "check": "heartbeat doctor, or heartbeat validate for the file",
	"config": "heartbeat validate", "unpause": "heartbeat resume AGENT", "kill": "heartbeat cancel AGENT", "abort": "heartbeat cancel AGENT", "interrupt": "heartbeat cancel AGENT", "fire": "heartbeat trigger AGENT", "watch": "heartbeat status --watch",
}
