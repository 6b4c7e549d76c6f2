package hook

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/hook/harden"
	"heartbeat/internal/testbed"
	"heartbeat/queue"
)

// TestNothingButAHandOverEndsWithTwo crashes the binary in every way at every
// stage: with 2 the client would take what a runtime prints for a prompt, over
// and over (41 paid calls in 6 s, measured).
func TestNothingButAHandOverEndsWithTwo(t *testing.T) {
	t.Parallel()
	stages := []string{
		"start", "asked", "answered", "delivering", "delivered", "known",
	}
	type crash struct{ stage, kind string }
	var all []crash
	for _, stage := range stages {
		for _, kind := range []string{"panic", "goroutine", "overflow", "fatal", "quit"} {
			all = append(all, crash{stage, kind})
		}
	}
	for _, c := range testbed.SampleOf(t, all, 2) {
		t.Run(c.stage+" "+c.kind, func(t *testing.T) {
			t.Parallel()
			testbed.Played(t, testbed.Kills, 1)
			l := crashing(t)
			l.env = append(l.env, "HEARTBEAT_CRASH="+c.stage+":"+c.kind)
			r := l.event(client.Stop, fields{"stop_hook_active": true})
			if r.status == 2 || r.status == 0 && c.kind != "panic" {
				t.Fatalf("%+v", r)
			}
			if given := c.stage == "delivered" || c.stage == "known"; c.stage != "start" && r.stderr != "" && !(given && r.stderr == "two") {
				t.Errorf("stderr carries %q", r.stderr)
			}
			if c.stage != "start" && c.kind == "panic" && !strings.Contains(l.log(), "goroutine") {
				t.Errorf("hook.log has no stack: %q", l.log())
			}
		})
	}
}

// crashing is a session whose next Stop hands over its second entry.
func crashing(t *testing.T) *lab {
	t.Helper()
	l := newLab(t, persistent)
	l.append("one", "two")
	flight := l.offerFirst()
	l.quietly(client.SessionStart, fields{"source": "startup"})
	l.quietly(client.UserPromptSubmit, fields{"prompt": handover.KickoffPrompt(flight.Prompt)})
	return l
}

// TestSignalsWhileWaiting: the hook is told to end by its timeout (SIGTERM), by
// a hang-up, or from a terminal.
func TestSignalsWhileWaiting(t *testing.T) {
	t.Parallel()
	for sig, status := range map[syscall.Signal]int{
		syscall.SIGTERM: -1, syscall.SIGHUP: -1, syscall.SIGINT: -1, syscall.SIGQUIT: harden.StatusQuit,
	} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			l, cmd := waiting(t)
			begin := time.Now()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != status || time.Since(begin) > testbed.Patience {
				t.Errorf("status %d after %s, want %d", got, time.Since(begin), status)
			}
			if out := cmd.Stderr.(*strings.Builder).String() + cmd.Stdout.(*strings.Builder).String(); out != "" {
				t.Errorf("it said %q", out)
			}
			until(t, "the shim to know", func() bool {
				r := l.record()
				return r.Phase == Unattended && r.Waiter == Process{}
			})
		})
	}
}

// waiting is a session whose Stop hook waits for work.
func waiting(t testing.TB, change ...func(*Record)) (*lab, *exec.Cmd) {
	t.Helper()
	l := newLab(t, append([]func(*Record){persistent}, change...)...)
	return l, l.waits()
}

// waits starts the session, and a Stop hook that waits.
func (l *lab) waits() *exec.Cmd {
	l.t.Helper()
	l.quietly(client.SessionStart, fields{"source": "startup"})
	return l.wait()
}

// wait starts a Stop hook and returns once it waits.
func (l *lab) wait() *exec.Cmd {
	l.t.Helper()
	return l.stopsUntil(Waiting, nil)
}

// stops starts a Stop hook.
func (l *lab) stops(more fields) *exec.Cmd {
	l.t.Helper()
	cmd := l.command([]string{"hook"}, l.payload(client.Stop, more))
	cmd.Stdout, cmd.Stderr = &strings.Builder{}, &strings.Builder{}
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// stopsUntil starts a Stop hook and returns once it waits in a phase.
func (l *lab) stopsUntil(phase Phase, more fields) *exec.Cmd {
	l.t.Helper()
	cmd := l.stops(more)
	until(l.t, "the hook to wait: "+string(phase), func() bool {
		r := l.record()
		return r.Phase == phase && r.Waiter.PID == cmd.Process.Pid
	})
	return cmd
}

// TestCrashTextGoesToTheLog, and no file of a core to the agent.
func TestCrashTextGoesToTheLog(t *testing.T) {
	t.Parallel()
	l := crashing(t)
	l.env = append(l.env, "HEARTBEAT_CRASH=answered:panic")
	r := l.event(client.Stop, nil)
	if r.status != 0 || !strings.Contains(l.log(), "crash point answered") {
		t.Errorf("%+v\n%s", r, l.log())
	}
	if names, _ := os.ReadDir(l.home); len(names) == 0 || strings.Contains(l.files(), "core") {
		t.Errorf("a core file: %s", l.files())
	}
}

// TestKillAtEveryStageLosesNothing kills a Stop hook at each stage, recovers
// as the scheduler does, and drains: every entry is handed over, at most one
// of them twice, and each is acknowledged once.
func TestKillAtEveryStageLosesNothing(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"start", "asked", "answered", "delivering", "delivered", "known"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			testbed.Played(t, testbed.Kills, 1)
			l := crashing(t)
			l.append("three")
			given := map[string]int{"one": 1}
			l.env = append(l.env, "HEARTBEAT_CRASH="+stage+":kill")
			cmd := l.command([]string{"hook"}, l.payload(client.Stop, nil))
			if r := l.run(cmd); r.status != -1 {
				t.Fatalf("%+v, want it killed", r)
			}
			if stage != "start" { // the session ends only after its shim has seen that
				until(t, "the shim to have done with it", func() bool { _, is := l.over.Load(cmd.Process.Pid); return is })
			}
			l.env = l.env[:len(l.env)-1]
			l.recovers(queue.Interruption{Policy: queue.RetryOrphan, Counts: true})
			// The next session, with a constant kick-off.
			l.change(func(r *Record) {
				r.Session, r.Phase, r.BoundAt, r.Policy.Mode, r.Spoke = "S2", Starting, time.Time{}, Drain, false
			})
			for n := range 5 {
				r := l.event(client.Stop, fields{"stop_hook_active": n > 0})
				if r.status != 2 {
					break
				}
				text, _, _ := strings.Cut(r.stderr, "\n\n[heartbeat:")
				given[text]++
			}
			if given["one"]+given["two"]+given["three"] > 4 || given["one"] < 1 || given["two"] < 1 || given["three"] != 1 {
				t.Errorf("handed over: %v", given)
			}
			if n := len(l.replies()); n != 3 || l.flight() != nil {
				t.Errorf("%d acknowledged, in flight %+v", n, l.flight())
			}
		})
	}
}
