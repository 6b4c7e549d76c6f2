package inbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// disturbance is something that somebody else does to the files of a queue.
type disturbance struct {
	name string
	do   func(r *rig)
	// text is true if what is lost can be queued again; asks is true if the queue
	// asks a person where to continue; keeps is true if nothing is lost.
	text, asks, keeps bool
}

// disturbances are what people, editors, git and scripts do to an inbox.
func disturbances() []disturbance {
	replace := func(r *rig, content string) {
		r.put("new", content)
		r.rename("new", "inbox.jsonl")
	}
	firstLine := func(r *rig) string { line, _, _ := strings.Cut(r.get("inbox.jsonl"), "\n"); return line + "\n" }
	return []disturbance{
		{name: "mv of another file", do: func(r *rig) { replace(r, "other\n") }, text: true},
		{name: "mv of an empty file", do: func(r *rig) { replace(r, "") }, text: true},
		{name: "an editor's save from before the append", do: func(r *rig) { replace(r, firstLine(r)) }, text: true},
		{name: "an editor's save of all", do: func(r *rig) { replace(r, r.get("inbox.jsonl")) }, keeps: true},
		{name: "git checkout: removed and written", do: func(r *rig) {
			first := firstLine(r)
			r.remove("inbox.jsonl")
			r.put("inbox.jsonl", first)
		}, text: true},
		{name: "removed", do: func(r *rig) { r.remove("inbox.jsonl") }, text: true},
		{name: "removed and made anew", do: func(r *rig) { r.remove("inbox.jsonl"); r.echo("other\n") }, text: true},
		{name: "truncated", do: func(r *rig) { r.put("inbox.jsonl", "") }},
		{name: "cut behind what is done", do: func(r *rig) { r.put("inbox.jsonl", firstLine(r)) }},
		{name: "truncated and filled with more", do: func(r *rig) { r.put("inbox.jsonl", strings.Repeat("other\n", 100)) }},
		{name: "moved away and put back", do: func(r *rig) { r.rename("inbox.jsonl", "away"); r.rename("away", "inbox.jsonl") }, keeps: true},
		{name: "copied over itself", do: func(r *rig) { r.put("inbox.jsonl", r.get("inbox.jsonl")) }, keeps: true},
		{name: "a copy of the folder", do: func(r *rig) {
			old := r.path("old")
			if err := os.Mkdir(old, 0o700); err != nil {
				r.t.Fatal(err)
			}
			names, _ := filepath.Glob(r.path("*"))
			hidden, _ := filepath.Glob(r.path(".*"))
			for _, path := range append(names, hidden...) {
				if info, err := os.Lstat(path); err != nil || info.IsDir() {
					continue
				}
				data, err := os.ReadFile(path)
				if err == nil {
					err = os.Rename(path, filepath.Join(old, filepath.Base(path)))
				}
				if err == nil {
					err = os.WriteFile(path, data, 0o600)
				}
				if err != nil {
					r.t.Fatal(err)
				}
			}
		}, keeps: true},
		{name: "the sidecar removed", do: func(r *rig) { r.remove(metaFile) }, keeps: true},
		{name: "the memory of ids removed", do: func(r *rig) { r.remove(idsFile) }, keeps: true},
		{name: "the second name removed", do: func(r *rig) { r.remove(r.inbox().kept) }, keeps: true},
		{name: "the second name and the inbox removed", do: func(r *rig) { r.remove(r.inbox().kept); r.remove("inbox.jsonl") }},
		{name: "the outbox removed", do: func(r *rig) { _ = os.Remove(r.path(outboxFile)) }, keeps: true},
		{name: "cursor and sidecar removed", do: func(r *rig) { _ = os.Remove(r.path(CursorFile)); r.remove(metaFile) }, asks: true},
		{name: "cursor, sidecar and outbox removed", do: func(r *rig) {
			_ = os.Remove(r.path(CursorFile))
			r.remove(metaFile)
			_ = os.Remove(r.path(outboxFile))
		}, asks: true},
	}
}

