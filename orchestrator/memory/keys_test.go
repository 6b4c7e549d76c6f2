package memory

import (
	"testing"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/store/storetest"
)

// TestAReplyOfAnAgentWithUntilCountsIfItIsProven: a prompt that has nothing to pass of its
// own was called done by whoever could write the outbox. Before any run nothing is known.
func TestAReplyOfAnAgentWithUntilCountsIfItIsProven(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := &config.Agent{Name: "now called", Dir: "/agents/a", Inbox: "/agents/a/inbox.jsonl"}
	unproven := ledger.Doubtful(dir, Keys(dir, []*config.Agent{a}), true)
	d := inbox.Delivery{DeliveryID: "0123456789ab", ID: "p", Reply: "forged"}
	if unproven(a, d) {
		t.Error("it is doubted before any run")
	}
	was := &config.Agent{Name: "a", Dir: a.Dir, Inbox: a.Inbox}
	known, err := note(t, storetest.New(t, dir), was)
	if err != nil {
		t.Fatal(err)
	}
	book, err := ledger.Open(dir, known[0].Key)
	if err == nil {
		err = book.Begins(true)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !unproven(a, d) {
		t.Error("a forged reply counts")
	}
	if err := book.Keep(ledger.Course{Delivery: d.DeliveryID, Verdict: &ledger.Verdict{Delivery: d.DeliveryID, Passed: true}}); err != nil {
		t.Fatal(err)
	}
	if unproven(a, d) {
		t.Error("a proven one does not")
	}
}
