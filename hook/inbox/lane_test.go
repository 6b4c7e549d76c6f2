package inbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// hurry appends to the urgent lane as a shell would.
func (r *rig) hurry(s string) {
	r.t.Helper()
	r.put(UrgentFile, r.get(UrgentFile)+s)
}

func (r *rig) files() (names []string) {
	r.t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Who never queues anything urgent finds nothing of it in the folder.
func TestWithoutAnUrgentEntryNothingIsMade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(Letter{ID: "a", Prompt: "one", Idempotent: true})
	r.echo("two\n")
	r.offer()
	r.advance(Started)
	r.recover(Interruption{Policy: DeadLetter})
	r.offer()
	r.ack()
	for _, name := range r.files() {
		if strings.Contains(name, "urgent") {
			t.Errorf("%s was made", name)
		}
	}
}

func TestUrgentEntriesGoFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("same\nlater\n")
	one := r.offer()
	r.hurry("same\n")
	r.append(Letter{Prompt: "sent", Urgent: true})
	d, err := r.Depth(0)
	if err != nil || d.Entries != 3 || d.Urgent != 2 || len(d.Names) != 3 {
		t.Errorf("depth %+v, %v", d, err)
	}
	// It passes no entry that was handed over.
	e, err := r.Next()
	if err != nil || e.Prompt != "same" || !e.Urgent {
		t.Fatalf("next %+v, %v", e, err)
	}
	if _, err := r.Offer(e, Offering{}); !errors.Is(err, ErrInFlight) {
		t.Errorf("offered beside another: %v", err)
	}
	if f, err := r.InFlight(); err != nil || f.DeliveryID != one.DeliveryID || f.Urgent {
		t.Errorf("in flight %+v, %v", f, err)
	}
	if err := r.Withdraw(); err != nil {
		t.Fatal(err)
	}
	two := r.offer()
	if !two.Urgent || two.EntryID != one.EntryID || two.DeliveryID == one.DeliveryID {
		t.Errorf("%+v after %+v", two, one)
	}
	if r.exists(FlightFile) || !r.exists(UrgentFlight) || r.exists(respondedFile) {
		t.Errorf("files %q", r.files())
	}
	if done := r.ack(); !done.Urgent || done.DeliveryID != two.DeliveryID {
		t.Errorf("done %+v", done)
	}
	entries, err := r.List(10)
	var order []string
	for _, e := range entries {
		order = append(order, e.Prompt)
	}
	if err != nil || !slices.Equal(order, []string{"sent", "same", "later"}) {
		t.Errorf("order %q, %v", order, err)
	}
	if _, err := r.Offer(&entries[1], Offering{}); err != nil { // the caller decides
		t.Error(err)
	}
}

// Two files at one offset with one line and one generation are two deliveries.
func TestTheLaneIsPartOfTheDeliveryID(t *testing.T) {
	t.Parallel()
	if a, b := deliveryID(false, 7, 0, []byte("x")), deliveryID(true, 7, 0, []byte("x")); a == b {
		t.Error(a)
	}
}

func TestAnIdIsAcceptedOnceOverBothLanes(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]bool{"the memory is whole": false, "the memory is gone": true} {
		for _, first := range []bool{false, true} {
			r := newRig(t)
			r.append(Letter{ID: "x", Prompt: "one", Idempotent: true, Urgent: first})
			if forget {
				r.remove(idsFile)
			}
			_, err := r.Append(t.Context(), Letter{ID: "x", Prompt: "one", Idempotent: true, Urgent: !first})
			if !errors.Is(err, ErrDuplicate) {
				t.Errorf("%s, urgent first %t: %v", name, first, err)
			}
			if p, found, err := r.AcceptedAs("x"); p != "one" || !found || err != nil {
				t.Errorf("accepted as %q, %t, %v", p, found, err)
			}
		}
	}
}

func TestTheBoundCountsBothLanes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(Letter{Prompt: "one", Most: 2})
	r.append(Letter{Prompt: "two", Most: 2, Urgent: true})
	for _, urgent := range []bool{false, true} {
		if _, err := r.Append(t.Context(), Letter{Prompt: "three", Most: 2, Urgent: urgent}); !errors.Is(err, ErrFull) {
			t.Errorf("urgent %t: %v", urgent, err)
		}
	}
}

