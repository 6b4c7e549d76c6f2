package fakeapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func start(t *testing.T, rules ...Rule) *Server {
	t.Helper()
	s, err := Start(rules...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// post sends a model call and returns its status and body.
func post(t *testing.T, s *Server, session, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/messages?beta=true", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Claude-Code-Session-Id", session)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// events returns the names of the events in a stream and its joined deltas.
func events(t *testing.T, body string) (names []string, text, input string) {
	t.Helper()
	sc := bufio.NewScanner(strings.NewReader(body))
	for sc.Scan() {
		if name, ok := strings.CutPrefix(sc.Text(), "event: "); ok {
			names = append(names, name)
		}
		data, ok := strings.CutPrefix(sc.Text(), "data: ")
		if !ok {
			continue
		}
		var d struct {
			Type  string `json:"type"`
			Delta struct {
				Text        string `json:"text"`
				PartialJSON string `json:"partial_json"`
			} `json:"delta"`
		}
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			t.Fatalf("the stream has a line that is not JSON: %q", data)
		}
		text += d.Delta.Text
		input += d.Delta.PartialJSON
	}
	return names, text, input
}

const hello = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hello"}]}`

func TestStreamsText(t *testing.T) {
	t.Parallel()
	s := start(t, Rule{Match: "hello", Answer: Answer{Text: "grüß dich"}})
	status, body := post(t, s, "a", hello)
	names, text, _ := events(t, body)
	want := []string{
		"message_start", "content_block_start", "content_block_delta",
		"content_block_delta", "content_block_stop", "message_delta", "message_stop",
	}
	if status != 200 || text != "grüß dich" {
		t.Errorf("status %d, text %q", status, text)
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestToolThenResult(t *testing.T) {
	t.Parallel()
	s := start(t,
		Rule{Match: "hello", Answer: Answer{Tools: []ToolUse{BackgroundBash("sleep 1 && true")}}},
		Rule{AfterTool: true, Match: "42", Answer: Answer{Text: "it was 42"}},
	)
	_, body := post(t, s, "a", hello)
	_, _, input := events(t, body)
	if want := `{"command":"sleep 1 && true","description":"run a command","run_in_background":true}`; input != want {
		t.Errorf("tool input %s, want %s", input, want)
	}
	_, body = post(t, s, "a", `{"model":"m","messages":[{"role":"user","content":"hello"},
		{"role":"assistant","content":[{"type":"tool_use","name":"Bash","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","content":[{"type":"text","text":"the answer is 42"}]}]}]}`)
	if !strings.Contains(body, `"text":"it was 42"`) || !strings.Contains(body, `"stop_reason":"end_turn"`) {
		t.Errorf("answer to the tool's result: %s", body)
	}
}

// TestATaskInAFileIsReadFirst, and the rules answer what it says; where it may not be read,
// the model says so.
func TestATaskInAFileIsReadFirst(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), `a "task".txt`)
	if err := os.WriteFile(file, []byte("the task"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, Rule{Match: "the task", Answer: Answer{Tools: []ToolUse{Bash("one")}}, Then: []Answer{{Text: "did it"}}})
	says := func(block string) string {
		_, body := post(t, s, "a", `{"model":"m","stream":true,"messages":[{"role":"user","content":[`+block+`]}]}`)
		_, text, input := events(t, body)
		return text + input
	}
	asked, err := json.Marshal(fmt.Sprintf("It is in the file %q, which has 8 bytes.", file))
	if err != nil {
		t.Fatal(err)
	}
	reads := compact(Read(file).Input)
	got := []string{
		says(`{"type":"text","text":` + string(asked) + `}`), says(`{"type":"tool_result","tool_use_id":"toolu_000001_0","content":"the"}`),
		says(`{"type":"tool_result","tool_use_id":"toolu_000002_0","content":"ran","is_error":true}`),
		says(`{"type":"text","text":` + string(asked) + `}`), says(`{"type":"tool_result","tool_use_id":"toolu_000004_0","content":"no","is_error":true}`),
	}
	if d := cmp.Diff([]string{reads, compact(Bash("one").Input), "did it", reads, CannotRead}, got); d != "" {
		t.Errorf("answers (-want +got):\n%s", d)
	}
}

func TestThenAnswersItsOwnToolsOnly(t *testing.T) {
	t.Parallel()
	s := start(t, Rule{
		Match:  "hello",
		Answer: Answer{Tools: []ToolUse{Bash("one")}},
		Then:   []Answer{{Tools: []ToolUse{Bash("two")}}, {Text: "both ran"}},
	})
	result := func(id string) string {
		_, body := post(t, s, "a", `{"model":"m","stream":true,"messages":[
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","content":"fine"}]}]}`)
		_, text, input := events(t, body)
		return text + input
	}
	post(t, s, "a", hello)
	got := []string{result("toolu_000001_0"), result("toolu_000002_0"), result("toolu_of_another"), result("toolu_000002_0")}
	want := []string{`{"command":"two","description":"run a command"}`, "both ran", "reply 4", "both ran"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("answers (-want +got):\n%s", d)
	}
}

func TestErrorOnceThenDefault(t *testing.T) {
	t.Parallel()
	s := start(t, Rule{Times: 1, Answer: Answer{
		Status: 429, ErrorType: "rate_limit_error", Message: "slow down",
		Header: http.Header{"X-Should-Retry": {"false"}},
	}})
	status, body := post(t, s, "a", hello)
	if want := `{"error":{"message":"slow down","type":"rate_limit_error"},"type":"error"}`; status != 429 || strings.TrimSpace(body) != want {
		t.Errorf("status %d, body %s", status, body)
	}
	_, body = post(t, s, "a", hello)
	if _, text, _ := events(t, body); text != "reply 2" {
		t.Errorf("second answer: %s", text)
	}
}

func TestNewTextsArePerSessionAndCounted(t *testing.T) {
	t.Parallel()
	s := start(t)
	post(t, s, "a", hello)
	post(t, s, "b", hello)
	// The same prompt again, the first one now as a block; a reminder and a
	// system message beside it.
	post(t, s, "a", `{"model":"m","system":[{"type":"text","text":"you say hello"}],"messages":[
		{"role":"user","content":[{"type":"text","text":"hello"}]},
		{"role":"assistant","content":"reply 1"},
		{"role":"user","content":[{"type":"text","text":"<system-reminder>\nx\n</system-reminder>"},{"type":"text","text":"hello"}]},
		{"role":"system","content":"hello from the hook"}]}`)
	var got [][]string
	for _, r := range s.Requests() {
		got = append(got, r.Prompts())
	}
	if d := cmp.Diff([][]string{{"hello"}, {"hello"}, {"hello"}}, got); d != "" {
		t.Errorf("prompts (-want +got):\n%s", d)
	}
	if n := s.Requests()[2].Copies("hello"); n != 4 {
		t.Errorf("hello stands in the request %d times, want 4", n)
	}
}

func TestHangEndsWithTheServer(t *testing.T) {
	t.Parallel()
	for _, hang := range []Hang{HangBeforeHeaders, HangAfterHeaders, HangMidText, HangPinging} {
		t.Run(string(hang), func(t *testing.T) {
			t.Parallel()
			s := start(t, Rule{Answer: Answer{Text: "hello", Hang: hang}})
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/v1/messages", strings.NewReader(hello))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the answer ended with %v", err)
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests recorded, want 1", n)
			}
		})
	}
}

