package usage

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones, wherever the tests run

	"heartbeat/hook/client"
)

// TestBounds: hours and days of the clock, also where it is changed and where zones
// are not whole hours apart.
func TestBounds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		zone, at    string
		period      Period
		from, until string
	}{
		{"UTC", "2026-11-22T15:39:55Z", Hour, "2026-11-22T15:00:00Z", "2026-11-22T16:00:00Z"},
		{"Asia/Kathmandu", "2026-11-22T15:39:55Z", Hour, "2026-11-22T15:15:00Z", "2026-11-22T16:15:00Z"},
		{"Asia/Kathmandu", "2026-11-22T15:39:55Z", Day, "2026-11-21T18:15:00Z", "2026-11-22T18:15:00Z"},
		{"Europe/Rome", "2026-10-25T12:00:00Z", Day, "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},          // 25 hours
		{"Europe/Rome", "2026-03-29T12:00:00Z", Day, "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},          // 23 hours
		{"Europe/Rome", "2026-10-25T00:30:00Z", Hour, "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z"},         // 02:30, the first time
		{"Europe/Rome", "2026-10-25T01:30:00Z", Hour, "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},         // and the second
		{"Australia/Lord_Howe", "2026-04-04T14:45:00Z", Hour, "2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z"}, // set back by half an hour at 15:00Z
	} {
		zone, err := time.LoadLocation(tt.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, tt.at)
		if err != nil {
			t.Fatal(err)
		}
		from, until := tt.period.Bounds(at.In(zone))
		if f, u := from.UTC().Format(time.RFC3339), until.UTC().Format(time.RFC3339); f != tt.from || u != tt.until {
			t.Errorf("the %s of %s in %s: %s to %s, want %s to %s", tt.period, tt.at, tt.zone, f, u, tt.from, tt.until)
		}
	}
}

// TestNoHourOfAYearIsInNoDay: where clocks change at midnight the last hour of a day was
// behind that day's end, and no budget held in it.
func TestNoHourOfAYearIsInNoDay(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"UTC", "Europe/Rome", "America/Santiago", "America/Havana", "America/Asuncion", "Asia/Amman", "Atlantic/Azores", "Australia/Lord_Howe", "Africa/Cairo",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []Period{Hour, Day} {
			var before time.Time // where the period before has ended
			for at := time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() == 2016; at = at.Add(15 * time.Minute) {
				from, until := p.Bounds(at.In(zone))
				if from.After(at) || !until.After(at) || p == Day && !before.IsZero() && !from.Equal(before) && !at.Before(before) {
					t.Fatalf("the %s of %v in %s is from %v until %v; the one before has ended at %v", p, at.In(zone), name, from, until, before)
				}
				if p == Day && (until.Sub(from) < 22*time.Hour || until.Sub(from) > 26*time.Hour) {
					t.Errorf("the day of %v is %v long", at.In(zone), until.Sub(from))
				}
				before = until
			}
		}
	}
}

func turnsOf(s Sum, _ time.Time) int64 { return s.Turns }

// TestMeter knows what was spent since a period began, in whatever order it is told,
// and forgets what no period needs.
func TestMeter(t *testing.T) {
	t.Parallel()
	var m *Meter
	if got := turnsOf(m.Within(noon, noon.Add(time.Hour), noon)); got != 0 {
		t.Errorf("of nobody: %d", got)
	}
	m = &Meter{}
	for _, minute := range []int{30, 0, 59, -1, 60, -30 * 60} {
		m.Add(Sum{Turns: 1}, noon.Add(time.Duration(minute)*time.Minute), noon.Add(time.Hour))
	}
	for since, want := range map[time.Duration]int64{0: 4, -time.Hour: 5, time.Hour: 1, -100 * time.Hour: 5, 2 * time.Hour: 0} {
		if got := turnsOf(m.Within(noon.Add(since), noon.Add(2*time.Hour), noon.Add(time.Hour))); got != want {
			t.Errorf("since %v: %d, want %d", since, got, want)
		}
	}
	for i := range 10_000 {
		at := noon.Add(time.Duration(i) * time.Minute)
		m.Add(Sum{Turns: 1}, at, at)
	}
	if n := len(m.slices); n > int(Remembered/slice)+2 {
		t.Errorf("it holds %d slices", n)
	}
}

// TestAMeterAfterAClockThatWasAhead: what was spent in a future that did not come, by
// this run or an earlier one, neither displaces what is spent now nor counts for ever.
func TestAMeterAfterAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	var m Meter
	ahead := noon.Add(40 * 24 * time.Hour)
	m.Add(Sum{Turns: 100}, ahead, ahead)
	m.Add(Sum{Turns: 100}, ahead, noon) // recalled
	for i := range 3 {
		at := noon.Add(time.Duration(i) * time.Minute)
		m.Add(Sum{Turns: 1}, at, at)
	}
	m.Add(Sum{Turns: 1}, noon.Add(-time.Hour), noon)
	if got := turnsOf(m.Within(noon, noon.Add(time.Hour), noon)); got != 3 {
		t.Errorf("since noon: %d turns, want 3", got)
	}
	if got := turnsOf(m.Within(noon.Add(-2*time.Hour), noon.Add(time.Hour), noon)); got != 4 {
		t.Errorf("since ten: %d turns, want 4", got)
	}
}

