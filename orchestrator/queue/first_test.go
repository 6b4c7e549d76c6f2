package queue

import (
	"strings"
	"testing"

	"heartbeat/hook/inbox"
)

// TestTheFirstTextIsWhatASessionBeginsWith: what is in flight, else what is next.
func TestTheFirstTextIsWhatASessionBeginsWith(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 400)
	a := newAgent(t, long, "two")
	for _, in := range []string{"queued", "in flight"} {
		if text, err := FirstText(a, 100); text != long || err != nil {
			t.Errorf("%s: %.100q, %v", in, text, err)
		}
		if in == "queued" {
			start(t, a, inbox.Taken)
		}
	}
	if text, err := FirstText(a, 1<<20); text != "" || err != nil {
		t.Errorf("nothing can be that long: %.100q, %v", text, err)
	}
}
