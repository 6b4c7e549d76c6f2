package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/store/storetest"
)

// TestTooFewOpenFiles declares more agents than any process may open
// directories.
func TestTooFewOpenFiles(t *testing.T) {
	t.Parallel()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if limit.Cur > 1<<24 {
		t.Skip("this process may open more files than a test can declare agents")
	}
	s := New(Options{Fleet: &config.Fleet{MaxSessions: 1}, StateDir: t.TempDir()})
	if err := claim.EnoughDescriptors(0, 1); err != nil {
		t.Errorf("no agents: %v", err)
	}
	s.fleet.members = make([]*member, limit.Cur)
	err := s.getReady(t.Context())
	few, ok := errors.AsType[*claim.DescriptorsError](err)
	if !ok || few.Have != uint64(limit.Cur) || few.Need <= few.Have || !strings.Contains(few.Hint(), "ulimit -Hn") {
		t.Errorf("%v", err)
	}
}

// TestAReloadOfManyWatchesTheInboxesOnce: to watch them is work for each
// agent, and must not be done again for each one that comes.
func TestAReloadOfManyWatchesTheInboxesOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		var watches atomic.Int64
		var mu sync.Mutex
		var last []string
		r.opt.Inboxes = func(ctx context.Context, folders []string, changed func(string)) error {
			watches.Add(1)
			mu.Lock()
			last = folders
			mu.Unlock()
			return r.notify(ctx, folders, changed)
		}
		stop := r.run()
		defer stop()
		synctest.Wait() // the first watch has begun
		all := []*config.Agent{r.agent("a")}
		for i := range 40 {
			all = append(all, r.declare(fmt.Sprint("new-", i)))
		}
		if _, err := r.s.Reload(r.with(all...)); err != nil {
			t.Fatal(err)
		}
		r.sleep(time.Second)
		// One at the start, one of the reload, and a few as the agents come.
		if n := watches.Load(); n > 8 {
			t.Errorf("the inboxes were watched anew %d times", n)
		}
		mu.Lock()
		n := len(last)
		mu.Unlock()
		if n != len(all) {
			t.Errorf("%d of %d folders are watched", n, len(all))
		}
		r.send("new-39", 1)
		r.sleep(time.Second)
		r.want("new-39", Running)
	})
}

// Found by the soak: SIGTERM while a scheduler recovers what was left ended it
// with "context canceled" and status 1, as if it had failed.
func TestAStopWhileGettingReadyIsNoFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t, "a")
	r.send("a", 1)
	opt := r.opt
	opt.Fleet, opt.StateDir, opt.Runner, opt.Inboxes = r.fleet, t.TempDir(), r, r.notify
	opt.Ready = func() { t.Error("it says that it is ready") }
	opt.Store = storetest.New(t, opt.StateDir)
	s := New(opt)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	sum, err := s.Run(ctx)
	if err != nil || sum == nil || len(sum.Agents) != 1 || sum.Agents[0].Queued != 1 || sum.Finished {
		t.Errorf("Run: %+v, %v", sum, err)
	}
}

// TestAStartSaysHowFarItIs: for each agent once, up to all of them.
func TestAStartSaysHowFarItIs(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b c", func(t *testing.T, r *rig) {
		var mu sync.Mutex
		told := map[int]int{}
		r.opt.Recovering = func(done, of int) {
			mu.Lock()
			defer mu.Unlock()
			if told[done]++; of != 3 {
				t.Errorf("%d of %d", done, of)
			}
		}
		stop := r.run()
		stop()
		if told[1] != 1 || told[2] != 1 || told[3] != 1 || len(told) != 3 {
			t.Errorf("%v", told)
		}
	})
}
