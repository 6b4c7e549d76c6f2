package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/queue"
	form "heartbeat/queue/line"
)

// rig is a queue in a folder of its own.
type rig struct {
	Orphaned
	t  *testing.T
	at string // the folder
	// step, when set, runs the steps that change the disk.
	step func(s durable.Step, run func() error) error
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, at: t.TempDir()}
	r.reopen()
	t.Cleanup(func() { r.Close() })
	return r
}

// reopen is what the next process sees.
func (r *rig) reopen() {
	r.t.Helper()
	if r.Held != nil {
		r.Close()
	}
	q, err := Open(Place{Inbox: filepath.Join(r.at, "inbox.jsonl")})
	if err != nil {
		r.t.Fatal(err)
	}
	r.Orphaned = unlocked(q)
	r.arm()
}

// unlocked passes for a queue whose locks are held: one process is at work.
func unlocked(q *Queue) Orphaned {
	return Orphaned{&Held{Queue: q, unlock: func() error { return nil }}, func() error { return nil }}
}

// echo appends bytes as a shell would.
func (r *rig) echo(s string) {
	r.t.Helper()
	f, err := os.OpenFile(r.path("inbox.jsonl"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(s); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) path(name string) string { return filepath.Join(r.at, name) }

// put writes a file of the folder.
func (r *rig) put(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// get reads a file of the folder; "" when it is missing.
func (r *rig) get(name string) string {
	r.t.Helper()
	data, err := os.ReadFile(r.path(name))
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return string(data)
}

func (r *rig) remove(name string) {
	r.t.Helper()
	if err := os.Remove(r.path(name)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) rename(name, to string) {
	r.t.Helper()
	if err := os.Rename(r.path(name), r.path(to)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) exists(name string) bool {
	_, err := os.Lstat(r.path(name))
	return err == nil
}

// asides counts the files set aside as evidence.
func (r *rig) asides(name string) int {
	r.t.Helper()
	found, err := filepath.Glob(r.path(name + ".corrupt-*"))
	if err != nil {
		r.t.Fatal(err)
	}
	return len(found)
}

// next returns the prompt of the next entry; "" for ErrEmpty.
func (r *rig) next() string {
	r.t.Helper()
	e, err := r.Next()
	if err == ErrEmpty {
		return ""
	}
	if err != nil {
		r.t.Fatalf("Next: %v", err)
	}
	return e.Prompt
}

// offer hands the next entry over.
func (r *rig) offer() *Record {
	r.t.Helper()
	e, err := r.Next()
	if err != nil {
		r.t.Fatalf("Next: %v", err)
	}
	f, err := r.Offer(e, Offering{Via: queue.ViaStop, Session: "s1", PromptID: "p1"})
	if err != nil {
		r.t.Fatalf("Offer: %v", err)
	}
	return f
}

func (r *rig) ack() {
	r.t.Helper()
	if err := r.Acknowledge(Acknowledgement{Session: "s1", Reply: "done", Now: time.Now()}); err != nil {
		r.t.Fatalf("Acknowledge: %v", err)
	}
}

// advance records a state that only heartbeat's earlier design had.
func (r *rig) advance(s queue.State) {
	r.t.Helper()
	v, err := r.settle()
	if err == nil {
		defer v.Close()
		v.flight.own()
		v.flight.State = s
		err = r.writeRecord(v.flight)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) recover(i Interruption) queue.Outcome {
	r.t.Helper()
	o, _, err := r.Recover(i)
	if err != nil {
		r.t.Fatalf("Recover: %v", err)
	}
	return o
}

// inFlight is the entry in flight, which there must be.
func (r *rig) inFlight() *Record {
	r.t.Helper()
	f, err := r.InFlight()
	if err != nil || f == nil {
		r.t.Fatalf("in flight %+v, %v", f, err)
	}
	return f
}

// envelope is a line with an id.
func envelope(id, prompt string) string {
	line, err := form.Encode(form.Envelope{ID: id, Source: "send", Prompt: prompt})
	if err != nil {
		panic(err)
	}
	return string(line)
}

// drain hands over and acknowledges all there is.
func (r *rig) drain() []string {
	r.t.Helper()
	var prompts []string
	for range 10_000 {
		p := r.next()
		if p == "" {
			return prompts
		}
		prompts = append(prompts, p)
		r.offer()
		r.ack()
	}
	r.t.Fatal("the queue does not end")
	return nil
}

// dead returns the dead letters.
func (r *rig) dead() (all []Dead) {
	r.t.Helper()
	if err := r.DeadLetters(func(d Dead) bool { all = append(all, d); return true }); err != nil {
		r.t.Fatal(err)
	}
	return all
}

func join(prompts []string) string { return strings.Join(prompts, "|") }

// nextOrOperator is next, and "needs a person" for ErrNeedsOperator.
func (r *rig) nextOrOperator() string {
	r.t.Helper()
	e, err := r.Next()
	switch {
	case errors.Is(err, ErrNeedsOperator):
		return "needs a person"
	case errors.Is(err, ErrEmpty):
		return ""
	case err != nil:
		r.t.Fatalf("Next: %v", err)
	}
	return e.Prompt
}

// unsynced leaves the syncs out, which a test without a power cut cannot see
// the effect of, and which cost most of the time.
func (r *rig) unsynced() *rig {
	r.guard(func(s durable.Step, run func() error) error { return run() })
	return r
}

// guard runs the steps that change the disk, but for the syncs, through do.
func (r *rig) guard(do func(s durable.Step, run func() error) error) {
	r.step = do
	r.arm()
}

func (r *rig) arm() {
	if r.step == nil {
		return
	}
	r.quiet = 0 // whoever compresses the disk compresses time
	r.dir.Guard = func(s durable.Step, run func() error) error {
		if s.Verb == durable.Sync || s.Verb == durable.SyncFolder {
			run = func() error { return nil }
		}
		return r.step(s, run)
	}
}

// scratch is a folder in memory where there is one: the many states that a
// test builds and throws away need no disk.
func scratch(t interface {
	Fatal(args ...any)
	Cleanup(do func())
},
) string {
	base := "/dev/shm"
	if info, err := os.Stat(base); err != nil || !info.IsDir() {
		base = ""
	}
	dir, err := os.MkdirTemp(base, "queue-")
	if err != nil {
		dir, err = os.MkdirTemp("", "queue-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// unsyncedLater is unsynced for a rig that is opened later.
func (r *rig) unsyncedLater() *rig {
	r.step = func(_ durable.Step, run func() error) error { return run() }
	return r
}
