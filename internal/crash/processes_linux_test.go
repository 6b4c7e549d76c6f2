package crash

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

func (l *lab) sending(id, prompt string) stepper.Program {
	l.t.Helper()
	return l.person().command(l.t, "send", agent, "--id", id, prompt)
}

// TestSendIsKilled kills `heartbeat send` before each of its calls. Sending
// again with the same id queues the prompt once.
func TestSendIsKilled(t *testing.T) {
	t.Parallel()
	needPtrace(t)
	for _, tail := range []string{"", "alpha: before\n", "alpha: before\nbeta: unfinished"} {
		t.Run(fmt.Sprintf("%d bytes queued", len(tail)), func(t *testing.T) {
			t.Parallel()
			var points atomic.Int64
			const width = 12
			for first := 1; int(points.Load()) == first-1; first += width { // until one is not killed
				atOnce(width, width, func(i int) {
					inLab(t, wiredStderr, promise.Retry, func(l *lab) {
						if l.sendKilled(tail, first+i) {
							points.Add(1)
						}
					})
				})
			}
			t.Logf("%d kill points", points.Load())
			testbed.Played(t, testbed.Kills, int(points.Load()))
		})
	}
}

// sendKilled kills a send before its n-th call, sends again and drains. It is
// false when the send makes fewer calls.
func (l *lab) sendKilled(tail string, n int) bool {
	l.t.Helper()
	l.echo(tail, strings.FieldsFunc(tail, func(r rune) bool { return r == '\n' })...)
	o := l.run(l.sending("k1", "gamma: sent"), n)
	if !o.Killed {
		return false
	}
	l.accepted("gamma: sent")
	if again := l.run(l.sending("k1", "gamma: sent"), 0); again.Status != 0 {
		l.t.Fatalf("again: %+v", again)
	}
	l.send("delta: after the kill")
	l.launch()
	l.drain()
	l.check(fmt.Sprintf("killed before call %d of %q", n, o.Calls))
	return true
}

// TestProcessesAtOnce lets senders, hooks and recoveries race as processes.
func TestProcessesAtOnce(t *testing.T) {
	t.Parallel()
	inLab(t, session, promise.DeadLetter, func(l *lab) { l.race(t) })
}

func (l *lab) race(t *testing.T) {
	const senders, each = 6, 8
	l.launch()
	program(t, "heartbeat")
	calls := make([][]stepper.Program, senders)
	for s := range senders {
		for i := range each {
			prompt := fmt.Sprintf("s%d-%d: %s", s, i, strings.Repeat("y", 40*i))
			l.sent(promise.Accepted, strconv.Itoa(s), prompt)
			calls[s] = append(calls[s], l.sending(fmt.Sprintf("%d-%d", s, i), prompt))
		}
	}
	var all, others sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for _, c := range calls[s] {
				if o := stepper.Plain(t, c); o.Status != 0 {
					t.Errorf("send: %+v", o)
				}
			}
		})
	}
	// A session lives: recover must refuse, and change nothing.
	stop := make(chan struct{})
	others.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			o := stepper.Plain(t, stepper.Program{
				Path: program(t, "heartbeat-stop"), Args: []string{"recover", "--inbox", l.inbox, "--on-orphan", "retry"},
			})
			if o.Status != 1 {
				t.Errorf("recover in a live session: %+v", o)
			}
		}
	})
	deadline := time.Now().Add(testbed.Patience)
	for len(l.record.Open()) > 0 && time.Now().Before(deadline) {
		if len(l.pending) == 0 {
			l.unrule()
			l.wake()
		}
		l.step(0, true)
	}
	close(stop)
	all.Wait()
	others.Wait()
	l.drain()
	l.check("all at once")
	t.Logf("%d entries of %d senders", l.record.Count().Given, senders)
}

// unrule starts the session's record anew, as the launch of the next one does.
func (l *lab) unrule() {
	l.unlock()
	l.launch()
	l.step(0, true)
}

// TestForeignWriters: bash splits a long echo into several writes. One such
// writer at a time gets its lines through whole.
func TestForeignWriters(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no foreign writer here: ", err)
	}
	const lines = 30
	inLab(t, wiredStderr, promise.Retry, func(l *lab) {
		for i := range lines {
			l.accepted(fmt.Sprintf("b%d: %s", i, strings.Repeat("z", 100_000)))
		}
		cmd := exec.Command(bash, "-c", `z=$(printf 'z%.0s' {1..100000}); for ((i = 0; i < $1; i++)); do echo "b$i: $z" >>"$2"; done`,
			"bash", fmt.Sprint(lines), l.inbox)
		l.whileRunning(cmd)
		t.Logf("%d lines of 100 KB", l.record.Count().Given)
	})
}

// TestALiveAppenderIsNeverTorn reads while 64 KiB lines are appended with one
// write each, which is atomic among writers and not for readers
// (a reader that took what it found got 10 of 200 torn).
func TestALiveAppenderIsNeverTorn(t *testing.T) {
	t.Parallel()
	const lines = 100
	rounds := 1
	if *testbed.Full {
		rounds = 100
	}
	for range rounds {
		inLab(t, wiredStderr, promise.Retry, func(l *lab) {
			var all []string
			for i := range lines {
				all = append(all, fmt.Sprintf("w%d: %s", i, strings.Repeat("v", 64<<10)))
			}
			l.accepted(all...)
			done := make(chan error, 1)
			go func() { done <- writeLines(l.inbox, all) }()
			l.until()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d lines of 64 KiB", rounds*lines)
}

// writeLines appends each line with one write.
func writeLines(path string, lines []string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, l := range lines {
		if _, err := f.WriteString(l + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// whileRunning drains while a writer runs.
func (l *lab) whileRunning(cmd *exec.Cmd) {
	l.t.Helper()
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.until()
	if err := cmd.Wait(); err != nil {
		l.t.Error(err)
	}
}

// until drains until everything came, or nothing has for a while, and judges.
func (l *lab) until() {
	l.t.Helper()
	l.launch()
	for open, last := l.record.Open(), time.Now(); len(open) > 0 && time.Since(last) < testbed.Patience; {
		if len(l.pending) == 0 {
			l.wake()
		}
		l.step(0, true)
		if now := l.record.Open(); len(now) < len(open) {
			open, last = now, time.Now()
		}
	}
	l.drain()
	l.check("while lines are written")
}
