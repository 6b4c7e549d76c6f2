// Package journal records what happened to a fleet's agents, for people and
// machines to read: a file of lines in the state directory. Nothing is decided from
// it, so it is not synced, and a lost line costs nothing but the record.
package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/hook/foreign"
)

// Passed is the Verdict of a Checked whose entry is done.
const Passed = "passed"

// Event is one line of the journal: what happened to an agent, why, and what comes
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
	// long it ran: what followed (a pause, a person's answer) is no part of that. Journals
	// of earlier versions do not say it. The Verdict of a Forged is "forged" if its entry is
	// a dead letter now.
	Verdict   string `json:"verdict,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	TookMS    int64  `json:"took_ms,omitempty"`
	// Due belongs to Fired: when the schedule was due.
	Due time.Time `json:"due,omitzero"`
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
	StateChanged   Kind = "state"
	Fired          Kind = "fired"   // a trigger's prompt was queued
	Skipped        Kind = "skipped" // a prompt of a trigger, or of send --at, was not queued
	TriggerFailed  Kind = "trigger-failed"
	TriggerAnew    Kind = "trigger-anew" // it is no longer known what a trigger has fired for
	Applied        Kind = "applied"      // an agent's directory was brought in line with its declaration
	Ended          Kind = "ended"        // a session
	Recovered      Kind = "recovered"    // an entry that was in flight
	Swept          Kind = "swept"        // processes of a dead session were ended
	Paused         Kind = "paused"
	Resumed        Kind = "resumed"
	Answered       Kind = "answered"  // a person has said where an agent's queue continues
	Restarted      Kind = "restarted" // a person had the session end, for another one
	Cancelled      Kind = "cancelled" // a person had the turn end
	Reloaded       Kind = "reloaded"
	ReloadFailed   Kind = "reload-failed"
	Added          Kind = "added"
	Removed        Kind = "removed"
	DirectoryLost  Kind = "directory-lost"
	DirectoryFound Kind = "directory-found"
	QueueLost      Kind = "queue-lost"  // accepted prompts are gone with their folder
	Stuck          Kind = "stuck"       // the service refuses an agent's work for long
	Forgot         Kind = "forgot"      // a conversation that the client has no more, or that became too full
	StopHook       Kind = "stop-hook"   // a Stop hook of somebody else's was seen to continue the client
	Refused        Kind = "refused"     // a session's request, for a reason of its account
	OverBudget     Kind = "over-budget" // what an agent, its group or the fleet may spend in a period is spent
	Stopped        Kind = "stop"        // a turn was over, and the Stop hook has decided what follows
	Alive          Kind = "alive"       // what a session says of itself
	Probed         Kind = "probed"      // a client that was new was tried
	Approval       Kind = "approval"    // something was asked for, approved, rejected, expired or withdrawn
	Checked        Kind = "check"       // an entry was checked: until
	Aside          Kind = "set-aside"   // an entry waits for approval, and the queue goes on
	Forged         Kind = "forged"      // the queue's files call an entry done that was not proven
	NotQueued      Kind = "not-queued"  // what a prompt had to pass was recorded, and its sender was killed
	Stopping       Kind = "stopping"
	Acted          Kind = "acted" // a person had something done by the page
)

// The journal's files in the state directory. When the present one is full, it
// replaces the old one.
const (
	presentFile = "journal.jsonl"
	oldFile     = "journal.1.jsonl"
	fullFile    = "journal.2.jsonl" // on its way into the old one
	lockFile    = ".journal-lock"
	fullSize    = 64 << 20
)

// Journal appends events to journal.jsonl in the state directory. Several
// processes, and goroutines, may write one journal.
type Journal struct {
	dir string
	max int64

	mu   sync.Mutex
	f    *os.File
	torn bool // the last line may be incomplete

	// failed is why the last attempt to rewrite the old file failed, until the next
	// attempt; told says that Add has returned it.
	failed error
	again  time.Time
	told   bool

	sharing sync.WaitGroup
}

// shareAgain is how long to wait after a rotation failed: it reads everything, and
// what it lacks, for example room on the disk, does not come with the next event.
const shareAgain = time.Minute

// Exists reports whether there is a journal; a run begins with it.
func Exists(stateDir string) bool {
	_, err := os.Lstat(filepath.Join(stateDir, presentFile))
	return err == nil
}

// Open opens the journal of a state directory, and creates it if necessary.
func Open(stateDir string) (*Journal, error) {
	j := &Journal{dir: stateDir, max: fullSize}
	if err := j.open(); err != nil {
		return nil, fmt.Errorf("cannot open the journal: %w", err)
	}
	return j, nil
}

func (j *Journal) open() error {
	f, err := durable.OpenFile(filepath.Join(j.dir, presentFile), os.O_APPEND|os.O_CREATE|os.O_RDWR)
	if err != nil {
		return err
	}
	if j.f != nil {
		_ = j.f.Close()
	}
	j.f = f
	j.torn, err = durable.Unterminated(f)
	return err
}

// Add writes one event in one write(2) or not at all, so that readers see whole
// lines. It first ends a line that a writer that died left incomplete. It does not
// wait for a rotation. That a rotation failed is returned once, after the event is
// written.
func (j *Journal) Add(e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.rotate(); err != nil {
		return fmt.Errorf("cannot rotate the journal: %w", err)
	}
	if line = append(summed(line), '\n'); j.torn {
		line = append([]byte{'\n'}, line...)
	}
	if err := durable.WriteWhole(j.f, line); err != nil {
		j.torn, _ = durable.Unterminated(j.f) // if this fails, the next write says so
		return fmt.Errorf("cannot write the journal: %w", err)
	}
	j.torn = false
	if j.failed != nil && !j.told {
		j.told = true
		return fmt.Errorf("cannot shorten the journal: %w", j.failed)
	}
	return nil
}

// rotate follows a file that another process has moved, and moves a full one.
func (j *Journal) rotate() error {
	path := filepath.Join(j.dir, presentFile)
	mine, err := j.f.Stat()
	if err != nil {
		return err
	}
	named, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(mine, named):
		return j.open()
	case err != nil:
		return err
	case mine.Size() < j.max, time.Now().Before(j.again) && mine.Size() < 2*j.max:
		return nil
	}
	unlock, err := flock.TryLock(filepath.Join(j.dir, lockFile))
	if err != nil { // another process is doing it, or we are
		return nil
	}
	if j.failed != nil && mine.Size() >= 2*j.max {
		if err := j.forget(); err != nil {
			return errors.Join(err, unlock())
		}
	}
	full := filepath.Join(j.dir, fullFile)
	if _, err := os.Lstat(full); errors.Is(err, os.ErrNotExist) {
		if named, err := os.Lstat(path); err == nil && os.SameFile(mine, named) {
			if err := os.Rename(path, full); err != nil {
				return errors.Join(err, unlock())
			}
		}
		err = j.open()
		if err != nil {
			return errors.Join(err, unlock())
		}
	}
	// This takes about a second: nobody waits for it. If it does not finish, the
	// next rotation does.
	j.sharing.Go(func() {
		err := errors.Join(share(j.dir, j.max), unlock())
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.failed, j.told = err, false; err != nil {
			j.again = time.Now().Add(shareAgain)
		}
	})
	return nil
}

// forget replaces the old file with the full one if the two cannot be merged: its
// oldest events are lost, whichever agent they belong to, and their room is free.
func (j *Journal) forget() error {
	full := filepath.Join(j.dir, fullFile)
	if _, err := os.Lstat(full); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return os.Rename(full, filepath.Join(j.dir, oldFile))
}

// Close closes the journal.
func (j *Journal) Close() error {
	j.sharing.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.f.Close()
}
