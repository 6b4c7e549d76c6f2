package config

import (
	"testing"
	"time"
	_ "time/tzdata" // the zones, wherever the tests run
)

// TestHoursAreTheClocks in each quarter of an hour, also where clocks change at midnight: an hour of that night was in no day.
func TestHoursAreTheClocks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"America/Santiago", "America/Havana", "Europe/Rome", "Asia/Amman", "Australia/Lord_Howe", "Atlantic/Azores"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"22:00-06:00", "00:00-24:00", "Mon-Fri 09:00-18:00", "Sun 23:00-01:00", "Sat 23:30-00:30", "Sun 00:00-03:00"} {
			h, ok := parseHours(text)
			if !ok {
				t.Fatal(text)
			}
			end := time.Time{}
			for at := time.Date(2016, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() == 2016; at = at.Add(15 * time.Minute) {
				if began, ends := at.In(zone).ZoneBounds(); at.Sub(began) > 48*time.Hour && ends.Sub(at) > 48*time.Hour && at.YearDay()%30 != 0 {
					end = time.Time{}
					continue // a day as others
				}
				is, until := h.At(at.In(zone))
				if is != h.shownBy(at.In(zone)) || is == until.IsZero() || is && (!until.After(at) || until.After(at.Add(26*time.Hour))) {
					t.Fatalf("%s at %v: %t until %v", text, at.In(zone), is, until)
				}
				if !is && at.Before(end) {
					t.Fatalf("%s: they were to last until %v, and do not at %v", text, end, at.In(zone))
				}
				end = until
			}
		}
	}
}

// TestHours: days and hours as people write them, past midnight too.
func TestHours(t *testing.T) {
	t.Parallel()
	at := func(day, clock string) time.Time {
		when, err := time.Parse("2006-01-02 15:04", day+" "+clock)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	const friday, saturday, sunday = "2026-11-20", "2026-11-21", "2026-11-22"
	for _, tt := range []struct {
		hours string
		now   time.Time
		until time.Time // zero: they do not hold
	}{
		{"Mon-Fri 09:00-18:00", at(friday, "09:00"), at(friday, "18:00")},
		{"Mon-Fri 09:00-18:00", at(friday, "18:00"), time.Time{}},
		{"Mon-Fri 09:00-18:00", at(saturday, "12:00"), time.Time{}},
		{"fri 22:00-06:00", at(saturday, "05:59"), at(saturday, "06:00")},
		{"fri 22:00-06:00", at(friday, "05:59"), time.Time{}},
		{"22:00-06:00", at(friday, "05:59"), at(friday, "06:00")},
		{"Fri-Sun 00:00-24:00", at(sunday, "23:59"), at("2026-11-23", "00:00")},
		{"Sat,Mon-Tue 10:00-11:00", at(saturday, "10:30"), at(saturday, "11:00")},
		{"Sat,Mon-Tue 10:00-11:00", at(sunday, "10:30"), time.Time{}},
	} {
		h, ok := parseHours(tt.hours)
		is, until := h.At(tt.now)
		if !ok || is == tt.until.IsZero() || !until.Equal(tt.until) {
			t.Errorf("%s at %v: %t, %t until %v, want %v", tt.hours, tt.now, ok, is, until, tt.until)
		}
	}
	for _, text := range []string{"", "Mon", "Mon-Fri", "9-18", "09:00", "09:00-09:00", "24:00-06:00", "Mon-Foo 09:00-18:00", "mon 09:60-18:00", "a b c", "09:00-25:00"} {
		if h, ok := parseHours(text); ok {
			t.Errorf("%q: %+v", text, h)
		}
	}
	if is, until := (Hours{}).At(at(friday, "03:00")); !is || !until.IsZero() {
		t.Error("no hours are not all hours")
	}
}
