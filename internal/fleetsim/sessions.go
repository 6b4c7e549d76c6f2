package main

import (
	"path/filepath"
	"sync"
	"time"

	"heartbeat/internal/promise"
	"heartbeat/orchestrator/session/sessiontest"
)

// crew are the fleet's sessions, and what they were given.
type crew struct {
	*sessiontest.Crew

	mu    sync.Mutex
	given promise.Record
	taken map[string]bool // by the names of fires
}

func newCrew(lasts func() time.Duration) *crew {
	c := &crew{taken: map[string]bool{}}
	c.Crew = sessiontest.NewCrew(lasts, c.took)
	return c
}

// took notes what a session was given.
func (c *crew) took(e sessiontest.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken[e.Source] = true
	c.given = append(c.given, promise.Fact{
		At: e.At, Kind: promise.Given, Agent: e.Agent, Session: e.Session, Prompt: e.Source, Text: promise.Text(e.Prompt), Attempt: e.Attempt,
	})
}

// stateDir is where a scenario's scheduler keeps its state.
func (s settings) stateDir(sc scenario) string { return filepath.Join(s.dir, "state", sc.name) }
