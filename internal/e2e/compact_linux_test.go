package e2e

import (
	"testing"

	"heartbeat/internal/fakeapi"
)

// TestACompactionIsInTheBill: the client has a full conversation summed up by calls of
// which its transcript has no answer, and they are billed.
func TestACompactionIsInTheBill(t *testing.T) {
	t.Parallel()
	f := newFleet(t, realClient(t), nil)
	f.API.Add(
		fakeapi.Rule{Match: "big", Answer: fakeapi.Answer{Text: "ok", Usage: fakeapi.Usage{Input: 985_000, Output: 500}}},
		fakeapi.Rule{Answer: fakeapi.Answer{Text: "<summary>what was said</summary>", Usage: fakeapi.Usage{Input: 1000, Output: 77, CacheRead: 13}}},
	)
	prompts := []string{"big one", "small two", "big three", "small four"}
	for _, p := range prompts {
		f.send(p)
	}
	f.must("", "run", "--once")
	all, _ := f.checkBill()
	if n := f.requests(); n <= len(prompts) || len(f.outbox()) != len(prompts) || all.Unseen != 0 {
		t.Errorf("%d requests, %d prompts done, %+v", n, len(f.outbox()), all)
	}
}
