package claim

import (
	"errors"
	"fmt"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/flock"
	"heartbeat/hook/process"
	"heartbeat/orchestrator/owner"
)

// HeldError means that another scheduler runs the directories of agents.
type HeldError struct {
	Agents []string
	Dir    string // of the first one
	// PID is the other scheduler's, or 0 if that is not known; By is which fleet
	// ran the directory last, as recorded there.
	PID int
	By  owner.Origin
}

// heldError is about one agent.
func heldError(c *config.Agent) *HeldError {
	by := owner.OriginOf(c)
	by.Agent = "" // it is about the fleet
	return &HeldError{Agents: []string{c.Name}, Dir: c.Dir, PID: flock.Holder(c.Dir), By: by}
}

// Joined is errors.Join, but with one error for each other scheduler.
func Joined(errs []error) error {
	type other struct {
		pid int
		by  owner.Origin
	}
	var all []error
	first := map[other]*HeldError{}
	for _, err := range errs {
		e, ok := errors.AsType[*HeldError](err)
		if !ok {
			all = append(all, err)
			continue
		}
		if f := first[other{e.PID, e.By}]; f != nil {
			f.Agents = append(f.Agents, e.Agents...)
			continue
		}
		first[other{e.PID, e.By}] = e
		all = append(all, e)
	}
	return errors.Join(all...)
}

// shownHeld is how many agents of a long list are named.
const shownHeld = 5

// Error names the agents and who runs them.
func (e *HeldError) Error() string {
	who := "another heartbeat" + process.Numbered(e.PID)
	text := fmt.Sprintf("cannot lock the directory of agent %q: %s runs in %q", e.Agents[0], who, e.Dir)
	if n := len(e.Agents); n > 1 {
		names := strings.Join(e.Agents[:min(n, shownHeld)], ", ")
		if n > shownHeld {
			names += ", …"
		}
		text = fmt.Sprintf("cannot lock the directories of %d agents (%s): %s runs them", n, names, who)
	}
	if e.By.File != "" {
		text += fmt.Sprintf("; its fleet is %q, its state is in %q", e.By.File, e.By.StateDir)
	}
	return text
}

// Hint says what to do.
func (e *HeldError) Hint() string {
	stop := e.By.Command() + " stop"
	switch {
	case e.By.File == "" && e.PID > 0:
		stop = fmt.Sprintf("heartbeat stop where the other one's file is, or kill %d", e.PID)
	case e.By.File == "":
		stop = "heartbeat stop where the other one's file is"
	}
	return stop + " ends the other one; one directory has one consumer"
}
