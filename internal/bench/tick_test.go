package bench

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
	"testing"
	"time"

	"heartbeat/hook/durable"
)

// queue is a hand-wired folder with a client that takes everything.
type queue struct {
	b     *testing.B
	hook  string
	dir   string
	stops int
}

func newQueue(b *testing.B, hook string) *queue { return &queue{b: b, hook: hook, dir: b.TempDir()} }

func (q *queue) flags() []string { return []string{"--inbox", q.inbox(), "--deliver", "stderr"} }

func (q *queue) inbox() string { return filepath.Join(q.dir, "inbox.jsonl") }

// payload is the nth Stop, of a turn that the last hand-over began. Each turn has
// an answer of its own: an equal one may be the last turn's, and is looked into.
func payload(n int) string {
	return fmt.Sprintf(`{"hook_event_name":"Stop","session_id":"S","prompt_id":"P","stop_hook_active":true,"last_assistant_message":"done %d"}`, n)
}

// stop is the next payload.
func (q *queue) stop() string {
	q.stops++
	return payload(q.stops)
}

// entry is a line of 188 bytes with its newline.
func entry(i int) string {
	s := fmt.Sprintf("entry %d: ", i)
	return s + strings.Repeat("x", 187-len(s)) + "\n"
}

// append adds lines. Synced, a tick does not pay for the writer's data.
func (q *queue) append(lines string, synced bool) {
	q.b.Helper()
	f, err := os.OpenFile(q.inbox(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		q.b.Fatal(err)
	}
	_, err = f.WriteString(lines)
	if synced {
		err = errors.Join(err, f.Sync())
	}
	if err := errors.Join(err, f.Close()); err != nil {
		q.b.Fatal(err)
	}
}

// fill writes a large queue and waits until it is on disk.
func (q *queue) fill(n int) {
	q.b.Helper()
	f, err := os.OpenFile(q.inbox(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		q.b.Fatal(err)
	}
	out := bufio.NewWriterSize(f, 64<<10)
	for i := range n {
		if _, err := out.WriteString(entry(i)); err != nil {
			q.b.Fatal(err)
		}
	}
	if err := errors.Join(out.Flush(), f.Sync(), f.Close()); err != nil {
		q.b.Fatal(err)
	}
}

// tick is one call of the hook: it must hand an entry over.
func (q *queue) tick() time.Duration {
	q.b.Helper()
	d, status, stderr := timed(q.b, exec.Command(q.hook, q.flags()...), q.stop())
	if status != 2 || !strings.HasPrefix(stderr, "entry ") {
		q.b.Fatalf("the hook in %s ended with %d and handed over %q", q.dir, status, stderr)
	}
	return d
}

// timed runs a process to its end. What it reads lies ready in a pipe and what
// it says is read afterwards (both fit into pipes), so that nothing of this
// process is in the time.
func timed(b *testing.B, cmd *exec.Cmd, stdin string) (d time.Duration, status int, stderr string) {
	b.Helper()
	in, give, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	_, err = give.WriteString(stdin)
	out, say, err2 := os.Pipe()
	if err := errors.Join(err, give.Close(), err2); err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	cmd.Stdin, cmd.Stderr = in, say
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	begin := time.Now()
	err = cmd.Run()
	d = time.Since(begin)
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		b.Fatal(err)
	}
	err = say.Close()
	said, err2 := io.ReadAll(out)
	if err := errors.Join(err, err2); err != nil {
		b.Fatal(err)
	}
	return d, cmd.ProcessState.ExitCode(), string(said)
}

const (
	large  = 1_000_000 // entries, 188 MB
	blanks = 5_000     // lines
)

// BenchmarkTick times a steady-state tick, which acknowledges one entry and
// hands the next over, with three queues in turns, and its file operations alone.
func BenchmarkTick(b *testing.B) {
	hook, nothing := hook(b), made(b, "empty", empty)
	one, big, blank := newQueue(b, hook), newQueue(b, hook), newQueue(b, hook)
	big.fill(large)
	alone := newOperations(b)
	blankLines := strings.Repeat("\n", blanks)
	// The first tick acknowledges nothing.
	one.append(entry(0), true)
	one.tick()
	big.tick()
	blank.append(entry(0), true)
	blank.tick()
	alone.run(0)
	var ones, bigs, blankOnes, files, starts series
	for i := 1; b.Loop(); i++ {
		one.append(entry(i), true)
		ones.add(one.tick())
		bigs.add(big.tick())
		blank.append(blankLines+entry(i), true)
		blankOnes.add(blank.tick())
		files.add(alone.run(i))
		start, _, _ := timed(b, exec.Command(nothing), "")
		starts.add(start)
	}
	ones.report(b, "tick")
	within(b, len(ones), ratio(bigs, ones), 1.1, "x-one-with-1000000-queued")
	within(b, len(ones), ratio(blankOnes, ones), 1.1, "x-one-with-5000-blank-lines")
	both := float64(ones.median()) / float64(files.median()+starts.median())
	b.ReportMetric(both, "x-syncs-and-an-empty-program")
}

// operations repeats what a steady-state tick does to the disk (hook/inbox's
// package comment), and nothing else.
type operations struct {
	b      *testing.B
	folder *durable.Folder
	inbox  *os.File
}

func newOperations(b *testing.B) *operations {
	b.Helper()
	dir := b.TempDir()
	folder, err := durable.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	inbox, err := os.OpenFile(filepath.Join(dir, "inbox.jsonl"), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = errors.Join(inbox.Close(), folder.Close()) })
	return &operations{b, folder, inbox}
}

