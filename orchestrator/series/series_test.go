package series

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/orchestrator/usage"
	"heartbeat/orchestrator/usage/usagetest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func some(i int) Point {
	return Point{
		At: noon.Add(time.Duration(i) * Slot).Local(), Queued: int64(i), Done: 1, Failed: 2, Sessions: 3, Fires: 4, Late: 5 * time.Second,
		Sum: usage.Sum{Turns: 6, Calls: 7, Tokens: client.Tokens{Input: 8, Output: 9, CacheRead: 1 << 31, CacheWrite: 11}, Cost: 0.125, Unseen: 12, Unpriced: 13, Guessed: 14},
	}
}

func written(t testing.TB, n int) (dir string, all []Point) {
	t.Helper()
	dir = t.TempDir()
	folder, err := durable.MakeBelow(dir, folderOf(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	for i := range n {
		all = append(all, some(i))
	}
	if err := add(folder, "a", all); err != nil {
		t.Fatal(err)
	}
	return dir, all
}

func read(t testing.TB, dir, agent string, now time.Time) (all []Point) {
	t.Helper()
	if err := Read(dir, agent, time.Time{}, now, func(p Point) { all = append(all, p) }); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestDamageCostsItsPointOnly: each changed byte, bytes that are gone or too many, and a
// torn end, which the next write mends.
func TestDamageCostsItsPointOnly(t *testing.T) {
	t.Parallel()
	dir, all := written(t, 20)
	late := noon.Add(24 * time.Hour)
	if d := cmp.Diff(all, read(t, dir, "a", late)); d != "" {
		t.Fatal(d)
	}
	path := filepath.Join(folderOf(dir), fileOf("a"))
	whole, err := os.ReadFile(path)
	if err != nil || len(whole) != 20*pointSize {
		t.Fatal(len(whole), err)
	}
	left := func(data []byte) int {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return len(read(t, dir, "a", late))
	}
	for at := range pointSize {
		changed := bytes.Clone(whole)
		changed[10*pointSize+at] ^= 1
		if n := left(changed); n != 19 {
			t.Fatalf("byte %d changed: %d points", at, n)
		}
		cut := append(bytes.Clone(whole[:10*pointSize+at]), whole[10*pointSize+at+1:]...)
		if n := left(cut); n != 19 {
			t.Fatalf("byte %d gone: %d points", at, n)
		}
		if n := left(whole[:19*pointSize+at]); n != 19 {
			t.Fatalf("torn after %d bytes: %d points", at, n)
		}
		folder, err := durable.OpenBelow(dir, folderOf(dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := add(folder, "a", []Point{some(30)}); err != nil || len(read(t, dir, "a", late)) != 20 {
			t.Fatalf("after a torn write: %v", err)
		}
		folder.Close()
	}
	if n := left(append([]byte("garbage"), whole...)); n != 20 {
		t.Errorf("behind garbage: %d points", n)
	}
}

// TestAllThatIsCountedIsKept: a count that a sum gets anew is one of a point's, too.
func TestAllThatIsCountedIsKept(t *testing.T) {
	t.Parallel()
	kept := map[uintptr]bool{}
	var p Point
	for _, f := range p.fields() {
		kept[reflect.ValueOf(f).Pointer()] = true
	}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			switch {
			case f.Kind() == reflect.Struct && v.Type().Field(i).Anonymous:
				walk(f)
			case f.Kind() == reflect.Int64 && name != "Late" && !kept[f.Addr().Pointer()]:
				t.Errorf("%s is not kept: a point on disk needs a field more", name)
			}
		}
	}
	walk(reflect.ValueOf(&p).Elem())
}

// TestASeriesIsBounded, and keeps 400 days.
func TestASeriesIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder, err := durable.MakeBelow(dir, folderOf(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	const days = 1300
	for day := range days {
		var points []Point
		for i := range int(24 * time.Hour / Slot) {
			points = append(points, some(day*144+i))
		}
		if err := add(folder, "a", points); err != nil {
			t.Fatal(err)
		}
	}
	points := read(t, dir, "a", noon.Add(2*days*24*time.Hour))
	if n := len(points); n < 400*144 || n > 2*400*144+144 || !points[n-1].At.Equal(some(days*144-1).At) {
		t.Errorf("%d points are kept", n)
	}
}

// TestARunIsWrittenWhole, whenever it is killed: all that the journal and the usage
// records have, once.
func TestARunIsWrittenWhole(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) { killedRuns(t, dir, rand.New(rand.NewPCG(seed, 1))) })
		})
	}
}

