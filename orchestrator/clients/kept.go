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

// mostKept limits how many results are kept: clients that update themselves leave some.
const mostKept = 16

// Keep records the result of a program's probe, for all fleets of this user. One that
// says nothing of the client is not kept.
func Keep(p Program, r probe.Result) error {
	if r.Verdict() == probe.Unknown || p.ID == "" {
		return nil
	}
	path, err := state.OfClient(p.ID)
	if err == nil {
		err = state.Save(path, r)
	}
	if err != nil {
		return err
	}
	return prune(filepath.Dir(path))
}

// Recall returns the result of a program's last probe; nil where there was none.
func Recall(p Program) (*probe.Result, error) {
	if p.ID == "" {
		return nil, nil
	}
	path, err := state.OfClient(p.ID)
	if err != nil {
		return nil, err
	}
	r := new(probe.Result)
	err = state.Load(path, r)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, state.ErrDamaged) {
		return nil, nil // it is probed again
	}
	return r, err
}

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
