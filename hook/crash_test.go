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
	"heartbeat/hook/inbox"
	"heartbeat/internal/testbed"
)

// TestNothingButAHandOverEndsWithTwo crashes the binary in every way at every
// stage: with 2 the client would take what a runtime prints for a prompt, over
// and over (41 paid calls in 6 s, measured).
func TestNothingButAHandOverEndsWithTwo(t *testing.T) {
	t.Parallel()
	stages := []string{
		"start", "fenced", "opened", "locked", "advanced", "acknowledged", "looked", "offered", "saved", "delivering", "waiting",
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
			l := crashing(t, c.stage)
			l.soon()
			l.env = append(l.env, "HEARTBEAT_CRASH="+c.stage+":"+c.kind)
			name, more := client.Stop, fields{"stop_hook_active": c.stage != "looked"}
			if c.stage == "advanced" {
				name = client.PreToolUse
			}
			r := l.event(name, more)
			if r.status == 2 || r.status == 0 && c.kind != "panic" {
				t.Fatalf("%+v", r)
			}
			if c.stage != "start" && r.stderr != "" {
				t.Errorf("stderr carries %q", r.stderr)
			}
			if c.stage != "start" && c.kind != "quit" && !strings.Contains(l.log(), "goroutine") {
				t.Errorf("hook.log has no stack: %q", l.log())
			}
		})
	}
}

// crashing is a session whose next Stop passes the stage: an entry is taken,
// or offered where the transcript is to be looked at, and another one queued,
// unless the stage is waiting for one.
func crashing(t *testing.T, stage string) *lab {
	t.Helper()
	l := newLab(t, persistent)
	l.append("one", "two")
	flight := l.offerFirst()
	l.quietly(client.SessionStart, fields{"source": "startup"})
	if stage != "looked" {
		l.quietly(client.UserPromptSubmit, fields{"prompt": handover.KickoffPrompt(flight.Prompt())})
	}
	if stage == "waiting" {
		l.handsOver("two", nil)
	}
	return l
}

// TestCrashesInTheHandWiredForm: there a panic fails open, and other crashes
// end with a signal.
func TestCrashesInTheHandWiredForm(t *testing.T) {
	t.Parallel()
	type crash struct{ stage, kind, deliver string }
	var all []crash
	for _, stage := range []string{"start", "fenced", "locked", "offered", "delivering", "delivered"} {
		for _, kind := range []string{"panic", "goroutine", "overflow", "quit"} {
			for _, deliver := range []string{"json", "stderr"} {
				all = append(all, crash{stage, kind, deliver})
			}
		}
	}
	for _, c := range testbed.SampleOf(t, all, 3) {
		t.Run(c.stage+" "+c.kind+" "+c.deliver, func(t *testing.T) {
			t.Parallel()
			o := newOld(t, "one\n")
			o.env = append(o.env, "HEARTBEAT_CRASH="+c.stage+":"+c.kind)
			if r := o.stop("--deliver", c.deliver); r.status == 2 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestSignalsWhileWaiting: the hook is told to end by its timeout (SIGTERM), by
// a hang-up, or from a terminal.
func TestSignalsWhileWaiting(t *testing.T) {
	t.Parallel()
	for sig, status := range map[syscall.Signal]int{
		syscall.SIGTERM: 0, syscall.SIGHUP: 0, syscall.SIGINT: 0, syscall.SIGQUIT: statusQuit,
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
			if r := l.record(); status == 0 && (r.Phase != Unattended || r.Waiter != (Process{})) {
				t.Errorf("record: %+v", r)
			}
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
		r, err := ReadRecord(l.home)
		return err == nil && r.Phase == phase && r.Waiter.PID == cmd.Process.Pid
	})
	return cmd
}

// TestQuietKeepsTheStack: what the runtime prints goes to hook.log.
func TestCrashTextGoesToTheLog(t *testing.T) {
	t.Parallel()
	l := crashing(t, "offered")
	l.env = append(l.env, "HEARTBEAT_CRASH=offered:goroutine")
	r := l.event(client.Stop, nil)
	if r.status != -1 || !strings.Contains(l.log(), "crash point offered") {
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
	for _, stage := range []string{"start", "fenced", "opened", "locked", "acknowledged", "offered", "saved", "delivering", "delivered"} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			l := crashing(t, stage)
			l.append("three")
			given := map[string]int{"one": 1}
			l.env = append(l.env, "HEARTBEAT_CRASH="+stage+":kill")
			if r := l.event(client.Stop, nil); r.status != -1 {
				t.Fatalf("%+v, want it killed", r)
			}
			l.env = l.env[:len(l.env)-1]
			l.locked(func(q *inbox.Held) {
				_, _, err := inbox.Orphaned{Held: q}.Recover(inbox.Interruption{Policy: inbox.Retry, Counts: true, Arrived: handover.Arrived, Now: time.Now()})
				if err != nil {
					t.Fatal(err)
				}
			})
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
