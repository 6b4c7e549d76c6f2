package sources

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestDaysOfTheWeekMeanWhatTheyName compares each range of days, by numbers and
// by names, with a table of what it says ("0-Sun" was every day): Sunday is 0,
// 7 and its name, which ends a range that began behind it.
func TestDaysOfTheWeekMeanWhatTheyName(t *testing.T) {
	t.Parallel()
	values := append(slices.Clone(weekdays), "Sun", "FRI")
	for n := range 8 {
		values = append(values, strconv.Itoa(n))
	}
	number := func(word string) int {
		if n, err := strconv.Atoi(word); err == nil {
			return n
		}
		return slices.Index(weekdays, strings.ToLower(word))
	}
	for _, from := range values {
		for _, to := range append(values, "") {
			for _, step := range []int{0, 1, 2, 3} {
				low, high, text := number(from), number(to), from
				switch {
				case to == "" && step > 0:
					continue // from there to the end of the field: of the parser
				case to == "":
					high = low
				default:
					text += "-" + to
				}
				if strings.EqualFold(to, "sun") && low > 0 {
					high = 7
				}
				if step > 0 {
					text += "/" + strconv.Itoa(step)
				}
				var want []int
				for d := low; d <= high; d += max(step, 1) {
					want = append(want, d%7)
				}
				slices.Sort(want)
				want = slices.Compact(want)
				s, err := ParseSchedule("0 0 * * "+text, time.UTC)
				if (err != nil) != (low > high) {
					t.Errorf("%s: %v", text, err)
					continue
				}
				if err != nil {
					continue
				}
				var got []int
				for at, n := time.Date(2026, 2, 28, 12, 0, 0, 0, time.UTC), 0; n < len(want)+1; n++ {
					at = s.Next(at)
					got = append(got, int(at.Weekday()))
				}
				slices.Sort(got)
				if got = slices.Compact(got); !slices.Equal(got, want) {
					t.Errorf("%s fires on %v, want %v", text, got, want)
				}
			}
		}
	}
}

// TestAQuestionMarkStandsForADay alone, as in Quartz: "? 12 * * *" fired sixty
// times.
func TestAQuestionMarkStandsForADay(t *testing.T) {
	t.Parallel()
	for i, f := range cronFields[1:] {
		for _, element := range []string{"?", "?/2", "?-3", "1,?"} {
			parts := []string{"0", "12", "*", "*", "*"}
			parts[i] = element
			_, err := ParseSchedule(strings.Join(parts, " "), time.UTC)
			days := f.name == "day of month" || f.name == "day of week"
			if good := days && (element == "?" || element == "1,?"); good != (err == nil) {
				t.Errorf("%q: %v", parts, err)
			}
		}
	}
	if _, err := ParseSchedule("? 12 * * *", time.UTC); fmt.Sprint(err) != `cannot read schedule "? 12 * * *": minute: ? stands for a day alone; write *` {
		t.Error(err)
	}
}

// TestTheTimeOfAFireIsOfItsZone, without what only Go's own clocks understand.
func TestTheTimeOfAFireIsOfItsZone(t *testing.T) {
	t.Parallel()
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Skip(err)
	}
	tmpl, err := ParseCronTemplate("{{.At}}")
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"0 9 * * *", "*/5 * * * *", "@every 90m", "@daily"} {
		s := mustParse(t, spec, rome)
		for _, at := range []time.Time{time.Now(), time.Now().UTC(), s.Next(time.Now())} {
			got, err := tmpl.Render(CronDataAt(s, at))
			if want := at.In(rome).Format("2006-01-02 15:04:05 -0700 MST"); err != nil || got != want {
				t.Errorf("%s: %q, %v; want %q", spec, got, err, want)
			}
		}
	}
	if got := CronDataAt(Schedule{}, time.Now()).At; got.IsZero() {
		t.Error("no time")
	}
}