// TestWhatIsQueuedDoesNotVanish: what was queued in an inbox that somebody replaced,
// cut, removed or overwrote was gone without a word. Each entry that was accepted is
// still queued, in flight, or a dead letter that names it; the queue asks, or says
// nothing where nothing is missing.
func TestWhatIsQueuedDoesNotVanish(t *testing.T) {
	t.Parallel()
	for _, d := range disturbances() {
		for _, done := range []int{0, 1} {
			for _, queued := range []int{0, 3} {
				for _, flies := range []bool{false, true} {
					for _, seen := range []bool{true, false} {
						if flies && queued == 0 || done == 0 && queued == 0 {
							continue
						}
						name := fmt.Sprintf("%s, %d done, %d queued, in flight %t, seen %t", d.name, done, queued, flies, seen)
						t.Run(name, func(t *testing.T) {
							t.Parallel()
							testDisturbed(t, d, done, queued, flies, seen)
						})
					}
				}
			}
		}
	}
}

func testDisturbed(t *testing.T, d disturbance, done, queued int, flies, seen bool) {
	r := newRig(t).unsynced()
	send := func(id string) {
		t.Helper()
		if _, err := r.Append(t.Context(), Letter{ID: id, Source: "send", Prompt: "prompt " + id}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range done {
		send(fmt.Sprint("done", i))
		r.offer()
		r.advance(Taken)
		r.ack()
	}
	var accepted []string
	for i := range queued {
		accepted = append(accepted, fmt.Sprint("id", i))
		send(accepted[i])
	}
	if flies {
		r.offer()
		r.advance(Started)
	} else if seen {
		r.next()
	}
	if done+queued == 0 || !seen && done == 0 && !flies && !r.exists(metaFile) {
		r.put(metaFile, `{"ino":0,"generation":1,"cursor":0,"tail":"`+sumOf([]byte{})+`"}`+"\n")
	}
	r.Notes()
	d.do(r)
	r.reopen()
	gone, _ := r.Missing()
	if r.nextOrOperator() == "needs a person" {
		if done == 0 && !d.asks {
			t.Fatal("it asks although nothing was done")
		}
		asked, err := r.Question()
		if err != nil || asked == nil {
			t.Fatalf("question %+v, %v", asked, err)
		}
		if err := r.StartAt(asked.Answers[0].Offset); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := r.InFlight(); err != nil {
		t.Fatal(err)
	} else if f != nil {
		r.recover(Interruption{Policy: Retry, Counts: true})
	}
	stands := map[string]int{}
	entries, err := r.List(1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		stands[e.ID]++
	}
	lost := 0
	for _, dead := range r.dead() {
		stands[dead.ID]++
		if dead.Reason != Lost {
			t.Errorf("%s: %s", dead.ID, dead.Reason)
		}
		if lost++; d.text != (dead.Raw() != nil) || dead.Cause == "" {
			t.Errorf("%s: text %q, cause %q", dead.ID, dead.RawLine, dead.Cause)
		}
		if d.text && !strings.Contains(dead.RawLine, "prompt "+dead.ID) {
			t.Errorf("%s: %q", dead.ID, dead.RawLine)
		}
	}
	for _, id := range accepted {
		if stands[id] != 1 {
			t.Errorf("%s stands %d times: queued %+v, dead %+v, notes %q", id, stands[id], entries, r.dead(), r.Notes())
		}
	}
	if (d.keeps || queued == 0) && lost > 0 {
		t.Errorf("a false alarm: %+v", r.dead())
	}
	if gone.Entries != lost && !d.asks {
		t.Errorf("readers are told of %+v, %d were filed", gone, lost)
	}
	if d.text && lost > 0 {
		if n, err := r.RetryDead(accepted...); n != lost || err != nil {
			t.Errorf("%d of %d queued again, %v", n, lost, err)
		}
	}
	r.reopen() // and nothing is said twice
	if gone, err := r.Missing(); err != nil || gone.Entries > 0 {
		t.Errorf("missing again: %+v, %v", gone, err)
	}
}

// TestLinesOfOthersThatVanish: of lines that were echoed into an inbox that was
// then cut only their size is known.
func TestLinesOfOthersThatVanish(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\ntwo\nthree\n")
	r.offer()
	r.advance(Taken)
	r.ack()
	r.put("inbox.jsonl", "one\n")
	if got := join(r.drain()); got != "" {
		t.Errorf("drained %q", got)
	}
	if dead := r.dead(); len(dead) != 1 || dead[0].Reason != Lost || dead[0].Length != int64(len("two\nthree\n")) {
		t.Errorf("%+v", dead)
	}
}

// TestADropIsNoLoss: a dropped entry is blank where it stood.
func TestADropIsNoLoss(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"a", "b"} {
		if _, err := r.Append(t.Context(), Letter{ID: id, Prompt: id}); err != nil {
			t.Fatal(err)
		}
	}
	r.next()
	if n, err := r.DropQueued("b"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if _, err := r.PurgeDead(func(DeadEntry) bool { return true }); err != nil {
		t.Fatal(err)
	}
	if gone, err := r.Missing(); gone.Entries != 0 || err != nil {
		t.Errorf("%+v, %v", gone, err)
	}
	r.offer()
	r.ack()
	if len(r.dead()) > 0 || len(r.Notes()) > 0 {
		t.Errorf("%+v, %q", r.dead(), r.Notes())
	}
}

// TestTheRecordInFlightIsRemoved: the entry that a session worked on was handed over
// again, unasked and as if nobody had seen it.
func TestTheRecordInFlightIsRemoved(t *testing.T) {
	t.Parallel()
	for _, policy := range []OrphanPolicy{Retry, DeadLetter, Drop} {
		r := newRig(t)
		r.echo("one\ntwo\n")
		f := r.offer()
		r.remove(FlightFile)
		if f, err := r.Restore("another", 1, Offering{}); f != nil || err != nil {
			t.Errorf("another one: %+v, %v", f, err)
		}
		i := Interruption{Policy: policy, Counts: true, Delivery: f.DeliveryID, Cause: "it stalled", Now: time.Now()}
		outcome, _, err := r.Recover(i)
		want := map[OrphanPolicy]Outcome{Retry: Requeued, DeadLetter: DeadLettered, Drop: DroppedOrphan}[policy]
		if outcome != want || err != nil {
			t.Errorf("%s: %s, %v", policy, outcome, err)
		}
		if again, _, err := r.Recover(i); again != NothingToRecover || err != nil {
			t.Errorf("%s, the second time: %s, %v", policy, again, err)
		}
		if dead := r.dead(); policy == DeadLetter && (len(dead) != 1 || dead[0].Cause != i.Cause) {
			t.Errorf("%+v", dead)
		}
		if policy == Retry {
			if f := r.offer(); f.RawLine != "one" || !f.Repeat() {
				t.Errorf("%+v", f)
			}
		}
		if notes := r.Notes(); !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "was removed") }) {
			t.Errorf("%q", notes)
		}
	}
}

