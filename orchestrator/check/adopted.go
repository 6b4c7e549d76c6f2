package check

import (
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// Adopted is what was known of the checks of an entry where its queue was kept before.
type Adopted struct {
	Demand *Demand
	Passed *Passed      // nil: no check waits for people
	Vain   *status.Vain // the checks in a row that gave no answer; nil: none
}

// Passed is a check that has passed, and waits for people. Definition and Files are digests of
// what had to be passed, and of the agent's files after it.
type Passed struct {
	Check                     int
	Definition, Output, Files string
	Took                      time.Duration
	At                        time.Time
}

// Keep records it, in the transaction that adds the entry.
func (a Adopted) Keep(c *store.Change, k queue.Key) error {
	if a.Demand != nil {
		if err := a.Demand.Keep(c, k); err != nil {
			return err
		}
	}
	if p := a.Passed; p != nil {
		if err := (pass{p.Check, p.Definition, queue.CleanOutput(p.Output), p.Files, p.Took, p.At}).keep(c, k); err != nil {
			return err
		}
	}
	if a.Vain == nil {
		return nil
	}
	return keepVain(c, k, a.Vain)
}

// About is the Ask.About of an entry.
func About(v *store.View, a *config.Agent, e queue.Entry) (string, error) {
	s, err := read(v, a, e)
	if err != nil {
		return "", err
	}
	return s.shown(), nil
}
