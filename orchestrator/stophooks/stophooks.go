// Package stophooks remembers which Stop hooks that are not ours have had a client
// go on. Each was seen to, by the transcript's record of a Stop: whether a hook
// blocks stands nowhere else. A hook is known by its command line, in whichever
// agent it was seen; what stands here is out of the agents' reach.
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

	"heartbeat/hook"
	"heartbeat/orchestrator/state"
)

// Present are the Stop hooks beside ours that an agent's client calls.
type Present struct {
	Commands []string
	// Opaque is true where there may be more, or one is no command.
	Opaque bool
}

// Any reports whether there are any, or may be.
func (p Present) Any() bool { return len(p.Commands) > 0 || p.Opaque }

// Hook is one that has had a client go on.
type Hook struct {
	// Command is its command line, or hook.UnknownHook.
	Command string `json:"command"`
	// Agents are the keys of the agents in which it did, the last ones.
	Agents []string  `json:"agents"`
	Since  time.Time `json:"since"`
}

// Memory is what a fleet knows. It may be used from several goroutines; another
// process only reads it.
type Memory struct {
	path string
	mu   sync.Mutex
}

// Of is the memory in a state directory.
func Of(stateDir string) *Memory {
	return &Memory{path: filepath.Join(stateDir, "foreign-stop-hooks.json")}
}

// maxHooks and maxAgents bound what is kept: agents can write such hooks.
const (
	maxHooks  = 256
	maxAgents = 64
)

// file is the memory on disk; its keys are hashes of command lines.
type file struct {
	Hooks map[string]Hook `json:"hooks"`
}

func (m *Memory) load() (file, error) {
	f := file{}
	err := state.Load(m.path, &f)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, state.ErrDamaged) {
		f, err = file{}, nil // it is learned anew
	}
	if f.Hooks == nil {
		f.Hooks = map[string]Hook{}
	}
	return f, err
}

// Learn remembers command lines that had an agent's client go on, and returns
// those that were not known for it.
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
		if known && slices.Contains(h.Agents, agent) || !known && len(f.Hooks) >= maxHooks {
			continue
		}
		if !known {
			h = Hook{Command: command, Since: now}
		}
		h.Agents = append(h.Agents[max(0, len(h.Agents)-maxAgents+1):], agent)
		f.Hooks[key], anew = h, append(anew, command)
	}
	if len(anew) == 0 {
		return nil, nil
	}
	return anew, state.Save(m.path, f)
}

func keyOf(command string) string {
	sum := sha256.Sum256([]byte(command))
	return hex.EncodeToString(sum[:8])
}

// Gates returns which of the hooks that an agent's client calls are known to
// have had one go on.
func (m *Memory) Gates(agent string, p Present) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.load()
	if err != nil || !p.Any() {
		return nil, err
	}
	var gates []string
	for _, h := range f.Hooks {
		unseen := p.Opaque || h.Command == hook.UnknownHook
		if slices.ContainsFunc(p.Commands, func(c string) bool { return hook.ShownCommand(c) == h.Command }) ||
			unseen && slices.Contains(h.Agents, agent) {
			gates = append(gates, h.Command)
		}
	}
	slices.SortFunc(gates, strings.Compare)
	return gates, nil
}
