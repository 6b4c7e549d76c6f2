package series

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/orchestrator/usage"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func some(i int) Point {
	return Point{
		At: noon.Add(time.Duration(i) * Slot).Local(), Queued: int64(i), Done: 1, Failed: 2, Sessions: 3, Fires: 4, Late: 5 * time.Second,
		Sum: usage.Sum{Turns: 6, Calls: 7, Tokens: client.Tokens{Input: 8, Output: 9, CacheRead: 1 << 31, CacheWrite: 11}, Cost: 0.125, Unseen: 12, Unpriced: 13, Guessed: 14},
	}
}

func write(t testing.TB, s *store.Store, act func(c *store.Change) error) {
	t.Helper()
	if err := s.Write(t.Context(), act); err != nil {
		t.Fatal(err)
	}
}

// written is a store with n slots of agent "a", from noon on.
func written(t testing.TB, n int) (s *store.Store, all []Point) {
	t.Helper()
	s = storetest.New(t, t.TempDir())
	write(t, s, func(c *store.Change) error {
		for i := range n {
			all = append(all, some(i))
			if err := errors.Join(Take(c, "a", some(i)), Looked(c, some(i).At, true, 0)); err != nil {
				return err
			}
		}
		return nil
	})
	return s, all
}

func read(t testing.TB, s *store.Store, agent string, now time.Time) (all []Point) {
	t.Helper()
	if err := s.Read(t.Context(), func(v *store.View) error {
		return Each(v, agent, time.Unix(0, 0), now, func(p Point) { p.At = p.At.Local(); all = append(all, p) })
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func look(t testing.TB, s *store.Store, agents []string, since, now time.Time, every Every) Past {
	t.Helper()
	p, err := store.Get(t.Context(), s.Reader, func(v *store.View) (Past, error) { return Look(v, agents, since, now, every) })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// count writes an event as a journal does.
func count(t testing.TB, s *store.Store, c *Counter, e journal.Event) {
	t.Helper()
	var kept func()
	write(t, s, func(in *store.Change) (err error) {
		kept, err = c.Count(in, []journal.Event{e})
		return err
	})
	kept()
}

// TestPointsAddUp: of one agent, and of all.
func TestPointsAddUp(t *testing.T) {
	t.Parallel()
	s, all := written(t, 20)
	late := noon.Add(24 * time.Hour)
	if d := cmp.Diff(all, read(t, s, "a", late)); d != "" {
		t.Fatal(d)
	}
	write(t, s, func(c *store.Change) error {
		p := some(3)
		p.Late, p.Queued = time.Minute, 0
		return errors.Join(Add(c, "a", p), Take(c, "b", some(3)), Take(c, "b", some(3)), Take(c, "a", some(3)), Held(c, "b", some(3).At, 9))
	})
	want := some(3).Then(some(3))
	want.Late = time.Minute
	if got := read(t, s, "a", late)[3]; got != want {
		t.Error(cmp.Diff(want, got))
	}
	want = want.Beside(some(3))
	if got := read(t, s, everybody, late)[3]; got != want {
		t.Error(cmp.Diff(want, got))
	}
	if got := read(t, s, "b", late); len(got) != 1 || got[0].Queued != 9 || got[0].Turns != 6 {
		t.Errorf("%+v", got)
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
	if len(kept) != len(added) {
		t.Errorf("%d columns for %d counts", len(added), len(kept))
	}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			switch {
			case f.Kind() == reflect.Struct && v.Type().Field(i).Anonymous:
				walk(f)
			case (f.Kind() == reflect.Int64 || f.Kind() == reflect.Float64) && name != "Late" && name != "Queued" && !kept[f.Addr().Pointer()]:
				t.Errorf("%s is not kept: the table needs a column more", name)
			}
		}
	}
	walk(reflect.ValueOf(&p).Elem())
}

// TestASeriesIsBounded, and keeps 400 days.
func TestASeriesIsBounded(t *testing.T) {
	t.Parallel()
	s, _ := written(t, 1500)
	now := some(1200).At.Add(Longest)
	for _, want := range []int{500, 300, 300} { // the clock may be wrong: not all at once
		if err := Prune(t.Context(), s, now); err != nil {
			t.Fatal(err)
		}
		for _, agent := range []string{"a", everybody} {
			if got := read(t, s, agent, now); len(got) != want {
				t.Errorf("%q: %d slots are left, want %d", agent, len(got), want)
			}
		}
	}
}

// TestNoQuestionReadsAllRows of the table.
func TestNoQuestionReadsAllRows(t *testing.T) {
	t.Parallel()
	s, _ := written(t, 1)
	for _, q := range []string{slots, summed, watched, agents, old} {
		var plan strings.Builder
		err := s.Read(t.Context(), func(v *store.View) error {
			return v.Each(`EXPLAIN QUERY PLAN `+q, []any{"a", "a", 1, 1}[:strings.Count(q, "$")], func(scan store.Scan) error {
				var detail string
				err := scan(new(int), new(int), new(int), &detail)
				fmt.Fprintln(&plan, detail)
				return err
			})
		})
		if got := plan.String(); err != nil || strings.Contains(got, "SCAN series") || strings.Contains(got, "TEMP B-TREE") || !strings.Contains(got, "SEARCH series USING PRIMARY KEY") {
			t.Errorf("%s: %v\n%s", q, err, got)
		}
	}
}

// TestAYearOfAThousandAgents: what the page shows of a year is there within half a second, of
// all agents and of one that did something all the time.
func TestAYearOfAThousandAgents(t *testing.T) {
	t.Parallel()
	perDay, agents := 2, 10
	if *testbed.Full {
		perDay, agents = 18, 1000
	}
	s := storetest.New(t, t.TempDir())
	const days = 400
	begin := time.Now().AddDate(0, 0, -days).Truncate(Slot)
	fill := func(agents string, slots, every int) {
		write(t, s, func(c *store.Change) error {
			_, err := c.Do(`WITH RECURSIVE a (name) AS (`+agents+`), n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $1)
				INSERT INTO series (agent, at, looked, queued, late, `+strings.Join(added, ", ")+`)
				SELECT a.name, $2 + i * $3, a.name = '', 1, 500, 2, 0, 1, 1, 3, 4, 5000, 600, 700000, 8000, 0.5, 0, 0, 0 FROM a, n`,
				slots, store.Millis(begin), (time.Duration(every) * Slot).Milliseconds())
			return err
		})
	}
	fill(`VALUES (''), ('busy')`, days*144, 1)
	for i := range agents / 10 {
		fill(fmt.Sprintf(`SELECT 'a%03d0' UNION ALL SELECT substr(name, 1, 4) || (CAST(substr(name, 5) AS INTEGER) + 1) FROM a WHERE substr(name, 5) < '9'`, i), days*perDay, 144/perDay)
	}
	limit := 500 * time.Millisecond
	if !*testbed.Full || testbed.Raced { // beside all other tests
		limit *= 20
	}
	for _, names := range [][]string{nil, {"busy"}, {"a0000"}} {
		for length, every := range map[time.Duration]Every{days * 24 * time.Hour: Day, 90 * 24 * time.Hour: Day, 7 * 24 * time.Hour: Hour, 6 * time.Hour: EverySlot} {
			took, past := time.Hour, Past{}
			for range 3 { // the machine has more to do
				now := time.Now()
				past = look(t, s, names, now.Add(-length), now, every)
				took = min(took, time.Since(now))
			}
			if n := len(past.Points); took > limit || length > 24*time.Hour && n < int(length/(24*time.Hour)) {
				t.Errorf("%q over %v: %d rows after %v", names, length, n, took)
			}
			if *testbed.Full {
				t.Logf("%q over %v: %d rows after %v", names, length, len(past.Points), took)
			}
		}
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
	entries, number := 0, int64(0)
	for range 6 { // runs
		kept, end := storetest.Open(t, dir)
		j := journal.New(kept, slog.New(slog.DiscardHandler), NewCounter().Count)
		r := NewRecorder(kept, slog.New(slog.DiscardHandler))
		ctx, kill := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Run(ctx, func() []Depth { return []Depth{{"a", 3}} })
		}()
		note := func(e journal.Event) {
			e.At, e.Agent = time.Now(), "a"
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
			number++
			rec.Number = number
			for range 1 + random.IntN(2) { // it is sent again where nobody has answered
				write(t, kept, func(c *store.Change) error { return Bill(c, rec) })
			}
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
	kept := storetest.New(t, dir)
	var got Point
	seen := map[int64]bool{}
	for _, p := range read(t, kept, "a", time.Now()) {
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

// TestWhatIsNotCommittedIsNotCounted: the events of a transaction that fails are counted with
// the one that writes them.
func TestWhatIsNotCommittedIsNotCounted(t *testing.T) {
	t.Parallel()
	s, _ := written(t, 0)
	c := NewCounter()
	events := []journal.Event{
		{At: noon, Agent: "a", Kind: journal.Checked, Verdict: journal.Passed, Entry: "x"},
		{At: noon, Agent: "a", Kind: journal.Stopped, Done: "x"},
		{At: noon, Agent: "a", Kind: journal.Stopped, Done: "y"},
	}
	full := errors.New("no space is left")
	err := s.Write(t.Context(), func(in *store.Change) error {
		_, err := c.Count(in, events)
		return errors.Join(err, full)
	})
	if !errors.Is(err, full) {
		t.Fatal(err)
	}
	for _, e := range events {
		count(t, s, c, e)
	}
	if got := read(t, s, "a", noon.Add(time.Hour)); len(got) != 1 || got[0].Done != 2 {
		t.Errorf("%+v", got)
	}
}

// TestAClockThatIsSet counts nothing twice, and what one that was ahead has written is not
// shown before its time.
func TestAClockThatIsSet(t *testing.T) {
	t.Parallel()
	s, _ := written(t, 0)
	c := NewCounter()
	hour := func(from time.Time) { // with a fire each minute
		for at := from; at.Before(from.Add(time.Hour)); at = at.Add(time.Minute) {
			count(t, s, c, journal.Event{At: at, Agent: "a", Kind: journal.Fired})
		}
	}
	hour(noon)
	hour(noon.Add(365 * 24 * time.Hour)) // ahead
	hour(noon.Add(time.Hour))            // set right
	hour(noon.Add(90 * time.Minute))     // set back by half an hour
	for at, want := range map[time.Duration]int64{3 * time.Hour: 180, 400 * 24 * time.Hour: 240} {
		var n int64
		for _, p := range look(t, s, nil, noon, noon.Add(at), Auto).Points {
			n += p.Fires
		}
		if n != want {
			t.Errorf("after %v: %d fires are shown, want %d", at, n, want)
		}
	}
}

// TestADiskThatTakesNothing is said once, and what the queues hold is written when it takes
// something again.
func TestADiskThatTakesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		gone, end := storetest.Open(t, dir)
		end()
		r := NewRecorder(gone, slog.New(slog.NewTextHandler(&log, nil)))
		depths := func() []Depth { return []Depth{{"a", 3}} }
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
		defer stop()
		r.Run(ctx, depths)
		if n := strings.Count(log.String(), "cannot keep the series"); n != 1 {
			t.Errorf("said %d times: %s", n, &log)
		}
		r.store = storetest.New(t, dir)
		if err := r.look(t.Context(), depths(), time.Now()); err != nil {
			t.Fatal(err)
		}
		if all := read(t, r.store, "a", time.Now().Add(Slot)); len(all) != 1 || all[0].Queued != 3 {
			t.Errorf("written: %+v", all)
		}
	})
}

// TestGaps: a time in which no run was there is none in which nothing happened.
func TestGaps(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.New(t, dir)
		run := func(length time.Duration) {
			ctx, end := context.WithTimeout(t.Context(), length)
			defer end()
			NewRecorder(s, slog.New(slog.DiscardHandler)).Run(ctx, func() []Depth { return nil })
		}
		since := time.Now() // midnight
		run(115 * time.Minute)
		time.Sleep(185 * time.Minute)
		run(25 * time.Minute)
		run(time.Minute)      // the same slot again
		time.Sleep(time.Hour) // 6:26: ten minutes are settled two minutes later
		now := time.Now()
		seen := look(t, s, nil, since, now, Auto)
		if len(seen.Points) != 0 {
			t.Errorf("something has happened: %+v", seen.Points)
		}
		at := func(d time.Duration) time.Time { return since.Add(d) }
		want := []Gap{{at(2 * time.Hour), at(5 * time.Hour)}, {at(5*time.Hour + 30*time.Minute), at(6*time.Hour + 20*time.Minute)}}
		if d := cmp.Diff(want, seen.Gaps(since, now)); d != "" {
			t.Error(d)
		}
		if n, all := seen.Watched(at(4*time.Hour), at(6*time.Hour)); n != 3 || all != 12 {
			t.Errorf("%d of %d slots were watched", n, all)
		}
		count(t, s, NewCounter(), journal.Event{At: at(3 * time.Hour), Agent: "a", Kind: journal.Fired})
		seen = look(t, s, nil, since, now, Auto)
		if got := seen.Gaps(since, now); len(got) != 3 {
			t.Errorf("%v", got)
		}
		if n := len(seen.Gaps(time.Time{}, now)); n != 4 {
			t.Errorf("since ever: %d gaps", n)
		}
		if !seen.Unmeasured(at(3*time.Hour), at(4*time.Hour)) || seen.Unmeasured(at(time.Hour), at(4*time.Hour)) || seen.Unmeasured(at(4*time.Hour), at(5*time.Hour)) {
			t.Error("it is not known when nobody has looked into the queues")
		}
	})
}

// TestDepthsOutliveARun, also one that is killed: what it has seen is written.
func TestDepthsOutliveARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := storetest.New(t, dir)
		begun := time.Now()
		depth := 4
		run := func(length time.Duration) {
			ctx, end := context.WithTimeout(t.Context(), length)
			defer end()
			NewRecorder(s, slog.New(slog.DiscardHandler)).Run(ctx, func() []Depth { return []Depth{{"a", depth}, {"b", 2 * depth}, {"c", 0}} })
		}
		go run(25 * time.Minute)
		time.Sleep(150 * time.Second)
		depth = 5
		time.Sleep(2 * time.Minute)
		depth = 1
		time.Sleep(40 * time.Minute)
		depth = 0
		run(10 * time.Minute)
		for names, want := range map[string]int64{"a": 5, "b": 10, "": 15} {
			rows := look(t, s, strings.Fields(names), begun, time.Now(), EverySlot).Rows(100)
			if len(rows) != 6 || rows[0].Queued != want || rows[1].Queued != want/5 || rows[2].Queued != want/5 || rows[3].Watched != 0 || rows[4].Queued != 0 || rows[4].Unmeasured {
				t.Errorf("%q: %+v", names, rows)
			}
		}
	})
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
		tally := tally{map[string]map[int64]*Point{}, newKnown()}
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
