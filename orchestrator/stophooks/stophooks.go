// Package stophooks remembers which Stop hooks that are not ours have continued a
// client. Each was seen to do so in the transcript's record of a Stop: nothing else
// says whether a hook blocks. An agent can write that record, so one agent's word
// counts only for itself; a hook is known for all by its command line once a second
// agent has seen it. This memory is out of the agents' reach.
package stophooks

import (
	"fmt"
	"slices"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/orchestrator/store"
)

// Present are the Stop hooks beside ours that an agent's client calls.
type Present struct {
	Commands []string
	// Opaque is true if there may be more, or one is not a command.
	Opaque bool
}

// Any reports whether there are any, or may be.
func (p Present) Any() bool { return len(p.Commands) > 0 || p.Opaque }

// calls reports whether one of them is the hook that is remembered as command.
func (p Present) calls(command string) bool {
	return slices.ContainsFunc(p.Commands, func(c string) bool { return handover.ShownCommand(c) == command })
}

// maxOfAgent limits how many hooks are kept on one agent's word: agents can make
// them up. A hook seen in enough agents is believed for all.
const (
	maxOfAgent = 32
	enough     = 2
)

// Learn remembers command lines that continued the client of the agent with a key, and
// returns those that were not known for it.
func Learn(c *store.Change, agent string, commands []string, now time.Time) (anew []string, err error) {
	for _, command := range commands {
		seen, err := seenIn(&c.View, command)
		if err != nil {
			return nil, err
		}
		var kept int
		if _, err := c.One(`SELECT COUNT(*) FROM stop_hooks WHERE agent = $1`, []any{agent}, &kept); err != nil {
			return nil, err
		}
		if slices.Contains(seen, agent) || countsForAll(command, seen) || kept >= maxOfAgent {
			continue
		}
		if err := Keep(c, command, agent, now); err != nil {
			return nil, err
		}
		anew = append(anew, command)
	}
	return anew, nil
}

// Keep keeps that a hook has continued the client of the agent with a key, unless that is kept.
func Keep(c *store.Change, command, agent string, since time.Time) error {
	_, err := c.Do(`INSERT INTO stop_hooks (hook, agent, since) VALUES ($1, $2, $3) ON CONFLICT (hook, agent) DO NOTHING`, command, agent, store.Millis(since))
	if err != nil {
		return fmt.Errorf("cannot remember a Stop hook: %w", err)
	}
	return nil
}

// seenIn returns the keys of the agents whose clients a hook has continued.
func seenIn(v *store.View, command string) (agents []string, err error) {
	err = v.Each(`SELECT agent FROM stop_hooks WHERE hook = $1`, []any{command}, func(scan store.Scan) error {
		var agent string
		err := scan(&agent)
		agents = append(agents, agent)
		return err
	})
	return agents, err
}

// countsForAll reports whether a hook has continued the clients of so many agents that it
// counts for all. One without a name may be a different one in each of them.
func countsForAll(command string, agents []string) bool {
	return command != client.UnknownHook && len(agents) >= enough
}

// Gates returns which of the hooks that the client of the agent with a key calls are known to
// have continued one. Hooks that cannot be seen there were seen in this agent.
func Gates(v *store.View, agent string, p Present) ([]string, error) {
	return find(v, p, func(command string, agents []string) bool {
		unseen := p.Opaque || command == client.UnknownHook
		if slices.Contains(agents, agent) {
			return unseen || p.calls(command)
		}
		return countsForAll(command, agents) && p.calls(command)
	})
}

// Seen returns those that have continued a client of any agent.
func Seen(v *store.View, p Present) ([]string, error) {
	return find(v, p, func(command string, _ []string) bool { return p.calls(command) })
}

// find returns the hooks that match, in the order of their names, by the keys of the agents
// whose clients they have continued.
func find(v *store.View, p Present, match func(command string, agents []string) bool) (found []string, err error) {
	if !p.Any() {
		return nil, nil
	}
	known, err := All(v)
	for _, h := range known {
		if match(h.Command, h.Agents) {
			found = append(found, h.Command)
		}
	}
	return found, err
}

// Hook is one that has continued a client.
type Hook struct {
	// Command is its command line, or client.UnknownHook.
	Command string
	// Agents are the keys of the agents in which it did.
	Agents []string
	// Since is when it was seen first.
	Since time.Time
}

// All returns the hooks that are remembered, in the order of their command lines.
func All(v *store.View) (all []Hook, err error) {
	err = v.Each(`SELECT hook, agent, since FROM stop_hooks ORDER BY hook, since, agent`, nil, func(scan store.Scan) error {
		var command, agent string
		var since int64
		if err := scan(&command, &agent, &since); err != nil {
			return err
		}
		if len(all) == 0 || all[len(all)-1].Command != command {
			all = append(all, Hook{Command: command, Since: store.Time(since)})
		}
		last := &all[len(all)-1]
		last.Agents = append(last.Agents, agent)
		return nil
	})
	return all, err
}
