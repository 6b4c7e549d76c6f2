package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// wake times how long a hook that waits for work takes from an append to its
// end with the prompt.
func (s settings) wake(r *report, hook, _ string) error {
	fmt.Println("append to prompt, in a hook that waits")
	q, err := newQueue(hook, filepath.Join(s.dir, "wake"))
	if err != nil {
		return err
	}
	waits := &series{name: "from the append to the hook's end"}
	for i := range min(s.n, 100) {
		d, err := q.wait(i)
		if err != nil {
			return err
		}
		waits.add(d)
	}
	r.show(waits)
	r.target("median", float64(waits.at(50))/float64(time.Millisecond), 50, " ms")
	return nil
}

func (q *queue) wait(i int) (time.Duration, error) {
	cmd := exec.Command(q.hook, "--inbox", q.inbox(), "--mode", "persist", "--idle-interval", "60")
	cmd.Stdin = strings.NewReader(payload)
	var stdout strings.Builder
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = cmd.Process.Kill() }()
	// It says so when it begins to wait. What comes then is not in step with
	// anything it does.
	if _, err := bufio.NewReader(stderr).ReadString('\n'); err != nil {
		return 0, fmt.Errorf("the hook did not wait: %w", err)
	}
	time.Sleep(30*time.Millisecond + time.Duration(rand.Int64N(int64(100*time.Millisecond))))
	begin := time.Now()
	if err := q.echo(entry(i)); err != nil {
		return 0, err
	}
	_, _ = io.Copy(io.Discard, stderr)
	err = cmd.Wait()
	d := time.Since(begin)
	if err == nil && !strings.Contains(stdout.String(), fmt.Sprintf("entry %d:", i)) {
		err = fmt.Errorf("the hook handed over %q", stdout.String())
	}
	return d, err
}

// drains drains a queue with one process for each entry, and compares the
// first tenth with the last one.
func (s settings) drains(r *report, hook, _ string) error {
	fmt.Printf("draining %d entries, one process each\n", s.drain)
	q, err := newQueue(hook, filepath.Join(s.dir, "drain"))
	if err != nil {
		return err
	}
	if err := fillBig(q, s.drain); err != nil {
		return err
	}
	tenths := make([]*series, 10)
	for i := range tenths {
		tenths[i] = &series{name: fmt.Sprintf("tenth %d", i+1)}
	}
	begin := time.Now()
	for i := range s.drain {
		if err := q.tick(tenths[i*10/s.drain]); err != nil {
			return err
		}
	}
	took := time.Since(begin)
	r.show(tenths[0], tenths[4], tenths[9])
	fmt.Printf("  %-44s %.1f s, %s each\n", "all", took.Seconds(), ms(took/time.Duration(s.drain)))
	r.target("last tenth to the first", ratio(tenths[9], tenths[0]), 1.2, "")
	return nil
}
