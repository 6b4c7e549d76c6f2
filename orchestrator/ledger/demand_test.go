package ledger

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/config"
)

func TestDemands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := Demand{ID: "send-1", Inbox: "/a/inbox.jsonl", Until: config.NewUntil("make", "test"), At: time.Now().UTC()}
	if err := KeepDemand(dir, d); err != nil {
		t.Fatal(err)
	}
	got, err := DemandOf(dir, d.Inbox, d.ID)
	if err != nil || cmp.Diff(&d, got) != "" {
		t.Errorf("%v, %s", err, cmp.Diff(&d, got))
	}
	for name, other := range map[string][2]string{"another entry": {d.Inbox, "send-2"}, "another inbox": {"/b/inbox.jsonl", d.ID}, "no id": {d.Inbox, ""}} {
		if got, err := DemandOf(dir, other[0], other[1]); got != nil || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if all, err := Demands(dir, d.Inbox); len(all) != 1 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	for range 2 {
		if err := DropDemand(dir, d.Inbox, d.ID); err != nil {
			t.Error(err)
		}
	}
	if all, err := Demands(dir, d.Inbox); len(all) != 0 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	if KeepDemand(dir, Demand{ID: "x"}) == nil || KeepDemand(dir, Demand{Until: d.Until}) == nil {
		t.Error("a demand of nothing is kept")
	}
}

// TestADamagedDemandIsNoDemandLess: it is an error, and not an entry that has
// nothing to pass.
func TestADamagedDemandIsNoDemandLess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := KeepDemand(dir, Demand{ID: "x", Inbox: "/i", Until: config.NewUntil("true")}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(demandPath(dir, "/i", "x"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := DemandOf(dir, "/i", "x"); err == nil {
		t.Errorf("it is %+v", d)
	}
}

func TestDefinition(t *testing.T) {
	t.Parallel()
	a, b := config.NewUntil("make"), config.NewUntil("make")
	if Definition(a) != Definition(b) {
		t.Error("the same is another one")
	}
	if b.Env = map[string]string{"CI": "1"}; Definition(a) == Definition(b) {
		t.Error("another one is the same")
	}
}
