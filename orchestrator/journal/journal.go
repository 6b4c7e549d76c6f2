// Package journal records what happened to a fleet's agents, for people and programs to
// read: the table events of the fleet's store. Nothing is decided from it, so a lost event
// costs nothing but the record.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"sync"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/store"
)

// Passed is the Verdict of a Checked whose entry is done, Unproven that of one whose entry is
// handed over again. Any other is why the entry is given up.
const (
	Passed   = "passed"
	Unproven = "unproven"
)

// Event is one entry of the journal: what happened to an agent, why, and what comes
// next.
type Event struct {
	At    time.Time `json:"at"`
	Agent string    `json:"agent,omitempty"`
	Kind  Kind      `json:"kind"`
	// State and From belong to StateChanged: what the agent does now, and did
	// before.
	State string `json:"state,omitempty"`
	From  string `json:"from,omitempty"`
	// Paused and WasPaused belong to StateChanged: State, or From, is held because
	// somebody paused the agent. Journals of earlier versions do not say it.
	Paused    bool         `json:"paused,omitempty"`
	WasPaused bool         `json:"was_paused,omitempty"`
	Reason    foreign.Text `json:"reason,omitempty"`
	// Fix is what to change first, where a person has to and it is known.
	Fix   foreign.Text `json:"fix,omitempty"`
	Until time.Time    `json:"until,omitzero"`
	// Session is the id of the session that the event is about.
	Session string       `json:"session,omitempty"`
	Trigger string       `json:"trigger,omitempty"`
	Detail  foreign.Text `json:"detail,omitempty"`
	// Started, Acknowledged and Why belong to Ended: when the session was started,
	// how many entries it did, and how it ended, from a closed list.
	Started      time.Time `json:"started,omitzero"`
	Acknowledged int       `json:"acknowledged,omitempty"`
	Why          hook.End  `json:"why,omitempty"`
	// Source belongs to Refused: by what Until is known.
	Source string `json:"source,omitempty"`
	// Answer, Done and Entry belong to Stopped: what the Stop hook has decided, and the
	// delivery ids of the entries that were done with this Stop and handed over at it.
	Answer hook.Answer `json:"answer,omitempty"`
	Done   string      `json:"done,omitempty"`
	Entry  string      `json:"entry,omitempty"`
	// Verdict and Iteration belong to Checked: what was decided about the entry (Entry),
	// and how often it had been handed over. Started is when the check began, TookMS how
	// long it ran: what followed (a pause, a person's answer) is no part of it. Journals
	// of earlier versions do not say it. The Verdict of a Forged is "forged" if its entry is
	// a dead letter now.
	Verdict   string `json:"verdict,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	TookMS    int64  `json:"took_ms,omitempty"`
	// Due belongs to Fired: when the schedule was due. With Times, of Skipped, it is the
	// last one's of so many fires; 0 is one.
	Due   time.Time `json:"due,omitzero"`
	Times int       `json:"times,omitempty"`
	// By belongs to Acted: the name and the id of the page's token.
	By foreign.Text `json:"by,omitempty"`
	// Approval belongs to Approval: the id of the request, whose State is what has become
	// of it.
	Approval string `json:"approval,omitempty"`
}

// Move returns the states of a StateChanged in the words that people read: what
// somebody has paused is paused.
func (e Event) Move() (from, to string) {
	from, to = e.From, e.State
	if e.WasPaused {
		from = string(Paused)
	}
	if e.Paused {
		to = string(Paused)
	}
	return from, to
}

// Kind says what happened.
type Kind string

// The kinds. Readers ignore those that they do not know.
const (
	StateChanged  Kind = "state"
	Fired         Kind = "fired"   // a trigger's prompt was queued
	Skipped       Kind = "skipped" // a prompt of a trigger, or of send --at, was not queued
	TriggerFailed Kind = "trigger-failed"
	TriggerAnew   Kind = "trigger-anew" // it is no longer known what a trigger has fired for
	// RequestsRefused tells of the first request to a webhook that was refused, the tenth, …
	RequestsRefused Kind = "requests-refused"
	Applied         Kind = "applied"   // an agent's directory was brought in line with its declaration
	Ended           Kind = "ended"     // a session
	Recovered       Kind = "recovered" // an entry that was in flight
	Swept           Kind = "swept"     // processes of a dead session were ended
	Paused          Kind = "paused"
	Resumed         Kind = "resumed"
	Answered        Kind = "answered"  // a person has said where an agent's queue continues
	Restarted       Kind = "restarted" // a person had the session end, for another one
	Cancelled       Kind = "cancelled" // a person had the turn end
	Reloaded        Kind = "reloaded"
	ReloadFailed    Kind = "reload-failed"
	Added           Kind = "added"
	Removed         Kind = "removed"
	DirectoryLost   Kind = "directory-lost"
	DirectoryFound  Kind = "directory-found"
	QueueLost       Kind = "queue-lost"   // accepted prompts are gone with their folder
	Stuck           Kind = "stuck"        // the service refuses an agent's work for long
	Forgot          Kind = "forgot"       // a conversation that the client has no more, or that became too full
	StopHook        Kind = "stop-hook"    // a Stop hook of somebody else's was seen to continue the client
	Refused         Kind = "refused"      // a session's request, for a reason of its account
	OverBudget      Kind = "over-budget"  // what an agent, its group or the fleet may spend in a period is spent
	Stopped         Kind = "stop"         // a turn was over, and the Stop hook has decided what follows
	Alive           Kind = "alive"        // what a session says of itself
	Stray           Kind = "stray-prompt" // a session was given one that neither its queue nor a person has given
	Probed          Kind = "probed"       // a client that was new was tried
	Approval        Kind = "approval"     // something was asked for, approved, rejected, expired or withdrawn
	Checked         Kind = "check"        // an entry was checked: until
	Aside           Kind = "set-aside"    // an entry waits for approval, and the queue goes on
	Forged          Kind = "forged"       // the queue's files call an entry done that was not proven
	NotQueued       Kind = "not-queued"   // what a prompt had to pass was recorded, and its sender was killed
	Stopping        Kind = "stopping"
	Acted           Kind = "acted" // a person had something done by the page
)

// Journal writes events into a fleet's store.
type Journal struct {
	store *store.Store
	log   *slog.Logger
	count Count
	asked chan struct{} // something waits
	// closing is closed by Close, ended when nothing is written any more.
	closing, ended chan struct{}
	once           sync.Once
	// writing is held while events are committed, so that they stay in their order.
	writing sync.Mutex

	mu      sync.Mutex
	waiting []Event
	lost    int // of those that were too many to wait

	last, pruned int64 // the number of the last event, and as of which its past was pruned
	most         int64
}

const (
	// soon is how long an event waits for others, so that they are one commit.
	soon = 50 * time.Millisecond
	// mostWaiting is how many wait while the store cannot be written.
	mostWaiting = 20_000
	// tryAgain is when that is tried again, if another event comes.
	tryAgain = 5 * time.Second
	// mostEvents are kept.
	mostEvents = 800_000
)

// Count does something with events in the transaction that writes them. kept is called once
// they are written, and before it is called again.
type Count func(c *store.Change, events []Event) (kept func(), err error)

// New returns the journal of a fleet's store. count, if not nil, has each event.
func New(s *store.Store, log *slog.Logger, count Count) *Journal {
	if count == nil {
		count = func(*store.Change, []Event) (func(), error) { return func() {}, nil }
	}
	j := &Journal{store: s, log: log, count: count, asked: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{}), most: mostEvents}
	go j.write()
	return j
}

// Add writes an event down, soon. It waits for nothing, so the caller may hold a lock. What a
// process adds just before it is killed may be missing: nothing is decided from it.
func (j *Journal) Add(e Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.waiting) >= mostWaiting {
		j.waiting, j.lost = j.waiting[1:], j.lost+1
	}
	j.waiting = append(j.waiting, e)
	select {
	case j.asked <- struct{}{}:
	default:
	}
}

// Flush returns when all that was added is durable, or why it is not.
func (j *Journal) Flush() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	batch := j.waiting
	j.waiting = nil
	j.mu.Unlock()
	if len(batch) == 0 {
		return nil
	}
	var kept func()
	err := j.store.Write(context.Background(), func(c *store.Change) (err error) {
		if j.last, err = add(c, batch); err == nil {
			kept, err = j.count(c, batch)
		}
		return err
	})
	if errors.Is(err, store.ErrUnknown) && j.has(j.last, batch[len(batch)-1]) {
		err = nil
	}
	if err == nil {
		kept()
	} else {
		j.mu.Lock()
		defer j.mu.Unlock()
		if len(j.waiting) < mostWaiting {
			j.waiting = append(batch, j.waiting...)
		} else {
			j.lost += len(batch)
		}
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	return nil
}

// Close writes what was added.
func (j *Journal) Close() error {
	j.once.Do(func() { close(j.closing) })
	<-j.ended
	return j.Flush()
}

// write writes what is added until the journal is closed.
func (j *Journal) write() {
	defer close(j.ended)
	failing := false
	for delay := soon; ; {
		select {
		case <-j.asked:
		case <-j.closing:
			return
		}
		select {
		case <-time.After(delay):
		case <-j.closing:
			return
		}
		err := j.Flush()
		if err != nil && !failing {
			j.log.Warn(err.Error())
		}
		if failing, delay = err != nil, soon; failing { // the next event tries again
			delay = tryAgain
		}
		j.mu.Lock()
		lost := j.lost
		j.lost = 0
		j.mu.Unlock()
		if lost > 0 {
			j.log.Warn("events are missing in the journal: too many came while it could not be written", "events", lost)
		}
		if err := j.prune(); err != nil {
			j.log.Warn("cannot shorten the journal", "err", err)
		}
	}
}

// Write writes events in a transaction, for who has no Journal.
func Write(c *store.Change, events ...Event) error {
	_, err := add(c, events)
	return err
}

// add writes events, and returns the number of the last one.
func add(c *store.Change, events []Event) (n int64, err error) {
	if _, err := c.One(`SELECT COALESCE(MAX(n), 0) FROM events`, nil, &n); err != nil {
		return n, err
	}
	for _, e := range events {
		body, err := json.Marshal(e)
		if err != nil {
			return n, err
		}
		n++
		if err := Put(c, n, e, body, int64(sumOf(body))); err != nil {
			return n, err
		}
	}
	return n, nil
}

// Put writes an event as it is said in body. It is for what earlier versions wrote.
func Put(c *store.Change, n int64, e Event, body []byte, crc int64) error {
	_, err := c.Do(`INSERT INTO events (n, at, agent, kind, body, crc) VALUES ($1, $2, $3, $4, $5, $6)`, n, store.Millis(e.At), e.Agent, string(e.Kind), string(body), crc)
	return err
}

// has reports whether an event stands in the journal under a number.
func (j *Journal) has(n int64, e Event) bool {
	body, err := json.Marshal(e)
	if err != nil {
		return false
	}
	there, err := store.Get(context.Background(), j.store.Reader, func(v *store.View) (bool, error) {
		return v.One(`SELECT n FROM events WHERE n = $1 AND body = $2`, []any{n, string(body)}, new(int64))
	})
	return there && err == nil
}

func sumOf(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
