package ledger

import (
	"fmt"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
)

// TestARecordCountsThatIsTheVerdicts: of an agent whose entries have to be proven, no other
// one does, whatever time and iteration it says. What is older than all that is known is
// not doubted, unless its prompt is new.
func TestARecordCountsThatIsTheVerdicts(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now().UTC()
	b := open(t, dir)
	if err := b.Begins(true); err != nil {
		t.Fatal(err)
	}
	proven := inbox.Delivery{DeliveryID: "d1", ID: "p", AcknowledgedAt: now.Add(time.Second), Reply: "proven", Verdict: &inbox.Proven{By: "check", Iteration: 2}}
	if err := b.Keep(Course{Delivery: "d1", Verdict: &Verdict{Delivery: "d1", Passed: true}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Records(proven); err != nil {
		t.Fatal(err)
	}
	with := func(change func(d *inbox.Delivery)) inbox.Delivery {
		d := proven
		change(&d)
		return d
	}
	told := inbox.Delivery{DeliveryID: "d7", AcknowledgedAt: now.Add(-2 * time.Hour)}
	if err := b.Forges([]inbox.Delivery{told}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		record    inbox.Delivery
		any, anew bool // it is doubted
	}{
		"the verdict's":                  {proven, false, false},
		"another reply":                  {with(func(d *inbox.Delivery) { d.Reply = "forged" }), true, true},
		"another time":                   {with(func(d *inbox.Delivery) { d.AcknowledgedAt = now.Add(-time.Hour) }), true, true},
		"another iteration":              {with(func(d *inbox.Delivery) { d.Verdict = &inbox.Proven{By: "check", Iteration: 1} }), true, true},
		"its id, and another delivery":   {with(func(d *inbox.Delivery) { d.DeliveryID = "d2" }), true, true},
		"one that has not passed":        {inbox.Delivery{DeliveryID: "d3", ID: "q", AcknowledgedAt: now.Add(time.Hour)}, true, true},
		"from before":                    {inbox.Delivery{DeliveryID: "d4", ID: "q", AcknowledgedAt: now.Add(-time.Hour)}, false, true},
		"from before, and known forged":  {told, true, true},
		"of a prompt with its own check": {inbox.Delivery{DeliveryID: "d5", ID: "own", AcknowledgedAt: now.Add(-time.Hour)}, true, true},
		"nothing has to be passed":       {inbox.Delivery{DeliveryID: "d6", ID: "none", AcknowledgedAt: now.Add(time.Hour)}, false, false},
	} {
		for _, d := range []Demand{{ID: "own", Until: config.NewUntil("true")}, {ID: "none", Nothing: true}} {
			d.Inbox = "/inbox"
			if err := KeepDemand(dir, d); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := Unproven(dir, "a-1", "/inbox", c.record, false); got != c.any || err != nil {
			t.Errorf("%s: doubted: %t, %v", name, got, err)
		}
		if got, err := Unproven(dir, "a-1", "/inbox", c.record, true); got != c.anew || err != nil {
			t.Errorf("%s, of a new prompt: doubted: %t, %v", name, got, err)
		}
	}
}

// TestWhatIsForgottenIsNotDoubted: of many that have passed the last ones are known.
func TestWhatIsForgottenIsNotDoubted(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	b := open(t, dir)
	if err := b.Begins(true); err != nil {
		t.Fatal(err)
	}
	for i := range mostProven {
		b.Proven = append(b.Proven, Proven{Delivery: fmt.Sprint(i), At: now.Add(time.Duration(i) * time.Minute)})
	}
	if err := b.Keep(Course{Delivery: "last", Verdict: &Verdict{Delivery: "last", Passed: true}}); err != nil {
		t.Fatal(err)
	}
	for delivery, want := range map[string]bool{"0": false, "5": false, "never": true} {
		d := inbox.Delivery{DeliveryID: delivery, AcknowledgedAt: now.Add(time.Second)}
		if delivery == "never" {
			d.AcknowledgedAt = now.Add(time.Hour)
		}
		if got, err := Unproven(dir, "a-1", "/inbox", d, false); got != want || err != nil {
			t.Errorf("%s is doubted: %t", delivery, got)
		}
	}
}
