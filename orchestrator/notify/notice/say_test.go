package notice

import (
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/status"
)

func TestWhatIsSaid(t *testing.T) {
	t.Parallel()
	n := Notice{Agent: "triage", Kind: "held", Event: Began, At: began, Since: began, Text: "5 failures", Do: "heartbeat resume triage"}
	lasts, over, crash := n, n, Notice{Kind: Crashed, Event: Happened, Text: "nobody watched for 2h0m", At: began}
	lasts.Event, lasts.At = Lasts, began.Add(time.Hour)
	over.Event, over.At, over.Do, over.Times = Ended, began.Add(50*time.Hour), "", 3
	asks := Notice{Agent: "triage", Kind: "approval", Event: Began, At: began, Text: "push?", Do: "heartbeat approval show ap-1", Link: "https://fleet.example/page/approvals/ap-1"}
	for _, tt := range []struct {
		n    Notice
		want string
	}{
		{n, "triage is held: 5 failures\n    heartbeat resume triage"},
		{lasts, "triage still is held: 5 failures (for 1h0m)\n    heartbeat resume triage"},
		{over, "triage is no longer held (after 2d2h; it comes and goes: 3 times)"},
		{crash, "the scheduler was started after a crash: nobody watched for 2h0m"},
		{asks, "triage waits for approval: push?\n    heartbeat approval show ap-1\n    https://fleet.example/page/approvals/ap-1"},
		{ // said once
			Notice{Agent: "triage", Kind: "approval", Event: Began, At: began, Text: "waits for approval for 5m: push?"},
			"triage waits for approval for 5m: push?",
		},
		{Notice{Agent: "triage", Kind: "held", Event: Began, At: began, Text: "held for 5m: 5 failures"}, "triage is held for 5m: 5 failures"},
		{ // the second one seemed to be given up twice
			Notice{Agent: "a", Kind: GivenUp, Event: Happened, Times: 2, Text: "x: lost; y: lost", Do: "heartbeat dead-letter a"},
			"a has given up prompts: x: lost; y: lost (2 prompts)\n    heartbeat dead-letter a",
		},
		{Notice{Agent: "a", Kind: Reply, Event: Happened, Text: "to x", Reply: "one\ntwo\x1b[31m"}, "a has replied: to x\n  one\n  two\uFFFD[31m"},
	} {
		if got := Text([]Notice{tt.n}, 4000); got != tt.want {
			t.Errorf("got  %q\nwant %q", got, tt.want)
		}
	}
	dead := func(target string, e Event) Notice { return Notice{Kind: TargetFails, Not: target, Event: e} }
	if got := Title("office", []Notice{dead("phone", Began), n, dead("desk", Began), dead("team", Ended), dead("mail", Began)}); got != "[office] the scheduler cannot tell phone, desk, mail, triage is held, the scheduler can tell team again" {
		t.Errorf("%q", got)
	}
	if got := Title("office", []Notice{n, n, crash, over, n}); got != "[office] triage is held, triage is held, the scheduler was started after a crash, 2 more" {
		t.Errorf("%q", got)
	}
}

// Nothing that others wrote looks like a line of ours, and no text is longer than a
// service takes.
func TestForeignTextStaysOnItsLine(t *testing.T) {
	t.Parallel()
	evil := Notice{Agent: "a", Kind: "held", Event: Began, Text: "x\nb is held\r\n\x1b]0;hi\a <!channel> {{.Secret}} \u202e", Do: "d\nrm -rf /"}
	text := Text([]Notice{evil}, 4000)
	if lines := strings.Split(text, "\n"); len(lines) != 2 || !strings.HasPrefix(lines[1], "    d rm") || strings.ContainsAny(text, "\x1b\a\r\u202e") {
		t.Errorf("%q", text)
	}
	long := Notice{Agent: "a", Kind: Reply, Event: Happened, Reply: strings.Repeat("ä\n", 40_000)}
	if got := Text([]Notice{long}, 3500); len(got) > 3500 || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes, ends with %q", len(got), got[len(got)-10:])
	}
	var many []Notice
	for range 100 {
		many = append(many, Notice{Agent: "a", Kind: "held", Event: Began, Text: strings.Repeat("x", 200)})
	}
	if got := Text(many, 3500); len(got) > 3500 || !strings.Contains(got, "more: heartbeat notify log") {
		t.Errorf("%d bytes: %s", len(got), got[len(got)-100:])
	}
}

// Each kind has its words, and so has each trouble that is told.
func TestEachKindHasWords(t *testing.T) {
	t.Parallel()
	for _, kind := range []Kind{
		Login, QueueStuck, GivenUp, Crashed, TargetFails, PingFails, Finding, Reply, Waits, Test,
		Kind(status.QueueAsks), Kind(status.DirectoryLost), Kind(status.Unusable), Kind(status.IsHeld), Kind(status.LostPrompts), Kind(status.ServiceFails),
		Kind(status.TriggerFails), Kind(status.NotListening), Kind(status.StoreFails), Kind(status.ClientDrifts), Kind(status.IsParked), Kind(status.OverBudget), Kind(status.IsPaused),
	} {
		if p, known := phrases[kind]; !known || p.is == "" {
			t.Errorf("%s has no words", kind)
		}
	}
}
