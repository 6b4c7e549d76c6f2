// Package send puts a person's prompt into an agent's queue, and reports its
// progress until the reply arrives.
package send

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/workspace"
)

// Sent is a prompt that was accepted: it is on disk.
type Sent struct {
	Agent string `json:"agent"`
	ID    string `json:"id"`
	Inbox string `json:"inbox"`
	// Urgent is true if it is handed over before those that are not.
	Urgent bool `json:"urgent"`
	// Running is true if a scheduler runs the agent.
	Running bool `json:"running"`
	// At is when it is sent, if that is later; of a duplicate, when the first one is.
	At time.Time `json:"at,omitzero"`
	// Duplicate is true if the id was accepted before; then nothing was queued.
	Duplicate bool `json:"duplicate"`
	// Differs is true if that was another text, as far as that can still be told.
	Differs bool `json:"differs"`
	// Unrecorded is why it is not recorded what it says, so that nobody notices if its agent
	// changes it; or "".
	Unrecorded string `json:"unrecorded,omitempty"`
	// Ahead counts the entries before it, the one in flight included.
	Ahead int `json:"ahead"`
	// ReplyTo is who gets the reply, or "".
	ReplyTo string `json:"reply_to,omitempty"`
	// Obstacle is why the agent does not work now, or null.
	Obstacle *status.Trouble `json:"obstacle"`
}

// Asked is a prompt and what its sender wants.
type Asked struct {
	inbox.Letter
	// ReplyTo is the target that gets the reply, or learns that the prompt was given
	// up; "": nobody.
	ReplyTo string
	// Await changes who waits for a reply, durably, and reports whether somebody did.
	Await func(context.Context, awaited.Order) (known bool, err error) `json:"-"`
	// Until, if not nil, is what the prompt has to pass, instead of what its agent's
	// have to.
	Until *config.Until
	// In, for At, is how long the prompt is to wait, if that was said and no time; else 0.
	In time.Duration
}

// Prompt queues a prompt for an agent of a fleet, and creates what is missing in
// its directory. ours is how a command line for this fleet begins.
func Prompt(ctx context.Context, f *config.Fleet, a *config.Agent, asked Asked, ours string) (Sent, error) {
	s := Sent{Agent: a.Name, Inbox: a.Inbox, Urgent: asked.Urgent, ReplyTo: asked.ReplyTo}
	if err := ready(f, a, asked); err != nil {
		return s, err
	}
	if there, err := s.waitsForItsTime(ctx, a, asked); there || err != nil {
		return s, err
	}
	if a.WhileDown == config.DownRefuses {
		if o, there := lookAt(f, a, "").Obstacle(ours); there && o.Down() {
			return s, &DownError{a.Name, a.DownText, o}
		}
	}
	l, w, err := awaits(ctx, a, asked, time.Time{})
	if err != nil {
		return s, err
	}
	if asked.Until != nil && l.ID == "" {
		l.ID = NewID()
	}
	ends, err := demands(f, a, l, asked.Until, time.Time{})
	if err != nil {
		return s, errors.Join(err, w.leaves(ctx))
	}
	l.Checked = asked.Until != nil
	id, err := queue.Append(ctx, a, l)
	if failed := ends(err == nil); failed != nil && err != nil { // what stands in the inbox is queued all the same
		return s, errors.Join(err, failed)
	}
	switch {
	case errors.Is(err, inbox.ErrDuplicate):
		id, s.Duplicate = l.ID, true
		if s.Differs, err = w.stood(ctx, a, l); err != nil {
			return s, err
		}
	case err != nil:
		return s, errors.Join(err, w.leaves(ctx))
	}
	if s.ID = id; !s.Duplicate {
		l.ID = id
		s.remembers(f, a, l)
	}
	s.looks(f, a, ours)
	return s, nil
}

// looks says what is before a prompt that was queued, and what it waits for.
func (s *Sent) looks(f *config.Fleet, a *config.Agent, ours string) {
	now := lookAt(f, a, s.ID)
	s.Running, s.Ahead = now.Agent.State != status.Stopped, now.Ahead
	if o, there := now.Agent.Obstacle(ours, now.at); there && (o.What != status.Behind || s.isQueued(a, now)) {
		if a.DownText != "" && o.Down() {
			o.Text += "; " + a.DownText
		}
		s.Obstacle = &o
	}
}

// isQueued reports whether nobody has the prompt yet. Its session may have taken it between two
// looks, and then it is what is being worked on.
func (s *Sent) isQueued(a *config.Agent, now Progress) bool {
	held, err := queue.Holds(a, s.ID, false)
	return err != nil || held && !now.InFlight
}

// demands records what a prompt has to pass, before it is queued, or kept until it is due.
func demands(f *config.Fleet, a *config.Agent, l inbox.Letter, u *config.Until, due time.Time) (ends func(queued bool) error, err error) {
	if u == nil {
		return func(bool) error { return nil }, nil
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	return ledger.Asks(dir, ledger.Demand{ID: l.ID, Inbox: a.Inbox, Text: l.Prompt, Until: u, At: time.Now(), Due: due})
}

// Doubtful reports, of a fleet's agents, what their outboxes call done and what they have
// to prove says is not.
func Doubtful(f *config.Fleet) (queue.Doubtful, error) {
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	return ledger.Doubtful(dir, memory.Keys(dir, f.Agents), false), nil
}

// ready makes what is missing in an agent's directory, or says why nobody would work
// there, or get the reply.
func ready(f *config.Fleet, a *config.Agent, asked Asked) error {
	if asked.ReplyTo != "" && f.Targets[asked.ReplyTo] == nil {
		return &TargetError{asked.ReplyTo, slices.Sorted(maps.Keys(f.Targets))}
	}
	if err := owner.CheckName(f); err != nil {
		return err
	}
	if _, err := os.Stat(a.Dir); err != nil {
		return &DirectoryError{a.Name, err}
	}
	return workspace.MakeHome(a)
}

// NewID makes an id that no other prompt has.
func NewID() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	return hex.EncodeToString(id[:])
}
