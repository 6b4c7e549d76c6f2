// Package sessiontest has sessions that are made up: no client, no shim and no hook runs
// for them. A simulation of thousands of agents gives them to a scheduler in place of real
// ones. It stands beside the real ones because it does what they do to a queue, so that who
// simulates, and judges, need not know how a queue is kept.
package sessiontest

import (
	"context"
	"errors"
	"sync"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/session"
	"heartbeat/sources/watch"
)

// boot is how long a session takes from its start to its first prompt.
const boot = 50 * time.Millisecond

// Crew is a [session.Runner] whose sessions are made up. Each takes the entries of its
// agent's queue, one after the other, and in persist mode waits for more.
type Crew struct {
	lasts func() time.Duration
	took  func(Entry)

	mu   sync.Mutex
	live map[string]*made // :: inbox
	most int
	errs []error
}

// Entry is one that a session was given.
type Entry struct {
	At                             time.Time
	Agent, Session, Source, Prompt string
	Attempt                        int // from 1 on
}

// NewCrew returns a crew whose sessions work on an entry for as long as lasts says, and
// call took for each one that they were given. Both are called at the same time by
// several sessions.
func NewCrew(lasts func() time.Duration, took func(Entry)) *Crew {
	return &Crew{lasts: lasts, took: took, live: map[string]*made{}}
}

// Most is how many sessions have lived at once.
func (c *Crew) Most() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// Err is what has ended sessions that should not have.
func (c *Crew) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.errs...)
}

// made is a session that is made up.
type made struct {
	crew    *Crew
	spec    session.Spec
	reports chan session.Report
	stop    chan struct{} // an order to end
	end     sync.Once
	more    chan struct{} // something was appended
	done    int
}

// Reports implements [session.Live].
func (m *made) Reports() <-chan session.Report { return m.reports }

// Order implements [session.Live]: whatever the order is, the session
// ends after its entry.
func (m *made) Order(session.Order) { m.end.Do(func() { close(m.stop) }) }

// Start implements [session.Runner].
func (c *Crew) Start(_ context.Context, spec session.Spec) (session.Live, error) {
	m := &made{crew: c, spec: spec, reports: make(chan session.Report, 8), stop: make(chan struct{}), more: make(chan struct{}, 1)}
	c.mu.Lock()
	c.live[spec.Inbox] = m
	c.most = max(c.most, len(c.live))
	c.mu.Unlock()
	go m.run()
	return m, nil
}

// Folders is [watch.Folders] for the scheduler; it tells the sessions, too.
func (c *Crew) Folders(ctx context.Context, folders []string, changed func(string)) error {
	return watch.Folders(ctx, folders, func(path string) {
		changed(path)
		c.mu.Lock()
		m := c.live[path]
		c.mu.Unlock()
		if m != nil {
			select {
			case m.more <- struct{}{}:
			default:
			}
		}
	})
}

func (m *made) run() {
	defer close(m.reports)
	why := m.work()
	m.crew.mu.Lock()
	delete(m.crew.live, m.spec.Inbox)
	m.crew.mu.Unlock()
	o := session.Outcome{Why: why, Bound: true, Acknowledged: m.done}
	m.reports <- session.Report{At: time.Now(), Phase: hook.Ended, Acknowledged: m.done, Outcome: &o}
}

func (m *made) say(p hook.Phase) {
	m.reports <- session.Report{At: time.Now(), Phase: p, Acknowledged: m.done}
}

// work does what is queued and, in persist mode, waits for more.
func (m *made) work() hook.End {
	time.Sleep(boot)
	for {
		more, err := m.take()
		if err != nil {
			m.crew.mu.Lock()
			m.crew.errs = append(m.crew.errs, err)
			m.crew.mu.Unlock()
			return hook.EndCrashed
		}
		if more {
			select {
			case <-m.stop:
				return hook.EndReleased
			default:
				continue
			}
		}
		if m.spec.Policy.Mode != hook.Persist {
			return hook.EndDrained
		}
		m.say(hook.Waiting)
		select {
		case <-m.stop:
			return hook.EndReleased
		case <-m.more:
		}
	}
}

// take does the next entry and reports whether there was one. The hook lock
// is held as ticks hold it: not while the turn lasts.
func (m *made) take() (bool, error) {
	q, err := inbox.Open(inbox.Place{Inbox: m.spec.Inbox, Home: m.spec.Home})
	if err != nil {
		return false, err
	}
	defer q.Close()
	e, attempt, err := m.offered(q)
	if errors.Is(err, inbox.ErrEmpty) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	m.crew.took(Entry{At: time.Now(), Agent: m.spec.Agent, Session: m.spec.Session, Source: e.Source, Prompt: e.Prompt, Attempt: attempt})
	m.say(hook.Turn)
	time.Sleep(m.crew.lasts())
	m.done++
	return true, q.Hold(context.Background(), func(q *inbox.Held) error {
		_, err := q.Acknowledge(inbox.Acknowledgement{Session: m.spec.Session, Reply: "done", Now: time.Now()})
		return err
	})
}

// offered hands the next entry over, and has it taken.
func (m *made) offered(q *inbox.Queue) (e *inbox.Entry, attempt int, err error) {
	err = q.Hold(context.Background(), func(q *inbox.Held) error {
		if e, err = q.Next(); err != nil {
			return err
		}
		f, err := q.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: m.spec.Session})
		if err != nil {
			return err
		}
		attempt = f.Attempt
		_, err = q.Advance(inbox.Taken, "")
		return err
	})
	return e, attempt, err
}
