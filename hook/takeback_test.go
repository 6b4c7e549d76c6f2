package hook

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/hook/process"
	"heartbeat/queue"
	"heartbeat/queue/wire"
)

// broken are outputs that take nothing.
func broken(t *testing.T) map[string]*os.File {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close(); full.Close() })
	return map[string]*os.File{"nobody reads it": w, "it is full": full}
}

// queuedAfresh checks that an entry is first in the queue, as if it had never
// been handed over.
func (l *lab) queuedAfresh(prompt string) {
	l.t.Helper()
	if f := l.flight(); f != nil {
		l.t.Fatalf("in flight %+v\n%s", f, l.log())
	}
	to := queue.Handover{Via: queue.ViaStop, Session: "S", At: time.Now()}
	l.queue.Carry("S", wire.Request{Steps: []wire.Step{{Do: wire.Offer, To: to}}})
	if f := l.flight(); f == nil || f.Attempt != 1 || handover.PromptFor(&f.Given) != prompt {
		l.t.Errorf("%+v: want %q for the first time", f, prompt)
	}
	l.moved()
}

// What the client did not get is queued as before: it was offered for good,
// came with a warning of a repeat, and used up an attempt.
func TestAHandOverThatFailsIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, how := range []Deliver{DeliverStderr, DeliverJSON} {
		for why, out := range broken(t) {
			t.Run(fmt.Sprintf("%s, %s", how, why), func(t *testing.T) {
				t.Parallel()
				l := begin(t, []string{"one", "two"}, func(r *Record) { r.Policy.Deliver = how })
				cmd := l.command([]string{"hook"}, l.payload(client.Stop, nil))
				cmd.Stdout, cmd.Stderr = out, out
				_ = cmd.Run()
				if s := cmd.ProcessState.ExitCode(); s != 0 && s != 1 {
					t.Errorf("status %d", s)
				}
				if r := l.record(); r.Phase != Unattended || r.Work != nil || r.Acknowledged != 1 || r.Continuations != 0 {
					t.Errorf("record: %+v", r)
				}
				if !strings.Contains(l.log(), "cannot hand over") {
					t.Errorf("hook.log: %s", l.log())
				}
				l.queuedAfresh("two")
			})
		}
	}
}

// someClient is a process that stands for a client that can be killed.
func someClient(t *testing.T) (c *exec.Cmd, kill func(reaped bool)) {
	t.Helper()
	c = exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c, func(reaped bool) {
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if reaped {
			_ = c.Wait()
			return
		}
		until(t, "the client to be a zombie", func() bool {
			p := process.Of(c.Process.Pid)
			return p.Start != 0 && !process.Lives(p)
		})
	}
}

// A hook that waits outlives a client that is killed. It took the next prompt,
// and gave it to nobody.
func TestAWaitingHookWhoseClientDiedTakesNothing(t *testing.T) {
	t.Parallel()
	for _, reaped := range []bool{true, false} {
		t.Run(fmt.Sprintf("reaped %t", reaped), func(t *testing.T) {
			t.Parallel()
			started, kill := someClient(t)
			l := newLab(t, persistent)
			l.isCalledBy(process.Of(started.Process.Pid))
			l.quietly(client.SessionStart, fields{"source": "startup"})
			cmd := l.wait()
			kill(reaped)
			l.append("late")
			if r := ended(t, cmd); r.status != 0 || r.stdout+r.stderr != "" {
				t.Errorf("%+v", r)
			}
			if !strings.Contains(l.log(), "the client has ended") {
				t.Errorf("hook.log: %s", l.log())
			}
			l.queuedAfresh("late")
		})
	}
}

// A Stop whose payload ends in its middle comes from a client that has ended.
func TestAStopThatIsCutOffAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	l := begin(t, []string{"one", "two"})
	whole := l.payload(client.Stop, fields{"zzz": strings.Repeat("x", 1000)})
	if r := l.run(l.command([]string{"hook"}, whole[:len(whole)-100])); r.status != 0 || r.stdout+r.stderr != "" {
		t.Fatalf("%+v", r)
	}
	if s, p := l.state(), l.record().Phase; s != queue.Taken || p != Unattended {
		t.Errorf("state %q, phase %s\n%s", s, p, l.log())
	}
}