func TestOtherPathsAnswer(t *testing.T) {
	t.Parallel()
	s := start(t)
	resp, err := http.Head(s.URL() + "/api/hello")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 200 || len(s.Others()) != 1 || s.Others()[0].Path != "/api/hello" {
		t.Errorf("status %d, others %v", resp.StatusCode, s.Others())
	}
}

// TestALimitIsTheAccounts: from its fall to its reset it refuses the requests of one
// credential and of no other; before it tells how much is used, and behind it that a new
// window has begun.
func TestALimitIsTheAccounts(t *testing.T) {
	t.Parallel()
	falls := time.Date(2026, 11, 22, 20, 0, 0, 0, time.UTC)
	l := Limit{Falls: falls, Resets: falls.Add(time.Hour), Used: 0.5}
	const utilization, reset = "Anthropic-Ratelimit-Unified-5h-Utilization", "Anthropic-Ratelimit-Unified-5h-Reset"
	for name, tt := range map[string]struct {
		at      time.Time
		refused bool
		used    string
		resets  string
	}{
		"before": {falls.Add(-time.Second), false, "0.5", "1795381200"},
		"fallen": {falls, true, "1", "1795381200"},
		"reset":  {falls.Add(time.Hour), false, "0.01", "1795399200"},
	} {
		h, refused := l.headers(tt.at)
		if refused != tt.refused || h.Get(utilization) != tt.used || h.Get(reset) != tt.resets {
			t.Errorf("%s: refused %t, %v", name, refused, h)
		}
	}
	s := start(t)
	s.Limit("somebody", Limit{Falls: time.Now(), Resets: time.Now().Add(time.Hour)})
	if status, _ := post(t, s, "one", `{"messages":[{"role":"user","content":"hi"}]}`); status != http.StatusOK || s.Requests()[0].Refused {
		t.Errorf("the request of another account: %d", status)
	}
}

