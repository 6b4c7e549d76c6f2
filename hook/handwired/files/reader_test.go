package files

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heartbeat/queue"
	form "heartbeat/queue/line"
)

// looked is what a reader finds in a lane of a folder.
func looked(t *testing.T, r *rig, l Lane, do func(*View)) error {
	t.Helper()
	in, err := OpenReader(Place{Inbox: r.path("inbox.jsonl")}, l)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	v, err := in.Look()
	if err != nil {
		return err
	}
	defer v.Close()
	do(v)
	return nil
}

// queuedIn are the prompts that are queued, and the reasons of what has to become a dead letter.
func queuedIn(t *testing.T, v *View) (all []string) {
	t.Helper()
	_, err := v.Queued(func(e *Entry, d *Dead) bool {
		if e != nil {
			all = append(all, e.Prompt)
		} else {
			all = append(all, "dead: "+string(d.Reason))
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// earlier puts a record as heartbeat's earlier design wrote it for a line of a lane.
func (r *rig) earlier(l Lane, line string, start int, more string) {
	raw := strings.TrimSuffix(line, "\n")
	r.put(l.Record, fmt.Sprintf(`{"entry_id":%q,"start_offset":%d,"end_offset":%d,"raw_line":%q,"delivered_at":"2026-11-22T00:00:00Z","delivery_id":"0123456789ab","generation":7,"attempt":2,"repeats":1%s}`,
		form.Sum([]byte(raw)), start, start+len(line), raw, more))
}

// TestAReaderReadsTheUrgentLane, whose files have other names, and changes nothing.
func TestAReaderReadsTheUrgentLane(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("not urgent\n")
	one, two := envelope("a", "one"), envelope("b", "two")
	r.put(Urgent.Lines, one+two+"\"torn\nlast\nunfinished")
	r.put(Urgent.Cursor, "0")
	r.earlier(Urgent, one, 0, `,"state":"taken","urgent":true`)
	before, err := os.ReadDir(r.at)
	if err != nil {
		t.Fatal(err)
	}
	err = looked(t, r, Urgent, func(v *View) {
		f := v.InFlight()
		if f == nil || f.Prompt() != "one" || f.Attempt != 2 || f.Repeats != 1 || f.State != queue.Taken || v.IsHandedByRs() || v.IsDamaged() {
			t.Errorf("in flight %+v", f)
		}
		if got := queuedIn(t, v); join(got) != "two|dead: torn|last" {
			t.Errorf("queued %q", got)
		}
		if end, err := v.Queued(func(*Entry, *Dead) bool { return true }); err != nil || end != int64(len(one+two)+len("\"torn\nlast\n")) {
			t.Errorf("end %d, %v", end, err)
		}
	})
	if after, dirErr := os.ReadDir(r.at); err != nil || dirErr != nil || len(after) != len(before) {
		t.Errorf("%v, %v: %d files, were %d", err, dirErr, len(after), len(before))
	}
	if err := looked(t, r, Inbox, func(v *View) {
		if got := queuedIn(t, v); v.InFlight() != nil || join(got) != "not urgent" {
			t.Errorf("the inbox: %q", got)
		}
	}); err != nil {
		t.Error(err)
	}
	e := &Entry{Raw: []byte("x")}
	in, urgent := &Reader{}, &Reader{lane: Urgent}
	if in.deliveryID(1, 0, e.Raw) == urgent.deliveryID(1, 0, e.Raw) {
		t.Error("the lanes have the same delivery ids")
	}
}

// TestWhatTheEarlierDesignRecordedIsRead, and kept where the hand-wired form writes: that finishes
// nothing whose work is checked.
func TestWhatTheEarlierDesignRecordedIsRead(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{
		"checking":       `,"state":"checking","checked":true,"iteration":2,"check":3,"claim":{"session":"s","reply":"done","since":"2026-11-22T00:00:00Z"}`,
		"unproven":       `,"state":"unproven","checked":true,"iteration":2,"check":3,"output":"it fails","interrupted":"started"`,
		"was set aside":  `,"state":"unproven","iteration":1,"aside":{"since":"2026-11-22T00:00:00Z"}`,
		"will be proven": `,"state":"started","checked":true,"iteration":1`,
	} {
		r := newRig(t).unsynced()
		r.echo("one\ntwo\n")
		r.earlier(Inbox, "one\n", 0, more)
		record := r.get(Inbox.Record)
		if err := looked(t, r, Inbox, func(v *View) {
			f := v.InFlight()
			if f == nil || f.Iteration == 0 || name == "checking" && (f.Check != 3 || !strings.Contains(string(f.Claim), `"reply":"done"`)) ||
				name == "unproven" && (f.Output != "it fails" || f.Interrupted != queue.Started) || name == "was set aside" && f.Aside == nil {
				t.Errorf("%s: %+v", name, f)
			}
		}); err != nil {
			t.Error(err)
		}
		_, _, recoverErr := r.Recover(Interruption{Policy: queue.DropOrphan})
		_, againErr := r.OfferAgain(Offering{})
		for _, err := range []error{recoverErr, againErr, r.Acknowledge(Acknowledgement{})} {
			if !errors.Is(err, ErrRunHasIt) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if r.get(Inbox.Record) != record {
			t.Errorf("%s: the record is %s", name, r.get(Inbox.Record))
		}
	}
	for cancel, want := range map[string]string{"for-good": "two", "again": "one|two"} {
		r := newRig(t).unsynced()
		r.echo("one\ntwo\n")
		r.earlier(Inbox, "one\n", 0, `,"state":"started","failure":"limit","cancel":"`+cancel+`"`)
		r.recover(Interruption{Policy: queue.RetryOrphan})
		if got := join(r.drain()); got != want || (cancel == "again") != (len(r.dead()) == 0) {
			t.Errorf("cancelled %s: %q, dead letters %+v", cancel, got, r.dead())
		}
	}
}

// TestTheEarlierDesignsSidecarIsRead: the attempts of an entry that is queued again come along, and
// what only that design knows is kept when the sidecar is written.
func TestTheEarlierDesignsSidecarIsRead(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\ntwo\n")
	r.offer()
	r.advance(queue.Taken)
	r.recover(Interruption{Policy: queue.RetryOrphan})
	was := strings.Replace(r.get(Inbox.Sidecar), `"requeued":{`, `"archive":{"name":"inbox.5.jsonl"},"requeued":{"iteration":2,"check":1,"output":"it fails",`, 1)
	r.put(Inbox.Sidecar, was)
	if err := looked(t, r, Inbox, func(v *View) {
		h := v.Requeued()
		if h == nil || h.Attempt != 1 || h.Repeats != 1 || h.Iteration != 2 || h.Output != "it fails" || v.Generation() == 0 || v.Cursor() != 0 {
			t.Errorf("%+v", h)
		}
	}); err != nil {
		t.Error(err)
	}
	if f := r.offer(); f.Attempt != 2 || f.Repeats != 1 || f.Check != 1 {
		t.Errorf("offered again: %+v", f)
	}
	r.ack()
	if !strings.Contains(r.get(Inbox.Sidecar), `"archive":{"name":"inbox.5.jsonl"}`) {
		t.Errorf("the sidecar: %s", r.get(Inbox.Sidecar))
	}
}

// TestAReaderAsksWhereTheQueueAsked: where only a person can say what is done, it says why.
func TestAReaderAsksWhereTheQueueAsked(t *testing.T) {
	t.Parallel()
	one, two := envelope("a", "one"), envelope("b", "two")
	ids := func(r *rig, lines ...string) {
		info, err := os.Stat(r.path("inbox.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		s := &source{}
		if in, err := r.openSource(os.O_RDONLY); err == nil {
			s.ino = in.ino
			in.close()
		}
		_ = info
		for i := range lines {
			lines[i] = strings.ReplaceAll(lines[i], "INO", strconv.FormatUint(s.ino, 10))
		}
		r.put(IDsFile, strings.Join(lines, "\n")+"\n")
	}
	for name, k := range map[string]struct {
		do   func(r *rig)
		says string
	}{
		"a damaged cursor": {func(r *rig) { r.put(Inbox.Cursor, "rubbish") }, "is damaged"},
		"cursor and sidecar are gone, the outbox knows": {func(r *rig) {
			r.put(OutboxFile, `{"delivery_id":"x","entry_id":"`+form.Sum([]byte(strings.TrimSpace(one)))+`","attempt":1}`+"\n")
		}, "nothing tells which"},
		"cursor and sidecar are gone, the memory of ids knows": {func(r *rig) {
			ids(r, `{"id":"a","start":0,"at":1,"ino":INO,"end":9}`, `{"id":"","start":20,"at":1,"ino":INO,"end":0}`)
		}, "nothing tells which"},
		"entries stand elsewhere": {func(r *rig) {
			r.put(Inbox.Cursor, strconv.Itoa(len(one)))
			ids(r, `{"id":"b","start":0,"at":1,"ino":INO,"end":9}`)
		}, "do not stand where they were written"},
		"it was seen to ask": {func(r *rig) {
			r.put(Inbox.Sidecar, fmt.Sprintf(`{"ino":0,"generation":7,"cursor":0,"tail":%q,"asks":"what was done in it was edited"}`, sumOf([]byte{})))
		}, "what was done in it was edited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).unsynced()
			r.echo(one + two)
			k.do(r)
			err := looked(t, r, Inbox, func(v *View) { t.Errorf("it goes on at %d", v.Cursor()) })
			if !errors.Is(err, ErrNeedsOperator) || !strings.Contains(err.Error(), k.says) {
				t.Errorf("%v, want %q", err, k.says)
			}
			if _, err := r.Next(); !errors.Is(err, ErrNeedsOperator) {
				t.Errorf("the queue: %v", err)
			}
		})
	}
	// In memory that fits, and after what disturbed it, nothing is asked.
	for _, lines := range [][]string{
		{`{"id":"a","start":0,"at":1,"ino":INO,"end":9}`},
		{`{"id":"b","start":0,"at":1,"ino":INO,"end":9}`, `{"id":"","at":1,"ino":INO,"end":0}`},
	} {
		r := newRig(t).unsynced()
		r.echo(one + two)
		r.put(Inbox.Cursor, strconv.Itoa(len(one)))
		ids(r, slices.Clone(lines)...)
		if got := r.nextOrOperator(); got != "two" {
			t.Errorf("%q: %q", lines, got)
		}
	}
}

// TestHeartbeatRsDeadLettersAreRead, the last of which has no newline.
func TestHeartbeatRsDeadLettersAreRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const record = `{"entry_id":"x","start_offset":0,"end_offset":4,"raw_line":"old","delivered_at":"2026-06-19T10:11:12.123456789+00:00"}`
	r.put(DeadFile, "garbage\n"+record+"\n"+record[:40]+"\n"+record)
	if dead := r.dead(); len(dead) != 2 || string(dead[1].Line()) != "old" || dead[1].DeliveredAt.IsZero() || dead[1].Reason != "" {
		t.Errorf("%+v", dead)
	}
}

// TestFilesOfAnySizeAreReadWithinBounds: an agent can make one of 4 TB at no cost.
func TestFilesOfAnySizeAreReadWithinBounds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{Inbox.Record, Inbox.Cursor, Inbox.Sidecar, OutboxFile, DeadFile, IDsFile} {
		r := newRig(t).unsynced()
		r.echo("one\ntwo\n")
		r.offer()
		r.put(name, "x\n")
		if err := os.Truncate(r.path(name), 4<<40); err != nil {
			t.Skipf("this file system has no such files: %v", err)
		}
		got := r.nextOrOperator()
		if outcome, _, err := r.Recover(Interruption{Policy: queue.RetryOrphan}); err != nil && !errors.Is(err, ErrNeedsOperator) {
			t.Errorf("%s: %s, %v", name, outcome, err)
		}
		if got == "" {
			t.Errorf("%s: nothing is queued", name)
		}
	}
}
