package sources

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones, wherever the tests run
)

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func mustParse(t testing.TB, spec string, loc *time.Location) Schedule {
	t.Helper()
	s, err := ParseSchedule(spec, loc)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestClockChanges holds the cases in which robfig/cron was seen to skip or
// repeat a fire.
func TestClockChanges(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, zone, spec, after string
		fires, labels           []string
	}{
		{
			"gap, in the middle", "America/New_York", "30 2 * * *", "2026-03-07T12:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"},
			[]string{"2026-03-08T02:30", "2026-03-09T02:30"},
		},
		{
			"gap, at its start", "America/New_York", "0 2 * * *", "2026-03-07T12:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"},
			[]string{"2026-03-08T02:00", "2026-03-09T02:00"},
		},
		{
			"gap, several at once are one", "America/New_York", "*/20 2,3 * * *", "2026-03-08T00:00:00-05:00",
			[]string{"2026-03-08T03:00:00-04:00", "2026-03-08T03:20:00-04:00"},
			[]string{"2026-03-08T02:00", "2026-03-08T03:20"},
		},
		{
			"overlap, the first time only", "America/New_York", "30 1 * * *", "2026-11-01T00:00:00-04:00",
			[]string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"},
			[]string{"2026-11-01T01:30", "2026-11-02T01:30"},
		},
		{
			"overlap, asked in its second half", "America/New_York", "30 1 * * *", "2026-11-01T01:10:00-05:00",
			[]string{"2026-11-02T01:30:00-05:00"},
			[]string{"2026-11-02T01:30"},
		},
		{
			"overlap, wildcard hour twice", "America/New_York", "0 * * * *", "2026-11-01T00:30:00-04:00",
			[]string{"2026-11-01T01:00:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"},
			[]string{"2026-11-01T01:00-04:00", "2026-11-01T01:00-05:00", "2026-11-01T02:00-05:00"},
		},
		{
			"gap, wildcard hour", "America/New_York", "*/30 * * * *", "2026-03-08T01:00:00-05:00",
			[]string{"2026-03-08T01:30:00-05:00", "2026-03-08T03:00:00-04:00"},
			[]string{"2026-03-08T01:30-05:00", "2026-03-08T03:00-04:00"},
		},
		{
			"midnight does not exist", "America/Santiago", "@daily", "2026-09-05T12:00:00-04:00",
			[]string{"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"},
			[]string{"2026-09-06T00:00", "2026-09-07T00:00"},
		},
		{
			"half an hour's gap", "Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00+10:30",
			[]string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"},
			[]string{"2026-10-04T02:15", "2026-10-05T02:15"},
		},
		{
			"half an hour's overlap", "Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00:00+11:00",
			[]string{"2026-04-05T01:45:00+11:00", "2026-04-06T01:45:00+10:30"},
			[]string{"2026-04-05T01:45", "2026-04-06T01:45"},
		},
		{
			"a whole day missing", "Pacific/Apia", "0 12 * * *", "2011-12-29T13:00:00-10:00",
			[]string{"2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"},
			[]string{"2011-12-30T12:00", "2011-12-31T12:00"},
		},
		{
			"the last day of a leap year beyond the table", "Europe/Rome", "0 9 * * *", "2072-12-30T12:00:00+01:00",
			[]string{"2072-12-31T09:00:00+01:00", "2073-01-01T09:00:00+01:00"},
			[]string{"2072-12-31T09:00", "2073-01-01T09:00"},
		},
		{
			"every, whatever the zone", "Europe/Rome", "@every 90m", "2026-03-29T00:00:00+01:00",
			[]string{"2026-03-29T01:00:00+01:00", "2026-03-29T03:30:00+02:00"},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := mustParse(t, c.spec, mustZone(t, c.zone))
			at, err := time.Parse(time.RFC3339, c.after)
			if err != nil {
				t.Fatal(err)
			}
			for i, want := range c.fires {
				at = s.Next(at)
				w, err := time.Parse(time.RFC3339, want)
				if err != nil {
					t.Fatal(err)
				}
				if !at.Equal(w) {
					t.Fatalf("fire %d is at %v, want %v", i, at, want)
				}
				if c.labels != nil && s.Label(at) != c.labels[i] {
					t.Errorf("fire %d has the label %s, want %s", i, s.Label(at), c.labels[i])
				}
			}
		})
	}
}

