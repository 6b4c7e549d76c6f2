package inbox

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/internal/testbed"
)

func TestTheOutboxIsReadAndFollowed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(Letter{ID: "a", Prompt: "one"})
	r.append(Letter{ID: "b", Prompt: "two"})
	if _, err := r.FindDelivery("a", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("before: %v", err)
	}
	r.offer()
	r.ack()
	if d, err := r.FindDelivery("a", nil); err != nil || d.Reply != "done" || d.ID != "a" {
		t.Errorf("found %+v, %v", d, err)
	}
	reader, err := Open(r.place)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	got := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), testbed.Patience)
		defer cancel()
		d, err := reader.AwaitDelivery(ctx, "b", nil)
		if err == nil && d.ID != "b" {
			err = errors.New("another delivery: " + d.ID)
		}
		got <- err
	}()
	r.offer()
	r.ack()
	if err := <-got; err != nil {
		t.Errorf("awaited: %v", err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if _, err := r.AwaitDelivery(ctx, "c", nil); !errors.Is(err, why) {
		t.Errorf("given up with %v", err)
	}
}

func TestTheOutboxIsRotated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(Letter{ID: "a", Prompt: "one"})
	r.append(Letter{ID: "b", Prompt: "two"})
	r.offer()
	r.ack()
	// A sparse file of the size at which it is rotated: blanks are no record.
	if err := os.Truncate(r.path(outboxFile), MaxOutbox); err != nil {
		t.Fatal(err)
	}
	r.offer()
	r.ack()
	if info, err := os.Stat(r.path(olderOutbox)); err != nil || info.Size() != MaxOutbox {
		t.Errorf("older outbox: %v", err)
	}
	for _, id := range []string{"a", "b"} {
		if _, err := r.FindDelivery(id, nil); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestARepeatedOrTornRecordIsPassedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(outboxFile, `{"delivery_id":"1","id":"a"}`+"\n{\"deliv\n"+`{"delivery_id":"1","id":"a"}`+"\n"+`{"delivery_id":"2","id":"b"}`+"\n{\"delivery_id\":\"3\"")
	var ids []string
	for d, err := range r.Deliveries() {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, d.ID)
	}
	if !slices.Equal(ids, []string{"a", "b"}) {
		t.Errorf("records of %q", ids)
	}
}

func TestTheReplyIsCutOnARune(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\n")
	r.offer()
	d, err := r.Acknowledge(Acknowledgement{Reply: "x" + strings.Repeat("é", MaxReply), Abandoned: []string{"shell: sleep"}})
	if err != nil {
		t.Fatal(err)
	}
	if !d.ReplyCut || len(d.Reply) != MaxReply-1 || !strings.HasSuffix(d.Reply, "é") || d.AcknowledgedAt.IsZero() {
		t.Errorf("reply of %d bytes, cut %v", len(d.Reply), d.ReplyCut)
	}
}

