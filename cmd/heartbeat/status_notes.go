package main

import (
	"heartbeat/config"
	"heartbeat/orchestrator/status"
)

// notes print what stands below the table: what takes a while, what triggers were
// refused, and what agents said last.
func (s statusPage) notes(p *page) {
	for _, a := range s.Agents {
		if note := a.Note(s.now); note != "" {
			p.saidf("%s: %s", a.Agent, note)
		}
		for _, text := range a.Refusals(s.now) {
			p.saidf("%s: %s", a.Agent, text)
		}
		if a.Line != nil {
			p.printf("%s\n", shorten(a.Agent+" "+a.Line.Words(s.now), saidColumns(p)))
		}
	}
}

// saidColumns is how wide the line is that shows what an agent said last.
func saidColumns(p *page) int {
	if p.columns == 0 {
		return 160
	}
	return max(p.columns, leastColumns)
}

// addLines adds what agents with a live session said last.
func addLines(fleet *config.Fleet, stateDir string, all *status.Fleet) {
	for i := range all.Agents {
		if a := &all.Agents[i]; a.Phase != "" && a.State != status.Stopped {
			a.Line = lineOf(fleet.Agents[i], stateDir)
		}
	}
}
