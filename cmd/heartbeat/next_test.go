package main

import (
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/status"
)

// TestNextIsTablesThatSayWhatIsUrgent: prompts that wait for their time were lines of their
// own form, as wide as they came out, and nothing said which of them go before the others.
func TestNextIsTablesThatSayWhatIsUrgent(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	unsent := &status.Unable{Since: now, Why: "it cannot be queued: the queue is full: 1 of 1; it is tried again"}
	next := comingFires{
		Fires: []firing.Fire{
			{Agent: "triage", Trigger: "morning", At: now.Add(time.Hour), Zone: "UTC"},
			{Agent: "triage", Trigger: "noon", At: now.Add(4 * time.Hour), Zone: "UTC", Urgent: true},
		},
		Sends: []waiting{
			{Agent: "triage", ID: "one", At: now, Prompt: "look at it", Urgent: true, Unsent: unsent},
			{Agent: "triage", ID: "two", At: now, Prompt: "and again", Unsent: unsent},
			{Agent: "builder", ID: "three", At: now.Add(2 * time.Hour), Prompt: "build it"},
		},
		Others: []timeless{{Agent: "builder", Trigger: "mails", When: "when in/*.md change", Urgent: true}},
		now:    now,
	}
	p := page{columns: 80}
	next.text(&p)
	if got, want := p.buf.String(), `AGENT   TRIGGER  LOCAL TIME                   DUE
triage  morning  Mon 2026-03-02 09:00:00 UTC  in 1h0m
triage  noon     Mon 2026-03-02 12:00:00 UTC  in 4h0m, urgent

AGENT    ID     LOCAL TIME                   DUE          PROMPT
triage   one    Mon 2026-03-02 08:00:00 UTC  now, urgent  look at it
triage   two    Mon 2026-03-02 08:00:00 UTC  now          and again
builder  three  Mon 2026-03-02 10:00:00 UTC  in 2h0m      build it
what is due for triage is not sent yet: it cannot be queued: the queue is full:
1 of 1; it is tried again

AGENT    TRIGGER  WHEN
builder  mails    when in/*.md change, urgent
`; got != want {
		t.Errorf("next says\n%s", got)
	}
	for _, columns := range []int{60, 40, 20} {
		p := page{columns: columns}
		next.text(&p)
		for line := range strings.Lines(p.buf.String()) {
			if line = strings.TrimSuffix(line, "\n"); width(line) > columns && strings.Contains(line, " ") {
				t.Errorf("%d columns on %d: %s", width(line), columns, line)
			}
		}
	}
	p = page{}
	if (comingFires{Others: next.Others}).text(&p); strings.HasPrefix(p.buf.String(), "\n") {
		t.Errorf("an empty line comes first:\n%s", p.buf.String())
	}
}
