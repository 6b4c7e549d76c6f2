package usage

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRows: the same records by each of what they can be added up.
func TestRows(t *testing.T) {
	t.Parallel()
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	spent := func(hour int, agent, session, account, delivery, source string, cost float64) Record {
		return Record{
			At: time.Date(2026, 11, 22, hour, 30, 0, 0, time.UTC), Agent: agent, Session: session, Account: account,
			Of: Of{Delivery: delivery, Source: source}, Sum: Sum{Turns: 1, Cost: cost},
		}
	}
	records := []Record{
		spent(10, "a", "s1", "x", "1", "a/nightly@2026", 1),
		spent(11, "a", "s1", "x", "1", "a/nightly@2026", 2),
		spent(22, "a", "s2", "x", "2", "a/nightly@2027", 4),
		spent(23, "b", "s3", "y", "3", "send", 8),
		spent(23, "b", "s3", "y", "", "", 0.5),
		{At: noon, Agent: "c", Session: "s4"}, // nothing was spent
	}
	for by, want := range map[By]string{
		ByAgent:   "b 8.5, a 7",
		ByDay:     "2026-11-22 7, 2026-11-23 8.5",
		ByTrigger: "send 8, a/nightly 7, - 0.5",
		ByEntry:   "a:1 3, a:2 4, b:- 0.5, b:3 8",
		ByAccount: "y 8.5, x 7",
		BySession: "a:s1 3, a:s2 4, b:s3 8.5",
	} {
		table := &Table{By: by, Zone: rome}
		for _, r := range records {
			table.Add(r)
		}
		rows, all := table.Rows()
		var got []string
		for _, r := range rows {
			got = append(got, fmt.Sprint(strings.TrimPrefix(r.Agent+":"+r.Key, ":"), " ", r.Cost))
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" || all.Cost != 15.5 || all.Turns != 5 {
			t.Errorf("by %s: all %+v (-want +got):\n%s", by, all, diff)
		}
	}
}
