package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// queue is a hand-wired folder with a client that takes everything.
type queue struct {
	hook string
	dir  string
}

func newQueue(hook, dir string) (*queue, error) {
	return &queue{hook, dir}, os.MkdirAll(dir, 0o700)
}

func (q *queue) flags() []string { return []string{"--inbox", q.inbox(), "--deliver", "stderr"} }

func (q *queue) inbox() string { return filepath.Join(q.dir, "inbox.jsonl") }

// payload is a Stop of a turn that the last hand-over began.
const payload = `{"hook_event_name":"Stop","session_id":"S","prompt_id":"P","stop_hook_active":true,"last_assistant_message":"done"}`

// entry is a line of 188 bytes with its newline.
func entry(i int) string {
	s := fmt.Sprintf("entry %d: ", i)
	return s + strings.Repeat("x", 187-len(s)) + "\n"
}

// append adds lines and syncs them, so that a tick does not pay for the
// writer's data.
func (q *queue) append(lines string) error {
	f, err := os.OpenFile(q.inbox(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(lines)
	return errors.Join(err, f.Sync(), f.Close())
}

// echo is append as a shell does it, without a sync.
func (q *queue) echo(lines string) error {
	f, err := os.OpenFile(q.inbox(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(lines)
	return errors.Join(err, f.Close())
}

// tick is one call of the hook: it must hand an entry over.
func (q *queue) tick(s *series) error {
	d, status, stderr, err := timed(exec.Command(q.hook, q.flags()...), payload)
	if err != nil {
		return err
	}
	if status != 2 || !strings.HasPrefix(stderr, "entry ") {
		return fmt.Errorf("the hook in %s ended with %d and handed over %q", q.dir, status, stderr)
	}
	if s != nil {
		s.add(d)
	}
	return nil
}

// timed runs a process to its end. What it reads lies ready in a pipe and what
// it says is read afterwards (both fit into pipes), so that nothing of this
// process is in the time.
func timed(cmd *exec.Cmd, stdin string) (d time.Duration, status int, stderr string, err error) {
	in, give, err := os.Pipe()
	if err != nil {
		return 0, 0, "", err
	}
	defer in.Close()
	_, err = give.WriteString(stdin)
	out, say, err2 := os.Pipe()
	if err := errors.Join(err, give.Close(), err2); err != nil {
		return 0, 0, "", err
	}
	defer out.Close()
	cmd.Stdin, cmd.Stderr = in, say
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	begin := time.Now()
	err = cmd.Run()
	d = time.Since(begin)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, 0, "", errors.Join(err, say.Close())
	}
	said, err := []byte(nil), say.Close()
	if err == nil {
		said, err = io.ReadAll(out)
	}
	return d, cmd.ProcessState.ExitCode(), string(said), err
}

// meter runs a program and prints the most memory that it had, in KiB. It is
// a process of its own because the kernel counts a child's peak from its
// parent's size on.
const meter = `package main

import (
	"os"
	"strconv"
	"syscall"
)

func main() {
	pid, err := syscall.ForkExec(os.Args[1], os.Args[1:], &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
	if err != nil {
		os.Exit(1)
	}
	var usage syscall.Rusage
	if _, err := syscall.Wait4(pid, nil, 0, &usage); err != nil {
		os.Exit(1)
	}
	os.Stdout.WriteString(strconv.FormatInt(usage.Maxrss, 10))
}
`

// peak is the memory of a few ticks in KiB, the largest.
func (q *queue) peak(meter string, before func() error) (kib int64, err error) {
	for range 10 {
		if err := before(); err != nil {
			return 0, err
		}
		cmd := exec.Command(meter, append([]string{q.hook}, q.flags()...)...)
		cmd.Stdin = strings.NewReader(payload)
		out, err := cmd.Output()
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(string(out), 10, 64)
		if err != nil {
			return 0, err
		}
		kib = max(kib, n)
	}
	return kib, nil
}

// start compares a hook call that finds nothing to do with a program that
// does nothing.
func (s settings) start(r *report, hook, empty string) error {
	fmt.Println("start of the process")
	ours, nothing := &series{name: "heartbeat-stop hook, no session of ours"}, &series{name: "an empty Go program"}
	for range s.n {
		for path, to := range map[string]*series{hook: ours, empty: nothing} {
			d, status, _, err := timed(exec.Command(path, "hook"), payload)
			if err != nil || status != 0 {
				return fmt.Errorf("%s ended with %d, %v", path, status, err)
			}
			to.add(d)
		}
	}
	r.show(ours, nothing)
	r.target("ratio of the medians", ratio(ours, nothing), 1.2, "")
	return nil
}

// ticks times a steady-state tick, which acknowledges one entry and hands the
// next over, with three queues in turns, and its file operations alone.
func (s settings) ticks(r *report, hook, empty string) error {
	fmt.Println("steady-state tick")
	one, err := newQueue(hook, filepath.Join(s.dir, "one"))
	if err != nil {
		return err
	}
	big, err := newQueue(hook, filepath.Join(s.dir, "big"))
	if err != nil {
		return err
	}
	blank, err := newQueue(hook, filepath.Join(s.dir, "blank"))
	if err != nil {
		return err
	}
	if err := fillBig(big, s.big); err != nil {
		return err
	}
	alone, err := newOperations(filepath.Join(s.dir, "alone"))
	if err != nil {
		return err
	}
	defer alone.close()
	ones, bigs, blanks := &series{name: "1 queued"}, &series{name: fmt.Sprintf("%d queued (%d MB)", s.big, s.big*188/1_000_000)},
		&series{name: "5,000 blank lines before the next"}
	files, starts := &series{name: "its fsyncs and renames alone"}, &series{name: "an empty Go program"}
	blanksAndOne := strings.Repeat("\n", 5000)
	for i := range s.n + 1 {
		samples := []*series{ones, bigs, blanks, files, starts}
		if i == 0 { // the first tick acknowledges nothing
			samples = make([]*series, 5)
		}
		if err := errors.Join(one.append(entry(i)), one.tick(samples[0]), big.tick(samples[1]),
			blank.append(blanksAndOne+entry(i)), blank.tick(samples[2]), alone.run(samples[3], i)); err != nil {
			return err
		}
		if d, _, _, err := timed(exec.Command(empty), ""); err != nil {
			return err
		} else if i > 0 {
			starts.add(d)
		}
	}
	r.show(ones, bigs, blanks, files, starts)
	r.target("large queue to one entry", ratio(bigs, ones), 1.1, "")
	r.target("blank lines to one entry", ratio(blanks, ones), 1.1, "")
	r.target("tick to its fsyncs and renames alone", ratio(ones, files), 1.2, "")
	both := float64(ones.at(50)) / float64(files.at(50)+starts.at(50))
	fmt.Printf("  %-44s %.2f (no target: what is left is the hook's own work)\n", "tick to those and an empty program together", both)
	return s.memory(r, one, big, blank)
}

// memory is the peak of ticks like those that were timed.
func (s settings) memory(r *report, one, big, blank *queue) error {
	meter, err := build(s.dir, "meter", meter)
	if err != nil {
		return err
	}
	ones, err1 := one.peak(meter, func() error { return one.append(entry(0)) })
	bigs, err2 := big.peak(meter, func() error { return nil })
	blanks, err3 := blank.peak(meter, func() error { return blank.append(strings.Repeat("\n", 5000) + entry(0)) })
	fmt.Printf("  peak memory: %.1f MB with 1 queued, %.1f with the large queue, %.1f with blank lines\n",
		float64(ones)/1024, float64(bigs)/1024, float64(blanks)/1024)
	r.target("peak memory", float64(max(ones, bigs, blanks))/1024, 10, " MB")
	return errors.Join(err1, err2, err3)
}

// fillBig writes a large queue and waits until it is on disk.
func fillBig(q *queue, n int) error {
	f, err := os.OpenFile(q.inbox(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 64<<10)
	for i := range n {
		if _, err := out.WriteString(entry(i)); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	if err := errors.Join(out.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	syscall.Sync()
	return nil
}
