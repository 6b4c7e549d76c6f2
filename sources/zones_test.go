package sources

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// zoneNames are all names of the IANA database as of 2026.
//
//go:embed testdata/zones.txt
var zoneNames string

var modelFrom, modelTo = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2041, 1, 1, 0, 0, 0, 0, time.UTC)

// zoneChanges is a zone with the minutes at which its clocks change.
type zoneChanges struct {
	loc     *time.Location
	changes []time.Time
}

// distinctZones returns one zone of each kind that behaves alike from 2020 to
// 2040. It asks the time package for offsets only.
var distinctZones = sync.OnceValue(func() []zoneChanges {
	var zones []zoneChanges
	seen := map[string]bool{}
	for i, name := range strings.Split(strings.TrimSpace(zoneNames), "\n") {
		if (testing.Short() || testbed.Raced) && i%5 != 0 {
			continue
		}
		loc, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		offset := func(t time.Time) int {
			_, o := t.In(loc).Zone()
			return o
		}
		z := zoneChanges{loc: loc}
		var kind strings.Builder
		kind.WriteString(fmt.Sprint(offset(modelFrom)))
		for day := modelFrom; day.Before(modelTo); day = day.AddDate(0, 0, 1) {
			low, high := day, day.AddDate(0, 0, 1)
			if offset(low) == offset(high) {
				continue
			}
			for high.Sub(low) > time.Minute {
				if mid := low.Add(high.Sub(low) / 2).Truncate(time.Minute); offset(mid) == offset(low) {
					low = mid
				} else {
					high = mid
				}
			}
			z.changes = append(z.changes, high)
			kind.WriteString(fmt.Sprint(high.Unix(), offset(high), " "))
		}
		if !seen[kind.String()] {
			seen[kind.String()] = true
			zones = append(zones, z)
		}
	}
	return zones
})

// modelSpec is a schedule written down twice: as an expression, and as what
// it means.
type modelSpec struct {
	spec  string
	fixed bool
	match func(h, m int, wd time.Weekday, day int) bool
	// second is the part of the seconds field, or nil for five fields.
	second func(s int) bool
}

// step is how far apart fires may be.
func (m *modelSpec) step() time.Duration {
	if m.second != nil {
		return time.Second
	}
	return time.Minute
}

// layout is that of the labels.
func (m *modelSpec) layout() string {
	if m.second != nil {
		return "2006-01-02T15:04:05"
	}
	return "2006-01-02T15:04"
}

var modelSpecs = []modelSpec{
	{"30 2 * * *", true, func(h, m int, _ time.Weekday, _ int) bool { return h == 2 && m == 30 }, nil},
	{"0 0 * * *", true, func(h, m int, _ time.Weekday, _ int) bool { return h == 0 && m == 0 }, nil},
	{"15,45 0-3 * * *", true, func(h, m int, _ time.Weekday, _ int) bool { return h <= 3 && (m == 15 || m == 45) }, nil},
	{"*/10 1-2 * * 7", true, func(h, m int, wd time.Weekday, _ int) bool {
		return (h == 1 || h == 2) && m%10 == 0 && wd == time.Sunday
	}, nil},
	{"59 23 25-31 * 6", true, func(h, m int, wd time.Weekday, day int) bool {
		return h == 23 && m == 59 && (day >= 25 || wd == time.Saturday)
	}, nil},
	{"0 0-23 * * *", true, func(_, m int, _ time.Weekday, _ int) bool { return m == 0 }, nil},
	{"*/30 * * * *", false, func(_, m int, _ time.Weekday, _ int) bool { return m%30 == 0 }, nil},
	{"7 */2 * * *", false, func(h, m int, _ time.Weekday, _ int) bool { return h%2 == 0 && m == 7 }, nil},
}

// secondsSpecs have a seconds field.
var secondsSpecs = []modelSpec{
	{"*/20 30 2 * * *", true, func(h, m int, _ time.Weekday, _ int) bool { return h == 2 && m == 30 }, func(s int) bool { return s%20 == 0 }},
	{"59 59 0-3 * * *", true, func(h, m int, _ time.Weekday, _ int) bool { return h <= 3 && m == 59 }, func(s int) bool { return s == 59 }},
	{"0,1 0 0,1,2,3 * * *", true, func(h, m int, _ time.Weekday, _ int) bool { return h <= 3 && m == 0 }, func(s int) bool { return s <= 1 }},
	{"15/15 */7 * * * 0,6", false, func(_, m int, wd time.Weekday, _ int) bool {
		return m%7 == 0 && (wd == time.Sunday || wd == time.Saturday)
	}, func(s int) bool { return s >= 15 && s%15 == 0 }},
	{"59 59 */1 * * *", false, func(_, m int, _ time.Weekday, _ int) bool { return m == 59 }, func(s int) bool { return s == 59 }},
}

