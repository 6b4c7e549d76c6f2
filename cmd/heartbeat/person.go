package main

import (
	"fmt"
	"os"

	"heartbeat/orchestrator/person"
)

// personal is a command that an agent's session may not run, or not with these
// arguments: act says what it would do, or "" where a session may.
type personal interface{ act() string }

// checkPerson refuses an act that only a person may do if this process is nobody's, as room
// person tells. A running scheduler checks its clients the
// same way; this is for acts without one.
func checkPerson(c command) error {
	p, ok := c.(personal)
	if !ok || p.act() == "" {
		return nil
	}
	err := person.Check(os.Getpid(), "")
	if err != nil {
		return &failure{exitError, hintOf(err), fmt.Errorf("cannot %s: %w", p.act(), err)}
	}
	return nil
}

func (resumeCmd) act() string  { return "resume an agent" }
func (restartCmd) act() string { return "restart a session" }
func (cancelCmd) act() string  { return "cancel a turn" }
func (stopCmd) act() string    { return "stop the scheduler" }
func (reloadCmd) act() string  { return "load the configuration" }
func (recoverCmd) act() string { return "recover an entry" }
func (restoreCmd) act() string { return "restore a backup" }

func (c applyCmd) act() string   { return unlessDry(c.DryRun, "apply a configuration") }
func (c unapplyCmd) act() string { return unlessDry(c.DryRun, "undo a configuration") }

func unlessDry(dry bool, what string) string {
	if dry {
		return ""
	}
	return what
}

// Reading is nobody's act: a session has the rights of its user, and finds in the state
// directory and the client's records what any command shows.
func (c attachCmd) act() string { return unlessDry(c.ReadOnly, "join a session") }

func (c answerCmd) act() string {
	if c.Answer == "" {
		return ""
	}
	return "answer for a queue"
}

// The scheduler runs the check, as it runs what the fleet's file says.
func (c sendCmd) act() string {
	if c.UntilCheck == "" {
		return ""
	}
	return "queue a prompt with --until-check"
}

func (c doctorCmd) act() string {
	if !c.Fix {
		return ""
	}
	return "repair a fleet"
}

func (c serviceCmd) act() string {
	if c.Action == "install" || c.Action == "uninstall" {
		return c.Action + " a service"
	}
	return ""
}

func (c pageCmd) act() string {
	switch c.Action {
	case "link":
		return "make a link to the page"
	case "token":
		return "make a token"
	}
	return unlessDry(c.Action != "revoke", "revoke a token")
}

// The action may come before the agent.
func (c deadLetterCmd) act() string {
	for _, word := range []string{c.Agent, c.Action} {
		if word == "retry" || word == "purge" {
			return word + " a dead letter"
		}
	}
	return ""
}

func (c inboxCmd) act() string {
	if c.Agent == "drop" || c.Action == "drop" {
		return "drop a prompt"
	}
	return ""
}
