package intake

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// BenchmarkTake takes in a million lines of 300 bytes, or as many as HEARTBEAT_BENCH_LINES says.
func BenchmarkTake(b *testing.B) {
	count := 1_000_000
	if s := os.Getenv("HEARTBEAT_BENCH_LINES"); s != "" {
		fmt.Sscan(s, &count)
	}
	var data bytes.Buffer
	for i := range count {
		fmt.Fprintf(&data, "%-299s\n", fmt.Sprintf("%d %s", i, strings.Repeat("x", 280)))
	}
	for b.Loop() {
		b.StopTimer()
		r := newRig(b)
		if err := os.WriteFile(r.p.Inbox, data.Bytes(), 0o600); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if got := r.take(); got.Queued != count {
			b.Fatalf("%+v", got)
		}
	}
	b.ReportMetric(float64(count)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
}

// BenchmarkLookAtAnEmptyInbox is what a taking costs when there is nothing.
func BenchmarkLookAtAnEmptyInbox(b *testing.B) {
	r := newRig(b)
	r.put("A\n")
	r.take()
	r.later(fileQuiet)
	r.take()
	for b.Loop() {
		r.take()
	}
}

// BenchmarkOneLine is echo >> inbox.jsonl, taken in.
func BenchmarkOneLine(b *testing.B) {
	r := newRig(b)
	for b.Loop() {
		b.StopTimer()
		r.echo("do something\n")
		r.later(fileQuiet)
		b.StartTimer()
		r.take()
	}
}