// TestAppendingIsNoLoss: an entry that was appended between two looks of one step was
// filed as lost, although it stood in the inbox.
func TestAppendingIsNoLoss(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	other, err := Open(Place{Inbox: filepath.Join(r.dir, "inbox.jsonl")})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	const entries = 300
	var sending sync.WaitGroup
	for sender := range 2 {
		sending.Go(func() {
			for i := range entries / 2 {
				if _, err := other.Append(t.Context(), Letter{ID: fmt.Sprint(sender, "-", i), Prompt: "prompt"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for done := 0; done < entries && !t.Failed(); {
		if gone, err := r.Missing(); err != nil || gone.Entries > 0 {
			t.Errorf("missing: %+v, %v", gone, err)
		}
		if r.next() != "" {
			r.offer()
			r.advance(Taken)
			r.ack()
			done++
		}
	}
	sending.Wait()
	if dead := r.dead(); len(dead) > 0 {
		t.Errorf("dead letters: %+v", dead)
	}
}

// TestMoreThanCanBeFiled: of more entries than are filed one by one, the rest was removed
// with the file that they stood in, and nothing said so.
func TestMoreThanCanBeFiled(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	const many = mostLost + 5
	letters := make([]Letter, many)
	for i := range letters {
		letters[i] = Letter{ID: fmt.Sprint("id", i), Source: "send", Prompt: "x"}
	}
	if _, err := r.AppendBatch(t.Context(), letters); err != nil {
		t.Fatal(err)
	}
	r.next()
	r.Notes()
	r.put("new", "other\n")
	r.rename("new", "inbox.jsonl")
	r.reopen()
	if f, err := r.InFlight(); f != nil || err != nil {
		t.Fatal(f, err)
	}
	if n := len(r.dead()); n != mostLost {
		t.Errorf("%d are filed", n)
	}
	if notes := strings.Join(r.Notes(), "\n"); !strings.Contains(notes, "5 more are missing") {
		t.Errorf("notes %q", notes)
	}
	if n := r.asides(r.inbox().kept); n != 1 {
		t.Errorf("%d files with the rest are kept", n)
	}
}