func (o *operations) run(i int) time.Duration {
	o.b.Helper()
	_, err := o.inbox.WriteString(entry(i))
	if err := errors.Join(err, o.inbox.Sync()); err != nil { // the writer's part
		o.b.Fatal(err)
	}
	record := []byte(strings.Repeat("r", 500) + "\n")
	begin := time.Now()
	err = errors.Join(
		// Acknowledge: reply, sidecar, cursor, record.
		o.folder.Append("outbox.jsonl", record[200:]),
		o.folder.Put(".inbox-meta", record[100:]),
		o.folder.Swap(".inbox-offset", strconv.AppendInt(nil, int64(i)*188, 10)),
		o.folder.Remove(".in-flight"), o.folder.Remove(".responded"),
		// Offer: the inbox, the record, its name.
		o.folder.SyncData(o.inbox, "inbox.jsonl"),
		o.folder.Swap(".in-flight", record),
		o.folder.Touch(".responded"),
		o.folder.Sync(),
	)
	took := time.Since(begin)
	if err != nil {
		o.b.Fatal(err)
	}
	return took
}

// BenchmarkMemory is the most memory that a tick has. It is measured by a
// process of its own, because the kernel counts a child's peak from its parent's
// size on.
func BenchmarkMemory(b *testing.B) {
	hook, meter := hook(b), made(b, "meter", meter)
	one, big, blank := newQueue(b, hook), newQueue(b, hook), newQueue(b, hook)
	big.fill(large)
	most := int64(0)
	for i := 0; b.Loop(); i++ {
		one.append(entry(i), false)
		blank.append(strings.Repeat("\n", blanks)+entry(i), false)
		for _, q := range []*queue{one, big, blank} {
			cmd := exec.Command(meter, append([]string{q.hook}, q.flags()...)...)
			cmd.Stdin = strings.NewReader(q.stop())
			out, err := cmd.Output()
			kib, err2 := strconv.ParseInt(string(out), 10, 64)
			if err := errors.Join(err, err2); err != nil {
				b.Fatal(err)
			}
			most = max(most, kib)
		}
	}
	within(b, enough, float64(most)/1024, 10, "MB-peak")
}

// meter runs a program and prints the most memory that it had, in KiB.
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
