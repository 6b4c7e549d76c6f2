package e2e

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/internal/fakeapi"
	"heartbeat/internal/testbed"
)

// ill is one kind of what may go wrong between the client and the service, or in the
// client itself, as `heartbeat help failures` has it.
type ill struct {
	name string
	// answer is what the service does with the first times requests; 0: with all.
	answer fakeapi.Answer
	times  int
	// subscription has the client use one instead of a key, asking its mode in which it
	// asks about tools; stopped stops the client (SIGSTOP) in its turn.
	subscription, asking, stopped bool
	fields                        []string
	// says is what status must come to say, and late what it must say, or that the
	// prompt is done, after minutes: only -full waits for that.
	says string
	late string
	done bool
	// calls is how many requests that takes, where they are always as many.
	calls int
}

const isDone = "1 done" // in a later line of status, or in the end

func refuses(code int, kind, message string, header ...string) fakeapi.Answer {
	a := fakeapi.Answer{Status: code, ErrorType: kind, Message: message, Header: http.Header{}}
	for i := 0; i+1 < len(header); i += 2 {
		a.Header.Set(header[i], header[i+1])
	}
	return a
}

// usedUp are the headers of a subscription whose five hours are used up.
func usedUp(resets time.Time) []string {
	const unified = "Anthropic-Ratelimit-Unified-"
	at := strconv.FormatInt(resets.Unix(), 10)
	return []string{
		unified + "Status", "rejected", unified + "Reset", at, unified + "Representative-Claim", "five_hour",
		unified + "5h-Status", "rejected", unified + "5h-Utilization", "1", unified + "5h-Reset", at,
	}
}

func ills() []ill {
	half := func(a fakeapi.Answer) fakeapi.Answer { a.Text = "half a text, and the rest of it"; return a }
	const limit, silence = "rate_limit_error", "no sign of life"
	bounded := []string{"max-restarts: 2", "max-attempts: 2"}
	return []ill{
		{name: "429", answer: refuses(429, limit, "slow down"), says: "parked for another", calls: 3},
		{name: "429, retry-after 5", answer: refuses(429, limit, "slow down", "Retry-After", "5"), says: "parked for another", calls: 3},
		{name: "429, retry-after 3600", answer: refuses(429, limit, "slow down", "Retry-After", "3600"), says: "parked for another", calls: 1},
		{
			name: "429 of a subscription that says when it resets", subscription: true, says: "parked for another 1h", calls: 1,
			answer: refuses(429, limit, "limit", usedUp(time.Now().Add(119*time.Minute))...),
		},
		{name: "429 of a subscription", subscription: true, answer: refuses(429, limit, "slow down"), says: silence, late: "parked for another"},
		{name: "500", answer: refuses(500, "api_error", "made up"), times: 4, says: "backing off", done: true, calls: 5},
		{name: "529", answer: refuses(529, "overloaded_error", "Overloaded"), times: 4, says: "backing off", done: true, calls: 5},
		{name: "529 of a subscription", subscription: true, answer: refuses(529, "overloaded_error", "Overloaded"), says: silence, late: "backing off"},
		{name: "401", answer: refuses(401, "authentication_error", "invalid x-api-key"), says: "held for", calls: 3},
		{name: "401 of a subscription", subscription: true, answer: refuses(401, "authentication_error", "OAuth token has expired"), says: "held for", calls: 2},
		{name: "403", answer: refuses(403, "permission_error", "your organization has been disabled"), says: "held for", calls: 1},
		{name: "400, no credit", answer: refuses(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."), says: "held for", calls: 1},
		{name: "400, too long", answer: refuses(400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum"), says: "1 dead letter", fields: bounded, calls: 2},
		{name: "400", answer: refuses(400, "invalid_request_error", "made up"), says: "1 dead letter", fields: bounded},
		{name: "404, the model", answer: refuses(404, "not_found_error", "model: made-up"), says: "backing off", calls: 2},
		{name: "the connection ends in an answer", answer: half(fakeapi.Answer{Break: fakeapi.BreakCut}), times: 1, done: true, calls: 2},
		{name: "an error ends an answer", answer: half(fakeapi.Answer{Break: fakeapi.BreakError}), times: 1, done: true, calls: 2},
		{name: "each streamed answer ends", answer: half(fakeapi.Answer{Break: fakeapi.BreakCut}), done: true, calls: 4},
		{name: "no headers come", answer: fakeapi.Answer{Hang: fakeapi.HangBeforeHeaders}, times: 1, says: silence, late: isDone, calls: 2},
		{name: "nothing follows the headers", answer: fakeapi.Answer{Hang: fakeapi.HangAfterHeaders}, times: 1, says: silence, late: isDone, calls: 2},
		{name: "an answer stops in its middle", answer: half(fakeapi.Answer{Hang: fakeapi.HangMidText}), times: 1, says: silence, late: isDone, calls: 2},
		{name: "only pings follow", answer: half(fakeapi.Answer{Hang: fakeapi.HangPinging}), times: 1, says: silence, late: isDone, calls: 2},
		{
			name: "the client is stopped", stopped: true, times: 1, fields: []string{"on-orphan: retry"}, done: true,
			says: "unattended", answer: fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.Bash("sleep 3")}},
		},
		{
			name: "the client asks a person", asking: true, times: 1, done: true, calls: 2,
			answer: fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.Bash("touch x && touch y")}},
		},
	}
}

// TestEachFailureIsTold: status says within a minute or so what the matter is, nothing
// is asked for ever, and what the service gives back is done at the first attempt. The
// log has when status said what: the figures of `heartbeat help failures`.
func TestEachFailureIsTold(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	for _, i := range testbed.SampleOf(t, ills(), 9) {
		t.Run(i.name, func(t *testing.T) {
			t.Parallel()
			i.play(t, c)
		})
	}
}

func (i ill) play(t *testing.T, c client) {
	t.Helper()
	f := newFleet(t, c, i.fields)
	f.API.Add(fakeapi.Rule{Times: i.times, Answer: i.answer}, fakeapi.Rule{AfterTool: true, Answer: fakeapi.Answer{Text: "ok"}})
	if i.subscription {
		f.Setenv("ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-made-up-0123456789")
	}
	if i.asking {
		text, err := os.ReadFile(f.file)
		if err != nil {
			t.Fatal(err)
		}
		f.write(f.file, strings.Replace(string(text), "allow: [Bash]", "mode: default", 1))
	}
	f.send("long work")
	f.start()
	f.Until("a request", func() bool { return f.requests() > 0 })
	asked := time.Now()
	if i.stopped {
		f.phase(hook.Turn)
		if err := kill(f.session().Client, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	says := func(text string, within time.Duration) {
		t.Helper()
		f.UntilWithin("status says: "+text, within, func() bool {
			shown := f.must("", "status")
			if text == isDone {
				return len(f.outbox()) == 1
			}
			return strings.Contains(shown, text)
		})
		t.Logf("%q after %.1fs, %d requests", text, time.Since(asked).Seconds(), f.requests())
	}
	if i.says != "" {
		says(i.says, 3*time.Minute)
	}
	if i.late != "" && !*testbed.Full {
		return
	}
	if i.late != "" {
		says(i.late, 15*time.Minute)
	}
	if i.done {
		says(isDone, 2*time.Minute)
	}
	if n := f.requests(); i.calls > 0 && n != i.calls {
		t.Errorf("%d requests, want %d", n, i.calls)
	}
	for _, d := range f.outbox() {
		if d.Attempt > 1 && !i.stopped {
			t.Errorf("it was done at attempt %d", d.Attempt)
		}
	}
}
