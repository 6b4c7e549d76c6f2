package orchestrator

import (
	"context"
	"errors"
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
