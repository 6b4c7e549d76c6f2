package orchestrator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/status"
)

// alive asks with a second's patience.
func (r *rig) alive() error {
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
	defer cancel()
	return r.s.Alive(ctx)
}

// TestAWedgedSchedulerIsNotAlive: whoever holds the lock for ever, or stands in
// the loop of the schedules, is told from one that works.
func TestAWedgedSchedulerIsNotAlive(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		stop := r.run()
		r.sleep(time.Minute)
		if err := r.alive(); err != nil {
			t.Errorf("a working scheduler: %v", err)
		}
		works, stands := r.s.firing, firing.New(firing.Options{Go: func(func()) {}})
		stands.Start(t.Context()) // and nobody runs it
		r.s.firing = stands
		err := r.alive()
		if err == nil || !strings.Contains(err.Error(), "loop of its schedules") || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a loop that stands still: %v", err)
		}
		r.s.firing = works
		if err := r.alive(); err != nil {
			t.Errorf("after it went on: %v", err)
		}
		stop()
		if err := r.alive(); err != nil {
			t.Errorf("one that has ended by itself: %v", err)
		}
	})
}

// TestAHeldLockIsSeen on a real clock, because a bubble's does not go on while
// somebody waits for a mutex.
func TestAHeldLockIsSeen(t *testing.T) {
	t.Parallel()
	s := New(Options{Fleet: &config.Fleet{}})
	s.mu.Lock()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			if err := s.Alive(ctx); err == nil || !strings.Contains(err.Error(), "its lock is not given back") {
				t.Errorf("a held lock: %v", err)
			}
		})
	}
	asking.Wait()
	first := s.glances.glance(s)
	if second := s.glances.glance(s); first != second {
		t.Error("two goroutines wait for the lock")
	}
	s.mu.Unlock()
	<-first.done
	if err := s.Alive(t.Context()); err != nil {
		t.Errorf("a lock that was given back: %v", err)
	}
}

func TestVitals(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b c", func(t *testing.T, r *rig) {
		r.fleet.MaxSessions = 1
		var mu sync.Mutex
		var seen []journal.Event
		r.opt.Observe = func(e journal.Event) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, e)
		}
		r.send("a", 1)
		r.send("b", 1)
		stop := r.run()
		r.sleep(10 * time.Second)
		v := r.s.Vitals()
		if !v.Ready || v.Stopping || v.Slots != 1 || v.Sessions != 1 || v.Agents[Running] != 1 || v.Agents[Waiting] != 1 || v.Agents[Idle] != 1 {
			t.Errorf("%+v", v)
		}
		for state := range v.Agents {
			if !slices.Contains(status.States(), state) {
				t.Errorf("%s is missing in States", state)
			}
		}
		r.sleep(5 * time.Minute)
		stop()
		if v := r.s.Vitals(); !v.Stopping || v.Sessions != 0 {
			t.Errorf("after the end: %+v", v)
		}
		mu.Lock()
		defer mu.Unlock()
		ended := slices.DeleteFunc(seen, func(e journal.Event) bool { return e.Kind != "ended" })
		if len(ended) != 2 || ended[0].Why != hook.EndDrained {
			t.Errorf("observed %+v", ended)
		}
	})
}