// What is given up goes back to where it came from.
func TestADeadLetterReturnsToItsLane(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\n")
	r.append(Letter{ID: "u", Prompt: "urgent", Urgent: true})
	r.offer()
	r.advance(Started)
	if got := r.recover(Interruption{Policy: DeadLetter}); got != DeadLettered {
		t.Fatal(got)
	}
	f := r.offer()
	r.advance(Started)
	if _, err := r.Cancel(Cancellation{Delivery: f.DeliveryID, Again: true}); err != nil {
		t.Fatal(err)
	}
	if got := r.recover(Interruption{Policy: DeadLetter}); got != QueuedAgain {
		t.Fatal(got)
	}
	if n, err := r.RetryDead("u"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	entries, err := r.List(10)
	if err != nil || len(entries) != 2 || entries[0].Prompt != "urgent" || !entries[0].Urgent || entries[1].Prompt != "one" || entries[1].Urgent {
		t.Errorf("%+v, %v", entries, err)
	}
}

// An interrupted entry stays in its lane, at its head.
func TestAnInterruptedUrgentEntryIsGivenAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\n")
	r.hurry("urgent\nurgent, too\n")
	f := r.offer()
	r.advance(Taken)
	if got := r.recover(Interruption{Policy: Retry, Counts: true}); got != Requeued {
		t.Fatal(got)
	}
	again := r.offer()
	if again.DeliveryID != f.DeliveryID || again.Attempt != 2 || !again.Urgent {
		t.Errorf("%+v", again)
	}
	r.ack()
	f = r.offer()
	r.remove(UrgentFlight) // by the agent
	if got := r.recover(Interruption{Policy: DeadLetter, Delivery: f.DeliveryID}); got != DeadLettered {
		t.Errorf("%s", got)
	}
}

// A record that a power cut has brought back, of an entry that is done, hides none of
// the other lane.
func TestADoneRecordInTheOtherLane(t *testing.T) {
	t.Parallel()
	for _, urgent := range []bool{false, true} {
		r := newRig(t)
		r.echo("one\ntwo\n")
		first, second := FlightFile, UrgentFlight
		if urgent {
			r.hurry("urgent\n")
			first, second = second, first
		}
		r.offer()
		record := r.get(first)
		r.ack()
		if !urgent {
			r.hurry("urgent\n")
		}
		f := r.offer()
		r.advance(Taken)
		r.put(first, record)
		if got, err := r.InFlight(); err != nil || got == nil || got.DeliveryID != f.DeliveryID {
			t.Errorf("in flight %+v, %v", got, err)
		}
		if got, err := r.Peek(); err != nil || got == nil || got.DeliveryID != f.DeliveryID {
			t.Errorf("peek %+v, %v", got, err)
		}
		if got := r.recover(Interruption{Policy: Retry}); got != Requeued {
			t.Errorf("%s", got)
		}
		if r.exists(first) || r.exists(second) {
			t.Errorf("files %q", r.files())
		}
	}
}

// What somebody takes out of the urgent lane is told, and only that.
func TestWhatIsTakenOutOfTheUrgentLane(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(r *rig){
		"another file": func(r *rig) { r.put("new", "else\n"); r.rename("new", UrgentFile) },
		"removed":      func(r *rig) { r.remove(UrgentFile) },
		"cut":          func(r *rig) { r.put(UrgentFile, "") },
		"removed, with what stands beside it": func(r *rig) {
			r.remove(UrgentFile)
			for _, name := range []string{urgentMeta, UrgentCursor} {
				_ = os.Remove(r.path(name))
			}
		},
	} {
		for _, settled := range []bool{false, true} {
			r := newRig(t)
			r.append(Letter{ID: "n", Prompt: "normal"})
			r.append(Letter{ID: "u", Prompt: "urgent", Urgent: true})
			r.append(Letter{ID: "m", Prompt: "normal, too"})
			if settled {
				r.next()
			}
			do(r)
			if g, err := r.Missing(); err != nil || g.Entries != 1 || !slices.Equal(g.IDs, []string{"u"}) {
				t.Errorf("%s, settled %t: %+v, %v", name, settled, g, err)
			}
			if err := r.Settle(); err != nil {
				t.Fatal(err)
			}
			dead := r.dead()
			if len(dead) != 1 || dead[0].ID != "u" || dead[0].Reason != Lost || !dead[0].Urgent {
				t.Errorf("%s, settled %t: %+v", name, settled, dead)
			}
			if lacks, err := r.Lacks([]string{"n", "u", "m"}); len(lacks) > 0 || err != nil {
				t.Errorf("%s: lacks %q, %v", name, lacks, err)
			}
		}
	}
}