func TestHomeIsWhereTheOutboxStands(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	home := t.TempDir()
	q, err := Open(Place{Inbox: r.place.Inbox, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	r.Queue.Close()
	r.Orphaned = unlocked(q)
	r.echo("one\n")
	r.offer()
	r.ack()
	if _, err := os.Stat(home + "/" + outboxFile); err != nil || r.exists(outboxFile) {
		t.Errorf("outbox: %v", err)
	}
}

func TestQueuedEntriesAreDropped(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(Letter{ID: "a", Prompt: "flying"})
	r.append(Letter{ID: "b", Prompt: "stays"})
	r.append(Letter{ID: "c", Prompt: "goes"})
	r.echo("plain one\nplain two\n")
	r.offer()
	list, err := r.List(10)
	if err != nil {
		t.Fatal(err)
	}
	size := len(r.get("inbox.jsonl"))
	n, err := r.DropQueued("a", "c", list[2].DeliveryID, "nobody")
	if err != nil || n != 2 {
		t.Errorf("dropped %d, %v", n, err)
	}
	if got := len(r.get("inbox.jsonl")); got != size {
		t.Errorf("the inbox has %d bytes, had %d", got, size)
	}
	r.ack()
	if got := join(r.drain()); got != "stays|plain two" {
		t.Errorf("drained %q", got)
	}
	var reasons []string
	for _, d := range r.dead() {
		reasons = append(reasons, string(d.Reason)+" "+d.ID)
	}
	if !slices.Equal(reasons, []string{"dropped c", "dropped "}) {
		t.Errorf("dead letters %q", reasons)
	}
}

// TestDroppedAfterSomeAttempts (found by a user: the dead letter said 0).
func TestDroppedAfterSomeAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(Letter{ID: "a", Prompt: "fails"})
	r.append(Letter{ID: "b", Prompt: "waits"})
	for range 3 {
		r.offer()
		r.advance(Taken)
		r.recover(Interruption{Policy: Retry})
	}
	if n, err := r.DropQueued("a", "b"); n != 2 || err != nil {
		t.Fatalf("dropped %d, %v", n, err)
	}
	if d := r.dead(); d[0].Attempts != 3 || d[1].Attempts != 0 {
		t.Errorf("dead letters %+v", d)
	}
}

func TestDeadLettersAreRetriedAndPurged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.append(Letter{ID: "a", Prompt: "one"})
	r.echo("plain\n\"fragment\n")
	for range 2 {
		r.offer()
		r.advance(Started)
		r.recover(Interruption{Policy: DeadLetter})
	}
	r.next() // files the fragment
	dead := r.dead()
	if len(dead) != 3 {
		t.Fatalf("dead letters %+v", dead)
	}
	n, err := r.RetryDead("a", dead[1].DeliveryID, dead[2].DeliveryID)
	if n != 2 || err == nil || !strings.Contains(err.Error(), dead[2].DeliveryID) {
		t.Errorf("retried %d, %v", n, err)
	}
	if got := join(r.drain()); got != "one|plain" {
		t.Errorf("drained %q", got)
	}
	if dead := r.dead(); len(dead) != 1 || dead[0].Reason != Torn {
		t.Errorf("left: %+v", dead)
	}
	r.put(DeadFile, r.get(DeadFile)+"no record\n")
	if n, err := r.PurgeDead(func(DeadEntry) bool { return true }); n != 1 || err != nil {
		t.Errorf("purged %d, %v", n, err)
	}
	if got := r.get(DeadFile); got != "no record\n" {
		t.Errorf("left %q", got)
	}
}

// A retry is interrupted at each of its steps, before and after it was
// carried out, and then given again: each letter is queued once, also when two
// lines were equal.
func TestARepeatedRetryQueuesNothingTwice(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, happened := range []bool{false, true} {
		for n := 0; ; n++ {
			r := newRig(t).unsynced()
			r.send("a", "enveloped")
			r.echo("plain\nplain\n")
			for range 3 {
				r.offer()
				r.giveUp()
			}
			var ids []string
			for _, d := range r.dead() {
				ids = append(ids, d.DeliveryID)
			}
			at := 0
			r.step = func(s durable.Step, run func() error) error {
				if at++; at-1 != n {
					return run()
				}
				if happened {
					_ = run()
				}
				return broken
			}
			_, err := r.RetryDead(ids...)
			r.step = nil
			if err == nil && at <= n {
				break
			}
			r.reopen()
			if _, err := r.RetryDead(ids...); err != nil {
				t.Fatalf("step %d, happened %v: %v", n, happened, err)
			}
			if got := join(r.drain()); got != "enveloped|plain|plain" {
				t.Errorf("step %d, happened %v: drained %q", n, happened, got)
			}
			if dead := r.dead(); len(dead) != 0 {
				t.Errorf("step %d, happened %v: left %+v", n, happened, dead)
			}
			if _, err := r.FindDelivery("a", nil); err != nil {
				t.Errorf("step %d, happened %v: %v", n, happened, err)
			}
		}
	}
}

// What was retried and given up again can be retried again.
func TestARetriedLetterCanDieAndBeRetriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("plain\n")
	for range 3 {
		r.offer()
		r.giveUp()
		if n, err := r.RetryDead(r.dead()[0].DeliveryID); n != 1 || err != nil {
			t.Fatalf("retried %d, %v", n, err)
		}
	}
	if got := join(r.drain()); got != "plain" {
		t.Errorf("drained %q", got)
	}
}

