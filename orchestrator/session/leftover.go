package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/durable"
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
	"heartbeat/ptyrun"
)

// Leftover is what may be killed if a session's shim died without ending it. It is
// in the state directory, where the agent does not reach it by accident.
type Leftover struct {
	Agent   string       `json:"agent"`
	Session string       `json:"session"`
	Cookie  string       `json:"cookie"` // the session's token
	Shim    hook.Process `json:"shim"`
	Group   string       `json:"group,omitempty"` // the control group, as ptyrun.PlanGroup names it
	At      time.Time    `json:"at"`
	Home    string       `json:"home,omitempty"` // where its record is
	// Grace is the session's own, from SIGTERM to SIGKILL; 0: not recorded.
	Grace time.Duration `json:"grace,omitempty"`
	// Bill are records of what it has cost that may not have been written: those from which
	// another process can go on counting. With Closed they are all that there are: the
	// session has ended in order, and only its scheduler took no more of them.
	Bill   []usage.Record `json:"bill,omitempty"`
	Closed bool           `json:"closed,omitempty"`

	path string
}

// Remains returns what identifies the session's processes.
func (l Leftover) Remains() ptyrun.Remains {
	return ptyrun.Remains{Cookie: l.Cookie, StartedAfter: l.Shim.Start, Group: l.Group}
}

func leftoverPath(stateDir, session string) string {
	return filepath.Join(stateDir, "live", filepath.Base(session)+".json")
}

func (s *shim) keepLeftover() error {
	l := Leftover{
		Agent: s.spec.Agent, Session: s.spec.Session, Cookie: s.spec.Token,
		Shim: s.record.Shim, Group: s.term.group, At: s.record.StartedAt, Home: s.spec.Home, Grace: s.spec.Grace,
		Bill: s.bill.toKeep(), Closed: s.bill.closed,
	}
	data, err := json.Marshal(l)
	if err != nil {
		return err
	}
	path := leftoverPath(s.spec.StateDir, s.spec.Session)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot note the session's processes: %w", err)
	}
	return durable.Replace(path, data)
}

// dropLeftover forgets the session. Where not all that it cost is written, the note stays,
// with that, so that whoever sweeps writes it.
func (s *shim) dropLeftover() error {
	err := dropSettings(s.spec.StateDir, s.spec.Agent)
	if s.bill.owes() {
		return errors.Join(err, s.keepLeftover())
	}
	return errors.Join(err, remove(leftoverPath(s.spec.StateDir, s.spec.Session)))
}

// remove removes a file, if it is there.
func remove(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// sweepsAtOnce limits how many sessions' processes are ended at the same time: each
// looks at all processes until none is left.
const sweepsAtOnce = 8

// SweepLeftovers ends what is left of sessions whose shim is gone, for one
// agent or, with "", for all, several at once, and returns what it ended.
// Sessions whose shim lives are left alone. Grace is for those that have not
// noted their own. What they have cost is written into bills; nil: somebody else does
// that later.
func SweepLeftovers(ctx context.Context, bills *store.Store, stateDir, agent string, grace time.Duration) ([]Leftover, error) {
	leftovers, err := readLeftovers(stateDir, agent)
	errs := make([]error, len(leftovers))
	var sweeps sync.WaitGroup
	free := make(chan struct{}, sweepsAtOnce)
	for i, l := range leftovers {
		if l.Closed {
			continue
		}
		sweeps.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			_, errs[i] = ptyrun.Sweep(ctx, l.Remains(), cmp.Or(l.Grace, grace))
		})
	}
	sweeps.Wait()
	var swept []Leftover
	for i, l := range leftovers {
		if errs[i] != nil {
			continue
		}
		if !l.Closed {
			swept = append(swept, l)
			errs[i] = l.clear(stateDir)
		}
		if bills != nil {
			errs[i] = errors.Join(errs[i], l.settle(ctx, bills))
		}
	}
	return swept, errors.Join(append(errs, err)...)
}

// clear removes what the session's shim has not removed at its end, but for the note.
func (l Leftover) clear(stateDir string) (err error) {
	if shims, unread := shimsOf(stateDir); unread == nil && !slices.Contains(slices.Collect(maps.Values(shims)), l.Agent) {
		err = dropSettings(stateDir, l.Agent)
	}
	return errors.Join(err, remove(hooksSocket(stateDir, l.Session)))
}

// settle writes what the session has cost and forgets it, but not before that is written.
func (l Leftover) settle(ctx context.Context, bills *store.Store) error {
	if err := Bill(ctx, bills, l.Bill...); err != nil {
		return err
	}
	if !l.Closed {
		rest, err := usage.Rest(ctx, bills.Reader, l.Session, time.Now(), l.unwritten)
		if err == nil {
			err = Bill(ctx, bills, rest...)
		}
		if err != nil {
			return err
		}
	}
	return remove(l.path)
}

