package orchestrator

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
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
		if len(told) != 1 || !strings.Contains(told[0].Detail.String(), "2 prompts were queued") {
			t.Errorf("told: %+v", told)
		}
		if a := r.state("a"); a.QueueLost == nil || !a.NeedsPerson() {
			t.Errorf("%+v", a.QueueLost)
		}
	})
}
