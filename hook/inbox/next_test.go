package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	form "heartbeat/queue/line"

	"heartbeat/hook/durable"
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
	if d, err := r.Depth(0); err != nil || d.Entries != 1 {
		t.Errorf("depth %+v, %v", d, err)
	}
}

func TestManyBlankLinesMoveTheCursorOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo(strings.Repeat(" \n", skipLimit) + "two\n")
	cursors := 0
	r.guard(func(s durable.Step, run func() error) error {
		if s.Name == CursorFile && s.Verb == durable.Rename {
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
	if len(dead) != 1 || dead[0].Reason != TooLarge || dead[0].Length != 20<<20 || dead[0].StartOffset != 4 ||
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
	r.advance(Started)
	r.reopen()
	if f, err := r.InFlight(); err != nil || f == nil || f.State != Started {
		t.Fatalf("in flight %+v, %v", f, err)
	}
	r.recover(Interruption{Policy: DeadLetter})
	if dead := r.dead(); len(dead) != 1 || string(dead[0].Raw()) != raw {
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

func TestDepthAndListStopAtTheirLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if d, err := r.Depth(0); err != nil || !reflect.DeepEqual(d, Depth{}) {
		t.Errorf("without an inbox: %+v, %v", d, err)
	}
	for n := range 100 {
		r.echo(fmt.Sprintf("entry %02d\n", n)) // 9 bytes each
	}
	r.offer()
	r.echo("tail")
	for _, k := range []struct {
		limit int64
		want  Depth
	}{
		{0, Depth{Entries: 99, Bytes: 895, Tail: true, State: Offered}},
		{90, Depth{Entries: 10, Bytes: 895, More: true, State: Offered}},
		{95, Depth{Entries: 10, Bytes: 895, More: true, State: Offered}},
		{5, Depth{Entries: 1, Bytes: 895, More: true, State: Offered}},
	} {
		d, err := r.Depth(k.limit)
		if d.Names = nil; err != nil || !reflect.DeepEqual(d, k.want) {
			t.Errorf("limit %d: %+v, %v, want %+v", k.limit, d, err, k.want)
		}
	}
	if l, err := r.List(3); err != nil || len(l) != 3 || l[0].Prompt != "entry 01" || l[2].Prompt != "entry 03" {
		t.Errorf("list %+v, %v", l, err)
	}
}

// TestNothingHidesThatSomethingIsQueued: a first line, or blanks, longer than the
// limit made a queue look empty, and no session was started for it.
func TestNothingHidesThatSomethingIsQueued(t *testing.T) {
	t.Parallel()
	const limit = 10_000
	long := strings.Repeat("x", 3*limit)
	for _, k := range []struct {
		name, inbox string
		want        Depth
	}{
		{"one that is long", long + "\nnext\n", Depth{Entries: 1, More: true}},
		{"one that is too large", strings.Repeat("x", DefaultMaxEntry+1) + "\nnext\n", Depth{Entries: 1, More: true}},
		{"blank lines before one", strings.Repeat("\n", 2*limit) + strings.Repeat("  \n", limit) + "next\nlast\n", Depth{Entries: 1, More: true}},
		{"blank lines alone", strings.Repeat("  \n", limit), Depth{}},
		{"one that is being written", long, Depth{Tail: true}},
		{"one too large that is being written", strings.Repeat("x", DefaultMaxEntry+1), Depth{Tail: true}},
	} {
		r := newRig(t)
		r.echo(k.inbox)
		k.want.Bytes = int64(len(k.inbox))
		d, err := r.Depth(limit)
		if d.Names = nil; err != nil || !reflect.DeepEqual(d, k.want) {
			t.Errorf("%s: %+v, %v, want %+v", k.name, d, err, k.want)
		}
	}
}

func TestReadersNeedNoWriteAccess(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		// The superuser may write anyway: look at the steps instead.
		r := newRig(t)
		r.echo("one\ntwo\n")
		r.offer()
		r.put(CursorFile, "999")
		r.guard(func(s durable.Step, _ func() error) error { t.Errorf("a reader does %+v", s); return nil })
		if _, err := r.Depth(0); err != nil {
			t.Error(err)
		}
		if _, err := r.List(10); err != nil {
			t.Error(err)
		}
		return
	}
	r := newRig(t)
	r.echo("one\n")
	if err := os.Chmod(r.dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(r.dir, 0o700) }()
	if d, err := r.Depth(0); err != nil || d.Entries != 1 {
		t.Errorf("depth %+v, %v", d, err)
	}
}

func testLines(r io.ReaderAt, from, size, limit int64) *lines {
	return (&Queue{ctx: context.Background()}).lines(r, from, size, limit, size)
}

// However the bytes are cut into reads, the lines are the same.
func TestLinesCrossTheStepsOfReading(t *testing.T) {
	t.Parallel()
	for _, n := range []int{step - 2, step - 1, step, step + 1, 2*step - 1, 3 * step} {
		data := strings.Repeat("a", n) + "\n\n\n\nb\nc"
		l := testLines(strings.NewReader(data), 0, int64(len(data)), int64(3*step))
		var got []string
		for {
			x, err := l.read()
			if err != nil {
				break
			}
			if x.start+x.length > x.end || string(data[x.start:x.start+x.length]) != string(x.raw) {
				t.Errorf("%d: line %+v", n, x)
			}
			if x.length == 0 && strings.Trim(data[x.start:x.end], "\n") != "" {
				t.Errorf("%d: more than newlines in %+v", n, x)
			}
			got = append(got, fmt.Sprint(len(x.raw), x.complete))
		}
		got = slices.Compact(got) // how empty lines are gathered depends on the reads
		if want := fmt.Sprintf("%d true|0 true|1 true|1 false", n); join(got) != want {
			t.Errorf("%d: lines %q, want %q", n, join(got), want)
		}
	}
}
