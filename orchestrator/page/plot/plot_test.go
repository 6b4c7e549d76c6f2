package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/orchestrator/usage"
)

// kept writes a series of one agent, as a run does, with a fire 3 s late in each ten
// minutes of some days before now.
func kept(t testing.TB, days int) (s *store.Store, now time.Time) {
	t.Helper()
	now = time.Now()
	s = storetest.New(t, t.TempDir())
	err := s.Write(t.Context(), func(c *store.Change) error {
		for at := now.AddDate(0, 0, -days); at.Before(now.Add(-time.Hour)); at = at.Add(series.Slot) {
			err := errors.Join(series.Add(c, "a", series.Point{At: at, Fires: 1, Late: 3 * time.Second}), series.Looked(c, at, true, 0))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, now
}

func look(t testing.TB, s *store.Store, since, now time.Time, every series.Every) series.Past {
	t.Helper()
	past, err := store.Get(t.Context(), s.Reader, func(v *store.View) (series.Past, error) { return series.Look(v, nil, since, now, every) })
	if err != nil {
		t.Fatal(err)
	}
	return past
}

// TestFiguresOfADay: what a run has kept, hour by hour, and the hours that nobody watched.
func TestFiguresOfADay(t *testing.T) {
	t.Parallel()
	s, now := kept(t, 1)
	past := look(t, s, now.AddDate(0, 0, -2), now, series.Hour)
	figures := Draw(past)
	late := figures[5]
	if late.ID != "plot-late" || !late.Gaps || !strings.Contains(late.Sum, "at most 3s late") || late.Top != "4s" || late.Half != "2s" {
		t.Errorf("%+v", late)
	}
	n := len(late.Table)
	if n < 25 || n > 28 || late.Table[n-1][1] != "not watched" || !strings.Contains(late.Table[n-1][0], " to ") || late.Table[n-2][1] == "not watched" || late.Table[5][1] != "6" || late.Table[5][2] != "3s" {
		t.Errorf("%d rows: %q", n, late.Table)
	}
	if got := strings.Count(string(late.SVG), "v-75h"); got < 22 || got > 25 {
		t.Errorf("%d bars: %s", got, late.SVG)
	}
	// A run that has watched an hour in which nothing happened.
	if queued := figures[0]; queued.Table[5][1] != "0" || queued.Table[n-1][1] != "not watched" || queued.Sum != "at most 0" {
		t.Errorf("%+v", queued)
	}
}

// TestWhatNobodyKnowsIsNoZero: a fleet whose first ten minutes are not over has no sums,
// and a depth that a killed run took with it is none.
func TestWhatNobodyKnowsIsNoZero(t *testing.T) {
	t.Parallel()
	now := time.Now()
	past := look(t, storetest.New(t, t.TempDir()), now.Add(-6*time.Hour), now, series.EverySlot)
	for _, f := range Draw(past) {
		if f.Sum != unknown || len(f.Table) != 1 {
			t.Errorf("%s: %q, %q", f.ID, f.Sum, f.Table)
		}
	}
	rows := []series.Row{{Point: series.Point{At: now}, Until: now.Add(series.Slot), Watched: 1, Slots: 1, Unmeasured: true}}
	if lines := table(measures[0], rows, now, series.EverySlot); lines[0][1] != unknown {
		t.Errorf("%q", lines)
	}
}

// TestWhatIsNotOverIsPaler, and is labelled as what it is.
func TestWhatIsNotOverIsPaler(t *testing.T) {
	t.Parallel()
	now := time.Now()
	rows := []series.Row{
		{Point: series.Point{At: now.Add(-series.Slot), Done: 4}, Until: now, Watched: 1, Slots: 1},
		{Point: series.Point{At: now, Done: 2, Failed: 1}, Until: now.Add(series.Slot), Watched: 1, Slots: 1, Running: true},
	}
	var f Figure
	measures[1].draw(&f, rows)
	for want, n := range map[string]int{`class="plot-bar plot-good" vector-effect="non-scaling-stroke" d="M1 80h8v-80`: 1, `class="plot-bar plot-running plot-good" vector-effect="non-scaling-stroke" d="M11 80h8v-40`: 1, `class="plot-bar plot-running plot-bad"`: 1, `class="plot-bar plot-bad"`: 0} {
		if got := strings.Count(string(f.SVG), want); got != n {
			t.Errorf("%d times %s: %s", got, want, f.SVG)
		}
	}
	if lines := table(measures[1], rows, now, series.EverySlot); !strings.HasSuffix(lines[0][0], " (so far)") || strings.Contains(lines[1][0], "so far") {
		t.Errorf("%q", lines)
	}
	if _, _, end := labels(rows, series.EverySlot); end != "now" {
		t.Error(end)
	}
}

var drawing = regexp.MustCompile(`^(M-?[0-9.]+ -?[0-9.]+|[hv]-?[0-9.]+|z)+$`)

// TestDrawingsAreNumbers: whatever is in a series, a drawing has paths with classes of
// ours, all bars within it, and nothing else.
func TestDrawingsAreNumbers(t *testing.T) {
	t.Parallel()
	now := time.Now()
	odd := []float64{0, 1, math.NaN(), math.Inf(1), math.Inf(-1), -5, 1e-9, 1e300}
	var points []series.Point
	for i := range 400 {
		at := now.Add(-time.Duration(i+2) * series.Slot)
		n := int64(math.MaxInt64) >> (i % 64)
		if i%3 == 0 {
			n = -n
		}
		points = append(points, series.Point{
			At: at.Truncate(series.Slot), Queued: n, Done: n, Failed: -n, Fires: 1, Late: time.Duration(n), Sessions: n,
			Sum: usage.Sum{Turns: n, Cost: odd[i%len(odd)]},
		})
	}
	past := look(t, storetest.New(t, t.TempDir()), now.AddDate(0, 0, -3), now, series.EverySlot)
	past.Points = points
	for _, p := range points[:200] {
		past.Saw(p.At)
	}
	for _, f := range slices.Concat(Draw(past), Draw(series.Past{Now: now, Since: now, Every: series.Day})) {
		svg := string(f.SVG)
		d := xml.NewDecoder(strings.NewReader(svg))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v: %s", f.ID, err, svg)
			}
			e, is := token.(xml.StartElement)
			if !is {
				continue
			}
			for _, a := range e.Attr {
				known := slices.Contains([]string{"class", "viewBox", "preserveAspectRatio", "aria-hidden", "focusable", "vector-effect"}, a.Name.Local)
				if a.Name.Local == "d" && !drawing.MatchString(a.Value) || a.Name.Local != "d" && !known {
					t.Errorf("%s: %s=%q", f.ID, a.Name.Local, a.Value)
				}
			}
			if e.Name.Local != "svg" && e.Name.Local != "path" {
				t.Errorf("%s: <%s>", f.ID, e.Name.Local)
			}
		}
	}
}

// TestLabelsOfAnAxis: short, and its half is true.
func TestLabelsOfAnAxis(t *testing.T) {
	t.Parallel()
	for most, want := range map[float64]string{0: "1", 1: "1", 2: "2 1", 3: "4 2", 5: "6 3", 9: "10 5", 41: "60 30", 999: "1.00k 500", 2.5e6: "4.00M 2.00M", math.NaN(): "1"} {
		f := Figure{}
		m := measure{say: count, keys: []Key{{}}, of: []func(series.Row) float64{func(series.Row) float64 { return most }}}
		m.draw(&f, []series.Row{{}})
		if got := strings.TrimSpace(f.Top + " " + f.Half); got != want {
			t.Errorf("%v: %q, want %q", most, got, want)
		}
	}
	for d, want := range map[time.Duration]string{-1: "0s", 1500 * time.Microsecond: "2ms", 90 * time.Second: "1.5min", 1234 * time.Millisecond: "1.23s", 5 * time.Hour: "5h", 1e6 * time.Hour: "9999d"} {
		if got := span(d); got != want {
			t.Errorf("%s: %s", d, got)
		}
	}
}

// BenchmarkNinetyDays of agents that do something all the time: read from the store, drawn.
func BenchmarkNinetyDays(b *testing.B) {
	s, now := kept(b, 90)
	for b.Loop() {
		if f := Draw(look(b, s, now.AddDate(0, 0, -90), now, series.Day))[5]; len(f.Table) < 90 || !strings.HasPrefix(f.Sum, "129") {
			b.Fatal(f.Sum)
		}
	}
}
