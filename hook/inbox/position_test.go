package inbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/durable"
)

// The inbox is changed under the queue in a way that the cursor does not
// know of: nothing is swallowed, nothing comes from a line's middle, and it is
// said.
func TestTheInboxChangesUnderTheCursor(t *testing.T) {
	t.Parallel()
	const a, b, c = "{\"heartbeat\":1,\"id\":\"a\",\"prompt\":\"alpha\"}\n", "beta\n", "gamma\n"
	replace := func(r *rig, content string) { // as an editor or a rotation does
		r.put("new", content)
		if err := os.Rename(r.path("new"), r.path("inbox.jsonl")); err != nil {
			r.t.Fatal(err)
		}
	}
	for _, k := range []struct {
		name  string
		first string // in the inbox at first
		acks  int    // how many are acknowledged before the change
		do    func(r *rig)
		want  string
		note  string
	}{
		{"truncated", a + b, 2, func(r *rig) { r.put("inbox.jsonl", ""); r.echo("new\n") }, "new", "shorter"},
		{"truncated and not filled", a + b, 2, func(r *rig) { r.put("inbox.jsonl", "") }, "", "shorter"},
		{"truncated and filled beyond the cursor", b, 1, func(r *rig) { r.put("inbox.jsonl", "one\ntwo\n") }, "one|two", "another"},
		{"a new line longer than the cursor", "aaaaaaaaaaaaaaaaaaaaaaaaa\n", 1, func(r *rig) {
			r.put("inbox.jsonl", "NEW-2 this one is longer than cursor\n")
		}, "NEW-2 this one is longer than cursor", "another"},
		{"rotated, shorter", a + b, 2, func(r *rig) { replace(r, "new\n") }, "new", "shorter"},
		{"rotated, longer", b, 1, func(r *rig) { replace(r, "new one\nnew two\n") }, "new one|new two", "another"},
		{"rotated before anything was done", a, 0, func(r *rig) { replace(r, "new\n") }, "new", ""},
		{"removed and made again", a + b, 2, func(r *rig) { r.remove("inbox.jsonl"); r.next(); r.echo("new\n") }, "new", "gone"},
		{"sed of a queued line", a + b + c, 1, func(r *rig) { replace(r, a+"BETA\n"+c) }, "BETA|gamma", "same beginning"},
		{"sed removes a line that is done", b + a + c, 2, func(r *rig) { replace(r, a+c) }, "gamma", "edited"},
		{"sed removes a line, all done", b + a, 2, func(r *rig) { replace(r, a); r.echo("new\n") }, "new", "edited"},
		{"edited in place before the cursor", b + c + a + c, 3, func(r *rig) { r.put("inbox.jsonl", "x\n"+a+c) }, "gamma", "edited"},
		{"edited in place, lines of equal length", "aaaa\nbbbb\ncccc\n", 1, func(r *rig) { r.put("inbox.jsonl", "bbbb\ncccc\ndddd\n") }, "bbbb|cccc|dddd", "another"},
		{"a plain line is doubled", strings.Repeat("x", 300) + "\n" + b + c, 2, func(r *rig) {
			r.put("inbox.jsonl", strings.Repeat("x", 300)+"\n!"+b+b+b+c)
		}, "needs a person", ""},
		{"another file of the same repeated line", "go\ngo\n", 2, func(r *rig) { replace(r, "go\ngo\ngo\n") }, "needs a person", ""},
		{"a copy of the folder", a + b + c, 2, func(r *rig) { replace(r, a+b+c) }, "gamma", "same beginning"},
		{"cut within what is done", a + b + c, 3, func(r *rig) { r.put("inbox.jsonl", a+b) }, "needs a person", ""},
		{"cut within what is done, lines without an id", strings.Repeat("x", 300) + "\n" + b + c, 3, func(r *rig) {
			r.put("inbox.jsonl", strings.Repeat("x", 300)+"\n")
		}, "needs a person", ""},
		{"cut before what is queued", a + b + c, 1, func(r *rig) { r.put("inbox.jsonl", a) }, "", "was cut"},
		{"restored from a backup", a + b + c, 3, func(r *rig) { replace(r, a+b) }, "needs a person", ""},
		{"filled again, shorter, with lines without an id", b + c, 2, func(r *rig) { r.put("inbox.jsonl", b) }, "beta", "shorter"},
		{"cursor and sidecar removed", a + b + c, 2, func(r *rig) { r.remove(CursorFile); r.remove(metaFile) }, "needs a person", ""},
		{"a cursor behind the end, and the sidecar removed", a + b + c, 2, func(r *rig) { r.put(CursorFile, "999"); r.remove(metaFile) }, "needs a person", ""},
		{"they and the inbox, which is made again", a + b, 2, func(r *rig) {
			r.remove(CursorFile)
			r.remove(metaFile)
			replace(r, "new\n")
		}, "new", ""},
		{"the cursor removed", a + b + c, 2, func(r *rig) { r.remove(CursorFile) }, "gamma", "cursor was missing"},
		{"the sidecar removed", a + b + c, 2, func(r *rig) { r.remove(metaFile) }, "gamma", ""},
		{"grown only", a + b, 2, func(r *rig) { r.echo(c) }, "gamma", ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.echo(k.first)
			for range k.acks {
				r.offer()
				r.advance(Taken)
				r.ack()
			}
			r.Notes()
			k.do(r)
			r.reopen()
			got := r.nextOrOperator()
			notes := strings.Join(r.Notes(), "; ")
			if got != "needs a person" {
				got = join(r.drain())
			}
			if got != k.want {
				t.Errorf("got %q, want %q (notes %q)", got, k.want, notes)
			}
			if (k.note == "") != (notes == "") && k.name != "removed and made again" || !strings.Contains(notes, k.note) && k.name != "removed and made again" {
				t.Errorf("notes %q, want %q in them", notes, k.note)
			}
		})
	}
}

