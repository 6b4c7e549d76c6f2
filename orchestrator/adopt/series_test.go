package adopt

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/store"
)

// points are those of an earlier version's file, of some slots from one on, in which so many
// prompts were done and queued.
func points(slot int64, each ...uint32) string {
	var to []byte
	le := binary.LittleEndian
	for i, n := range each {
		begin := len(to)
		to = le.AppendUint32(to, uint32(slot)+uint32(i))
		for f := range uint32(counts) {
			to = le.AppendUint32(to, n*(f+1))
		}
		to = le.AppendUint64(to, math.Float64bits(float64(n)/4))
		to = le.AppendUint32(to, n*1000)
		to = le.AppendUint32(to, crc32.Checksum(to[begin:], crc32.MakeTable(crc32.Castagnoli)))
	}
	return string(to)
}

func (l *lab) rest() {
	l.Helper()
	if err := Rest(l.Context(), l.store, slog.New(slog.NewTextHandler(&l.log, nil))); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) slots(agent string) (all []series.Point) {
	l.Helper()
	err := l.store.Read(l.Context(), func(v *store.View) error {
		return series.Each(v, agent, time.Unix(0, 0), time.Now(), func(p series.Point) { all = append(all, p) })
	})
	if err != nil {
		l.Fatal(err)
	}
	return all
}

// TestASeriesIsTakenOnce: of both files of each agent, however often a kill repeats that, with
// when a run was there; and what the last run knew and had not written yet. What is damaged
// costs its ten minutes only.
func TestASeriesIsTakenOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	slot := time.Now().Unix()/600 - 5000
	var many, was []uint32
	for i := range uint32(3 * seriesBatch) {
		many, was = append(many, i%7+1), append(was, 0)
	}
	whole := points(slot, many...)
	l.put("series/a.points.1", whole)
	l.put("series/a.points", points(slot+int64(len(many)), 5)+"damaged"+points(slot+int64(len(many))+1, 6, 7))
	l.put("series/b.points", points(slot, 2))
	l.put("series/.watched.points", points(slot, was...)+points(slot+3000, 0))
	l.put("series/.measured.points", points(slot+20, was[20:]...))
	until := slot + 3000
	l.put("series/.until", fmt.Sprintln(until))
	at := func(slot int64) string { return time.Unix(slot*600+60, 0).Format(time.RFC3339Nano) }
	l.put("series/.depths", fmt.Sprintf(`[{"slot":%d},{"slot":%d,"agent":"a","queued":3},{"slot":%[2]d,"agent":"c","queued":4},{"slot":%d,"agent":"a","queued":99}]`, until+1, until+1, until))
	var lines strings.Builder
	for _, e := range []struct {
		slot int64
		journal.Event
	}{
		{until, journal.Event{Kind: journal.Stopped, Done: "counted"}},
		{until + 1, journal.Event{Kind: journal.Stopped, Done: "x"}},
		{until + 1, journal.Event{Kind: journal.Fired}},
		{until + 2, journal.Event{Kind: journal.Ended, Acknowledged: 3}},
	} {
		e.At, e.Agent = time.Unix(e.slot*600+60, 0), "a"
		line, err := json.Marshal(e.Event)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	l.put("journal.jsonl", lines.String())
	bill := func(slot int64, number int) string {
		return fmt.Sprintf(`{"at":%q,"agent":"a","session":"s%d","turns":1}`+"\n", at(slot), number)
	}
	l.put("usage/a.jsonl", bill(until, 1)+bill(until+1, 2))
	l.adopt()
	killed, kill := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, kill) // anywhere
	if err := Rest(killed, l.store, slog.New(slog.NewTextHandler(&l.log, nil))); err != nil && killed.Err() == nil {
		t.Fatal(err)
	}
	for range 2 {
		l.adopt()
		l.rest()
		a, all := l.slots("a"), l.slots("")
		if len(a) != len(many)+3+2 || len(all) != len(many)+4+2 {
			t.Fatalf("%d slots of a, %d of all", len(a), len(all))
		}
		if p := a[8]; p.At.Unix()/600 != slot+8 || p.Queued != 2 || p.Done != 4 || p.Guessed != 28 || p.Cost != 0.5 || p.Late != 2*time.Second {
			t.Errorf("%+v", p)
		}
		if p := all[0]; p.Queued != 3 || p.Done != 6 {
			t.Errorf("of all: %+v", p)
		}
		last := a[len(a)-2:]
		if last[0].Done != 1 || last[0].Fires != 1 || last[0].Queued != 3 || last[0].Turns != 1 || last[1].Done != 1 || last[1].Sessions != 1 {
			t.Errorf("what was not written: %+v", last)
		}
		if p := all[len(all)-2]; p.Queued != 7 || p.Done != 1 {
			t.Errorf("of all: %+v", p)
		}
		// Looked: in the first 20, of which that was not said yet, in those of .measured and in one of .depths.
		if n := l.count(`SELECT COUNT(*) FROM series WHERE looked = 1`); n != len(many)+1 {
			t.Errorf("it was looked in %d slots", n)
		}
	}
	if n := strings.Count(l.log.String(), "is damaged;"); n < 1 || n > 2 {
		t.Errorf("it tells\n%s", &l.log)
	}
	for _, name := range []string{"a.points", "a.points.1", "b.points", ".watched.points", ".measured.points", ".until", ".depths"} {
		l.is(false, "series/"+name)
		l.is(true, filepath.Join(Folder, "series", name))
	}
	l.put("usage/a.jsonl", bill(until, 1)+bill(until+3, 3)) // by a shim that outlived the run before
	l.adopt()
	if a := l.slots("a"); len(a) != len(many)+6 || a[len(a)-1].Turns != 1 {
		t.Errorf("what is billed late: %+v", a[len(a)-1])
	}
}
