package e2e

import (
	"strings"
	"testing"
)

// TestSendWait: send --wait prints the reply; it says so when the entry was
// given up, and when none came in time.
func TestSendWait(t *testing.T) {
	t.Parallel()
	f := newFleet(t, client{name: "simulate"}, append([]string{"max-attempts: 1", "on-orphan: deadletter"}, persist...))
	f.teach(
		behaviour{match: "question", reply: "the answer"},
		behaviour{match: "dies", bash: "kill -9 $CLAUDE_PID", reply: "never"},
	)
	f.start()
	if out := f.must("", "send", "--wait", "a", "a question"); out != "the answer\n" {
		t.Errorf("stdout %q, want the reply", out)
	}
	_, errs, code := f.heartbeat("", "send", "--wait", "--timeout", "60s", "a", "dies in a tool")
	if code != 1 || !strings.Contains(errs, "given up: interrupted") || !strings.Contains(errs, "hint: heartbeat dead-letter a") {
		t.Errorf("exit %d, stderr %q", code, errs)
	}
}

// TestSendWaitInVain: nobody runs; the prompt stays queued.
func TestSendWaitInVain(t *testing.T) {
	t.Parallel()
	f := newFleet(t, client{name: "simulate"}, nil)
	_, errs, code := f.heartbeat("", "send", "--wait", "--timeout", "1s", "a", "anybody there?")
	if code != 124 || !strings.Contains(errs, "within 1s") {
		t.Errorf("exit %d, stderr %q", code, errs)
	}
	if out := f.must("", "inbox", "a"); !strings.Contains(out, "anybody there?") {
		t.Errorf("the prompt is not queued: %s", out)
	}
}
