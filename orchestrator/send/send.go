// Package send puts a person's prompt into an agent's queue, and reports its
// progress until the reply arrives.
package send

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/later"
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
	// Until, if not nil, is what the prompt has to pass, instead of what its agent's
	// have to.
	Until *config.Until
}

// DownError means that an agent cannot work, and refuses prompts meanwhile.
type DownError struct {
	Agent, Text string
	Trouble     status.Trouble
}

// Error says why, and what the fleet's file says to it.
func (e *DownError) Error() string {
	text := fmt.Sprintf("cannot queue the prompt: agent %q takes none now: %s", e.Agent, e.Trouble.Text)
	if e.Text != "" {
		text += "; " + e.Text
	}
	return text
}

// Hint says what to do.
func (e *DownError) Hint() string { return e.Trouble.Do }

// TargetError means that the fleet does not declare who should get the reply.
type TargetError struct {
	Target string
	Known  []string
}

// Error says whom.
func (e *TargetError) Error() string {
	return fmt.Sprintf("cannot queue the prompt: nobody is declared as %q in notify:", e.Target)
}

// Hint says who there is.
func (e *TargetError) Hint() string {
	if len(e.Known) == 0 {
		return "heartbeat help notify shows how to declare one"
	}
	return "the targets are " + strings.Join(e.Known, ", ")
}

// DirectoryError means that an agent's directory does not exist.
type DirectoryError struct {
	Agent string
	Err   error
}

// Error says which.
func (e *DirectoryError) Error() string {
	return fmt.Sprintf("cannot queue the prompt: cannot find the directory of agent %q: %v", e.Agent, e.Err)
}

// Hint says what to do: a wrong "dir" does not create an empty workspace that
// nobody reads.
func (e *DirectoryError) Hint() string {
	return "heartbeat apply " + e.Agent + " makes it; or correct dir in the configuration"
}

// Unwrap returns the cause.
func (e *DirectoryError) Unwrap() error { return e.Err }