// modelFires walks from minute to minute (or second to second), as a cron
// daemon does, and notes what has fired.
func modelFires(spec modelSpec, loc *time.Location, from, to time.Time) (fires []int64, labels []string) {
	step := spec.step()
	matches := func(clock time.Time) bool {
		return spec.match(clock.Hour(), clock.Minute(), clock.Weekday(), clock.Day()) &&
			(spec.second == nil || spec.second(clock.Second()))
	}
	done := map[time.Time]bool{}
	var before time.Time
	for t := from; !t.After(to); t = t.Add(step) {
		l := t.In(loc)
		clock := time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), l.Second(), 0, time.UTC)
		first := clock
		if spec.fixed && !before.IsZero() && clock.After(before) {
			first = before.Add(step) // what the clock skipped too
		}
		fired := false
		for c := first; !c.After(clock); c = c.Add(step) {
			if !matches(c) || spec.fixed && done[c] {
				continue
			}
			done[c] = true
			if !fired {
				fires, fired = append(fires, t.Unix()), true
				labels = append(labels, c.Format(spec.layout()))
			}
		}
		before = clock
	}
	return fires, labels
}

// TestEveryZoneChange compares each schedule with the model around each
// change of the clock of each zone, 2020 to 2040: a sample of them, and all with -full.
func TestEveryZoneChange(t *testing.T) {
	t.Parallel()
	zones := distinctZones()
	changes, turn, step := 0, testbed.Turn(t, 8), testbed.Stride(8)
	if testing.Short() || testbed.Raced {
		step = 8 // with -full, too
	}
	for i, z := range zones {
		for j := (turn + i) % step; j < len(z.changes); j += step {
			changes++
			compareAround(t, z.loc, z.changes[j], 26*time.Hour, modelSpecs)
			if changes%30 == 0 { // a walk by the second is long
				compareAround(t, z.loc, z.changes[j], 3*time.Hour, secondsSpecs)
			}
		}
	}
	t.Logf("%d kinds of zones, %d changes", len(zones), changes)
	if len(zones) < 25 || changes < 720/step {
		t.Errorf("only %d kinds of zones with %d changes were looked at", len(zones), changes)
	}
}

func compareAround(t *testing.T, loc *time.Location, change time.Time, around time.Duration, specs []modelSpec) {
	t.Helper()
	from, to := change.Add(-around), change.Add(around)
	for _, spec := range specs {
		s, err := ParseScheduleWithSeconds(spec.spec, loc)
		if err != nil {
			t.Fatal(err)
		}
		wantFires, wantLabels := modelFires(spec, loc, from, to)
		var fires []int64
		var labels []string
		for at := s.Next(from.Add(-time.Second)); !at.After(to) && len(fires) <= len(wantFires); at = s.Next(at) {
			fires = append(fires, at.Unix())
			labels = append(labels, s.Label(at)[:len(spec.layout())])
		}
		if !slices.Equal(fires, wantFires) || !slices.Equal(labels, wantLabels) {
			t.Fatalf("%s, %q around %v:\ngot  %v\nwant %v", loc, spec.spec, change, labels, wantLabels)
		}
		// Asked at any other time, also within an overlap, it goes on the same way.
		for at := change.Add(-3 * time.Hour); at.Before(change.Add(3 * time.Hour)); at = at.Add(421 * time.Second) {
			i, found := slices.BinarySearch(wantFires, at.Unix())
			if found {
				i++
			}
			if i < len(wantFires) && s.Next(at).Unix() != wantFires[i] {
				t.Fatalf("%s, %q: after %v comes %v, want %s", loc, spec.spec, at.In(loc), s.Next(at), wantLabels[i])
			}
		}
	}
}

// TestEveryDayOnce fires daily schedules through all days of 2020 to 2040 in
// each kind of zone: each day has its label once.
func TestEveryDayOnce(t *testing.T) {
	t.Parallel()
	zones := distinctZones()
	for _, z := range zones {
		for _, clock := range []string{"0 0", "30 2", "15 1", "45 23"} {
			s := mustParse(t, clock+" * * *", z.loc)
			day := modelFrom.AddDate(0, 0, 2)
			at := s.Next(time.Date(2020, 1, 2, 23, 59, 0, 0, z.loc))
			for ; day.Before(modelTo); day = day.AddDate(0, 0, 1) {
				if label := s.Label(at); !strings.HasPrefix(label, day.Format(time.DateOnly)) {
					t.Fatalf("%s, %q: after the day before %s comes %s", z.loc, clock, day.Format(time.DateOnly), label)
				}
				at = s.Next(at)
			}
		}
	}
}
