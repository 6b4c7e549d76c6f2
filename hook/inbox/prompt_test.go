package inbox

import (
	"context"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"heartbeat/hook/client/clienttest"
)

// TestPromptOfAnEntryInFlight: proof compares texts, so the record must give
// the prompt that was handed over.
func TestPromptOfAnEntryInFlight(t *testing.T) {
	t.Parallel()
	lines := []string{
		"plain", "  blank ends \t", "\ufeff\"after a mark\"", "\"a\\nb\"", "\"\\ud800\"", "\xff\xfe bytes", "\"say\" it",
		`{"heartbeat":1,"id":"i","source":"send","prompt":"from an envelope\n"}`, `{ "heartbeat" : 1, "prompt" : "spaces" }`,
		`{"heartbeat":2,"prompt":"another version"}`, `{"heartbeat":1}`, `{"x":1,"heartbeat":1,"prompt":"not first"}`, "[1]", "7", "null",
		"\x00\x01 control", "ends with CR\r",
	}
	for _, line := range lines {
		samePromptAsQueue(t, line)
	}
	rapid.Check(t, func(r *rapid.T) {
		line := rapid.StringMatching(`("|\{"heartbeat":1,"prompt":"|)[ -~é"\\]{1,20}("\}?)?`).Draw(r, "line")
		samePromptAsQueue(t, line)
	})
}

func samePromptAsQueue(t *testing.T, line string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	clienttest.Append(t, path, line+"\n")
	opened, err := Open(Place{Inbox: path})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	q, err := opened.Lock(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer q.Unlock()
	e, err := q.Next()
	if err != nil {
		return // no entry: a blank or a fragment
	}
	if _, err := q.Offer(e, Offering{Via: ViaStop}); err != nil {
		t.Fatal(err)
	}
	f, err := q.InFlight()
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Prompt(); got != e.Prompt {
		t.Errorf("%q: %q, the queue hands over %q", line, got, e.Prompt)
	}
}
