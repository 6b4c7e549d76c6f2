package clients

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"heartbeat/orchestrator/probe"
	"heartbeat/orchestrator/state"
)

// folder is in a state directory: ID.json is the result of a probe.
const folder = "clients"

// mostKept limits how many are kept: clients that update themselves leave some.
const mostKept = 16

// Keep records the result of a program's probe. One that says nothing of the client is
// not kept.
func Keep(stateDir string, p Program, r probe.Result) error {
	if r.Verdict() == probe.Unknown || p.ID == "" {
		return nil
	}
	if err := state.Save(path(stateDir, p), r); err != nil {
		return err
	}
	return prune(filepath.Join(stateDir, folder))
}

// Recall returns the result of a program's last probe; nil where there was none.
func Recall(stateDir string, p Program) (*probe.Result, error) {
	r := new(probe.Result)
	err := state.Load(path(stateDir, p), r)
	switch {
	case p.ID == "" || errors.Is(err, fs.ErrNotExist) || errors.Is(err, state.ErrDamaged):
		return nil, nil // it is probed again
	case err != nil:
		return nil, err
	}
	return r, nil
}

func path(stateDir string, p Program) string { return filepath.Join(stateDir, folder, p.ID+".json") }

// prune removes the oldest results.
func prune(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) <= mostKept {
		return err
	}
	age := func(e os.DirEntry) int64 {
		info, err := e.Info()
		if err != nil {
			return 0
		}
		return info.ModTime().UnixNano()
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return int(min(max(age(a)-age(b), -1), 1)) })
	for _, e := range entries[:len(entries)-mostKept] {
		err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
	}
	return err
}