func TestCalendar(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec, after string
		want        []string
	}{
		{"0 0 29 2 *", "2097-01-01", []string{"2104-02-29", "2108-02-29"}},
		{"0 0 29 2 */7", "2060-03-01", []string{"2088-02-29", "2128-02-29"}}, // a star in dow: both must match, a Sunday
		{"0 0 1 * MON", "2026-05-31", []string{"2026-06-01", "2026-06-08"}},  // either
		{"0 0 13 * 5", "2026-02-12", []string{"2026-02-13", "2026-02-20"}},
		{"0 0 */2 * 1", "2026-06-01", []string{"2026-06-15", "2026-06-29"}}, // odd days that are Mondays
		{"0 0 31 * *", "2026-03-31", []string{"2026-05-31", "2026-07-31"}},
		{"0 0 * * 7", "2026-06-01", []string{"2026-06-07", "2026-06-14"}},
		{"0 0 * * 5-7", "2026-06-01", []string{"2026-06-05", "2026-06-06", "2026-06-07", "2026-06-12"}},
		{"0 0 * * fri-SUN", "2026-06-01", []string{"2026-06-05", "2026-06-06", "2026-06-07", "2026-06-12"}},
		{"0 0 * * 3-7/2", "2026-06-01", []string{"2026-06-03", "2026-06-05", "2026-06-07"}},
		{"0 0 * * 1,7", "2026-06-01", []string{"2026-06-07", "2026-06-08"}},
		{"0 0 * * 0-7", "2026-06-06", []string{"2026-06-07", "2026-06-08"}},
		{"0 0 ? jan,Mar ?", "2026-01-30", []string{"2026-01-31", "2026-03-01"}},
		{"@yearly", "2026-01-01", []string{"2027-01-01"}},
		{"@monthly", "2026-01-31", []string{"2026-02-01"}},
		{"@weekly", "2026-06-01", []string{"2026-06-07"}},
		{" 0  0\t1 1 * ", "2026-06-01", []string{"2027-01-01"}},
	} {
		s := mustParse(t, c.spec, time.UTC)
		at, _ := time.Parse(time.DateOnly, c.after)
		for _, want := range c.want {
			at = s.Next(at)
			if got := at.Format(time.RFC3339); got != want+"T00:00:00Z" {
				t.Errorf("%q after %s fires at %s, want %s", c.spec, c.after, got, want)
				break
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for spec, why := range map[string]string{
		"":                        "empty",
		"  ":                      "empty",
		"TZ=UTC":                  "timezone:",
		"TZ=":                     "timezone:",
		"CRON_TZ=UTC * * * * *":   "timezone:",
		"@every 0s":               "0s is too short; at least",
		"@every -1h":              "at least",
		"@every 59s":              "at least",
		"@every 1m0.5s":           "whole seconds",
		"@every":                  "not a duration",
		"@every soon":             "not a duration",
		"@everyday":               "@everyday is not known",
		"@reboot":                 "@reboot is not known",
		"0 0 30 2 *":              "never fires",
		"0 0 31 2,4,6,9,11 *":     "never fires",
		"0 0 30 2 */2":            "never fires",
		"* * * *":                 "4 fields",
		"* * * * * *":             "seconds: true",
		"60 * * * *":              "there is no minute 60; write 0 to 59, or *",
		"* 24 * * *":              "there is no hour 24; write 0 to 23, or *",
		"* * 0 * *":               "there is no day of month 0; write 1 to 31, or *",
		"* * * 13 *":              "there is no month 13; write 1 to 12, jan to dec, or *",
		"* * * * 8":               "there is no day of week 8; write 0 to 7, sun to sat, or *",
		"* * * * 7-3":             "the range 7-3 goes backwards; write 0-3",
		"* * * * 5-8":             "there is no day of week 8",
		"*/90 * * * *":            "step of 90",
		"*/0 * * * *":             "a step of 0 leads nowhere; write *",
		", * * * *":               "minute",
		"* 22-6 * * *":            "hour: the range 22-6 goes backwards; write 22-23,0-6",
		"* 22-6/2 * * *":          "write two ranges: from 22 to 23, and from 0",
		"* * * nov-feb *":         "month: the range nov-feb goes backwards; write 11-12,1-2",
		"* * * * fri-mon":         "write 5-6,0-1",
		"* * * foo-mar *":         "there is no month foo",
		"* * * jan-bar *":         "there is no month bar",
		"61 24 * * *":             "there is no minute 61; write 0 to 59, or *; there is no hour 24",
		"1,,2 * * * *":            "the list \"1,,2\" has an empty element; remove the comma",
		"*-5 * * * *":             "minute",
		"+5 * * * *":              "minute",
		"-5 * * * *":              "minute",
		"1-2-3 * * * *":           "minute",
		"1/2/3 * * * *":           "minute",
		"* * * foo *":             "there is no month foo",
		"99999999999999 * * * *":  "minute",
		"* * * * */9999999999999": "day of week",
	} {
		_, err := ParseSchedule(spec, time.UTC)
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: the error is %v, want one with %q", spec, err, why)
		}
	}
}

// TestSeconds: the opt-in takes six fields, and leaves the meaning of all
// else as it was.
func TestSeconds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec, after string
		fires       []string
		label       string // of the first fire
	}{
		{"*/20 * * * * *", "2026-06-01T10:00:00Z", []string{"2026-06-01T10:00:20Z", "2026-06-01T10:00:40Z", "2026-06-01T10:01:00Z"}, "2026-06-01T10:00:20+00:00"},
		{"5 0 9 * * 1", "2026-06-01T09:00:05Z", []string{"2026-06-08T09:00:05Z"}, "2026-06-08T09:00:05"},
		{"59 59 23 31 12 ?", "2026-01-01T00:00:00Z", []string{"2026-12-31T23:59:59Z", "2027-12-31T23:59:59Z"}, "2026-12-31T23:59:59"},
		{"0 0 9 * * *", "2026-06-01T08:59:59Z", []string{"2026-06-01T09:00:00Z", "2026-06-02T09:00:00Z"}, "2026-06-01T09:00:00"},
		{"10,30 15-16 9 * * *", "2026-06-01T09:15:10Z", []string{"2026-06-01T09:15:30Z", "2026-06-01T09:16:10Z", "2026-06-01T09:16:30Z", "2026-06-02T09:15:10Z"}, "2026-06-01T09:15:30"},
		{"0 9 * * *", "2026-06-01T08:59:59Z", []string{"2026-06-01T09:00:00Z", "2026-06-02T09:00:00Z"}, "2026-06-01T09:00"},
		{"@daily", "2026-06-01T08:59:59Z", []string{"2026-06-02T00:00:00Z"}, "2026-06-02T00:00"},
		{"@every 10s", "2026-06-01T08:59:59Z", []string{"2026-06-01T09:00:00Z", "2026-06-01T09:00:10Z"}, "2026-06-01T09:00:00Z"},
	} {
		s, err := ParseScheduleWithSeconds(c.spec, time.UTC)
		if err != nil {
			t.Error(err)
			continue
		}
		at, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.fires {
			at = s.Next(at)
			if got := at.Format(time.RFC3339); got != want {
				t.Errorf("%q after %s: fire %d at %s, want %s", c.spec, c.after, i, got, want)
			}
			if got := s.Label(at); i == 0 && got != c.label {
				t.Errorf("%q: label %s, want %s", c.spec, got, c.label)
			}
		}
	}
	for spec, why := range map[string]string{
		"@every 500ms": `at least "@every 1s"`, "60 * * * * *": "there is no second 60", "*/90 * * * * *": "second: a step of 90",
		"* * * *": "five or six", "* * * * * * *": "7 fields", "0 61 24 * * *": "there is no minute 61; write 0 to 59, or *; there is no hour 24", "0 0 0 30 2 *": "never fires", "TZ=UTC * * * * * *": "timezone:",
	} {
		if _, err := ParseScheduleWithSeconds(spec, time.UTC); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: the error is %v, want one with %q", spec, err, why)
		}
	}
}

