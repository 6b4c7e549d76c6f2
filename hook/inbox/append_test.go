package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/hook/durable"
)

func (r *rig) append(l Letter) string {
	r.t.Helper()
	id, err := r.Append(r.t.Context(), l)
	if err != nil {
		r.t.Fatalf("Append: %v", err)
	}
	return id
}

func TestAppendWritesAnEnvelopeDurably(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var steps []durable.Verb
	r.Queue.dir.Guard = func(s durable.Step, run func() error) error {
		if s.Name == "inbox.jsonl" || s.Verb == durable.SyncFolder {
			steps = append(steps, s.Verb)
		}
		return run()
	}
	id := r.append(Letter{ID: "42", Source: "send", Prompt: "a <b> & \"c\"\nd"})
	if want := []durable.Verb{durable.Create, durable.Write, durable.Sync, durable.SyncFolder}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	steps = nil
	made := r.append(Letter{Source: "send", Prompt: "x"})
	if want := []durable.Verb{durable.Write, durable.Sync}; !slices.Equal(steps, want) {
		t.Errorf("second: steps %v, want %v", steps, want)
	}
	want := `{"heartbeat":1,"id":"42","source":"send","prompt":"a <b> & \"c\"\nd"}` + "\n" +
		fmt.Sprintf(`{"heartbeat":1,"id":%q,"source":"send","prompt":"x"}`, made) + "\n"
	if got := r.get("inbox.jsonl"); got != want || id != "42" || len(made) != 16 {
		t.Errorf("inbox %q, want %q", got, want)
	}
}

func TestAppendRefuses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, l := range []Letter{
		{Prompt: ""},
		{Prompt: " \n\t"},
		{Prompt: "x", ID: "a\nb"},
		{Prompt: "x", Source: strings.Repeat("s", maxID+1)},
	} {
		if _, err := r.Append(t.Context(), l); err == nil {
			t.Errorf("%+v is accepted", l)
		}
	}
	if _, err := r.Append(t.Context(), Letter{Prompt: strings.Repeat("x", DefaultMaxEntry)}); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if r.exists("inbox.jsonl") {
		t.Error("a refused letter made an inbox")
	}
	r.append(Letter{Prompt: strings.Repeat("x", DefaultMaxEntry-100)})
	if got := r.next(); len(got) != DefaultMaxEntry-100 {
		t.Errorf("the largest letter comes with %d bytes", len(got))
	}
}

func TestAppendEndsAnUnterminatedLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("somebody's line")
	r.append(Letter{Prompt: "ours"})
	r.echo(`{"heartbeat":1,"id":"x","pro`)
	r.append(Letter{Prompt: "ours too"})
	if got := join(r.drain()); got != "somebody's line|ours|ours too" {
		t.Errorf("drained %q", got)
	}
	if dead := r.dead(); len(dead) != 1 || dead[0].Reason != Torn || dead[0].RawLine != `{"heartbeat":1,"id":"x","pro` {
		t.Errorf("dead letters %+v", dead)
	}
}

func TestAnIdIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	again := func(id string) error {
		_, err := r.Append(t.Context(), Letter{ID: id, Prompt: "x", Idempotent: true})
		return err
	}
	for _, id := range []string{"a/b@2026-11-21T04:00", `qu"ote\`, "ünï", "plain"} {
		if err := again(id); err != nil {
			t.Fatalf("first %q: %v", id, err)
		}
		if err := again(id); !errors.Is(err, ErrDuplicate) {
			t.Errorf("second %q: %v", id, err)
		}
	}
	r.append(Letter{ID: "sent", Prompt: "x"}) // remembered though not asked for
	if err := again("sent"); !errors.Is(err, ErrDuplicate) {
		t.Errorf("after a plain send: %v", err)
	}
	r.echo(`{"heartbeat":1,"id":"echoed","prompt":"x"}` + "\n")
	if err := again("echoed"); !errors.Is(err, ErrDuplicate) {
		t.Errorf("after an echo: %v", err)
	}
	r.drain()
	r.reopen()
	if err := again("plain"); !errors.Is(err, ErrDuplicate) {
		t.Errorf("after it was done: %v", err)
	}
	r.remove(idsFile)
	if err := again("plain"); !errors.Is(err, ErrDuplicate) {
		t.Errorf("after the memory was lost: %v", err)
	}
	r.put("inbox.jsonl", "")
	if err := again("plain"); !errors.Is(err, ErrDuplicate) {
		t.Errorf("after the inbox was emptied: %v", err)
	}
}

// The sender is killed between the inbox and the memory: the id in the line
// tells.
func TestAnIdIsAcceptedOnceAcrossAKill(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.guard(func(s durable.Step, run func() error) error {
		if s.Name == idsFile {
			return errors.New("killed")
		}
		return run()
	})
	_, _ = r.Append(t.Context(), Letter{ID: "a", Prompt: "x", Idempotent: true})
	r.step = nil
	r.reopen()
	if _, err := r.Append(t.Context(), Letter{ID: "a", Prompt: "x", Idempotent: true}); !errors.Is(err, ErrDuplicate) {
		t.Errorf("second: %v", err)
	}
	if n := strings.Count(r.get("inbox.jsonl"), "\n"); n != 1 {
		t.Errorf("%d lines", n)
	}
}

func TestTheMemoryOfIdsIsCompacted(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	old := time.Now().Add(-2 * idsFor).Unix()
	var b bytes.Buffer
	total := idsKept + idsKept/4 + 50
	first := total - idsKept // of those that are kept
	for n := range total {
		fmt.Fprintf(&b, `{"id":"id-%d","at":%d,"ino":1,"end":0}`+"\n", n, old)
	}
	r.put(idsFile, b.String())
	file, err := os.Open(r.path(idsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := r.compactMemory(file); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(r.get(idsFile), "\n"); got != idsKept {
		t.Errorf("%d ids are kept, want %d", got, idsKept)
	}
	for id, want := range map[string]bool{fmt.Sprint("id-", first-1): false, fmt.Sprint("id-", first): true, fmt.Sprint("id-", total-1): true} {
		_, err := r.Append(t.Context(), Letter{ID: id, Prompt: "x", Idempotent: true})
		if errors.Is(err, ErrDuplicate) != want {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// A trigger that fires every second makes more ids in seven days than fit
// below the size at which the memory is compacted. Nothing may be dropped then,
// and each send used to rewrite all of it twice: 2 s.
func TestALargeMemoryOfIdsIsNotRewrittenBySends(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]func(now, n, total int64) int64{
		"all of this week": func(now, n, total int64) int64 { return now - (total - n) },
		"old, but few":     func(now, n, total int64) int64 { return now - int64(30*24*time.Hour/time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).unsynced()
			pad, total := strings.Repeat("p", 20), int64(500_000)
			if name == "old, but few" {
				pad, total = strings.Repeat("p", maxID-20), idsKept
			}
			var b bytes.Buffer
			now := time.Now().Unix()
			for n := range total {
				fmt.Fprintf(&b, `{"id":"%s-%d","at":%d,"ino":1,"end":0}`+"\n", pad, n, at(now, n, total))
			}
			if b.Len() <= idsLimit {
				t.Fatalf("a memory of %d bytes shows nothing", b.Len())
			}
			r.put(idsFile, b.String())
			before, err := os.Stat(r.path(idsFile))
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range []string{"a", "b", "a", pad + "-7"} {
				_, err := r.Append(t.Context(), Letter{ID: id, Prompt: "x", Idempotent: true})
				if err != nil && !errors.Is(err, ErrDuplicate) {
					t.Fatal(err)
				}
			}
			after, err := os.Stat(r.path(idsFile))
			if err != nil {
				t.Fatal(err)
			}
			if !os.SameFile(before, after) {
				t.Error("it was rewritten")
			}
			if n := strings.Count(r.get("inbox.jsonl"), "\n"); n != 2 {
				t.Errorf("%d entries were queued, want 2", n)
			}
		})
	}
}

// Each id used to be remembered twice, by its send and by the next one's
// search, which halved the 100,000.
func TestAnIdIsRememberedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 5 {
		if n == 3 {
			r.echo(`{"heartbeat":1,"id":"echoed","prompt":"x"}` + "\n")
		}
		ids, err := r.AppendBatch(t.Context(), []Letter{{ID: fmt.Sprint("id-", n), Prompt: "x", Idempotent: true}, {Prompt: "y"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Append(t.Context(), Letter{ID: ids[1], Prompt: "y", Idempotent: true}); !errors.Is(err, ErrDuplicate) {
			t.Errorf("an id that was made up: %v", err)
		}
	}
	if n := strings.Count(r.get(idsFile), "\n"); n != 11 {
		t.Errorf("%d lines for 11 ids:\n%s", n, r.get(idsFile))
	}
	if _, err := r.Append(t.Context(), Letter{ID: "echoed", Prompt: "x", Idempotent: true}); !errors.Is(err, ErrDuplicate) {
		t.Errorf("an id that was echoed: %v", err)
	}
}

func TestABatchIsOneWriteAndOneSync(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(Letter{ID: "b", Prompt: "first"})
	writes := 0
	r.Queue.dir.Guard = func(s durable.Step, run func() error) error {
		if s.Name == "inbox.jsonl" {
			writes++
		}
		return run()
	}
	ids, err := r.AppendBatch(t.Context(), []Letter{
		{ID: "a", Prompt: "one", Idempotent: true},
		{ID: "b", Prompt: "two", Idempotent: true},
		{ID: "a", Prompt: "three", Idempotent: true},
		{ID: "c", Prompt: "four"},
	})
	if err != nil || !slices.Equal(ids, []string{"a", "", "", "c"}) || writes != 2 {
		t.Errorf("ids %q, %v, %d steps on the inbox", ids, err, writes)
	}
	if got := join(r.drain()); got != "first|one|four" {
		t.Errorf("drained %q", got)
	}
}

// Appenders, shells and a rotation at the same time: every line whole, every
// accepted entry there once.
func TestManyAppendersAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const writers, each = 8, 20
	pad := strings.Repeat("y", 40_000)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			q, err := Open(r.place)
			if err != nil {
				t.Error(err)
				return
			}
			defer q.Close()
			for n := range each {
				if _, err := q.Append(t.Context(), Letter{Prompt: fmt.Sprintf("w%d.%d %s", w, n, pad)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		script := `for i in 1 2 3 4 5 6 7 8 9 10; do echo "shell $i" >> inbox.jsonl; done`
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = r.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("shell: %v, %s", err, out)
		}
	})
	wg.Wait()
	seen := map[string]int{}
	entries, err := r.List(10_000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		p, padding, _ := strings.Cut(e.Prompt, " ")
		if padding != pad && p != "shell" {
			t.Errorf("garbled: %.40q", e.Prompt)
		}
		seen[strings.TrimSuffix(e.Prompt, " "+pad)]++
	}
	if len(seen) != writers*each+10 || len(entries) != len(seen) {
		t.Errorf("%d entries, %d different ones, want %d", len(entries), len(seen), writers*each+10)
	}
}

func TestAppendGivesUpWhenTheInboxStaysLocked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, err := r.inbox().openAppend(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.file.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := r.Append(ctx, Letter{Prompt: "x"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Append: %v", err)
	}
}

// Whatever stands in the memory of ids, a prompt is accepted once, and the
// same one is refused after that.
func FuzzIDs(f *testing.F) {
	f.Add([]byte(`{"id":"a","at":1,"ino":2,"end":9223372036854775807}` + "\n"))
	f.Add([]byte(`{"id":"k"` + "\n" + `,"end":1}` + "\n"))
	f.Add([]byte("\x00\n{\"id\":\"\\u0"))
	f.Fuzz(func(t *testing.T, memory []byte) {
		r := newRig(t).unsynced()
		r.put(idsFile, string(memory))
		letter := Letter{ID: "the id that is asked for", Source: "send", Prompt: "x", Idempotent: true}
		if _, err := r.Append(t.Context(), letter); err != nil {
			if bytes.Contains(memory, []byte("asked")) && errors.Is(err, ErrDuplicate) {
				return
			}
			t.Fatalf("memory %q: %v", memory, err)
		}
		if _, err := r.Append(t.Context(), letter); !errors.Is(err, ErrDuplicate) {
			t.Fatalf("memory %q: the second time: %v", memory, err)
		}
		if got := join(r.drain()); got != "x" {
			t.Fatalf("memory %q: %q", memory, got)
		}
	})
}

// A shell writes a long line in pieces. A send that comes between waits for
// its end, and cuts it only when nothing came for a second.
func TestASendWaitsForAWriterInTheMiddleOfItsLine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("first half, ")
	done := make(chan error, 1)
	go func() {
		_, err := r.Append(t.Context(), Letter{Source: "send", Prompt: "sent"})
		done <- err
	}()
	for range 3 { // the send may come at any moment of this
		time.Sleep(300 * time.Millisecond) // a writer's pace: nothing here tells when the send looks
		r.echo("more, ")
	}
	r.echo("second half\n")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := join(r.drain()); got != "first half, more, more, more, second half|sent" {
		t.Errorf("drained %q", got)
	}
	began := time.Now()
	r.echo("left behind")
	if _, err := r.Append(t.Context(), Letter{Source: "send", Prompt: "sent again"}); err != nil {
		t.Fatal(err)
	}
	const tick = 10 * time.Millisecond // files are dated by the kernel's tick, which is behind
	if took := time.Since(began); took < tailQuiet-tick {
		t.Errorf("cut after %s", took)
	}
	if got := join(r.drain()); got != "left behind|sent again" {
		t.Errorf("drained %q", got)
	}
}

// TestMostBoundsTheQueue: however many append at once, no more are taken; one that was
// accepted is told so; a line of somebody who takes no lock counts.
func TestMostBoundsTheQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var taken atomic.Int64
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			_, err := r.Append(t.Context(), Letter{ID: fmt.Sprint("id-", i), Prompt: "x", Idempotent: true, Most: 7})
			switch {
			case err == nil:
				taken.Add(1)
			case !errors.Is(err, ErrFull):
				t.Error(err)
			}
		})
	}
	all.Wait()
	if d, err := r.Depth(0); taken.Load() != 7 || d.Entries != 7 || err != nil {
		t.Errorf("%d are taken, %+v are queued, %v", taken.Load(), d, err)
	}
	if _, err := r.Append(t.Context(), Letter{Prompt: "x"}); err != nil {
		t.Errorf("a letter without a bound: %v", err)
	}
	known := Letter{ID: "known", Prompt: "x", Idempotent: true}
	if _, err := r.Append(t.Context(), known); err != nil {
		t.Fatal(err)
	}
	for _, most := range []int{7, 1, -1} {
		known.Most = most
		if _, err := r.Append(t.Context(), known); !errors.Is(err, ErrDuplicate) {
			t.Errorf("most %d: one that was accepted: %v", most, err)
		}
		if _, err := r.Append(t.Context(), Letter{Prompt: "x", Most: most}); !errors.Is(err, ErrFull) {
			t.Errorf("most %d: %v", most, err)
		}
	}
	if _, err := r.AppendBatch(t.Context(), []Letter{{Prompt: "x", Most: 10}, {Prompt: "y", Most: 10}}); !errors.Is(err, ErrFull) {
		t.Errorf("two where there is room for one: %v", err)
	}
}