func killedRuns(t *testing.T, dir string, random *rand.Rand) {
	var want Point
	entries := 0
	for range 6 { // runs
		kept, end := storetest.Open(t, dir)
		j := journal.New(kept, slog.New(slog.DiscardHandler))
		r := NewRecorder(dir, slog.New(slog.DiscardHandler))
		ctx, kill := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Run(ctx, func() []Depth { return []Depth{{"a", 3}} })
		}()
		note := func(e journal.Event) {
			e.At, e.Agent = time.Now(), "a"
			r.Note(e)
			j.Add(e)
		}
		for range random.IntN(200) {
			time.Sleep(time.Duration(random.IntN(300)) * time.Second)
			note(journal.Event{Kind: journal.Fired, Due: time.Now().Add(-2 * time.Second)})
			entries++
			if random.IntN(2) == 0 { // before the Stop that names it, or after
				note(journal.Event{Kind: journal.Checked, Verdict: journal.Passed, Entry: fmt.Sprint(entries)})
			}
			note(journal.Event{Kind: journal.Stopped, Answer: hook.Gave, Done: fmt.Sprint(entries)})
			if random.IntN(2) == 0 {
				note(journal.Event{Kind: journal.Checked, Verdict: journal.Passed, Entry: fmt.Sprint(entries)})
			}
			want.Fires, want.Done = want.Fires+1, want.Done+1
			rec := usage.Record{At: time.Now(), Agent: "a", Session: "s", Sum: usage.Sum{Turns: 1, Cost: 0.5}}
			usagetest.Write(t, kept, rec)
			want.Sum = want.Plus(rec.Sum)
			if random.IntN(5) == 0 {
				note(journal.Event{Kind: journal.Ended, Acknowledged: 0})
				note(journal.Event{Kind: journal.Recovered, Reason: "dead-lettered"})
				for _, v := range []string{"unproven", "max-iterations", "max-time", "no-progress", "iteration-too-fast"} {
					note(journal.Event{Kind: journal.Checked, Verdict: v})
				}
				note(journal.Event{Kind: journal.Forged, Verdict: "forged"})
				note(journal.Event{Kind: journal.Forged}) // it goes on
				note(journal.Event{Kind: journal.Checked, Verdict: journal.Passed, Entry: fmt.Sprint("after ", entries)})
				want.Sessions, want.Failed, want.Done = want.Sessions+1, want.Failed+6, want.Done+1
			}
		}
		kill()
		<-done
		if err := j.Close(); err != nil {
			t.Error(err)
		}
		end()
		time.Sleep(time.Second + time.Duration(random.IntN(100))*time.Minute) // no run begins when another one ends
	}
	r := NewRecorder(dir, slog.New(slog.DiscardHandler))
	ctx, kill := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx, func() []Depth { return nil }) }()
	time.Sleep(time.Hour)
	kill()
	<-done
	var got Point
	seen := map[int64]bool{}
	for _, p := range read(t, dir, "a", time.Now()) {
		if seen[slotOf(p.At)] {
			t.Errorf("two points of %s", p.At)
		}
		seen[slotOf(p.At)] = true
		got = got.Then(p)
	}
	if got.Queued > 3 || want.Fires > 0 && got.Late != 2*time.Second {
		t.Errorf("queued %d, late %s", got.Queued, got.Late)
	}
	got.At, got.Queued, got.Late = time.Time{}, 0, 0
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestARunThatEndsAtItsStart leaves what earlier ones could not write to the next one: it
// wrote slots of whose events it had not read all.
func TestARunThatEndsAtItsStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Now().Add(-time.Hour)
	err := storetest.New(t, dir).Write(t.Context(), func(c *store.Change) error {
		return journal.Write(c, journal.Event{At: at, Agent: "a", Kind: journal.Fired})
	})
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	NewRecorder(dir, slog.New(slog.DiscardHandler)).Run(ended, func() []Depth { return nil })
	r := NewRecorder(dir, slog.New(slog.DiscardHandler))
	r.compile(t.Context())
	r.write(time.Now())
	if all := read(t, dir, "a", time.Now()); len(all) != 1 || all[0].Fires != 1 {
		t.Errorf("%+v", all)
	}
}

