package simulate

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/fakeapi"
)

// asks is a lab whose client asks a fake API, as a subscription or with a key.
func asks(t *testing.T, credential string, rules ...fakeapi.Rule) (*lab, *fakeapi.Server) {
	t.Helper()
	api, err := fakeapi.Start(rules...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { api.Close() })
	l := newLab(t)
	l.env = append(l.env, "ANTHROPIC_BASE_URL="+api.URL(), credential)
	return l, api
}

// TestTheServiceAnswers: with --api a tool's result goes back to it, what it says an
// answer has cost stands in the transcript under the service's own id, and a session
// that is resumed sends the turns before.
func TestTheServiceAnswers(t *testing.T) {
	t.Parallel()
	const id = "11111111-1111-4111-8111-111111111111"
	l, api := asks(t, "ANTHROPIC_API_KEY=made-up", fakeapi.Rule{
		Match: "use a tool", Answer: fakeapi.Answer{Tools: []fakeapi.ToolUse{fakeapi.Bash("echo from the tool")}, Usage: fakeapi.Usage{Input: 7, Output: 3, CacheRead: 2, CacheWrite: 1}},
		Then: []fakeapi.Answer{{Text: "the tool has run"}},
	})
	out, err := l.command([]string{"--api", "-p", "--allowedTools=Bash", "--session-id", id, "use a tool"}).Output()
	if err != nil || strings.TrimSpace(string(out)) != "the tool has run" {
		t.Fatalf("%q, %v", out, err)
	}
	if rs := api.Requests(); len(rs) != 2 || rs[1].Copies("from the tool") != 1 || rs[1].Session != id {
		t.Errorf("the tool's result is not in the second of %d requests", len(rs))
	}
	transcripts, _ := filepath.Glob(filepath.Join(l.home, ".claude", "projects", "*", id+".jsonl"))
	data, _ := os.ReadFile(transcripts[0])
	if want := `"usage":{"input_tokens":7,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":3}`; !strings.Contains(string(data), want) || !strings.Contains(string(data), `"msg_000001"`) {
		t.Errorf("the transcript does not have %s:\n%s", want, data)
	}
	if out, err = l.command([]string{"--api", "-p", "--resume", id, "and now?"}).Output(); err != nil {
		t.Fatalf("%q, %v", out, err)
	}
	last := api.Requests()[2]
	for _, text := range []string{"use a tool", "from the tool", "the tool has run", "and now?"} {
		if last.Copies(text) != 1 {
			t.Errorf("the resumed conversation has %q %d times", text, last.Copies(text))
		}
	}
}

// TestTheServiceRefuses: a subscription's limit is not tried again and is told in the
// client's words; with a key the client repeats a request as often as it is told to.
func TestTheServiceRefuses(t *testing.T) {
	t.Parallel()
	resets := time.Now().Truncate(time.Hour).Add(90 * time.Minute) // a full hour is told without minutes
	for name, tt := range map[string]struct {
		credential string
		calls      int
		says       string
	}{
		"a subscription": {"CLAUDE_CODE_OAUTH_TOKEN=made-up", 1, "You've hit your weekly limit · resets " + strings.ToLower(resets.UTC().Format("3:04PM")) + " (UTC)"},
		"a key":          {"ANTHROPIC_API_KEY=made-up", 3, "Request rejected (429)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, api := asks(t, tt.credential)
			l.env = append(l.env, "CLAUDE_CODE_MAX_RETRIES=2", "TZ=UTC")
			api.Limit("made-up", fakeapi.Limit{Weekly: true, Falls: time.Now(), Resets: resets})
			if out, err := l.command([]string{"--api", "-p", "hello"}).Output(); err == nil {
				t.Errorf("it was answered: %q", out)
			}
			events, _ := os.ReadFile(filepath.Join(l.dir, "hooks.log"))
			if n := len(api.Requests()); n != tt.calls || !strings.Contains(string(events), tt.says) {
				t.Errorf("%d calls, want %d that end with %q:\n%s", n, tt.calls, tt.says, events)
			}
		})
	}
	l, api := asks(t, "ANTHROPIC_API_KEY=made-up", fakeapi.Rule{Answer: fakeapi.Answer{Status: 401, ErrorType: "authentication_error", Header: http.Header{"X-Should-Retry": {"false"}}}})
	if out, err := l.command([]string{"--api", "-p", "hello"}).Output(); err == nil || len(api.Requests()) != 1 {
		t.Errorf("without a retry: %d calls, %q", len(api.Requests()), out)
	}
}