// A fault says where it stands, also behind blanks and in lists.
func TestFaultsHavePlaces(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string][]int{
		" 0  9,24 * 13 *":   {6, 11},
		"1 1 1 1 1 1 1":     {0},
		"1,1,61,62 1 1 1 1": {4, 7},
		"@every 5s":         {7},
		"\t@reboot":         {1},
	} {
		_, err := ParseSchedule(spec, time.UTC)
		wrong, ok := errors.AsType[*ScheduleError](err)
		if !ok {
			t.Fatalf("%q: %v", spec, err)
		}
		var got []int
		for _, f := range wrong.Faults {
			got = append(got, f.Offset)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: faults at %v, want %v: %v", spec, got, want, err)
		}
	}
}

// TestParserKnowsNothingElse holds that our own checks refuse all that the
// parser behind them refuses: its words are not for people.
func TestParserKnowsNothingElse(t *testing.T) {
	t.Parallel()
	values := []string{"*", "?", "0", "7", "8", "12", "13", "23", "24", "31", "32", "59", "60", "jan", "DEC", "sun", "Sat", "xyz"}
	var elements []string
	for _, a := range values {
		elements = append(elements, a, a+"/0", a+"/7", a+"/8")
		for _, b := range values {
			elements = append(elements, a+"-"+b, a+"-"+b+"/2", a+","+b)
		}
	}
	for i, f := range cronFields {
		for _, element := range elements {
			parts := []string{"*", "*", "*", "*", "*", "*"}
			parts[i] = element
			if checkFields(strings.Join(parts, " "), parts) != nil {
				continue
			}
			parts[5] = sundays(parts[5])
			if _, err := parser.Parse(strings.Join(parts, " ")); err != nil {
				t.Errorf("%s %q: %v", f.name, element, err)
			}
		}
	}
}

