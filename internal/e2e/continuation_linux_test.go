package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestTenHandOversInOneSession is the ground heartbeat stands on: with the
// block cap off, each Stop hook that exits 2 is one turn, in order, and its
// text stands in the request once.
func TestTenHandOversInOneSession(t *testing.T) {
	t.Parallel()
	var entries []Reply
	for n := range 10 {
		entries = append(entries, HandOver(fmt.Sprintf("entry %02d\n/clear is text here", n)))
	}
	l := newLab(t, realClient(t), replies{"Stop": entries}.script())
	l.Setenv("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0")
	l.ProjectSettings(l.Hooks())
	term := l.Start("begin")
	l.UntilCalls("Stop", 11)
	term.Signal(syscall.SIGTERM)
	if got := term.WaitExit(patience); got != "exit 143" {
		t.Errorf("after SIGTERM: %s", got)
	}
	requests := l.API.Requests()
	if len(requests) != 11 {
		t.Fatalf("%d model calls, want 11", len(requests))
	}
	for n, r := range requests[1:] {
		text := fmt.Sprintf("entry %02d", n)
		prompts := strings.Join(r.Prompts(), "|")
		if want := "/clear is text here"; !strings.Contains(prompts, text+"\n"+want) {
			t.Errorf("model call %d got %q, want %q", n+2, prompts, text)
		}
		if c := r.Copies(text); c != 1 {
			t.Errorf("%q stands in the request %d times", text, c)
		}
	}
	for n, c := range l.Calls("Stop") {
		if c.Field("stop_hook_active") != (n > 0) {
			t.Errorf("Stop %d: stop_hook_active is %v", n, c.Field("stop_hook_active"))
		}
	}
}
