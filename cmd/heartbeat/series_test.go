package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/orchestrator/usage"
)

// What events and records of past days say, also of a version before the store, is in the
// series, and stays when both are gone: series and usage show it then.
func TestTheSeriesOutlastsItsSources(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	if out := w.ok("series"); !strings.HasPrefix(out, "nothing is recorded since ") {
		t.Errorf("before anything has happened:\n%s", out)
	}
	w.ok("apply")
	names := slices.DeleteFunc(w.names("state"), func(name string) bool { return name[0] == '.' })
	dir := filepath.Join(w.dir, "state", names[0])
	past := time.Now().AddDate(0, 0, -30).UTC()
	var lines, bills []byte // as versions before the store wrote them
	for i := range 3 {
		at := past.AddDate(0, 0, i)
		for _, e := range []journal.Event{
			{At: at, Agent: "triage", Kind: journal.Fired, Due: at.Add(-3 * time.Second)},
			{At: at, Agent: "triage", Kind: journal.Ended, Acknowledged: 4},
		} {
			line, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(append(lines, line...), '\n')
		}
		rec := usage.Record{At: at, Agent: "triage", Session: "s", Sum: usage.Sum{Turns: 5, Calls: 6, Cost: 0.25}}
		line, err := json.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		bills = append(append(bills, line...), '\n')
	}
	err := errors.Join(os.WriteFile(filepath.Join(dir, "journal.jsonl"), lines, 0o600), os.Mkdir(filepath.Join(dir, "usage"), 0o700),
		os.WriteFile(filepath.Join(dir, "usage", "triage.jsonl"), bills, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	w.done("run", "--once")
	kept, end := storetest.Open(t, dir)
	err = kept.Write(t.Context(), func(c *store.Change) error {
		_, err := c.Do(`DELETE FROM events`)
		if err == nil {
			_, err = c.Do(`DELETE FROM usage`)
		}
		return err
	})
	if end(); err != nil {
		t.Fatal(err)
	}
	var all happenings
	w.into(&all, "series", "triage", "--since", "60d")
	if len(all.Points) != 3 || all.Every != "day" || all.Points[0].Done != 4 || all.Points[1].LateMS != 3000 || all.Points[2].Cost != 0.25 || all.Points[2].Sessions != 1 {
		t.Errorf("%+v", all)
	}
	if g := all.Unwatched; len(g) < 4 || g[1].Length() != 24*time.Hour-10*time.Minute {
		t.Errorf("while no run looked: %+v", g)
	}
	if out := w.ok("series", "--since", "60d"); strings.Count(out, strings.Repeat("█", 20)) != 3 || !strings.Contains(out, past.Local().Format(time.DateOnly)) ||
		!strings.Contains(out, "\nheartbeat was not running for 29d") {
		t.Errorf("series:\n%s", out)
	}
	w.into(&all, "series", "--since", "60d", "--every", "slot")
	if len(all.Points) != 3 || !all.Points[0].At.Equal(past.Truncate(10*time.Minute)) {
		t.Errorf("by slot: %+v", all)
	}
	var spent spending
	w.into(&spent, "usage", "--since", "60d", "--by", "day")
	if len(spent.Rows) != 3 || spent.Total.Turns != 15 || spent.Total.Cost != 0.75 || spent.WholeSince.IsZero() {
		t.Errorf("usage by day: %+v", spent)
	}
	if out := w.ok("usage", "--since", "60d", "--by", "entry"); !strings.Contains(out, "known as sums only") {
		t.Errorf("usage by entry:\n%s", out)
	}
	if out := w.ok("usage", "--since", "60d"); !strings.Contains(out, "by the sums of each ten minutes") || !strings.Contains(out, "$0.75") {
		t.Errorf("usage:\n%s", out)
	}
}