func TestHeartbeatRsDeadLettersAreRead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put(DeadFile, `{"entry_id":"x","start_offset":0,"end_offset":4,"raw_line":"old","delivered_at":"2026-06-19T10:11:12.123456789+00:00"}`)
	if n, err := r.RetryDead("x"); n != 1 || err != nil {
		t.Errorf("retried %d, %v", n, err)
	}
	if got := join(r.drain()); got != "old" {
		t.Errorf("drained %q", got)
	}
}

func blocks(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks * 512
}

func TestAcknowledgedSpaceIsGivenBack(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	for range 17 {
		r.echo(strings.Repeat("x", 1<<20) + "\n") // one byte over the limit of a line
	}
	if err := r.Reclaim(); err != nil || r.Notes() != nil {
		t.Fatalf("nothing is acknowledged: %v", err)
	}
	r.echo("one\ntwo\n")
	r.place.MaxEntry = 2 << 20
	r.maxEntry = 2 << 20
	for range 17 {
		r.offer()
		r.ack()
	}
	before := blocks(t, r.path("inbox.jsonl"))
	if err := r.Reclaim(); err != nil {
		t.Fatal(err)
	}
	after := blocks(t, r.path("inbox.jsonl"))
	if after == before && !r.exists("inbox.jsonl") {
		t.Skip("this file system punches no holes")
	}
	if after > before/8 {
		t.Errorf("%d bytes on disk before, %d after", before, after)
	}
	r.reopen()
	if got := join(r.drain()); got != "one|two" {
		t.Errorf("drained %q", got)
	}
	if notes := r.Notes(); notes != nil {
		t.Errorf("notes %q", notes)
	}
	if err := r.Reclaim(); err != nil {
		t.Error(err)
	}
}

// moveAside is what Reclaim does with an inbox of 16 MiB where no holes can be
// punched. It returns the archive's path.
func (r *rig) moveAside() (path string) {
	r.t.Helper()
	v, err := r.carrier().settle()
	if err != nil {
		r.t.Fatal(err)
	}
	defer v.close()
	if err := r.carrier().archive(v); err != nil {
		r.t.Fatal(err)
	}
	m, _, err := r.inbox().readMeta()
	if err != nil {
		r.t.Fatal(err)
	}
	if m.Archive == nil {
		return ""
	}
	return r.path(m.Archive.Name)
}

// anHourLater lets the archive be looked at as if an hour had passed.
func (r *rig) anHourLater() {
	r.t.Helper()
	m, _, err := r.inbox().readMeta()
	if err != nil || m.Archive == nil {
		r.t.Fatalf("sidecar %+v, %v", m, err)
	}
	m.Archive.At -= 3600
	past := time.Now().Add(-time.Hour)
	if err := errors.Join(r.carrier().writeMeta(*m), os.Chtimes(r.path(m.Archive.Name), past, past), r.Reclaim()); err != nil {
		r.t.Fatal(err)
	}
}

