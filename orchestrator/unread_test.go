package orchestrator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/status"
)

// A lock that may not be opened was reported as a session that still lives.
func TestALockThatCannotBeOpenedIsNoLiveSession(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.mkdir(r.agent("a").Home)
		lock := filepath.Join(filepath.Dir(r.agent("a").Inbox), inbox.SessionLock)
		if err := os.Symlink(filepath.Join(r.dir, "elsewhere"), lock); err != nil {
			t.Fatal(err)
		}
		stop := r.run()
		defer stop()
		r.sleep(time.Millisecond)
		r.want("a", BackingOff)
		got := r.state("a").Reason.String()
		if strings.Contains(got, "lives") || !strings.Contains(got, lock) || !strings.Contains(got, "symbolic link") {
			t.Errorf("it says %q", got)
		}
	})
}

// Of a queue that could not be read status and the table of --once said that
// it was empty.
func TestAQueueThatCannotBeReadIsNotEmpty(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		home := r.agent("a").Home
		if err := errors.Join(os.MkdirAll(r.agent("a").Dir, 0o700), os.WriteFile(home, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if st := status.Read(r.fleet, filepath.Join(r.dir, "state"), nil, time.Now()).Agents[0]; !st.Unread || st.Problem == "" {
			t.Errorf("status: %+v", st)
		}
		if err := os.Remove(home); err != nil {
			t.Fatal(err)
		}
		if st := status.Read(r.fleet, filepath.Join(r.dir, "state"), nil, time.Now()).Agents[0]; st.Unread || st.Problem != "" {
			t.Errorf("status of an agent without a queue: %+v", st)
		}
		stop := r.run()
		if err := errors.Join(os.RemoveAll(home), os.WriteFile(home, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if sum := stop(); sum.Agents[0].Unread == "" || sum.Verdict() != status.SomeLeft {
			t.Errorf("summary: %+v", sum.Agents[0])
		}
	})
}

// TestASessionThatOutlivesItsRunIsTold: why its entry could not be recovered was told as a
// lock, and a deadline that was exceeded.
func TestASessionThatOutlivesItsRunIsTold(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.send("a", 1)
		r.take("a")
		unlock, err := flock.TryLock(filepath.Join(filepath.Dir(r.agent("a").Inbox), inbox.SessionLock))
		if err != nil {
			t.Fatal(err)
		}
		stop := r.run()
		defer stop()
		r.sleep(100 * time.Millisecond) // the start has waited
		a := r.state("a")
		if a.State != BackingOff || !strings.Contains(a.Reason.String(), "a session lives there") || strings.Contains(a.Reason.String(), "deadline") || !strings.Contains(a.Fix.String(), "wait until it has ended") {
			t.Errorf("%s: %s; %s", a.State, a.Reason, a.Fix)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		r.sleep(2 * time.Minute)
		if all := r.outbox("a"); len(all) != 1 {
			t.Errorf("done: %+v", all)
		}
	})
}