func TestStartAtAnswersErrNeedsOperator(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("inbox.jsonl", "one\ntwo\nthree\n")
	r.put(CursorFile, "rubbish")
	if _, err := r.Next(); !errors.Is(err, ErrNeedsOperator) {
		t.Fatalf("Next: %v", err)
	}
	if _, err := r.Depth(0); !errors.Is(err, ErrNeedsOperator) {
		t.Errorf("Depth: %v", err)
	}
	if _, _, err := r.Recover(Interruption{}); !errors.Is(err, ErrNeedsOperator) {
		t.Errorf("Recover: %v", err)
	}
	if r.get(CursorFile) != "rubbish" {
		t.Error("the evidence is gone")
	}
	if err := r.StartAt(5); err == nil {
		t.Error("a line's middle is accepted")
	}
	if err := r.StartAt(4); err != nil {
		t.Fatal(err)
	}
	if got := join(r.drain()); got != "two|three" {
		t.Errorf("drained %q", got)
	}
}

func TestACorruptCursorIsRebuilt(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "abc", "-1", "18446744073709551616", "0x10", "7", "9999"} {
		for _, flying := range []bool{false, true} {
			r := newRig(t).unsynced()
			r.echo("one\ntwo\nthree\n")
			r.offer()
			r.advance(Taken)
			r.ack()
			want := "two|three"
			if flying {
				r.offer()
			}
			r.put(CursorFile, bad)
			if flying {
				if f, err := r.InFlight(); err != nil || f == nil || f.RawLine != "two" {
					t.Fatalf("cursor %q: in flight %+v, %v", bad, f, err)
				}
				r.advance(Taken)
				r.ack()
				want = "three"
			}
			if got := join(r.drain()); got != want {
				t.Errorf("cursor %q, in flight %v: drained %q, want %q", bad, flying, got, want)
			}
			if r.asides(CursorFile) != min(1, len(bad)) || len(r.Notes()) == 0 { // an empty file is no evidence
				t.Errorf("cursor %q, in flight %v: no evidence or no note", bad, flying)
			}
		}
	}
}

