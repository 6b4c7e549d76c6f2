package main

import (
	"fmt"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/logs"
	"heartbeat/orchestrator/status"
)

// webLines keeps what agents said or did last, for the page, which asks each second: a
// conversation is read again while its session lives, and once more after that.
type webLines struct {
	mu sync.Mutex
	of map[string]lastLine // :: agent's folder
}

type lastLine struct {
	state string // of the agent when it was read
	at    time.Time
	line  *status.Line
}

const (
	// mostLines is of how many agents it is known what they said last.
	mostLines = 200
	// lineLasts is how long it may be shown while a session lives, lineSettles how long a
	// client may take to write down its last words.
	lineLasts   = 2 * time.Second
	lineSettles = 5 * time.Second
)

// add adds what the first agents of a fleet said or did last, in their live session or in the
// one before.
func (w *webLines) add(fleet *config.Fleet, stateDir string, all *status.Fleet, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil || len(w.of) > 2*mostLines {
		w.of = map[string]lastLine{}
	}
	for i, agent := range fleet.Agents[:min(len(fleet.Agents), mostLines)] {
		a := &all.Agents[i]
		state := fmt.Sprint(a.State, a.Since, a.Session, a.Phase)
		last, known := w.of[agent.Home]
		live := a.Phase != "" && a.State != status.Stopped || now.Sub(a.Since) < lineSettles
		if !known || last.state != state || live && now.Sub(last.at).Abs() > lineLasts {
			last = lastLine{state: state, at: now, line: lineOf(agent, stateDir)}
			w.of[agent.Home] = last
		}
		a.Line = last.line
	}
}

// lineOf is what an agent said or did last; nil: nothing is known.
func lineOf(agent *config.Agent, stateDir string) *status.Line {
	l := logs.LastLine(agent, stateDir)
	if l == nil {
		return nil
	}
	return status.LineOf(l.At, l.Name.Raw(), l.Gist().Raw())
}
