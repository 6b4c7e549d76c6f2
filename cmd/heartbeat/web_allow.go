package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
)

// Allow implements webpage.Act: an agent may use what it was refused in its last session. It is
// written into the fleet's file, as a person would, and the file is loaded; what cannot be loaded
// is taken back.
func (w *web) Allow(_ context.Context, agent, rule string) (string, error) {
	s, err := w.reached()
	if err != nil {
		return "", err
	}
	w.allows.Lock()
	defer w.allows.Unlock()
	a, err := w.agent(agent)
	if err != nil {
		return "", err
	}
	refused := slices.ContainsFunc(s.Snapshot(), func(now status.AgentState) bool {
		return now.Agent == agent && slices.ContainsFunc(now.Denied, func(d session.Denied) bool { return d.Rule == rule })
	})
	switch {
	case slices.Contains(a.Permissions.Allow, rule):
		return agent + " may use " + rule + " already", nil
	case !refused:
		return "", fmt.Errorf("cannot allow %s: agent %q was not refused it in its last session", rule, agent)
	case s.Unloaded() != nil:
		return "", fmt.Errorf("cannot allow %s: the fleet's file has changes that are not loaded: reload it first", rule)
	}
	taken, err := allowIn(a, rule)
	if err == nil {
		if _, err = s.Reload(); err != nil {
			err = fmt.Errorf("the fleet's file cannot be loaded with it, and is as it was: %w", err)
			if undone := taken(); undone != nil {
				err = fmt.Errorf("%w; it could not be taken back: %w", err, undone)
			}
		}
	}
	if err != nil {
		return "", fmt.Errorf("cannot allow %s; heartbeat edit %s, typed where the fleet runs, opens the file: %w", rule, agent, err)
	}
	return agent + " may use " + rule + ", from its next session on", nil
}

// allowIn writes a rule into the file in which an agent is declared. undo writes back what was
// there, unless somebody has changed it since.
func allowIn(a *config.Agent, rule string) (undo func() error, err error) {
	path, err := filepath.EvalSymlinks(a.File)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o200 == 0 {
		return nil, fmt.Errorf("%s is not to be written", path)
	}
	text, err := durable.Read(path, config.MaxFile)
	if err != nil {
		return nil, err
	}
	changed, err := config.AllowRule(text, a.Name, a.Permissions, rule)
	if err != nil {
		return nil, err
	}
	return func() error { return durable.ReplaceIf(path, changed, text) }, durable.ReplaceIf(path, text, changed)
}