// Where no holes can be punched, a drained inbox is moved aside, and what a
// late writer puts there still comes.
func TestADrainedInboxIsMovedAside(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\n")
	r.drain()
	archive := r.moveAside()
	if archive == "" || r.exists("inbox.jsonl") {
		t.Fatal("the inbox is still there")
	}
	// The writer had opened it just before.
	late, err := os.OpenFile(archive, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if _, err := late.WriteString("late\n"); err != nil {
		t.Fatal(err)
	}
	r.append(Letter{Prompt: "two"})
	if err := r.Reclaim(); err != nil {
		t.Fatal(err)
	}
	if got := join(r.drain()); got != "two|late" {
		t.Errorf("drained %q", got)
	}
	if !r.Reclaimable() {
		t.Error("nobody will look at the archive again")
	}
	if err := late.Close(); err != nil {
		t.Fatal(err)
	}
	r.anHourLater()
	if _, err := os.Stat(archive); err == nil || r.Reclaimable() {
		t.Error("the archive is kept for ever")
	}
}

// What a late writer leaves behind was once lost: a line over max-entry was
// passed over in silence, a last line without its newline kept the archive for
// ever, and a writer that was silent for a minute wrote into a removed file.
func TestLateWritersLoseNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\n")
	r.drain()
	archive := r.moveAside()
	late, err := os.OpenFile(archive, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if _, err := late.WriteString(strings.Repeat("x", int(r.maxEntry)+1) + "\nand then\nno newline"); err != nil {
		t.Fatal(err)
	}
	if err := r.Reclaim(); err != nil {
		t.Fatal(err)
	}
	if got := join(r.drain()); got != "and then" {
		t.Errorf("drained %q", got)
	}
	if dead := r.dead(); len(dead) != 1 || dead[0].Reason != TooLarge || dead[0].Length != r.maxEntry+1 {
		t.Errorf("dead letters %+v", dead)
	}
	r.anHourLater()
	if got := join(r.drain()); got != "no newline" {
		t.Errorf("drained %q", got)
	}
	r.anHourLater()
	if _, err := os.Stat(archive); err != nil {
		if probe, err := os.Open(r.path("inbox.jsonl")); err == nil && durable.WritingOf(probe) != durable.NotWritten {
			t.Skip("this file system knows no leases")
		}
		t.Fatal("removed while a writer has it open")
	}
	if _, err := late.WriteString("\nstill here\n"); err != nil {
		t.Fatal(err)
	}
	r.anHourLater()
	if got := join(r.drain()); got != "still here" {
		t.Errorf("drained %q", got)
	}
}

// An inbox that somebody holds open, and writes to now and then, stays.
func TestAnInboxThatIsBeingWrittenIsNotMovedAside(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\n")
	writer, err := os.OpenFile(r.path("inbox.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	r.drain()
	if probe, err := os.Open(r.path("inbox.jsonl")); err != nil || durable.WritingOf(probe) != durable.Written {
		t.Skip("this file system knows no leases")
	}
	if to := r.moveAside(); to != "" {
		t.Errorf("moved to %q", to)
	}
}

// A full disk stops the queue and loses nothing.
func TestAFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\ntwo\n")
	r.offer()
	r.advance(Started)
	r.guard(func(s durable.Step, run func() error) error {
		if s.Verb == durable.Write || s.Verb == durable.Create {
			return syscall.ENOSPC
		}
		return run()
	})
	if _, err := r.Acknowledge(Acknowledgement{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Acknowledge: %v", err)
	}
	if _, _, err := r.Recover(Interruption{Policy: DeadLetter}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Recover: %v", err)
	}
	r.step = nil
	r.reopen()
	if f, err := r.InFlight(); err != nil || f == nil || f.State != Started {
		t.Fatalf("in flight %+v, %v", f, err)
	}
	r.ack()
	if got := join(r.drain()); got != "two" {
		t.Errorf("drained %q", got)
	}
}

// A folder, a FIFO or a link in place of the files that are only extended is
// kept as evidence, and the queue goes on: without a record the entry would be
// given again for ever.
func TestWhatIsNoFileIsSetAsideWhereRecordsGo(t *testing.T) {
	t.Parallel()
	for _, make := range []func(path string) error{
		func(path string) error { return os.MkdirAll(path+"/x", 0o700) },
		func(path string) error { return syscall.Mkfifo(path, 0o600) },
		func(path string) error { return os.Symlink("/etc/passwd", path) },
	} {
		for _, name := range []string{outboxFile, DeadFile, respondedFile} {
			r := newRig(t).unsynced()
			if err := make(r.path(name)); err != nil {
				t.Fatal(err)
			}
			r.echo("one\ntwo\nthree\n")
			r.offer()
			r.giveUp()
			if got := join(r.drain()); got != "two|three" {
				t.Errorf("%s: drained %q", name, got)
			}
			if dead := r.dead(); len(dead) != 1 {
				t.Errorf("%s: dead letters %+v", name, dead)
			}
			if info, err := os.Lstat(r.path(name)); err == nil && !info.Mode().IsRegular() {
				t.Errorf("%s is still no file", name)
			}
		}
	}
}
