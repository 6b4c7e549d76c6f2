package account

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the zones, wherever the tests run

	"heartbeat/hook/client"
)

// inWords is how the client 2.1.329 tells a moment: cut to the minute, with the day
// where it is more than 24 hours away, with the year where that is another one.
func inWords(name string, at, now time.Time, zone *time.Location) string {
	at, now = at.In(zone), now.In(zone)
	clock := at.Format("3")
	if at.Minute() != 0 {
		clock = at.Format("3:04")
	}
	clock += strings.ToLower(at.Format("PM"))
	day := ""
	if at.Sub(now) > 24*time.Hour {
		day = at.Format("Jan 2, ")
		if at.Year() != now.Year() {
			day = at.Format("Jan 2, 2006, ")
		}
	}
	return fmt.Sprintf("You've hit your %s · resets %s%s (%s)", name, day, clock, zone)
}

// TestAYearOfLimits: whatever the moment, the zone and the window, the words lead to
// a moment that is never before the limit's end and at most a minute behind it, and
// the figures to one within seconds; and nothing that is said leads further away
// than the window is long.
func TestAYearOfLimits(t *testing.T) {
	t.Parallel()
	var zones []*time.Location
	for _, name := range []string{
		"UTC", "Europe/Rome", "America/New_York", "America/St_Johns", "Asia/Kolkata", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Auckland",
		"America/Santiago", "Africa/Casablanca",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		zones = append(zones, zone)
	}
	random := rand.New(rand.NewPCG(14, 1))
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	early, all := 0, 0
	for minute := 0; minute < 366*24*60; minute += 1 + random.IntN(200) {
		all++
		now := start.Add(time.Duration(minute)*time.Minute + time.Duration(random.IntN(60))*time.Second)
		zone := zones[random.IntN(len(zones))]
		length, name := 5*time.Hour, []string{"limit", "session limit"}[random.IntN(2)]
		if random.IntN(2) == 0 {
			length, name = 7*24*time.Hour, "weekly limit"
		}
		resets := now.Add(time.Minute + time.Duration(random.Int64N(int64(length-time.Minute)))).Truncate(time.Second)
		words := inWords(name, resets, now, zone)
		told := Evidence{Told: words, Written: &client.Refusal{Status: 429, Text: words}, Zone: zone}
		r := told.Reset(now)
		if late := r.At.Sub(resets); r.Source != ByTwoSignals || late > time.Minute && !twice(resets, zone) || late < -5*time.Second {
			t.Fatalf("%v, %v in %s, %q: %v (%s), late by %v", now, resets, zone, words, r.At, r.Source, late)
		} else if late < 0 {
			early++
		}
		told.Limits = figures(length, 100, resets)
		if r := told.Reset(now); r.Source != ByStatusLine || r.At.Sub(resets) != exact {
			t.Fatalf("%v by figures: %v (%s)", resets, r.At, r.Source)
		}
		told.Limits = figures(length, 97, resets) // of before the refusal: the words say which one it is
		if r := told.Reset(now); (r.Source != ByStatusLine || r.At.Sub(resets) != exact) && !twice(resets, zone) {
			t.Fatalf("%v by figures of before: %v (%s)", resets, r.At, r.Source)
		}
		forged := Evidence{Zone: zone, Limits: figures(length, 100, now.AddDate(50, 0, 0))}
		if r := forged.Reset(now); r.At.After(now.Add(length + exact)) {
			t.Fatalf("a window of %v parks until %v", length, r.At)
		}
		forged = Evidence{Zone: zone, Told: "resets Dec 31, 2099, 10pm (UTC)"}
		if r := forged.Reset(now); r.At.After(now.Add(7*24*time.Hour + time.Minute)) {
			t.Fatalf("words park until %v", r.At)
		}
	}
	if early > all/6 {
		t.Errorf("%d of %d were tried before their end", early, all)
	}
}

// figures are those of one window.
func figures(length time.Duration, used float64, resets time.Time) (l client.Limits) {
	limit := client.Limit{Used: used, Resets: resets}
	if length == client.FiveHours {
		l.FiveHour = limit
	} else {
		l.SevenDay = limit
	}
	return l
}

// twice reports whether the clock shows a moment's time twice.
func twice(at time.Time, zone *time.Location) bool { return !later(at.In(zone)).Equal(at.In(zone)) }

// TestByWhatAResetIsKnown walks what there is to go by.
func TestByWhatAResetIsKnown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 20, 17, 42, 0, time.UTC)
	const words, other = "You've hit your limit · resets 10pm (UTC)", "You've hit your limit · resets 11pm (UTC)"
	written := func(text string) *client.Refusal { return &client.Refusal{Status: 429, Kind: "rate_limit", Text: text} }
	ten := time.Date(2026, 11, 22, 22, 0, 55, 0, time.UTC)
	used := figures(client.FiveHours, 100, time.Date(2026, 11, 22, 22, 0, 42, 0, time.UTC))
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		Evidence
		at     time.Time
		source Source
	}{
		"nothing":                       {Evidence{}, time.Time{}, ByBackOff},
		"both":                          {Evidence{Told: words, Written: written(words)}, ten, ByTwoSignals},
		"the hook alone":                {Evidence{Told: words}, ten, ByWords},
		"the record alone":              {Evidence{Written: written(words)}, ten, ByWords},
		"they differ":                   {Evidence{Told: words, Written: written(other)}, ten, ByWords},
		"a refusal of another kind":     {Evidence{Told: words, Written: &client.Refusal{Status: 500, Kind: "server_error", Text: words}}, ten, ByWords},
		"figures":                       {Evidence{Told: words, Limits: used}, ten.Add(-11 * time.Second), ByStatusLine},
		"figures alone":                 {Evidence{Limits: used}, ten.Add(-11 * time.Second), ByStatusLine},
		"figures that are over":         {Evidence{Limits: figures(client.FiveHours, 100, now)}, time.Time{}, ByBackOff},
		"no zone":                       {Evidence{Told: "resets 10pm", Written: written("resets 10pm"), Zone: rome}, ten.Add(-time.Hour), ByTwoSignals},
		"an unknown zone":               {Evidence{Told: "resets 10pm (Moon/Tycho)"}, time.Time{}, ByBackOff},
		"it has just ended":             {Evidence{Told: "resets 8:16pm (UTC)"}, time.Time{}, ByBackOff},
		"it ends in this very minute":   {Evidence{Told: "resets 8:17pm (UTC)"}, time.Date(2026, 11, 22, 20, 17, 55, 0, time.UTC), ByWords},
		"tomorrow":                      {Evidence{Told: "resets 8pm (UTC)"}, time.Date(2026, 11, 23, 20, 0, 55, 0, time.UTC), ByWords},
		"a session's limit is 5 hours":  {Evidence{Told: "session limit · resets 8pm (UTC)"}, time.Date(2026, 11, 23, 1, 17, 55, 0, time.UTC), ByWords},
		"a quotation in the transcript": {Evidence{Written: nil}, time.Time{}, ByBackOff},
	} {
		if r := tt.Reset(now); !r.At.Equal(tt.at) || r.Source != tt.source {
			t.Errorf("%s: %v (%s), want %v (%s)", name, r.At, r.Source, tt.at, tt.source)
		}
	}
	model := Evidence{Told: "You've hit your Opus limit · resets 10pm (UTC)", Written: written("You've hit your Opus limit · resets 10pm (UTC)")}
	if r := model.Reset(now); !r.Model || r.Shared() || !r.At.Equal(ten) {
		t.Errorf("one model's limit: %+v", r)
	}
}
