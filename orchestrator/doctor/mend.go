package doctor

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/store"
)

// repair is what Mend can do about a finding.
type repair int

const (
	nothing    repair = iota
	chmod             // make the hook program executable
	applying          // as `heartbeat apply`; which program hooks name depends on chmod
	recovering        // as `heartbeat recover`
	sweeping          // remove temporary files
	ending            // end what is left of dead sessions
)

// Mended is a repair that was tried.
type Mended struct {
	Agent string `json:"agent,omitempty"`
	// Codes are the findings that it is for.
	Codes []string `json:"codes"`
	Done  string   `json:"done"`
	Error string   `json:"error,omitempty"`
}

// endGrace is how long what is left of a session gets from SIGTERM to SIGKILL.
const endGrace = 5 * time.Second

// Mend does the repairs of the findings that are fixable, each once for each
// agent. The facts are out of date afterwards.
func Mend(ctx context.Context, f *Facts, found []Finding) []Mended {
	type key struct {
		agent string
		what  repair
	}
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b Finding) int { return cmp.Compare(a.mend, b.mend) })
	agents := map[string]*Agent{}
	for _, a := range f.Agents {
		agents[a.Config.Name] = a
	}
	at := map[key]int{}
	var all []Mended
	for _, one := range found {
		if one.mend == nothing {
			continue
		}
		k := key{one.Agent, one.mend}
		if i, ok := at[k]; ok {
			all[i].Codes = append(all[i].Codes, one.Code)
			continue
		}
		at[k] = len(all)
		done, err := mend(ctx, f, agents[one.Agent], one.mend)
		m := Mended{Agent: one.Agent, Codes: []string{one.Code}, Done: done}
		if err != nil {
			m.Error = err.Error()
		}
		all = append(all, m)
	}
	return all
}

func mend(ctx context.Context, f *Facts, a *Agent, what repair) (done string, err error) {
	switch what {
	case chmod:
		return "made the hook program executable", a.makeExecutable()
	case applying:
		return "applied", a.apply()
	case recovering:
		outcome, _, err := queue.Recover(ctx, queue.OfAgent(a.Config, ""))
		return "recovered: " + string(outcome), err
	case sweeping:
		return "removed temporary files", sweep(f, a)
	case ending:
		err := adopt.Use(ctx, f.StateDir, func(s *store.Store) error {
			_, err := session.SweepLeftovers(ctx, s, f.StateDir, "", endGrace)
			return err
		})
		if _, held := errors.AsType[*store.HeldError](err); held { // the run records what they have cost
			_, err = session.SweepLeftovers(ctx, nil, f.StateDir, "", endGrace)
		}
		return "ended what was left of dead sessions", err
	case nothing:
	}
	return "", nil
}

// makeExecutable changes our own programs only: any other path in a settings
// file may be the agent's wish.
func (a *Agent) makeExecutable() error {
	var errs []error
	for _, h := range a.Hooks {
		if p := h.Program; p.Mendable && !p.Missing && !p.Executable {
			info, err := os.Lstat(p.Path)
			if err == nil && info.Mode().IsRegular() {
				err = os.Chmod(p.Path, info.Mode().Perm()|0o100)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// sweep removes the temporary files that were found.
func sweep(f *Facts, a *Agent) error {
	paths, below := f.StateTemps, ""
	if a != nil {
		paths, below = a.Queue.Temps, a.Config.Dir
	}
	var errs []error
	for _, path := range paths {
		folder, err := durable.OpenBelow(below, filepath.Dir(path))
		if err == nil {
			err = errors.Join(folder.Remove(filepath.Base(path)), folder.Close())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