// TestAClockThatIsSet leaves no gap and counts nothing twice, but what one that was ahead
// has written is not shown before its time.
func TestAClockThatIsSet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	storetest.New(t, dir)
	var r *Recorder
	start := func(now time.Time) {
		r = NewRecorder(dir, slog.New(slog.DiscardHandler))
		r.began = now
		r.compile(t.Context())
		r.write(now)
	}
	hour := func(from time.Time) { // with a fire each minute
		for at := from; at.Before(from.Add(time.Hour)); at = at.Add(time.Minute) {
			r.Note(journal.Event{At: at, Agent: "a", Kind: journal.Fired})
			r.write(at)
		}
	}
	fires := func(now time.Time) (n int64) {
		for _, p := range read(t, dir, "a", now) {
			n += p.Fires
		}
		return n
	}
	start(noon)
	hour(noon)
	hour(noon.Add(365 * 24 * time.Hour)) // ahead
	hour(noon.Add(time.Hour))            // set right
	hour(noon.Add(90 * time.Minute))     // set back by half an hour
	r.write(noon.Add(3 * time.Hour))
	if n := fires(noon.Add(3 * time.Hour)); n < 170 || n > 180 {
		t.Errorf("%d fires of 180 are shown", n)
	}
	start(noon.Add(3 * time.Hour))
	hour(noon.Add(3 * time.Hour))
	r.write(noon.Add(5 * time.Hour))
	if n := fires(noon.Add(5 * time.Hour)); n < 230 || n > 240 {
		t.Errorf("%d fires of 240 are shown after a restart", n)
	}
	if n := fires(noon.Add(400 * 24 * time.Hour)); n > 300 {
		t.Errorf("%d fires of 300 in the end", n)
	}
}

// TestADiskThatTakesNothing is said once, and what happened meanwhile is written when it
// takes something again.
func TestADiskThatTakesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(folderOf(dir), nil, 0o600); err != nil { // in its place
		t.Fatal(err)
	}
	var log bytes.Buffer
	r := NewRecorder(dir, slog.New(slog.NewTextHandler(&log, nil)))
	r.began = noon
	r.compile(t.Context())
	for i := range 60 {
		at := noon.Add(time.Duration(i) * time.Minute)
		r.Note(journal.Event{At: at, Agent: "a", Kind: journal.Fired})
		r.write(at)
	}
	if n := strings.Count(log.String(), "cannot keep the series"); n != 1 {
		t.Errorf("said %d times: %s", n, &log)
	}
	if err := os.Remove(folderOf(dir)); err != nil {
		t.Fatal(err)
	}
	r.write(noon.Add(2 * time.Hour))
	if all := read(t, dir, "a", noon.Add(2*time.Hour)); len(all) != 6 || all[0].Fires != 10 {
		t.Errorf("written: %+v", all)
	}
}

// TestWhatOneAgentsFileRefusesIsWrittenOnceOfAllOthers: with each new attempt, the slots in
// which the queues were measured were written once more.
func TestWhatOneAgentsFileRefusesIsWrittenOnceOfAllOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folderOf(dir), fileOf("bad")), 0o700); err != nil { // in its place
		t.Fatal(err)
	}
	r := NewRecorder(dir, slog.New(slog.DiscardHandler))
	r.began = noon
	r.compile(t.Context())
	for i := range 60 {
		at := noon.Add(time.Duration(i) * time.Minute)
		for _, agent := range []string{"bad", "good"} {
			r.Note(journal.Event{At: at, Agent: agent, Kind: journal.Fired})
		}
		r.sample(nil, at)
		r.write(at)
	}
	for _, name := range []string{"good", measuredName} {
		if all := read(t, dir, name, noon.Add(time.Hour)); len(all) != 5 {
			t.Errorf("%s: %d slots are written, of 5 that are over", name, len(all))
		}
	}
}

// BenchmarkRead: 100 agents that do something all the time, 90 days of 400.
func BenchmarkRead(b *testing.B) {
	dir, _ := written(b, 400*144)
	for b.Loop() {
		for range 100 {
			n := 0
			if err := Read(dir, "a", noon.Add(310*24*time.Hour), noon.Add(401*24*time.Hour), func(Point) { n++ }); err != nil || n != 90*144 {
				b.Fatal(n, err)
			}
		}
	}
}

