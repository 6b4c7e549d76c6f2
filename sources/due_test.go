package sources

import (
	"strings"
	"testing"
	"time"
)

func TestDue(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		w, err := time.Parse("02T15:04:05", s)
		if err != nil {
			t.Fatal(err)
		}
		return w.AddDate(2026, 5, 0)
	}
	for _, c := range []struct {
		name, spec, last, now string
		missed                Missed
		grace                 time.Duration
		want                  string // hours and minutes
	}{
		{"on time", "0 * * * *", "01T08:00:00", "01T09:00:00", MissedSkip, 0, "09:00"},
		{"a little late", "0 * * * *", "01T08:00:00", "01T09:01:00", MissedSkip, 0, "09:00"},
		{"too late to skip", "0 * * * *", "01T08:00:00", "01T09:01:01", MissedSkip, 0, ""},
		{"skip keeps what is on time", "* * * * *", "01T00:00:00", "01T09:01:30", MissedSkip, 0, "09:01"},
		{"not yet", "0 * * * *", "01T08:00:00", "01T08:59:59", MissedAll, 0, ""},
		{"already", "0 * * * *", "01T09:00:00", "01T09:00:30", MissedAll, 0, ""},
		{"once", "0 * * * *", "01T01:00:00", "01T09:30:00", MissedOnce, 0, "09:00"},
		{"all", "0 * * * *", "01T05:00:00", "01T09:30:00", MissedAll, 0, "06:00 07:00 08:00 09:00"},
		{"all, at most ten", "* * * * *", "01T05:00:00", "01T09:30:00", MissedAll, 0, "09:21 09:22 09:23 09:24 09:25 09:26 09:27 09:28 09:29 09:30"},
		{"all with a grace", "0 * * * *", "01T05:00:00", "01T09:30:00", MissedAll, 90 * time.Minute, "08:00 09:00"},
		{"once with a grace", "0 9 * * *", "01T09:00:00", "03T08:00:00", MissedOnce, time.Hour, ""},
		{"once, long ago", "0 9 1 6 *", "01T09:00:00", "30T08:00:00", MissedOnce, 0, ""},
		{"once, days ago", "0 9 2 * *", "01T09:00:00", "30T08:00:00", MissedOnce, 0, "09:00"},
		{"clock set back", "0 * * * *", "02T09:00:00", "01T09:00:00", MissedAll, 0, ""},
	} {
		var got []string
		for _, f := range Due(mustParse(t, c.spec, time.UTC), at(c.last), at(c.now), c.missed, c.grace) {
			got = append(got, f.Format("15:04"))
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: due are %q, want %q", c.name, g, c.want)
		}
	}
	if got := Due(mustParse(t, "* * * * *", time.UTC), time.Time{}, time.Now(), MissedAll, 0); got != nil {
		t.Errorf("with nothing known, %v are due", got)
	}
}

func TestDueAfterYears(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)
	start := time.Now()
	got := Due(mustParse(t, "* * * * *", time.UTC), now.AddDate(-2000, 0, 0), now, MissedAll, 0)
	if len(got) != 10 || !got[9].Equal(now.Truncate(time.Minute)) {
		t.Errorf("due are %v", got)
	}
	got = Due(mustParse(t, "0 0 29 2 *", time.UTC), now.AddDate(-2000, 0, 0), now, MissedAll, 0)
	if len(got) != 10 || got[9].Year() != 2024 || got[0].Year() != 1988 {
		t.Errorf("due are %v", got)
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("looking back took %v", d)
	}
}