func TestALostCursorIsRebuilt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("one\ntwo\nthree\n")
	r.offer()
	r.ack()
	r.remove(CursorFile)
	if got := join(r.drain()); got != "two|three" {
		t.Errorf("drained %q", got)
	}
}

func TestACorruptRecordCountsAsOffered(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "{", "null", `{"entry_id":"x"}`, `{"state":"flying","delivery_id":"x"}`} {
		r := newRig(t).unsynced()
		r.echo("one\ntwo\n")
		r.offer()
		r.advance(Started)
		r.put(FlightFile, bad)
		f, err := r.InFlight()
		if err != nil || f == nil || f.State != Offered || f.RawLine != "one" {
			t.Fatalf("record %q: in flight %+v, %v", bad, f, err)
		}
		if r.asides(FlightFile) != min(1, len(bad)) {
			t.Errorf("record %q: no evidence", bad)
		}
		r.advance(Taken)
		r.ack()
		if got := join(r.drain()); got != "two" {
			t.Errorf("record %q: drained %q", bad, got)
		}
	}
}

func TestWhatStandsInThePlaceOfAFile(t *testing.T) {
	t.Parallel()
	made := map[string]func(path string) error{
		"fifo":   func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":   func(path string) error { return os.Symlink("/etc/passwd", path) },
	}
	for kind, make := range made {
		r := newRig(t)
		if err := make(r.path("inbox.jsonl")); err != nil {
			t.Fatal(err)
		}
		if kind == "link" {
			if _, err := Open(Place{Inbox: r.path("inbox.jsonl")}); err == nil || !strings.Contains(err.Error(), "another folder") {
				t.Errorf("link: Open: %v", err)
			}
		}
		if _, err := r.Next(); err == nil || errors.Is(err, ErrEmpty) {
			t.Errorf("%s as inbox: Next: %v", kind, err)
		}
		if _, err := r.Append(t.Context(), Letter{Prompt: "x"}); err == nil {
			t.Errorf("%s as inbox: Append succeeded", kind)
		}
		for _, name := range []string{CursorFile, FlightFile, metaFile} {
			r := newRig(t)
			r.echo("one\ntwo\n")
			r.offer()
			r.remove(FlightFile)
			if r.exists(CursorFile) {
				r.remove(CursorFile)
			}
			if name == metaFile {
				r.remove(metaFile)
			}
			if err := make(r.path(name)); err != nil {
				t.Fatal(err)
			}
			f, err := r.InFlight()
			if err != nil {
				t.Errorf("%s as %s: %v", kind, name, err)
				continue
			}
			if f != nil {
				r.ack()
			}
			if got := join(r.drain()); !strings.HasSuffix(got, "two") {
				t.Errorf("%s as %s: drained %q", kind, name, got)
			}
		}
	}
}

func TestALinkWithinTheFolderIsResolved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.put("real.jsonl", "one\n")
	if err := os.Symlink("real.jsonl", r.path("inbox.jsonl")); err != nil {
		t.Fatal(err)
	}
	r.reopen()
	if got := join(r.drain()); got != "one" {
		t.Errorf("drained %q", got)
	}
}