// TestDollars: a small amount is not shown as nothing.
func TestDollars(t *testing.T) {
	t.Parallel()
	for amount, want := range map[float64]string{
		0: "$0.00", 0.0012: "$0.0012", 0.005: "$0.005", 0.25: "$0.25", 0.9: "$0.90", 0.1234: "$0.1234", 1.005: "$1.00", 12.3456: "$12.35", 0.00001: "$0.00",
	} {
		if got := Dollars(amount); got != want {
			t.Errorf("%v: %s, want %s", amount, got, want)
		}
	}
	if got := (Allowance{Cost: 0.002}).Spent(Sum{Cost: 0.0031}); got != "$0.0031 of $0.002" {
		t.Error(got)
	}
}

// TestABudgetOfCentsIsSpentExactly: ten times ten cents are a little less than a dollar,
// and one entry more was handed over.
func TestABudgetOfCentsIsSpentExactly(t *testing.T) {
	t.Parallel()
	var s Sum
	for range 10 {
		s = s.Plus(Sum{Cost: 0.1})
	}
	if a := (Allowance{Cost: 1}); a.Spent(s) == "" || a.Exceeded(s) != "" {
		t.Errorf("%v: spent %q, exceeded %q", s.Cost, a.Spent(s), a.Exceeded(s))
	}
}

// TestAllowance: what is used up, and what is exceeded.
func TestAllowance(t *testing.T) {
	t.Parallel()
	spent := Sum{Turns: 3, Tokens: client.Tokens{Input: 10, Output: 20, CacheWrite: 30, CacheRead: 400}, Cost: 2.5}
	for _, tt := range []struct {
		of              Allowance
		spent, exceeded string
	}{
		{Allowance{}, "", ""},
		{Allowance{Turns: 4, Tokens: 61, Resent: 401, Cost: 2.51}, "", ""},
		{Allowance{Turns: 3}, "3 of 3 turns", ""},
		{Allowance{Turns: 2}, "3 of 2 turns", "3 of 2 turns"},
		{Allowance{Tokens: 60}, "60 of 60 tokens", ""},
		{Allowance{Tokens: 59}, "60 of 59 tokens", "60 of 59 tokens"},
		{Allowance{Resent: 399}, "400 of 399 tokens that were sent again", "400 of 399 tokens that were sent again"},
		{Allowance{Cost: 2.5}, "$2.50 of $2.50", ""},
		{Allowance{Cost: 2.49}, "$2.50 of $2.49", "$2.50 of $2.49"},
	} {
		if s, e := tt.of.Spent(spent), tt.of.Exceeded(spent); s != tt.spent || e != tt.exceeded {
			t.Errorf("%+v: %q, %q; want %q, %q", tt.of, s, e, tt.spent, tt.exceeded)
		}
	}
}
