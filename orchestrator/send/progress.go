package send

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

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
	return queue.Await(ctx, a, sent.ID, ledger.Doubtful(dir, memory.Keys(dir, f.Agents), !sent.Duplicate))
}