// BenchmarkTable: the same, added up to days.
func BenchmarkTable(b *testing.B) {
	dir, _ := written(b, 400*144)
	for b.Loop() {
		all := newTable(func(at time.Time) time.Time { from, _ := usage.Day.Bounds(at); return from })
		for agent := range 100 {
			name := fmt.Sprint("a", agent)
			if err := Read(dir, "a", noon.Add(310*24*time.Hour), noon.Add(401*24*time.Hour), func(p Point) { all.Add(name, p) }); err != nil {
				b.Fatal(err)
			}
		}
		if n := len(all.Rows()); n < 90 || n > 91 {
			b.Fatal(n)
		}
	}
}

// TestGaps: a time in which no run looked is none in which nothing happened.
func TestGaps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		run := func(length time.Duration) {
			ctx, end := context.WithTimeout(t.Context(), length)
			defer end()
			NewRecorder(dir, slog.New(slog.DiscardHandler)).Run(ctx, func() []Depth { return nil })
		}
		since := time.Now() // midnight
		run(115 * time.Minute)
		time.Sleep(185 * time.Minute)
		run(25 * time.Minute)
		run(time.Minute)      // the same slot again
		time.Sleep(time.Hour) // 6:26: ten minutes are settled two minutes later
		now := time.Now()
		watch, err := readWatch(dir, since, now)
		if err != nil {
			t.Fatal(err)
		}
		at := func(d time.Duration) time.Time { return since.Add(d) }
		want := []Gap{{at(2 * time.Hour), at(5 * time.Hour)}, {at(5*time.Hour + 30*time.Minute), at(6*time.Hour + 20*time.Minute)}}
		if d := cmp.Diff(want, watch.Gaps(since, now)); d != "" {
			t.Error(d)
		}
		if n, all := watch.Watched(at(4*time.Hour), at(6*time.Hour)); n != 3 || all != 12 {
			t.Errorf("%d of %d slots were watched", n, all)
		}
		watch.Saw(at(3 * time.Hour)) // an agent did something
		if got := watch.Gaps(since, now); len(got) != 3 {
			t.Errorf("%v", got)
		}
		if n := len(watch.Gaps(time.Time{}, now)); n != 4 {
			t.Errorf("since ever: %d gaps", n)
		}
		if agents, err := Agents(dir); err != nil || len(agents) != 0 {
			t.Errorf("%q, %v", agents, err)
		}
	})
}

// TestAgentsOfALargeFleet are all found: beyond 10,000 names some were left out.
func TestAgentsOfALargeFleet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := folderOf(dir)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	const many = durable.MaxEntries + 1
	for i := range many {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("a%d.points", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := Agents(dir); err != nil || len(all) != many {
		t.Errorf("%d of %d, %v", len(all), many, err)
	}
}

// TestAnEntryIsDoneOnce, however it is known: by its verdict, by a Stop that names it, or by
// the number that its session ends with.
func TestAnEntryIsDoneOnce(t *testing.T) {
	t.Parallel()
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	pass := func(m int, entry string) journal.Event {
		return journal.Event{At: at(m), Agent: "a", Kind: journal.Checked, Verdict: journal.Passed, Entry: entry}
	}
	stop := func(m int, entry string) journal.Event {
		return journal.Event{At: at(m), Agent: "a", Kind: journal.Stopped, Done: entry}
	}
	end := func(m, began, n int) journal.Event {
		return journal.Event{At: at(m), Agent: "a", Kind: journal.Ended, Started: at(began), Acknowledged: n}
	}
	for name, c := range map[string]struct {
		events []journal.Event
		want   int64
	}{
		"in its session":                       {[]journal.Event{pass(1, "x"), stop(1, "x"), end(2, 0, 1)}, 1},
		"noted late":                           {[]journal.Event{stop(1, "x"), pass(1, "x"), end(2, 0, 1)}, 1},
		"in its session, whose hook is killed": {[]journal.Event{pass(1, "x"), end(2, 0, 1)}, 1},
		"after its session":                    {[]journal.Event{end(1, 0, 0), pass(2, "x")}, 1},
		"after its session, and before another": {
			[]journal.Event{end(1, 0, 0), pass(2, "x"), stop(4, "y"), end(5, 3, 2)}, 3,
		},
		"without a check": {[]journal.Event{stop(1, "x"), end(2, 0, 3)}, 3},
	} {
		tally := newTally()
		for _, e := range c.events {
			tally.take(e)
		}
		var got int64
		for _, p := range tally.all["a"] {
			got += p.Done
		}
		if got != c.want {
			t.Errorf("%s: %d are done, want %d", name, got, c.want)
		}
	}
}