func TestZeroSchedule(t *testing.T) {
	t.Parallel()
	if got := (Schedule{}).Next(time.Now()); !got.IsZero() {
		t.Errorf("the zero schedule fires at %v", got)
	}
	s := mustParse(t, "* * * * *", time.UTC)
	if got := s.Next(time.Time{}); !got.IsZero() {
		t.Errorf("after the zero time it fires at %v", got)
	}
	if s != mustParse(t, "* * * * *", time.UTC) {
		t.Error("equal schedules are not ==")
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, spec := range []string{
		"* * * * *", "*/15 9-18 * * 1-5", "@every 90m", "@hourly", "TZ=", "0 0 29 2 */7",
		"5-7 5-7 5-7 5-7 5-7", "0 0 ? jan fri-sun", "1,2,3/4 * * * 7/2", "@every 2540400h",
	} {
		f.Add(spec, int64(1_790_000_000), uint8(0))
	}
	for _, spec := range []string{"* * * * * *", "59 59 1 * * *", "*/7 */30 2 29 2 */7", "@every 1s"} {
		f.Add(spec, int64(1_790_000_000), uint8(129))
	}
	zones := []*time.Location{time.UTC, mustZone(f, "America/New_York"), mustZone(f, "Australia/Lord_Howe"), mustZone(f, "Pacific/Apia")}
	f.Fuzz(func(t *testing.T, spec string, from int64, zone uint8) {
		parse := ParseSchedule
		if zone >= 128 {
			parse = ParseScheduleWithSeconds
		}
		s, err := parse(spec, zones[int(zone)%len(zones)])
		if err != nil {
			return
		}
		at := time.Unix(from%(1<<37), 0)
		for range 20 {
			next := s.Next(at)
			if next.IsZero() {
				if at.Year() > 0 && at.Year() < 9900 && s.every == 0 {
					t.Fatalf("%q never fires after %v", spec, at)
				}
				return
			}
			if !next.After(at) {
				t.Fatalf("%q fires at %v after %v", spec, next, at)
			}
			if s.Label(next) == s.Label(at) {
				t.Fatalf("%q has the label %s twice", spec, s.Label(at))
			}
			at = next
		}
	})
}

func BenchmarkNext(b *testing.B) {
	rome := mustZone(b, "Europe/Rome")
	for _, spec := range []string{"*/15 9-18 * * 1-5", "*/15 * * * *", "0 0 29 2 *", "0 0 29 2 */7", "@every 90m"} {
		b.Run(spec, func(b *testing.B) {
			s := mustParse(b, spec, rome)
			at := time.Unix(1_790_000_000, 0)
			for b.Loop() {
				at = s.Next(at)
				if at.Year() > 2080 {
					at = time.Unix(1_790_000_000, 0)
				}
			}
		})
	}
}
