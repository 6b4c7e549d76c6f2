package orchestrator

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// once is what a run with Once waits for.
type once struct {
	fires   int // agents whose triggers --fire has not finished
	unfired int // triggers that could not be fired
	busy    int // members that have something left to do
	// news is true if something has changed since the last check whether nothing is
	// left.
	news bool
}

// count counts the members that have something left to do: not those that are held
// or parked, once it was asked again whether they still are; an idle one's queue is looked
// into (finishOnce).
func (f *fleet) count(m *member) {
	busy := !m.gone && (m.Expected() || m.Doing() != agent.None || m.State() == status.Waiting || m.State() == status.Checking || m.State() == status.BackingOff || m.Unasked())
	if busy == m.counts {
		return
	}
	m.counts, f.once.news = busy, true
	if busy {
		f.once.busy++
	} else {
		f.once.busy--
	}
}

// mayBeFinished reports, once for each change, that nothing is left to do except
// what may be in the queues of idle agents.
func (f *fleet) mayBeFinished() bool {
	o := &f.once
	if f.stage != ready || o.fires > 0 || o.busy > 0 || !o.news {
		return false
	}
	o.news = false
	return true
}

// limitOnce ends a run with Once after OnceTimeout at the latest, unless the
// function that it returns is called.
func (o Options) limitOnce(quit context.CancelCauseFunc) (stop func() bool) {
	if !o.Once {
		return func() bool { return false }
	}
	limit := o.OnceTimeout
	if limit <= 0 {
		limit = time.Hour
	}
	return time.AfterFunc(limit, func() { quit(errOnceTimeout) }).Stop
}

// finishOnce ends a run with Once when nothing is left to do: nothing is queued, in
// flight or backing off.
func (s *Scheduler) finishOnce() {
	for _, q := range s.idleQueues() {
		if q.left() {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.fleet.once; s.fleet.stage == ready && !o.news && o.busy == 0 && o.fires == 0 {
		s.fleet.quit(errFinished)
	}
}

// idleQueue is the queue of a member that has nothing to do, as far as is known.
type idleQueue struct {
	cfg   *config.Agent
	empty queue.Stamp
	owed  bool
}

func (s *Scheduler) idleQueues() []idleQueue {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []idleQueue
	for _, m := range s.fleet.members {
		if m.State() == status.Idle && m.Place() != agent.Lost {
			all = append(all, idleQueue{m.Def(), m.empty, m.Owes()})
		}
	}
	return all
}

// left reports whether something is left to do after all.
func (q idleQueue) left() bool {
	if q.owed {
		return true
	}
	if q.empty.Still(q.cfg.Inbox) {
		return false
	}
	l := queue.LookInto(q.cfg)
	return l.Err != nil || hasWork(l.Depth) || l.Depth.Tail
}