// Prompt queues a prompt for an agent of a fleet, and creates what is missing in
// its directory. ours is how a command line for this fleet begins.
func Prompt(ctx context.Context, f *config.Fleet, a *config.Agent, asked Asked, ours string) (Sent, error) {
	s := Sent{Agent: a.Name, Inbox: a.Inbox, Urgent: asked.Urgent, ReplyTo: asked.ReplyTo}
	if err := ready(f, a, asked); err != nil {
		return s, err
	}
	if there, err := s.waitsForItsTime(f, a, asked); there || err != nil {
		return s, err
	}
	if a.WhileDown == config.DownRefuses {
		if o, there := lookAt(f, a, "").Obstacle(ours); there && o.Down() {
			return s, &DownError{a.Name, a.DownText, o}
		}
	}
	l, w, err := awaits(f, a, asked, time.Time{})
	if err != nil {
		return s, err
	}
	if asked.Until != nil && l.ID == "" {
		l.ID = unique()
	}
	ends, err := demands(f, a, l, asked.Until, time.Time{})
	if err != nil {
		return s, errors.Join(err, w.leaves())
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
		return s, errors.Join(err, w.leaves())
	}
	s.ID = id
	now := lookAt(f, a, id)
	s.Running, s.Ahead = now.Agent.State != status.Stopped, now.Ahead
	if o, there := now.Agent.Obstacle(ours, now.at); there {
		if a.DownText != "" && o.Down() {
			o.Text += "; " + a.DownText
		}
		s.Obstacle = &o
	}
	return s, nil
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

// Unproven reports, of a fleet's agents, what their outboxes call done and what they have
// to prove says is not.
func Unproven(f *config.Fleet) (queue.Unproven, error) {
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	return memory.Doubtful(dir, f.Agents, false), nil
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

// At keeps a prompt for an agent until a time. A scheduler that runs then queues it, or
// the next one that is started, at once. Who gets the reply, and what it has to pass, is
// kept in the state directory: the agent can write where the prompt is.
func At(ctx context.Context, f *config.Fleet, a *config.Agent, asked Asked, at time.Time) (Sent, error) {
	s := Sent{Agent: a.Name, Inbox: a.Inbox, Urgent: asked.Urgent, ID: asked.ID, At: at, ReplyTo: asked.ReplyTo}
	if err := ready(f, a, asked); err != nil {
		return s, err
	}
	if s.ID == "" {
		s.ID = unique()
	}
	asked.ID, asked.Idempotent, asked.Most, asked.Checked = s.ID, true, -1, asked.Until != nil
	if there, err := s.waitsForItsTime(f, a, asked); there || err != nil {
		return s, err
	}
	l := asked.Letter
	switch _, err := queue.Append(ctx, a, l); { // what the queue would refuse at that time is refused now
	case errors.Is(err, inbox.ErrDuplicate):
		s.Duplicate, s.At = true, time.Time{}
		_, w, err := awaits(f, a, asked, time.Time{})
		if err == nil {
			s.Differs, err = w.stood(ctx, a, l)
		}
		return s, err
	case !errors.Is(err, inbox.ErrFull): // it has room for none, and says nothing else against this one
		return s, err
	}
	_, w, err := awaits(f, a, asked, at)
	if err != nil {
		return s, err
	}
	ends, err := demands(f, a, l, asked.Until, at)
	if err != nil {
		return s, errors.Join(err, w.leaves())
	}
	kept, err := later.Put(ctx, a, later.Prompt{ID: s.ID, At: at, Text: l.Prompt, Urgent: l.Urgent})
	if errors.Is(err, later.ErrExists) { // put there a moment ago
		if s.sameAs(kept, l); s.Differs {
			err = w.leaves()
		} else {
			err = nil
		}
		return s, errors.Join(err, ends(false))
	}
	if err != nil {
		return s, errors.Join(err, ends(false), w.leaves())
	}
	s.Running = lookAt(f, a, s.ID).Agent.State != status.Stopped
	return s, nil
}

// waitsForItsTime reports whether a prompt with the id of another one waits for its time:
// it was accepted, and counts as if it was queued.
func (s *Sent) waitsForItsTime(f *config.Fleet, a *config.Agent, asked Asked) (bool, error) {
	if !asked.Idempotent || asked.ID == "" {
		return false, nil
	}
	before, err := later.Find(a, asked.ID)
	if before == nil || err != nil {
		return false, err
	}
	if s.sameAs(*before, asked.Letter); !s.Differs {
		_, _, err = awaits(f, a, asked, before.At)
	}
	return true, err
}

// sameAs says that the id of a letter is that of a prompt that waits for its time.
func (s *Sent) sameAs(before later.Prompt, l inbox.Letter) {
	s.ID, s.At, s.Duplicate = before.ID, before.At, true
	s.Differs = !queue.SameText(before.Text, l.Prompt)
}

// unique makes an id.
func unique() string {
	var id [8]byte
	_, _ = rand.Read(id[:]) // never fails (crypto/rand)
	return hex.EncodeToString(id[:])
}

// TakeBack takes back a prompt that waits for its time, and forgets who waits for the reply
// and what it had to pass. With later.ErrNone none waits.
func TakeBack(ctx context.Context, f *config.Fleet, a *config.Agent, id string) error {
	if err := later.Cancel(ctx, a, id); err != nil {
		return err
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return err
	}
	return errors.Join(awaited.Forget(dir, a.Name, id), ledger.DropDemand(dir, a.Inbox, id))
}

// waiter is who waits for the reply to a prompt; the zero value: nobody.
type waiter struct {
	dir   string
	reply awaited.Reply
	known bool // somebody waited for it before
}

// awaits notes who gets the reply, before the prompt is accepted: none is without it. due
// is when it is sent, zero: now.
func awaits(f *config.Fleet, a *config.Agent, asked Asked, due time.Time) (l inbox.Letter, w waiter, err error) {
	l = asked.Letter
	if asked.ReplyTo == "" {
		return l, w, nil
	}
	if l.ID == "" {
		l.ID = unique()
	}
	if w.dir, err = owner.Claim(f); err != nil {
		return l, w, err
	}
	w.reply = awaited.Reply{Agent: a.Name, ID: l.ID, Target: asked.ReplyTo, At: time.Now(), Due: due.UTC()}
	w.known = awaited.Waits(w.dir, w.reply)
	return l, w, awaited.Add(w.dir, w.reply)
}

// stood reports whether the prompt that stood under the id has another text. Its reply is
// nobody's then; otherwise it is waited for, though the prompt was queued before.
func (w waiter) stood(ctx context.Context, a *config.Agent, l inbox.Letter) (differs bool, err error) {
	differs, _, err = queue.Differs(ctx, a, l.ID, l.Prompt)
	switch {
	case err != nil || w.dir == "":
		return differs, err
	case differs:
		return true, w.leaves()
	}
	w.reply.Before = true
	return false, awaited.Add(w.dir, w.reply)
}

// leaves forgets a waiter whose prompt was not accepted.
func (w waiter) leaves() error {
	if w.dir == "" || w.known {
		return nil
	}
	return awaited.Remove(w.dir, w.reply)
}

// Progress is the progress of a prompt whose reply is awaited.
type Progress struct {
	Agent status.Agent
	// InFlight is true if a session has the prompt; otherwise Ahead counts the
	// entries before it, including the one in flight.
	InFlight bool
	Ahead    int
	// Aside is true if it waits for a person outside the queue.
	Aside bool
	at    time.Time
}

// Obstacle is why the agent does not work, if there is a reason.
func (p Progress) Obstacle(ours string) (status.Trouble, bool) { return p.Agent.Obstacle(ours, p.at) }

// Working is how long a session has had its present entry.
func (p Progress) Working() time.Duration {
	if p.Agent.InFlight == nil {
		return 0
	}
	return max(0, p.at.Sub(p.Agent.InFlight.DeliveredAt))
}

func lookAt(f *config.Fleet, a *config.Agent, id string) Progress {
	p := Progress{at: time.Now()}
	alone := *f
	alone.Agents = []*config.Agent{a}
	stateDir, err := owner.StateDir(f)
	if err != nil {
		return p
	}
	p.Agent = status.Read(&alone, stateDir, nil, p.at).Agents[0]
	p.Ahead, p.InFlight, err = queue.Ahead(a, id)
	if err != nil {
		p.Ahead = 0 // the status says what is wrong
	}
	p.Aside, _ = queue.WaitsAside(a, id)
	return p
}

// every is how often Await reports progress.
const every = time.Second

// Await waits for the reply to a prompt that was sent, like queue.Await. tell, if
// not nil, is called now and then with the progress.
func Await(ctx context.Context, f *config.Fleet, a *config.Agent, sent Sent, tell func(Progress)) (*inbox.Delivery, error) {
	if tell != nil {
		ctx, stop := context.WithCancel(ctx)
		told := make(chan struct{})
		go func() {
			defer close(told)
			for ticker := time.NewTicker(every); ; {
				tell(lookAt(f, a, sent.ID))
				select {
				case <-ctx.Done():
					ticker.Stop()
					return
				case <-ticker.C:
				}
			}
		}()
		defer func() { stop(); <-told }()
	}
	dir, err := owner.StateDir(f)
	if err != nil {
		return nil, err
	}
	return queue.Await(ctx, a, sent.ID, memory.Doubtful(dir, f.Agents, !sent.Duplicate))
}
