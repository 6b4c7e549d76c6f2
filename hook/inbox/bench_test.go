package inbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"heartbeat/hook/durable"
)

// BenchmarkTick is a whole Stop hook's work on the queue: prove that the entry
// in flight was taken, acknowledge it, and offer the next one. It must not
// depend on how much is queued. Its syncs and renames alone are BenchmarkSyncs.
func BenchmarkTick(b *testing.B) {
	for _, c := range []struct{ queued, blanks int }{{queued: 1}, {queued: 1_000_000}, {queued: 1, blanks: 5_000}} {
		b.Run(fmt.Sprintf("queued=%d,blanks=%d", c.queued, c.blanks), func(b *testing.B) {
			dir := b.TempDir()
			path := filepath.Join(dir, "inbox.jsonl")
			fill(b, path, 0, c.queued)
			opened, err := Open(Place{Inbox: path})
			if err != nil {
				b.Fatal(err)
			}
			defer opened.Close()
			q := unlocked(opened)
			offerNext(b, q)
			var steps time.Duration // the syncs, renames and writes alone
			q.dir.Guard = func(_ durable.Step, run func() error) error {
				begin := time.Now()
				defer func() { steps += time.Since(begin) }()
				return run()
			}
			b.ReportAllocs()
			for b.Loop() {
				if c.queued == 1 {
					b.StopTimer()
					fill(b, path, c.blanks, 1)
					b.StartTimer()
				}
				f, err := q.InFlight()
				if err != nil || f == nil {
					b.Fatalf("in flight %+v, %v", f, err)
				}
				if _, err := q.Advance(Taken, ""); err != nil {
					b.Fatal(err)
				}
				if _, err := q.Acknowledge(Acknowledgement{Reply: "done", Now: time.Now()}); err != nil {
					b.Fatal(err)
				}
				offerNext(b, q)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(steps), "x-steps")
		})
	}
}

func offerNext(b *testing.B, q Orphaned) {
	b.Helper()
	e, err := q.Next()
	if err != nil {
		b.Fatal(err)
	}
	if _, err := q.Offer(e, Offering{Via: ViaStop, Session: "s"}); err != nil {
		b.Fatal(err)
	}
}

// fill appends blank lines and then n entries of 188 bytes, and syncs them.
func fill(b *testing.B, path string, blanks, n int) {
	b.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := append(bytes.Repeat([]byte{'x'}, 187), '\n')
	if _, err := f.Write(append(bytes.Repeat([]byte{'\n'}, blanks), bytes.Repeat(line, n)...)); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkSyncs does what a tick cannot do without: the outbox's append, the
// replacements of cursor, sidecar and record (taken, offered), the inbox's
// fdatasync and the folder's syncs, with nothing read or decided.
func BenchmarkSyncs(b *testing.B) {
	dir := b.TempDir()
	path := filepath.Join(dir, "inbox.jsonl")
	fill(b, path, 0, 1)
	f, err := durable.Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	inbox, err := f.OpenFile("inbox.jsonl", os.O_RDONLY)
	if err != nil {
		b.Fatal(err)
	}
	defer inbox.Close()
	record := bytes.Repeat([]byte{'r'}, 700)
	n := 0
	for b.Loop() {
		n++
		b.StopTimer()
		fill(b, path, 0, 1)
		b.StartTimer()
		for _, err := range []error{
			f.Replace(FlightFile, record),
			f.Append(outboxFile, append(bytes.Repeat([]byte{'o'}, 300), '\n')),
			f.Put(metaFile, record),
			f.Swap(CursorFile, strconv.AppendInt(nil, int64(n), 10)),
			f.Remove(FlightFile),
			f.Remove(respondedFile),
			f.SyncData(inbox, "inbox.jsonl"),
			f.Swap(FlightFile, record),
			f.Touch(respondedFile),
			f.Sync(),
		} {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, idempotent := range []bool{false, true} {
		b.Run(fmt.Sprintf("idempotent=%v", idempotent), func(b *testing.B) {
			q, err := Open(Place{Inbox: filepath.Join(b.TempDir(), "inbox.jsonl")})
			if err != nil {
				b.Fatal(err)
			}
			defer q.Close()
			n := 0
			for b.Loop() {
				n++
				l := Letter{ID: strconv.Itoa(n), Prompt: "check the mail", Idempotent: idempotent}
				if _, err := q.Append(b.Context(), l); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
