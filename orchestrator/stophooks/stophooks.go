// Package stophooks remembers which Stop hooks that are not ours have continued a
// client. Each was seen to do so in the transcript's record of a Stop: nothing else
// says whether a hook blocks. An agent can write that record, so one agent's word
// counts only for itself; a hook is known for all by its command line once a second
// agent has seen it. This memory is out of the agents' reach.
package stophooks

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/orchestrator/state"
)

// Present are the Stop hooks beside ours that an agent's client calls.
type Present struct {
	Commands []string
	// Opaque is true if there may be more, or one is not a command.
	Opaque bool
}

// Any reports whether there are any, or may be.
func (p Present) Any() bool { return len(p.Commands) > 0 || p.Opaque }

// Hook is one that has continued a client.
type Hook struct {
	// Command is its command line, or client.UnknownHook.
	Command string `json:"command"`
	// Agents are the keys of the agents in which it did, the last ones.
	Agents []string  `json:"agents"`
	Since  time.Time `json:"since"`
}

// Memory is what a fleet knows. Several goroutines may use it; another process only
// reads it.
type Memory struct {
	path string
	mu   sync.Mutex
}

// Of returns the memory in a state directory.
func Of(stateDir string) *Memory {
	return &Memory{path: filepath.Join(stateDir, "foreign-stop-hooks.json")}
}

// maxOfAgent limits how many hooks are kept on one agent's word: agents can make
// them up. A hook seen in enough agents is believed for all.
const (
	maxOfAgent = 32
	enough     = 2
)

// file is the memory on disk; its keys are hashes of command lines.
type file struct {
	Hooks map[string]Hook `json:"hooks"`
}

func (m *Memory) load() (file, error) {
	f := file{}
	err := state.Load(m.path, &f)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, state.ErrDamaged) {
		f, err = file{}, nil // it is learned again
	}
	if f.Hooks == nil {
		f.Hooks = map[string]Hook{}
	}
	return f, err
}

// Learn remembers command lines that continued an agent's client, and returns those
// that were not known for it.
func (m *Memory) Learn(agent string, commands []string, now time.Time) (anew []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.load()
	if err != nil {
		return nil, fmt.Errorf("cannot remember a Stop hook: %w", err)
	}
	for _, command := range commands {
		key := keyOf(command)
		h, known := f.Hooks[key]
		if h.knownFor(agent) || f.of(agent) >= maxOfAgent {
			continue
		}
		if !known {
			h = Hook{Command: command, Since: now}
		}
		h.Agents = append(h.Agents, agent)
		f.Hooks[key], anew = h, append(anew, command)
	}
	if len(anew) == 0 {
		return nil, nil
	}
	return anew, state.Save(m.path, f)
}

// knownFor reports whether a hook is known to have continued an agent's client, or
// the clients of so many others that it counts for all. One without a name may be a
// different one in each of them.
func (h Hook) knownFor(agent string) bool {
	return slices.Contains(h.Agents, agent) || h.Command != client.UnknownHook && len(h.Agents) >= enough
}

// of returns how many hooks are kept on an agent's word.
func (f file) of(agent string) (n int) {
	for _, h := range f.Hooks {
		if slices.Contains(h.Agents, agent) {
			n++
		}
	}
	return n
}

func keyOf(command string) string {
	sum := sha256.Sum256([]byte(command))
	return hex.EncodeToString(sum[:8])
}

// Gates returns which of the hooks that an agent's client calls are known to have
// continued one. Hooks that cannot be seen there were seen in this agent.
func (m *Memory) Gates(agent string, p Present) ([]string, error) {
	return m.find(p, func(h Hook, called bool) bool {
		unseen := p.Opaque || h.Command == client.UnknownHook
		return called && h.knownFor(agent) || unseen && slices.Contains(h.Agents, agent)
	})
}

// Seen returns those that have continued a client of any agent.
func (m *Memory) Seen(p Present) ([]string, error) {
	return m.find(p, func(_ Hook, called bool) bool { return called })
}

// find returns the hooks that match; called says that p names one.
func (m *Memory) find(p Present, match func(h Hook, called bool) bool) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.load()
	if err != nil || !p.Any() {
		return nil, err
	}
	var found []string
	for _, h := range f.Hooks {
		called := slices.ContainsFunc(p.Commands, func(c string) bool { return handover.ShownCommand(c) == h.Command })
		if match(h, called) {
			found = append(found, h.Command)
		}
	}
	slices.SortFunc(found, strings.Compare)
	return found, nil
}
