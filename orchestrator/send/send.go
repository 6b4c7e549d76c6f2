// Package send puts a person's prompt into an agent's queue, and reports its
// progress until the reply arrives.
package send

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
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
	// Running is true if a scheduler runs the agent.
	Running bool `json:"running"`
	// Duplicate is true if the id was accepted before; then nothing was queued.
	Duplicate bool `json:"duplicate"`
	// Differs is true if that was another text, as far as that can still be told.
	Differs bool `json:"differs"`
	// Ahead counts the entries before it, the one in flight included.
	Ahead int `json:"ahead"`
	// Obstacle is why the agent does not work now, or null.
	Obstacle *status.Trouble `json:"obstacle"`
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
func Prompt(ctx context.Context, f *config.Fleet, a *config.Agent, l inbox.Letter, ours string) (Sent, error) {
	s := Sent{Agent: a.Name, Inbox: a.Inbox}
	if err := owner.CheckName(f); err != nil {
		return s, err // nobody would work on it
	}
	if _, err := os.Stat(a.Dir); err != nil {
		return s, &DirectoryError{a.Name, err}
	}
	if err := workspace.MakeHome(a); err != nil {
		return s, err
	}
	id, err := queue.Append(ctx, a, l)
	switch {
	case errors.Is(err, inbox.ErrDuplicate):
		id, s.Duplicate = l.ID, true
		if s.Differs, err = differs(ctx, a, l); err != nil {
			return s, err
		}
	case err != nil:
		return s, err
	}
	s.ID = id
	now := lookAt(f, a, id)
	s.Running, s.Ahead = now.Agent.State != status.Stopped, now.Ahead
	if o, there := now.Agent.Obstacle(ours, now.at); there {
		s.Obstacle = &o
	}
	return s, nil
}

// differs reports whether the id of a prompt was accepted before with another text.
func differs(ctx context.Context, a *config.Agent, l inbox.Letter) (is bool, err error) {
	err = queue.Read(ctx, a, func(q *inbox.Queue) error {
		before, found, err := q.AcceptedAs(l.ID)
		is = found && strings.TrimSpace(before) != strings.TrimSpace(l.Prompt)
		return err
	})
	return is, err
}

// Progress is the progress of a prompt whose reply is awaited.
type Progress struct {
	Agent status.Agent
	// InFlight is true if a session has the prompt; otherwise Ahead counts the
	// entries before it, including the one in flight.
	InFlight bool
	Ahead    int
	at       time.Time
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
	return p
}

// every is how often Await reports progress.
const every = time.Second

// Await waits for the reply to a prompt that was sent, like queue.Await. tell, if
// not nil, is called now and then with the progress.
func Await(ctx context.Context, f *config.Fleet, a *config.Agent, id string, tell func(Progress)) (*inbox.Delivery, error) {
	if tell != nil {
		ctx, stop := context.WithCancel(ctx)
		told := make(chan struct{})
		go func() {
			defer close(told)
			for ticker := time.NewTicker(every); ; {
				tell(lookAt(f, a, id))
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
	return queue.Await(ctx, a, id)
}
