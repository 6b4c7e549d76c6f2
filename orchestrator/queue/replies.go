package queue

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// Reply is an agent's last message about an entry that it has done.
type Reply struct {
	Agent string `json:"agent"`
	inbox.Delivery
	// NotProven is true if the work had to be proven and was not: somebody wrote the record
	// into the outbox.
	NotProven bool `json:"not_proven,omitempty"`
}

// Replies returns the newest replies of agents since a time, at most most of them, oldest first.
// If an agent's replies cannot be read, it returns those of the others and an error.
func Replies(ctx context.Context, agents []*config.Agent, since time.Time, most int, doubts Doubtful) ([]Reply, error) {
	var all []Reply
	var errs []error
	for _, a := range agents {
		own, err := repliesOf(ctx, a, since, most, doubts)
		if err != nil {
			errs = append(errs, fmt.Errorf("cannot read the replies of agent %q: %w", a.Name, err))
		}
		all = append(all, own...)
	}
	slices.SortStableFunc(all, func(x, y Reply) int { return x.AcknowledgedAt.Compare(y.AcknowledgedAt) })
	return all[max(0, len(all)-most):], errors.Join(errs...)
}

func repliesOf(ctx context.Context, a *config.Agent, since time.Time, most int, doubts Doubtful) ([]Reply, error) {
	var own []Reply
	err := Read(ctx, a, func(q *inbox.Queue) error {
		for d, err := range q.Deliveries() {
			if err != nil {
				return err
			}
			if d.AcknowledgedAt.Before(since) {
				continue
			}
			if own = append(own, Reply{Agent: a.Name, Delivery: d}); len(own) > 2*most {
				own = slices.Clone(own[len(own)-most:])
			}
		}
		own = own[max(0, len(own)-most):]
		return doubt(q, a, own, doubts)
	})
	return own, err
}

// doubt marks the replies that are doubtful, or known to be forged.
func doubt(q *inbox.Queue, a *config.Agent, own []Reply, doubts Doubtful) error {
	forged := map[string]bool{}
	for d, err := range q.DeadLetters() {
		if err != nil {
			return err
		}
		if d.Reason == inbox.Forged {
			forged[d.DeliveryID] = true
		}
	}
	for i := range own {
		own[i].NotProven = forged[own[i].DeliveryID] || doubts != nil && doubts(a, own[i].Delivery)
	}
	return nil
}

// unmade is how often to check whether a missing queue exists now.
const unmade = time.Second

// FollowReplies calls do with each reply of the agents that is acknowledged after a
// time, one at a time, until ctx ends or do returns false. If an agent's replies cannot be read,
// do gets the reason once, with the agent's name alone, until there is another one.
func FollowReplies(ctx context.Context, agents []*config.Agent, after time.Time, doubts Doubtful, do func(Reply, error) bool) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	came := make(chan news)
	var all sync.WaitGroup
	for _, a := range agents {
		all.Go(func() { follow(ctx, a, after, doubts, came) })
	}
	go func() { all.Wait(); close(came) }()
	for r := range came {
		if !do(r.reply, r.err) {
			stop()
			for range came { // until all have noticed
			}
			return
		}
	}
}

// news is a reply, or why there may be some that cannot be read.
type news struct {
	reply Reply
	err   error
}

func follow(ctx context.Context, a *config.Agent, after time.Time, doubts Doubtful, to chan<- news) {
	said := ""
	send := func(n news) {
		select {
		case to <- n:
		case <-ctx.Done():
		}
	}
	fails := func(err error) {
		if err.Error() == said || errors.Is(err, fs.ErrNotExist) || ctx.Err() != nil {
			return
		}
		said = err.Error()
		send(news{Reply{Agent: a.Name}, fmt.Errorf("cannot read the replies of agent %q: %w", a.Name, err)})
	}
	for ctx.Err() == nil {
		q, err := Open(a)
		if err != nil {
			fails(err)
		} else {
			for d, err := range q.Follow(ctx) {
				if err != nil {
					fails(err)
				} else if said = ""; d.AcknowledgedAt.After(after) {
					send(news{reply: Reply{a.Name, d, doubts != nil && doubts(a, d)}})
					after = d.AcknowledgedAt
				}
			}
			_ = q.Close() // it was only read
		}
		select {
		case <-ctx.Done():
		case <-time.After(unmade):
		}
	}
}