// A directory that heartbeat-rs left, in each of its states.
func TestADirectoryOfHeartbeatRsIsTakenOver(t *testing.T) {
	t.Parallel()
	const record = `{"entry_id":"7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed","start_offset":4,"end_offset":8,"raw_line":"two","delivered_at":"2026-06-19T10:11:12.123456789Z"}`
	for _, k := range []struct {
		name      string
		cursor    string
		flight    string
		responded bool
		policy    OrphanPolicy
		outcome   Outcome
		left      string
	}{
		{"nothing in flight", "4", "", false, DeadLetter, NothingToRecover, "two|three"},
		{"never started", "", "", false, DeadLetter, NothingToRecover, "one|two|three"},
		{"the flag without the record", "4", "", true, DeadLetter, NothingToRecover, "two|three"},
		{"recorded, never printed", "4", record, false, DeadLetter, Requeued, "two|three"},
		{"printed, deadletter", "4", record, true, DeadLetter, DeadLettered, "three"},
		{"printed, retry", "4", record, true, Retry, Requeued, "two|three"},
		{"printed, drop", "4", record, true, Drop, DroppedOrphan, "three"},
		{"acknowledged, removal interrupted", "8", record, true, DeadLetter, StaleOrphanDeleted, "three"},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.put("inbox.jsonl", "one\ntwo\nthree\n")
			if k.cursor != "" {
				r.put(CursorFile, k.cursor)
			}
			if k.flight != "" {
				r.put(FlightFile, k.flight)
			}
			if k.responded {
				r.put(respondedFile, "")
			}
			if got := r.recover(Interruption{Policy: k.policy, Counts: true}); got != k.outcome {
				t.Errorf("outcome %s, want %s", got, k.outcome)
			}
			if r.exists(FlightFile) || r.exists(respondedFile) {
				t.Error("recovery left the record or the flag")
			}
			if got := join(r.drain()); got != k.left {
				t.Errorf("drained %q, want %q", got, k.left)
			}
			if dead := r.dead(); k.outcome == DeadLettered &&
				(len(dead) != 1 || dead[0].RawLine != "two" || dead[0].Reason != Interrupted || dead[0].DeliveredAt.IsZero()) {
				t.Errorf("dead letters %+v", dead)
			}
		})
	}
}

// heartbeat-rs takes a last line before its newline; what comes of the line
// later must be neither handed over nor swallowed.
func TestALineThatHeartbeatRsTookTooEarly(t *testing.T) {
	t.Parallel()
	for _, k := range []struct{ rest, left, dead string }{
		{"\nnext\n", "next", ""},
		{" only, never prod\nnext\n", "next", " only, never prod"},
	} {
		r := newRig(t)
		r.put("inbox.jsonl", "DEPLOY to staging")
		r.put(FlightFile, `{"entry_id":"x","start_offset":0,"end_offset":17,"raw_line":"DEPLOY to staging","delivered_at":""}`)
		r.put(respondedFile, "")
		r.put(CursorFile, "0")
		if f, err := r.InFlight(); err != nil || f == nil || f.State != Offered {
			t.Fatalf("in flight %+v, %v", f, err)
		}
		r.ack()
		r.echo(k.rest)
		if got := join(r.drain()); got != k.left {
			t.Errorf("after %q: drained %q, want %q", k.rest, got, k.left)
		}
		var dead strings.Builder
		for _, d := range r.dead() {
			dead.WriteString(d.RawLine)
		}
		if dead.String() != k.dead {
			t.Errorf("after %q: dead letters %q, want %q", k.rest, dead.String(), k.dead)
		}
	}
}

// An entry is in flight while its inbox goes away: its record holds the line.
func TestTheInboxGoesAwayWhileAnEntryIsInFlight(t *testing.T) {
	t.Parallel()
	for _, policy := range []OrphanPolicy{Retry, DeadLetter, Drop} {
		r := newRig(t)
		r.echo("first one\nsecond\n")
		r.offer()
		r.advance(Started)
		r.put("inbox.jsonl", "")
		r.echo("n1\nn2\n")
		if f, err := r.InFlight(); err != nil || f == nil || f.RawLine != "first one" {
			t.Fatalf("%s: in flight %+v, %v", policy, f, err)
		}
		outcome := r.recover(Interruption{Policy: policy, Counts: true})
		want := map[OrphanPolicy]string{Retry: "n1|n2|first one", DeadLetter: "n1|n2", Drop: "n1|n2"}[policy]
		if got := join(r.drain()); got != want {
			t.Errorf("%s: %s, drained %q, want %q", policy, outcome, got, want)
		}
		var dead []Reason // the queued one has no text any more
		for _, d := range r.dead() {
			dead = append(dead, d.Reason)
		}
		if want := map[bool][]Reason{true: {Lost, Interrupted}, false: {Lost}}[policy == DeadLetter]; !slices.Equal(dead, want) {
			t.Errorf("%s: dead letters %q", policy, dead)
		}
	}
}

func TestARequeuedEntryKeepsItsAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("first one\n")
	r.offer()
	r.advance(Taken)
	r.put("inbox.jsonl", "")
	r.recover(Interruption{Policy: Retry, Counts: true})
	if f := r.offer(); f.Attempt != 2 || f.Repeats != 1 || f.RawLine != "first one" {
		t.Errorf("offered again: %+v", f)
	}
}

func TestALastLineWithoutNewlineIsNotHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("DEPLOY to staging")
	if got := r.next(); got != "" {
		t.Fatalf("handed over %q", got)
	}
	if d, err := r.Depth(0); err != nil || d.Entries != 0 || !d.Tail {
		t.Errorf("depth %+v, %v", d, err)
	}
	r.echo(" only, never prod\n")
	if got := r.next(); got != "DEPLOY to staging only, never prod" {
		t.Errorf("handed over %q", got)
	}
}

func TestALineIsCompletedOnceItsWriterIsGone(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.echo("no newline")
	past := time.Now().Add(-2 * quietFor)
	age := func() {
		if err := os.Chtimes(r.path("inbox.jsonl"), past, past); err != nil {
			t.Fatal(err)
		}
	}
	age()
	writer, err := os.OpenFile(r.path("inbox.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.next(); got != "" {
		t.Fatalf("handed over %q while a writer has it open", got)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	age()
	got := r.next()
	if probe, _ := os.Open(r.path("inbox.jsonl")); durable.WritingOf(probe) != durable.NotWritten {
		t.Skip("this file system knows no leases")
	}
	if got != "no newline" || r.get("inbox.jsonl") != "no newline\n" {
		t.Errorf("handed over %q, the inbox holds %q", got, r.get("inbox.jsonl"))
	}
}

func TestEvidenceIsBoundedAndAnEmptyFileIsNone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{metaFile, FlightFile, CursorFile} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).unsynced()
			r.echo("one\ntwo\n")
			for i := range 3 * evidenceKept {
				r.offer()
				r.advance(Taken)
				r.recover(Interruption{Policy: Retry})
				r.put(name, "\x00\x00"[:2*(i%2)])
				r.next()
				r.recover(Interruption{Policy: Retry})
			}
			if n := r.asides(name); n != evidenceKept {
				t.Errorf("%d files are kept, want %d", n, evidenceKept)
			}
			if got := join(r.drain()); got != "one|two" {
				t.Errorf("drained %q", got)
			}
		})
	}
}

// TestADeliveryKeepsItsIDWhereItsLineHasMoved: the session and the check know an entry
// by the id that it was handed over with, which its new place would not give it.
func TestADeliveryKeepsItsIDWhereItsLineHasMoved(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"a line before it is gone", "a line is added before it"} {
		r := newRig(t).unsynced()
		for _, id := range []string{"a", "b", "c"} {
			r.send(id, "prompt "+id)
		}
		r.offer()
		r.ack()
		b := r.offer()
		name := r.laneOf(false).name
		lines := `{"id":"x","prompt":"before"}` + "\n" + r.get(name)
		if how == "a line before it is gone" {
			_, lines, _ = strings.Cut(r.get(name), "\n")
		}
		r.put("copy", lines)
		r.rename("copy", name)
		r.reopen()
		r.unsynced()
		for range 2 { // the second time by what the first has written
			f, err := r.Advance(Started, "")
			if err != nil {
				t.Fatal(err)
			}
			if f.DeliveryID != b.DeliveryID || f.StartOffset == b.StartOffset || f.State != Started {
				t.Errorf("%s: was %+v, is %+v, notes %q", how, b, f, r.Notes())
			}
		}
	}
}
