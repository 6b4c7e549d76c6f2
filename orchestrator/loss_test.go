package orchestrator

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/queue"
)

// TestAQueueThatGoesWithoutASession: nobody noticed.
func TestAQueueThatGoesWithoutASession(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		synctest.Wait() // the inboxes are watched
		if _, err := r.s.Pause("a"); err != nil {
			t.Fatal(err)
		}
		r.send("a", 2)
		r.sleep(2 * 2 * time.Second)
		home := r.agent("a").Home
		if err := os.Rename(home, home+".old"); err != nil {
			t.Fatal(err)
		}
		r.sleep(2 * sweepEvery)
		told := r.journal("queue-lost")
		if len(told) != 1 || !strings.Contains(told[0].Detail.String(), "2 prompts were queued (") {
			t.Errorf("told: %+v", told)
		}
		if a := r.state("a"); a.QueueLost == nil || !a.NeedsPerson() {
			t.Errorf("%+v", a.QueueLost)
		}
	})
}

// TestAQueueThatIsReplacedByItsEqualIsNotLost: a paused agent whose folder was
// moved there and back, or restored with what was in it, was said to have lost its
// queue.
func TestAQueueThatIsReplacedByItsEqualIsNotLost(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{true, false} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			stop := r.run()
			defer stop()
			synctest.Wait()
			if _, err := r.s.Pause("a"); err != nil {
				t.Fatal(err)
			}
			r.send("a", 2)
			r.sleep(2 * 2 * time.Second)
			home := r.agent("a").Home
			if err := errors.Join(os.Rename(home, home+".old"), os.CopyFS(home, os.DirFS(home+".old"))); err != nil {
				t.Fatal(err)
			}
			inboxFile := r.agent("a").Inbox
			if !whole { // a backup from before the last one
				text, err := os.ReadFile(inboxFile)
				first, _, _ := strings.Cut(string(text), "\n")
				if err = errors.Join(err, os.Remove(filepath.Join(home, ".inbox.jsonl.kept")), os.Remove(filepath.Join(home, ".ids")),
					os.WriteFile(inboxFile, []byte(first+"\n"), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			r.sleep(2 * sweepEvery)
			told, a := r.journal("queue-lost"), r.state("a")
			if whole && (len(told) > 0 || a.QueueLost != nil) {
				t.Errorf("a false alarm: %+v, %+v", told, a.QueueLost)
			}
			if !whole && (len(told) != 1 || a.QueueLost == nil || a.QueueLost.Queued != 1) {
				t.Errorf("told %+v, %+v", told, a.QueueLost)
			}
		})
	}
}

// TestAnInboxThatIsReplacedIsTold: only hook.log told that what was queued was gone.
func TestAnInboxThatIsReplacedIsTold(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{true, false} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			stop := r.run()
			defer stop()
			synctest.Wait()
			if _, err := r.s.Pause("a"); err != nil {
				t.Fatal(err)
			}
			r.send("a", 2)
			r.sleep(2 * time.Second)
			r.replaceInbox("a")
			if !paused {
				if _, err := r.s.Resume("a"); err != nil {
					t.Fatal(err)
				}
			}
			r.sleep(3 * sweepEvery)
			told := r.journal("queue-lost")
			if len(told) != 1 || !strings.Contains(told[0].Detail.String(), "2 prompts") || !strings.Contains(told[0].Reason.String(), "place") {
				t.Errorf("told: %+v", told)
			}
			var dead []inbox.DeadEntry
			_ = queue.Read(t.Context(), r.agent("a"), func(q *inbox.Queue) error {
				for d := range q.DeadLetters() {
					dead = append(dead, d)
				}
				return nil
			})
			if len(dead) != 2 || dead[0].Reason != inbox.Lost || dead[0].Raw() == nil {
				t.Errorf("dead letters %+v", dead)
			}
		})
	}
}

// TestALossIsToldAtOnce: it was told up to half a minute later, with the next look at all
// queues, though the look that a notification caused had filed it.
func TestALossIsToldAtOnce(t *testing.T) {
	t.Parallel()
	for _, paused := range []bool{true, false} {
		inBubble(t, "a", func(t *testing.T, r *rig) {
			stop := r.run()
			defer stop()
			synctest.Wait()
			if _, err := r.s.Pause("a"); err != nil {
				t.Fatal(err)
			}
			r.send("a", 2)
			r.sleep(2 * sweepEvery)
			r.replaceInbox("a")
			at := time.Now()
			if paused {
				r.tell("a")
			} else if _, err := r.s.Resume("a"); err != nil {
				t.Fatal(err)
			}
			r.sleep(sweepEvery / 2)
			if told := r.journal("queue-lost"); len(told) != 1 || told[0].At.Sub(at) > 3*time.Second {
				t.Errorf("paused %t, told: %+v, it happened at %s", paused, told, at)
			}
		})
	}
}

// TestALossAfterARetryIsToldToo: as many dead letters were lost ones as before.
func TestALossAfterARetryIsToldToo(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		stop := r.run()
		defer stop()
		synctest.Wait()
		if _, err := r.s.Pause("a"); err != nil {
			t.Fatal(err)
		}
		r.send("a", 2)
		r.sleep(2 * sweepEvery)
		r.replaceInbox("a")
		r.sleep(2 * sweepEvery)
		if told := r.journal("queue-lost"); len(told) != 1 {
			t.Fatalf("told at first: %+v", told)
		}
		// Before anybody looks, they are queued again, and go again.
		if n, _, err := queue.Retry(t.Context(), r.agent("a"), nil, true); n != 2 || err != nil {
			t.Fatal(n, err)
		}
		r.replaceInbox("a")
		_ = queue.LookInto(r.agent("a"))
		r.sleep(2 * sweepEvery)
		if told := r.journal("queue-lost"); len(told) != 2 {
			t.Errorf("told: %+v", told)
		}
	})
}

// replaceInbox puts another file in the place of an agent's inbox.
func (r *rig) replaceInbox(name string) {
	r.t.Helper()
	path := r.agent(name).Inbox
	if err := errors.Join(os.WriteFile(path+".new", []byte("other\n"), 0o600), os.Rename(path+".new", path)); err != nil {
		r.t.Fatal(err)
	}
}