// Bill writes what sessions have cost. What was written before is not written again.
func Bill(ctx context.Context, bills *store.Store, records ...usage.Record) error {
	if len(records) == 0 {
		return nil
	}
	err := bills.Write(ctx, func(c *store.Change) error { return series.Bill(c, records...) })
	if err != nil {
		return fmt.Errorf("cannot record what agent %q has cost: %w", records[0].Agent, err)
	}
	return nil
}

// readLeftovers returns those whose shim is gone, or is done with them. The error is about those that
// cannot be read; a damaged one is put aside, so that it is reported once.
func readLeftovers(stateDir, agent string) ([]Leftover, error) {
	var all []Leftover
	var errs []error
	for l, err := range noted(stateDir) {
		if errors.Is(err, errDamaged) {
			err = errors.Join(err, os.Rename(l.path, l.path+".damaged")) // retrying does not repair it
		}
		if err != nil {
			errs = append(errs, err)
		} else if (agent == "" || l.Agent == agent) && (l.Closed || !Alive(l.Shim)) {
			all = append(all, l)
		}
	}
	return all, errors.Join(errs...)
}

// Leftovers returns what is left to end of sessions whose shim is gone, as far as it can
// be read. It ends nothing.
func Leftovers(stateDir string) []Leftover {
	var all []Leftover
	for l, err := range noted(stateDir) {
		if err == nil && !l.Closed && !Alive(l.Shim) {
			all = append(all, l)
		}
	}
	return all
}

// NotedAgents returns the agents of sessions that have not ended in order, or not yet.
func NotedAgents(stateDir string) map[string]bool {
	all := map[string]bool{}
	for l, err := range noted(stateDir) {
		if err == nil {
			all[l.Agent] = true
		}
	}
	return all
}

// shimsOf returns the agents of the live sessions, by the pids of their shims.
func shimsOf(stateDir string) (map[int]string, error) {
	shims := map[int]string{}
	var errs []error
	for l, err := range noted(stateDir) {
		if err != nil {
			errs = append(errs, err)
		} else if Alive(l.Shim) {
			shims[l.Shim.PID] = l.Agent
		}
	}
	return shims, errors.Join(errs...)
}

// ShimOf returns the shim of the live session of the agent with this .heartbeat folder; zero: none
// is known.
func ShimOf(stateDir, home string) hook.Process {
	for l, err := range noted(stateDir) {
		if err == nil && l.Home == home && Alive(l.Shim) {
			return l.Shim
		}
	}
	return hook.Process{}
}

// AgentOf returns the agent whose session a process belongs to, or "": a process
// that does not descend from one of our shims belongs to none, whatever its
// environment says.
func AgentOf(stateDir string, pid int) (string, error) {
	shims, err := shimsOf(stateDir)
	for _, above := range ptyrun.Ancestors(pid) {
		if agent, ok := shims[above]; ok {
			return agent, nil
		}
	}
	return "", err
}

// errDamaged means that a record cannot be understood, or that something else is in
// its place.
var errDamaged = errors.New("it is damaged")

// noted yields what was recorded of sessions that have not ended in order; with an
// error, only the path of that one is known.
func noted(stateDir string) iter.Seq2[Leftover, error] {
	return func(yield func(Leftover, error) bool) {
		names, err := os.ReadDir(filepath.Join(stateDir, "live"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !yield(Leftover{}, err) {
			return
		}
		for _, n := range names {
			if !strings.HasSuffix(n.Name(), ".json") {
				continue
			}
			l, err := readLeftover(filepath.Join(stateDir, "live", n.Name()))
			if errors.Is(err, fs.ErrNotExist) {
				continue // the session has just ended
			}
			if err != nil {
				err = fmt.Errorf("cannot read %q: %w", l.path, err)
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

// maxPassed limits what is read of a file that a client was passed.
const maxPassed = 16 << 20

// Passed returns what the clients of the live sessions of a state directory were passed
// by --settings. They read it once, so what it names must stay as it is.
func Passed(stateDir string) ([][]byte, error) {
	folder := filepath.Join(stateDir, settingsFolder)
	files, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all [][]byte
	for _, f := range files {
		data, err := durable.Read(filepath.Join(folder, f.Name()), maxPassed)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the session has just ended
		}
		if err != nil {
			return nil, err
		}
		all = append(all, data)
	}
	return all, nil
}

// maxLeftover limits what is read: the file takes about 300 bytes, and as many for each
// record of what the session has cost.
const maxLeftover = 16 << 20

func readLeftover(path string) (Leftover, error) {
	l := Leftover{path: path}
	data, err := durable.Read(path, maxLeftover)
	switch {
	case errors.Is(err, durable.ErrNotRegular), errors.Is(err, durable.ErrTooLarge):
		return l, fmt.Errorf("%w: %w", errDamaged, err)
	case err != nil:
		return l, err
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return l, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return l, nil
}