// Whichever lane asks, the answer is for that one.
func TestTheUrgentLaneAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\n")
	r.do(1)
	r.hurry("a\nb\nc\n")
	r.do(3)
	r.echo("three\n")
	r.do(1) // the latest one in the outbox is of the other lane
	r.hurry("d\n")
	r.remove(UrgentCursor)
	r.remove(urgentMeta)
	if _, err := r.Next(); !errors.Is(err, ErrNeedsOperator) {
		t.Fatal(err)
	}
	if _, err := r.Depth(0); !errors.Is(err, ErrNeedsOperator) {
		t.Fatal(err)
	}
	q, err := r.Question()
	if err != nil || q == nil || !q.Urgent || !strings.Contains(q.Why, UrgentFile) || !strings.Contains(r.ByHand(), UrgentCursor) {
		t.Fatalf("%+v, %v, %s", q, err, r.ByHand())
	}
	if err := r.StartAt(q.Answers[len(q.Answers)-2].Offset); err != nil {
		t.Fatal(err)
	}
	if got := r.next(); got != "d" {
		t.Errorf("next %q of %+v", got, q.Answers)
	}
}

// One without an urgent lane leaves a file of that name alone.
func TestAFileOfThatNameWhereThereIsNoUrgentLane(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, p := range []Place{{Inbox: dir + "/in.jsonl", Single: true}, {Inbox: dir + "/" + UrgentFile}} {
		q, err := Open(p)
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, dir: dir, Orphaned: unlocked(q)}
		r.put("in.jsonl", "")
		r.put(UrgentFile, "theirs\n")
		want := ""
		if !p.Single {
			want = "theirs"
		}
		if got := r.next(); got != want {
			t.Errorf("%+v: next %q", p, got)
		}
		if _, err := r.Append(t.Context(), Letter{Prompt: "x", Urgent: true}); err == nil {
			t.Errorf("%+v: an urgent entry was queued", p)
		}
		q.Close()
	}
}

func TestDropAndSpaceInBothLanes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(Letter{ID: "n", Prompt: "normal"})
	r.append(Letter{ID: "u", Prompt: "urgent", Urgent: true})
	if held, err := r.Holds("u"); !held || err != nil {
		t.Error(held, err)
	}
	if n, err := r.DropQueued("u", "n"); n != 2 || err != nil {
		t.Error(n, err)
	}
	if dead := r.dead(); len(dead) != 2 || r.next() != "" {
		t.Errorf("%+v", dead)
	}
	_, at, err := r.Passed(Position{})
	if err != nil {
		t.Fatal(err)
	}
	r.hurry(strings.Repeat(strings.Repeat("y", 1<<19)+"\n", 33))
	r.do(33)
	if n, _, err := r.Passed(at); n < 33 || err != nil {
		t.Errorf("passed %d, %v", n, err)
	}
	if !r.Reclaimable() {
		t.Error("nothing to give back")
	}
	if err := r.Reclaim(); err != nil || r.Reclaimable() {
		t.Error(err)
	}
}

// TestALookReadsTheEndOfTheOutbox: each look into a lane without a sidecar, whose last
// record is behind those of the other, read the whole outbox.
func TestALookReadsTheEndOfTheOutbox(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	record := func(id string, urgent bool) string {
		line, err := encodeJSON(Delivery{DeliveryID: id, EntryID: "of " + id, Urgent: urgent, Reply: strings.Repeat("x", MaxReply)})
		if err != nil {
			t.Fatal(err)
		}
		return string(line)
	}
	var b strings.Builder
	b.WriteString(record("old", true))
	for range 2 * laneTail / MaxReply {
		b.WriteString(record("other", false))
	}
	r.put(outboxFile, b.String())
	if last, err := r.hurried().lastDone(); last != "" || err != nil {
		t.Errorf("%q, %v", last, err)
	}
	r.put(outboxFile, b.String()+record("new", true)+record("other", false))
	if last, err := r.hurried().lastDone(); last != "of new" || err != nil {
		t.Errorf("%q, %v", last, err)
	}
}
