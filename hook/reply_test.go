package hook

import (
	"slices"
	"strings"
	"testing"

	"heartbeat/hook/client/clienttest"
	"heartbeat/queue"
)

// The reply of an entry that was done some time after its Stop, when its
// background tasks or other Stop hooks had ended, was cut without a word.
func TestAKeptReplyIsSaidToBeCut(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"x", "ü", "你", "👩"} {
		if kept := KeepReply(strings.Repeat(c, 200_000)); len(kept) <= queue.MaxReply {
			t.Errorf("%s: the outbox cannot tell it from a whole one: %d bytes", c, len(kept))
		}
		if whole := strings.Repeat(c, 1000); KeepReply(whole) != whole {
			t.Errorf("%s: a short one is cut", c)
		}
	}
}

// TestAnEmptyAnswersReplyIsEmpty: the reply of an entry that the model answered with nothing was
// the one of the entry before, which the client names again.
func TestAnEmptyAnswersReplyIsEmpty(t *testing.T) {
	t.Parallel()
	for name, c := range clienttest.SecondAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, []string{"one", "two", "three"})
			l.handsOver("two", fields{"last_assistant_message": "first"})
			c.Write(t, l.transcript)
			l.handsOver("three", fields{"stop_hook_active": true, "last_assistant_message": c.Told})
			if got := l.replies(); !slices.Equal(got, []string{"first", c.Want}) {
				t.Errorf("replies %q, want %q second", got, c.Want)
			}
		})
	}
}
