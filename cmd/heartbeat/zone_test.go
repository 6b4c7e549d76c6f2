package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNextInCallersTimezone: fires were reckoned in the zone of the shell that asked, not in
// that of the run that fires them.
func TestNextInCallersTimezone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: agents/triage\n    command: [heartbeat, simulate]\n"+
		"    triggers:\n      - {cron: \"30 12 * * *\", prompt: x}\n      - {cron: \"30 12 * * *\", prompt: y, timezone: Asia/Tokyo}\n")
	w.ok("apply")
	in := func(zone string, args ...string) outcome {
		was := w.env
		defer func() { w.env = was }()
		w.env = append(slices.Clone(was), "TZ="+zone)
		return w.run(args...)
	}
	fires := func(zone string) (at []time.Time) {
		t.Helper()
		var next struct{ Fires []struct{ At time.Time } }
		if err := json.Unmarshal(envelopeOf(t, in(zone, "next", "-o", "json")).Data, &next); err != nil {
			t.Fatal(err)
		}
		for _, f := range next.Fires {
			at = append(at, f.At)
		}
		return at
	}
	isIn := func(when, zone string, fires []time.Time) {
		t.Helper()
		there, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		if len(fires) != 2 || !slices.ContainsFunc(fires, func(at time.Time) bool { return at.In(there).Format("15:04") == "12:30" }) {
			t.Errorf("%s: %v", when, fires)
		}
	}
	isIn("without a run, asked from New York", "America/New_York", fires("America/New_York"))

	w.env = append(w.env, "TZ=Europe/Rome")
	r := w.background()
	isIn("asked from Rome", "Europe/Rome", fires("Europe/Rome"))
	isIn("asked from New York", "Europe/Rome", fires("America/New_York"))
	const says = "schedules without a timezone: are in the scheduler's zone, Europe/Rome; here it is America/New_York"
	for _, args := range [][]string{{"next"}, {"next", "-n", "3"}, {"status"}} {
		if o := in("America/New_York", args...); !strings.Contains(strings.Join(strings.Fields(o.stdout), " "), says) ||
			args[0] == "next" && !strings.Contains(o.stdout, " CE") { // status shows one fire, which is Tokyo's in the afternoon
			t.Errorf("%q from New York:\n%s", args, o.stdout)
		}
		if o := in("Europe/Rome", args...); strings.Contains(o.stdout, "scheduler's zone") {
			t.Errorf("%q from Rome:\n%s", args, o.stdout)
		}
	}
	if o := in("America/New_York", "send", "triage", "--at", "12:30", "later"); !strings.Contains(o.stdout, "12:30:00 CE") {
		t.Errorf("send --at from New York:\n%s%s", o.stdout, o.stderr)
	}
	r.stop()
	isIn("after the run, asked from New York", "America/New_York", fires("America/New_York"))
}