// TestAnswersBreak in the middle of their text, and are not counted as sent.
func TestAnswersBreak(t *testing.T) {
	t.Parallel()
	for how, want := range map[Break]struct {
		text string
		cut  bool
	}{BreakCut: {"", true}, BreakError: {"overloaded_error", false}} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			s := start(t, Rule{Answer: Answer{Text: "hello", Break: how}})
			resp, err := http.Post(s.URL()+"/v1/messages", "application/json", strings.NewReader(strings.Replace(hello, "{", `{"stream":true,`, 1)))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			if (err != nil) != want.cut || !strings.Contains(string(got), `"text":"he"`) || !strings.Contains(string(got), want.text) || strings.Contains(string(got), "message_stop") {
				t.Errorf("%v: %s", err, got)
			}
			if n, _ := s.Spent(); n != 0 {
				t.Errorf("%d answers were sent to their end", n)
			}
		})
	}
}

// TestAHooksWordsAreAPrompt, framed or not: since 2.1.332 the client frames them as it
// does its reminders.
func TestAHooksWordsAreAPrompt(t *testing.T) {
	t.Parallel()
	const intro = framed + "that the user set up. Follow what it asks."
	for text, want := range map[string]string{
		"Stop hook feedback:\n[x]: go\n":                                           "Stop hook feedback:\n[x]: go\n",
		intro + "\nStop hook feedback:\n[x]: go\n" + unframe:                       "Stop hook feedback:\n[x]: go\n",
		intro + "\nStop hook feedback:\n[x]: \nStop hook feedback:\ny" + unframe:   "Stop hook feedback:\n[x]: \nStop hook feedback:\ny",
		"<system-reminder>\nnothing of a hook's\n</system-reminder>":               "",
		"<system-reminder>\nx\nStop hook feedback:\n[x]: go\n</system-reminder>\n": "",
	} {
		for _, content := range []any{text, []any{map[string]string{"type": "text", "text": text}}} {
			body, err := json.Marshal(map[string]any{"messages": []any{map[string]any{"role": "user", "content": content}}})
			if err != nil {
				t.Fatal(err)
			}
			r, err := parse(body, http.Header{})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(r.Prompts(), "|"); got != want {
				t.Errorf("%q is the prompt %q, want %q", text, got, want)
			}
		}
	}
}
