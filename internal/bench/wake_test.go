package bench

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// BenchmarkWake times a hook that waits for work, from an append to its end with
// the prompt.
func BenchmarkWake(b *testing.B) {
	q := newQueue(b, hook(b))
	var took series
	for i := 0; b.Loop(); i++ {
		took.add(q.wait(i))
	}
	took.report(b, "append-to-prompt")
	within(b, len(took), float64(took.median())/float64(time.Millisecond), 50, "ms-median")
}

func (q *queue) wait(i int) time.Duration {
	q.b.Helper()
	cmd := exec.Command(q.hook, "--inbox", q.inbox(), "--mode", "persist", "--idle-interval", "60")
	cmd.Stdin = strings.NewReader(q.stop())
	var stdout strings.Builder
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		q.b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		q.b.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	// It says so when it begins to wait. What comes then is not in step with
	// anything it does.
	if _, err := bufio.NewReader(stderr).ReadString('\n'); err != nil {
		q.b.Fatalf("the hook did not wait: %v", err)
	}
	time.Sleep(30*time.Millisecond + time.Duration(rand.Int64N(int64(100*time.Millisecond))))
	begin := time.Now()
	q.append(entry(i), false)
	_, _ = io.Copy(io.Discard, stderr)
	err = cmd.Wait()
	took := time.Since(begin)
	if err != nil || !strings.Contains(stdout.String(), fmt.Sprintf("entry %d:", i)) {
		q.b.Fatalf("%v: the hook handed over %q", err, stdout.String())
	}
	return took
}

// BenchmarkDrain drains a queue with one process for each entry, and compares the
// first tenth with the last one. What it takes grows with the entries alone:
// go test ./internal/bench -bench Drain -benchtime 100000x is all there are.
func BenchmarkDrain(b *testing.B) {
	q := newQueue(b, hook(b))
	q.fill(100_000)
	var took series
	for b.Loop() {
		took.add(q.tick())
	}
	took.report(b, "tick")
	if tenth := len(took) / 10; tenth >= enough {
		within(b, tenth, ratio(took[len(took)-tenth:], took[:tenth]), 1.2, "x-first-tenth")
	}
}
