package files

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"heartbeat/hook/durable"
	"heartbeat/queue"
	form "heartbeat/queue/line"
)

func TestBlankLinesCostNoWrite(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\n" + strings.Repeat("\n  \n\"\"\n\r\n", 1250) + "two\r\n")
	r.offer()
	r.ack()
	writes := 0
	r.guard(func(_ durable.Step, run func() error) error { writes++; return run() })
	if got := r.next(); got != "two" || writes != 0 {
		t.Errorf("next %q after %d steps", got, writes)
	}
}

func TestManyBlankLinesMoveTheCursorOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo(strings.Repeat(" \n", passBlank) + "two\n")
	cursors := 0
	r.guard(func(s durable.Step, run func() error) error {
		if s.Name == Inbox.Cursor && s.Verb == durable.Rename {
			cursors++
		}
		return run()
	})
	if got := r.next(); got != "two" || cursors == 0 || cursors > 2 {
		t.Errorf("next %q, the cursor was written %d times", got, cursors)
	}
}

// A run of torn lines costs one sync, and is filed once even when the tick
// is killed at any of its steps.
func TestTornLinesAreFiledOnce(t *testing.T) {
	t.Parallel()
	killed := errors.New("killed")
	for at := 0; ; at++ {
		r := newRig(t)
		r.echo("\"torn 1\n{\"heartbeat\":1,\n\"torn 3\ngood\n")
		n := 0
		r.guard(func(_ durable.Step, run func() error) error {
			if n++; n > at {
				return killed
			}
			return run()
		})
		e, err := r.Next()
		r.step = nil
		r.reopen()
		if err == nil {
			if e.Prompt != "good" || at > 20 {
				t.Errorf("next %q after %d steps", e.Prompt, at)
			}
			break
		}
		if got := r.next(); got != "good" {
			t.Errorf("killed at step %d: next %q", at, got)
		}
		dead := r.dead()
		if len(dead) != 3 || dead[0].RawLine != `"torn 1` || dead[2].RawLine != `"torn 3` {
			t.Errorf("killed at step %d: dead letters %+v", at, dead)
		}
	}
}

func TestALineThatIsTooLargeIsFiledByReference(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	huge := strings.Repeat("x", 20<<20)
	r.echo("one\n" + huge + "\ntwo\n")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := join(r.drain())
	runtime.ReadMemStats(&after)
	if got != "one|two" {
		t.Errorf("drained %q", got)
	}
	dead := r.dead()
	if len(dead) != 1 || dead[0].Reason != queue.TooLarge || dead[0].Length != 20<<20 || dead[0].StartOffset != 4 ||
		dead[0].RawLine != "" || dead[0].EntryID != form.Sum([]byte(huge)) {
		t.Errorf("dead letters %+v", dead)
	}
	if d := r.dead()[0]; d.EndOffset != 4+20<<20+1 && d.EndOffset != 4+(20<<20)+1 {
		t.Errorf("end %d", d.EndOffset)
	}
}

func TestInvalidUTF8KeepsItsBytes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	raw := "caf\xe9 \xff\xfe"
	r.echo(raw + "\n")
	f := r.offer()
	if f.EntryID != form.Sum([]byte(raw)) || f.RawBase64 == "" || strings.Contains(f.RawLine, "\xff") {
		t.Errorf("record %+v", f)
	}
	r.advance(queue.Started)
	r.reopen()
	if f, err := r.InFlight(); err != nil || f == nil || f.State != queue.Started {
		t.Fatalf("in flight %+v, %v", f, err)
	}
	r.recover(Interruption{Policy: queue.DeadLetterOrphan})
	if dead := r.dead(); len(dead) != 1 || string(dead[0].Line()) != raw {
		t.Errorf("dead letters %+v", dead)
	}
}

func TestTwoEqualLinesAreTwoDeliveries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("check\ncheck\n")
	one := r.offer()
	r.ack()
	two := r.offer()
	if one.EntryID != two.EntryID || one.DeliveryID == two.DeliveryID || len(two.DeliveryID) != 12 {
		t.Errorf("%s/%s and %s/%s", one.EntryID, one.DeliveryID, two.EntryID, two.DeliveryID)
	}
}

// step is how much is read at a time.
const step = 64 << 10

// However the bytes are cut into reads, the lines are the same.
func TestLinesCrossTheStepsOfReading(t *testing.T) {
	t.Parallel()
	for _, n := range []int{step - 2, step - 1, step, step + 1, 2*step - 1, 3 * step} {
		data := strings.Repeat("a", n) + "\n\n\n\nb\nc"
		l := linesOf(strings.NewReader(data), 0, int64(len(data)), 3*step, 9*step)
		var got []string
		for {
			x, err := l.read()
			if err != nil {
				break
			}
			if x.start+x.length > x.end || string(data[x.start:x.start+x.length]) != string(x.raw) {
				t.Errorf("%d: line %+v", n, x)
			}
			got = append(got, fmt.Sprint(len(x.raw), x.complete))
		}
		got = slices.Compact(got) // how empty lines are gathered depends on the reads
		if want := fmt.Sprintf("%d true|0 true|1 true|1 false", n); join(got) != want {
			t.Errorf("%d: lines %q, want %q", n, join(got), want)
		}
	}
}

func TestAnEntryGoesFromQueuedToAcknowledged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("first\nsecond\n")
	f := r.offer()
	if f.State != queue.Offered || f.Attempt != 1 || f.StartOffset != 0 || f.EndOffset != 6 || f.RawLine != "first" {
		t.Errorf("offered %+v", f)
	}
	if !r.exists(Inbox.Flag) {
		t.Error("the compatible flag is missing after an offer")
	}
	r.reopen()
	r.advance(queue.Taken)
	r.advance(queue.Started)
	r.reopen()
	if f, err := r.InFlight(); err != nil || f.State != queue.Started {
		t.Fatalf("in flight %+v, %v", f, err)
	}
	r.ack()
	d, err := r.LastDelivery()
	if err != nil || d.Reply != "done" || d.EntryID != f.EntryID || d.Attempt != 1 {
		t.Errorf("delivered %+v", d)
	}
	if got := r.get(Inbox.Cursor); got != "6" {
		t.Errorf("cursor %q, want 6", got)
	}
	if r.exists(Inbox.Record) || r.exists(Inbox.Flag) {
		t.Error("the record or the flag is left after the acknowledgement")
	}
	if got := r.next(); got != "second" {
		t.Errorf("next %q", got)
	}
}

func TestOfferRefusesASecondEntryInFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("first\nsecond\n")
	r.offer()
	e, err := r.Next()
	if err != nil || e.Prompt != "second" {
		t.Fatalf("behind the entry in flight stands %+v, %v", e, err)
	}
	if _, err := r.Offer(e, Offering{}); !errors.Is(err, ErrInFlight) {
		t.Errorf("Offer: %v, want ErrInFlight", err)
	}
}
