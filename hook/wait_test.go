package hook

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/internal/testbed"
	"heartbeat/queue"
)

// ended waits for a hook and returns what it showed.
func ended(t testing.TB, cmd *exec.Cmd) result {
	t.Helper()
	begin := time.Now()
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(testbed.Patience):
		t.Fatal("the hook still waits after", testbed.Patience)
	}
	return result{
		heard(cmd), cmd.Stdout.(*strings.Builder).String(),
		cmd.Stderr.(*strings.Builder).String(), time.Since(begin),
	}
}

func TestWakesOnAnAppend(t *testing.T) {
	t.Parallel()
	l, cmd := waiting(t)
	l.append("late")
	if r := ended(t, cmd); r.status != 2 || r.stderr != "late" || r.stdout != "" {
		t.Fatalf("%+v\n%s", r, l.log())
	}
	if r := l.record(); r.Phase != Turn || r.Work == nil || r.Waiter != (Process{}) {
		t.Errorf("record: %+v", r)
	}
	if s := l.state(); s != queue.Offered {
		t.Errorf("state %q", s)
	}
}

func TestWaitEndsByTheRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*Record)
		phase  Phase
		ruling End
	}{
		{"ruling", func(r *Record) { r.End(EndShutdown, "", time.Now()) }, Ending, EndShutdown},
		// With work the slot is kept: see TestStep.
		{"yield", func(r *Record) { r.Yield = true }, Ending, EndReleased},
		{"ended", func(r *Record) { r.Phase = Ended }, Ended, ""},
		{"a later hook waits", func(r *Record) { r.Waiter.PID++ }, Waiting, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, cmd := waiting(t)
			l.change(c.change)
			if c.name != "yield" {
				l.append("must stay queued")
			}
			if r := ended(t, cmd); r.status != 0 || r.stderr+r.stdout != "" {
				t.Fatalf("%+v", r)
			}
			r := l.record()
			if r.Phase != c.phase || c.ruling != "" && (r.Ruling == nil || r.Ruling.Why != c.ruling) {
				t.Errorf("record: %+v", r)
			}
		})
	}
}

// The client 2.1.329 runs a prompt that was typed while a hook waits once that hook
// has returned.
func TestWaitEndsWhenAPersonTypes(t *testing.T) {
	t.Parallel()
	l, cmd := waiting(t)
	l.quietly(client.UserPromptSubmit, fields{"prompt": "hello"})
	if r := ended(t, cmd); r.status != 0 || r.stderr+r.stdout != "" {
		t.Fatalf("%+v", r)
	}
	if p := l.record().Phase; p != Turn {
		t.Errorf("phase %s", p)
	}
}

func TestIdleInterval(t *testing.T) {
	t.Parallel()
	idle := func(change ...func(*Record)) (*lab, result) { // too short to be seen waiting on a busy machine
		short := func(r *Record) { r.Policy.IdleInterval = 300 * time.Millisecond }
		l := newLab(t, append([]func(*Record){persistent, short}, change...)...)
		l.quietly(client.SessionStart, fields{"source": "startup"})
		return l, ended(t, l.stops(nil))
	}
	l, r := idle()
	if r.status != 0 || r.stderr != "" {
		t.Errorf("release: %+v", r)
	}
	if r := l.record(); r.Ruling == nil || r.Ruling.Why != EndReleased || r.Phase != Ending {
		t.Errorf("release: %+v", r)
	}
	l, r = idle(func(r *Record) { r.Policy.OnIdle = IdleTick })
	if r.status != 2 || r.stderr != "--- IDLE TICK ---" {
		t.Errorf("tick: %+v", r)
	}
	if r := l.record(); r.Ruling != nil || r.Phase != Turn || l.flight() != nil {
		t.Errorf("tick: %+v", r)
	}
}

// BenchmarkWake times an append to a waiting session until its prompt; 50 ms are
// wanted.
func BenchmarkWake(b *testing.B) {
	l, _ := waiting(b)
	var took []time.Duration
	for b.Loop() {
		cmd := l.wait()
		// The hook takes a breath after its first look.
		time.Sleep(30 * time.Millisecond)
		begin := time.Now()
		l.append("late")
		if r := ended(b, cmd); r.status != 2 {
			b.Fatalf("%+v\n%s", r, l.log())
		}
		took = append(took, time.Since(begin))
		l.quietly(client.UserPromptSubmit, fields{"prompt_id": fmt.Sprint("P", len(took)+1)}) // another one's turn
		if err := l.queue.Change(l.flight().Delivery, func(e queue.Entry) (queue.Entry, error) { return e.Acknowledge(time.Now()) }); err != nil {
			b.Fatal(err)
		}
		l.moved()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2])/float64(time.Millisecond), "ms-median")
}

// BenchmarkStart compares a hook that has nothing to do with an empty Go
// program, and shows what a tool call and a Stop cost.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	empty := filepath.Join(dir, "empty.go")
	if err := os.WriteFile(empty, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "empty"), empty).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	b.Run("empty program", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command(filepath.Join(dir, "empty")).Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	hook := program(b)
	b.Run("no session", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command(hook, "hook").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("tool call", func(b *testing.B) {
		l := newLab(b)
		for b.Loop() {
			l.quietly(client.PreToolUse, fields{"tool_name": "Bash"})
		}
	})
	b.Run("stop with nothing to do", func(b *testing.B) {
		l := newLab(b)
		for b.Loop() {
			l.quietly(client.Stop, nil)
		}
	})
}
