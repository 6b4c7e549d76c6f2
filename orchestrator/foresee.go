package orchestrator

import (
	"errors"
	"slices"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/launch"
)

// Foresee checks for each agent with which nothing is being done what would prevent
// its sessions from working, before its first prompt arrives, perhaps at night. It
// returns when all are checked.
func (s *Scheduler) Foresee() {
	s.mu.Lock()
	all := slices.Clone(s.fleet.members)
	s.mu.Unlock()
	s.foresight.foresee(all)
}

// foresight finds out what would prevent sessions from working.
type foresight struct {
	*Scheduler
	// one limits the checks whether sessions can work to one agent at a time.
	one chan struct{}
	// tries are the clients of which people were told that they are tried. :: id → true
	tries sync.Map
}

func (f *foresight) foresee(all []*member) {
	if f.opt.Blocked == nil {
		return
	}
	for _, m := range all {
		select {
		case f.one <- struct{}{}:
		case <-f.work.Done():
			return
		}
		f.mu.Lock()
		def, wants := m.Def(), m.Wants(f.opt.Now())
		f.mu.Unlock()
		if wants {
			failed := f.failure(def, f.opt.Blocked(def))
			f.happened(m, func(now time.Time) {
				if failed != nil && m.Def() == def {
					m.Foresees(*failed, now)
				}
			})
		}
		<-f.one
	}
}

// ask checks whether what prevents a member's sessions from working is gone.
func (f *foresight) ask(m *member, def *config.Agent) {
	select {
	case f.one <- struct{}{}:
	case <-f.work.Done():
		return
	}
	defer func() { <-f.one }()
	var err error
	var prepared launch.Prepared
	if f.directories.has(m, def) { // otherwise nobody knows; it is looked for
		_, err = launch.Environment(def)
		if err == nil {
			prepared, err = f.prepare(m, def)
		}
	} else {
		err = errors.New("its directory is not the one that was locked")
	}
	f.happened(m, func(now time.Time) {
		if m.Def() == def {
			m.Asked(f.failure(def, err), prepared.Answers, now)
			f.asksLoginAgain(m, now)
		}
	})
}

// meetAgain looks whether the client that a member is held for is still there.
func (f *foresight) meetAgain(m *member, def *config.Agent) {
	k := f.opt.Clients.Look(def)
	f.happened(m, func(now time.Time) {
		if m.Def() == def {
			m.FindsClient(k.ID, now)
		}
	})
}
