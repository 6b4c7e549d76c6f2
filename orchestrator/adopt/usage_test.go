package adopt

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// bill is a record as earlier versions wrote it.
func bill(at time.Time, agent string) string {
	return fmt.Sprintf(`{"at":%q,"agent":%q,"session":"s-%s","account":"login abc","group":"g","delivery":"d","entry":"e","source":"cron","attempt":2,`+
		`"turns":1,"calls":2,"input":3,"output":4,"cache_read":5,"cache_write":6,"cost":0.5,"unseen":7,"unpriced":8,"guessed":9,`+
		`"kept":{"began":%q,"transcript":"/t.jsonl","from":10,"total":1.5,"unknown":true}}`+"\n", at.Format(time.RFC3339Nano), agent, agent, at.Format(time.RFC3339Nano))
}

// TestBillsAreTakenOnce: those of both files of each agent, however often a kill repeats that,
// and those that a shim of the version before writes after it. A line that a killed writer has
// left spoils no other.
func TestBillsAreTakenOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	began := time.Now().Add(-24 * time.Hour)
	var older, newer strings.Builder
	const each = 2 * usageBatch
	for i := range each {
		older.WriteString(bill(began.Add(time.Duration(i)), "a"))
		newer.WriteString(bill(began.Add(time.Duration(each+i)), "a"))
	}
	l.put("usage/a.jsonl.1", older.String())
	l.put("usage/a.jsonl", newer.String()+`{"at":"2026-11-22T12:0`)
	l.put("usage/a.1.jsonl", bill(began, "a.1")+bill(began.AddDate(-2, 0, 0), "a.1"))
	l.put("usage/empty.jsonl", "")
	killed, kill := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, kill) // anywhere
	log := slog.New(slog.NewTextHandler(&l.log, nil))
	if err := All(killed, l.store, log); err != nil && killed.Err() == nil {
		t.Fatal(err)
	}
	is := func(want int) {
		t.Helper()
		l.adopt()
		for query, n := range map[string]int{
			`SELECT COUNT(*) FROM usage`: want, `SELECT COUNT(DISTINCT number) FROM usage WHERE agent = 'a'`: want - 1,
			`SELECT COUNT(*) FROM usage WHERE transcript = '/t.jsonl' AND agent = 'a.1' AND start = 10 AND began = at`: 1,
		} {
			if got := l.count(query); got != n {
				t.Errorf("%s: %d, want %d", query, got, n)
			}
		}
		if l.log.Len() > 0 {
			t.Errorf("it tells\n%s", &l.log)
		}
	}
	is(2*each + 1)
	for _, name := range []string{"usage/a.jsonl", "usage/a.jsonl.1", "usage/a.1.jsonl"} {
		l.is(false, name)
		l.is(true, filepath.Join(Folder, name))
	}
	l.put("usage/a.jsonl", newer.String()+bill(began.Add(2*each), "a"))
	is(2*each + 2)
	l.is(true, filepath.Join(Folder, "usage/a.jsonl.2"))
	if err := l.store.Read(t.Context(), func(v *store.View) error {
		return usage.Each(v, "a.1", time.Time{}, func(r usage.Record) {
			want := usage.Record{
				At: r.At, Agent: "a.1", Session: "s-a.1", Number: began.UnixNano(), Account: "login abc", Group: "g",
				Of: usage.Of{Delivery: "d", Entry: "e", Source: "cron", Attempt: 2}, Sum: r.Sum, Kept: usage.Kept{Began: r.At, Transcript: "/t.jsonl", From: 10, Total: 1.5, Unknown: true}, Key: "a.1",
			}
			if r != want || r.Turns != 1 || r.Calls != 2 || r.All() != 18 || r.Cost != 0.5 || r.Unseen != 7 || r.Unpriced != 8 || r.Guessed != 9 {
				t.Errorf("%+v", r)
			}
		})
	}); err != nil {
		t.Error(err)
	}
}

// TestAFileThatHasNoBillsIsTold, and keeps no run from beginning.
func TestAFileThatHasNoBillsIsTold(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.put("usage/a.jsonl", "no record\n")
	if err := os.Mkdir(filepath.Join(l.dir, "usage", "b.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.adopt()
	if n := strings.Count(l.log.String(), "is damaged;"); n != 2 || !strings.Contains(l.log.String(), "lost=") {
		t.Errorf("it tells of %d\n%s", n, &l.log)
	}
	l.is(true, filepath.Join(Folder, "usage/a.jsonl"))
	l.is(true, filepath.Join(Folder, "usage/b.jsonl"))
}
