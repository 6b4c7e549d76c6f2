package main

import (
	"cmp"
	"fmt"
	"time"

	"heartbeat/hook/settings"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
)

// tellStop tells people what a run has done, and why it has ended.
func (a *app) tellStop(sum *status.Summary, why string, took time.Duration) {
	done, dead, queued := sum.Totals()
	text := fmt.Sprintf("heartbeat stopped after %s (%s): %s done", status.Span(took), why, count(done, "prompt"))
	if dead > 0 {
		text += fmt.Sprintf(", %d given up", dead)
	}
	if queued > 0 {
		text += fmt.Sprintf(", %d still queued", queued)
	}
	var cost usage.Sum
	for _, s := range sum.Agents {
		cost = cost.Plus(s.Spent)
	}
	if cost != (usage.Sum{}) {
		text += "; cost " + cost.Price()
	}
	a.tell(func(p *page) { p.printf("%s\n", text) })
}

// suggestion is a command that may fit after a run, and what it is for.
type suggestion struct {
	fits          bool
	command, what string
}

// mostSuggested is how many of them are printed.
const mostSuggested = 3

// next says what to type after a run.
func (r ran) next(p *page) {
	done, dead, queued := r.Totals()
	first := "AGENT"
	if len(r.Agents) > 0 {
		first = settings.Quote(r.Agents[0].Agent)
	}
	var all []suggestion
	widest := 0
	for _, s := range []suggestion{
		{dead > 0, "dead-letter", "what was given up, and why"},
		{queued > 0 || len(r.Troubles) > 0, "status", "what is left, and what needs you"},
		{done > 0, "replies", "the answers in full"},
		{done+dead+queued == 0, "send " + first + ` "Say hello."`, "queue a prompt"},
		{r.Verdict != "", "run", "until Ctrl-C; triggers fire at their times"},
		{r.Verdict == "", "run", "go on where it has stopped"},
		{done > 0, "history", "how the sessions went"},
	} {
		if s.fits && len(all) < mostSuggested {
			s.command = withOurs(p.ours, "heartbeat "+s.command)
			all, widest = append(all, s), max(widest, width(s.command))
		}
	}
	p.printf("\nNext:\n")
	for _, s := range all {
		p.printf("    %s", s.command)
		if room := cmp.Or(p.columns, pageColumns); widest+len("       # ")+width(s.what) <= room {
			p.printf("%*s", widest-width(s.command)+2, "")
			p.coloured(p.dim, " # "+s.what)
		}
		p.printf("\n")
	}
}
