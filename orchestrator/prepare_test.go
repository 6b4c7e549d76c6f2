package orchestrator

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/launch"
)

// TestWhatOnlyAPersonCanHelpHoldsAtOnce: an agent whose client would run without
// our hooks was tried six times, with as many paid turns.
func TestWhatOnlyAPersonCanHelpHoldsAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b", func(t *testing.T, r *rig) {
		var blocked atomic.Bool
		blocked.Store(true)
		r.opt.Prepare = func(a *config.Agent) (launch.Prepared, error) {
			if a.Name == "a" && blocked.Load() {
				return launch.Prepared{}, fmt.Errorf("x says disableAllHooks: %w", launch.ErrNeedsPerson)
			}
			return launch.Prepared{}, nil
		}
		r.send("a", 1)
		r.send("b", 1)
		stop := r.run()
		defer stop()
		r.sleep(time.Minute)
		r.want("a", Held)
		if a := r.state("a"); !strings.Contains(a.Reason.String(), "disableAllHooks") || len(r.started("a")) != 0 {
			t.Errorf("%+v, started %v", a, r.started("a"))
		}
		if b := r.state("b"); b.Acknowledged != 1 {
			t.Errorf("another agent: %+v", b)
		}
		blocked.Store(false)
		if _, err := r.s.Resume("a"); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Minute)
		if a := r.state("a"); a.Acknowledged != 1 {
			t.Errorf("resumed: %+v", a)
		}
	})
}

// TestWhatPassesHoldsNoAgent: after 15 seconds of a full disk, or when another
// apply had the lock for long, each agent that had work was held until somebody
// came to resume it.
func TestWhatPassesHoldsNoAgent(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, context.DeadlineExceeded, launch.ErrPasses} {
		t.Run(cause.Error(), func(t *testing.T) {
			t.Parallel()
			holdsNobody(t, cause)
		})
	}
}

func holdsNobody(t *testing.T, cause error) {
	t.Helper()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		var full atomic.Bool
		full.Store(true)
		r.opt.Prepare = func(*config.Agent) (launch.Prepared, error) {
			if full.Load() {
				return launch.Prepared{}, fmt.Errorf("cannot wire: %w", cause)
			}
			return launch.Prepared{}, nil
		}
		r.agent("a").MaxRestarts = 3
		r.send("a", 1)
		stop := r.run()
		defer stop()
		r.sleep(time.Hour)
		r.want("a", BackingOff)
		full.Store(false)
		r.sleep(5*time.Minute + time.Minute)
		if a := r.state("a"); a.Acknowledged != 1 {
			t.Errorf("%+v, want its entry done", a)
		}
	})
}
