package owner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/hook/process"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/state"
)

// OriginFile is in .heartbeat and says which fleet last ran or applied the agent, and
// with which store. It is used to detect that a fleet has been moved, and that a
// directory is another fleet's. An agent can write it: it only says which of our own
// state directories to look at, and what is found there decides.
const OriginFile = "fleet.json"

// Origin is which fleet ran or applied an agent.
type Origin struct {
	File     string `json:"file"`      // the fleet's, absolute
	StateDir string `json:"state_dir"` // absolute
	// Store is the id of the fleet's store, and Agent the key of the agent there: since a run
	// of the fleet has locked the directory. "": none has, or an earlier version.
	Store string `json:"store,omitempty"`
	Agent string `json:"agent,omitempty"`
}

// Command is how a command line for the fleet begins.
func (o Origin) Command() string {
	if o.File == "" {
		return "heartbeat"
	}
	return "heartbeat -f " + settings.Quote(o.File)
}

// HadByOther returns which fleet has run or applied an agent last, where that is another
// one than now's. Whether a run has the directory is the caller's to see.
func HadByOther(a *config.Agent, now Origin) (o Origin, is bool) {
	o = OriginOf(a)
	return o, o.File != "" && o.File != now.File && o.StateDir != now.StateDir
}

// Text says who has the agent's directory; pid is the run's process, or 0.
func (o Origin) Text(dir string, pid int) string {
	return fmt.Sprintf("another heartbeat%s runs %s; the fleet that had it last is %q", process.Numbered(pid), dir, o.File)
}

// Left is the state of a fleet that has another name now: its folder was moved, or
// its name was changed. Agents are those that it ran.
type Left struct {
	Origin
	Agents []string
	now    Origin
}

// String says what is left where.
func (l Left) String() string {
	who := "agent " + l.Agents[0] + " was"
	if n := len(l.Agents); n > 1 {
		who = fmt.Sprintf("%d agents (%s, …) were", n, l.Agents[0])
	}
	return fmt.Sprintf("%s run by this fleet under another name: pauses, memory of triggers and history are in %s and are not used",
		who, l.StateDir)
}

// Command brings the state along. The state that this fleet has by now is kept
// beside it.
func (l Left) Command() string {
	from, to := settings.Quote(l.StateDir), settings.Quote(l.now.StateDir)
	return "mv " + to + " " + settings.Quote(l.now.StateDir+".before") + "; mv " + from + " " + to
}

// Advice says what to do about it.
func (l Left) Advice() string {
	return fmt.Sprintf("stop heartbeat, then `%s`, or leave it there if nothing of it is wanted; `name:` in the fleet's file keeps a fleet's state wherever its folder goes",
		l.Command())
}

// LeftBehind returns the states that agents had in another fleet that no longer
// exists: its file is gone, or is this fleet's under an earlier name.
func LeftBehind(agents []*config.Agent, now Origin) []Left {
	var all []Left
	index := map[string]int{}
	for _, a := range agents {
		o := OriginOf(a)
		i, known := index[o.StateDir]
		if !known {
			i = -1
			if o.leftBehind(now, a.Name) && !flock.Held(a.Dir) {
				i = len(all)
				all = append(all, Left{Origin: o, now: now})
			}
			index[o.StateDir] = i
		}
		if i >= 0 {
			all[i].Agents = append(all[i].Agents, a.Name)
		}
	}
	return all
}

// leftBehind reports whether o is now's fleet under an earlier name, by what our
// own state directories say: o's is one of them, belongs to no other fleet that
// still exists, and has known the agent.
func (o Origin) leftBehind(now Origin, agent string) bool {
	if !slices.Contains(state.Beside(now.StateDir), o.StateDir) || !state.Used(o.StateDir) {
		return false
	}
	by := readOwner(o.StateDir)
	if by.File != "" && !samePlace(by.File, now.File) && !Gone(by.File) && (by.Typed || o.File != now.File) {
		return false // another fleet has that name now
	}
	return (o.File == now.File || Gone(o.File)) && knew(o.StateDir, agent)
}

// knew reports whether a run that kept its state in a directory had an agent.
func knew(stateDir, agent string) bool {
	if known, err := memory.ReadIn(stateDir); err == nil && slices.ContainsFunc(known, func(i memory.Identity) bool { return i.Name == agent }) {
		return true
	}
	for e, err := range journal.Read(stateDir) {
		if err == nil && e.Agent == agent {
			return true
		}
	}
	return false
}

// Mark records that now's fleet runs or has applied the agents, which known are, except where a
// state that was left behind could not be found again without the old mark.
func Mark(agents []*config.Agent, now Origin, known memory.Identities) error {
	declared := known.Declared()
	var errs []error
	for _, a := range agents {
		now.Agent = declared[a.Name].Key
		if o := OriginOf(a); o == now || o.leftBehind(now, a.Name) {
			continue
		}
		data, err := json.Marshal(now)
		if err == nil {
			err = mark(a, append(data, '\n'))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("agent %q: %w", a.Name, err))
		}
	}
	return errors.Join(errs...)
}

func mark(a *config.Agent, data []byte) error {
	folder, err := durable.OpenBelow(a.Dir, a.Home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(folder.Put(OriginFile, data), folder.SweepOf(OriginFile), folder.Close())
}

// maxOrigin limits what is read of an origin: two paths.
const maxOrigin = 16 << 10

// OriginOf returns which fleet last ran or applied an agent, as its directory says;
// none if that cannot be read.
func OriginOf(a *config.Agent) (o Origin) {
	home, err := durable.OpenBelow(a.Dir, a.Home)
	if err != nil {
		return Origin{}
	}
	defer home.Close()
	data, err := home.Read(OriginFile, maxOrigin)
	if err != nil || json.Unmarshal(data, &o) != nil {
		return Origin{}
	}
	return o
}
