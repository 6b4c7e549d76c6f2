package orchestrator

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTwoSweepsAtOnceChangeNothingOfEachOther: where nobody notifies, every queue is looked
// at each second beside the regular round, and both counted their rounds in one variable.
func TestTwoSweepsAtOnceChangeNothingOfEachOther(t *testing.T) {
	t.Parallel()
	inBubble(t, "a b c", func(t *testing.T, r *rig) {
		r.opt.Inboxes = func(context.Context, []string, func(string)) error { return errors.New("the system gives no hints") }
		stop := r.run()
		defer stop()
		for range 3 {
			r.send("a", 1)
			r.sleep(5 * time.Minute)
		}
		if n := len(r.replies("a")); n != 3 {
			t.Errorf("%d of 3 are done", n)
		}
	})
}

// TestWhatAQueueAsksIsAnsweredForItsOwnFleet: the command that was shown lacked the file.
func TestWhatAQueueAsksIsAnsweredForItsOwnFleet(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.opt.Ours = "heartbeat -f x.yaml"
		r.send("a", 2)
		if err := os.WriteFile(filepath.Join(r.agent("a").Home, ".inbox-offset"), []byte("rubbish"), 0o600); err != nil {
			t.Fatal(err)
		}
		stop := r.run()
		defer stop()
		r.sleep(time.Hour)
		r.want("a", Held)
		if got := r.state("a").Fix.String(); got != "heartbeat -f x.yaml answer a" {
			t.Errorf("to do: %q", got)
		}
	})
}
