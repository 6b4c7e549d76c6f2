package client

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestSpending reads lines as 2.1.329 has written them, and what no client writes.
func TestSpending(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 15, 39, 55, 584e6, time.UTC)
	const stamp = `"timestamp":"2026-11-22T15:39:55.584Z"`
	answer := func(usage string) string {
		return `{"isSidechain":true,"message":{"content":[{"text":"done","type":"text"}],"id":"msg_1","model":"claude-opus-5-5","role":"assistant","usage":` + usage + `},"type":"assistant",` + stamp + `}`
	}
	for name, tt := range map[string]struct {
		line string
		want Spending
	}{
		"an answer":     {answer(`{"input_tokens":1000,"cache_creation_input_tokens":2000,"cache_read_input_tokens":5000,"output_tokens":77,"service_tier":"standard","iterations":[]}`), Spending{At: at, Message: "msg_1", Tokens: Tokens{1000, 77, 5000, 2000}}},
		"beyond reason": {answer(`{"input_tokens":1e300,"output_tokens":-1,"cache_read_input_tokens":20000001,"cache_creation_input_tokens":1}`), Spending{At: at, Message: "msg_1", Tokens: Tokens{CacheWrite: 1}}},
		"a call of a tool": {
			`{"type":"assistant","message":{"id":"msg_1","model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}],"usage":{"input_tokens":3}},` + stamp + `}`,
			Spending{At: at, Message: "msg_1", Tokens: Tokens{Input: 3}, Calls: true},
		},
		"words about a call": {
			`{"type":"assistant","message":{"id":"msg_1","model":"m","content":[{"type":"text","text":"\"type\":\"tool_use\""}],"usage":{"input_tokens":3}},` + stamp + `}`,
			Spending{At: at, Message: "msg_1", Tokens: Tokens{Input: 3}},
		},
		"of the client":    {`{"type":"assistant","message":{"id":"x","model":"<synthetic>","content":[{"type":"text","text":"API Error"}],"usage":{"input_tokens":0}},"isApiErrorMessage":true,` + stamp + `}`, Spending{At: at, Fails: true}},
		"a prompt":         {`{"type":"user","message":{"role":"user","content":"begin"},` + stamp + `}`, Spending{At: at, Asks: true}},
		"a hook's words":   {`{"type":"user","message":{"role":"user","content":"Stop hook feedback:\n[x]: y"},"isMeta":true,` + stamp + `}`, Spending{At: at, Asks: true}},
		"a tool's result":  {`{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"\"usage\":"}]},` + stamp + `}`, Spending{AsksAgain: true}},
		"a tool cut off":   {`{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":"[Request interrupted by user for tool use]"}]},` + stamp + `}`, Spending{Cut: true}},
		"a compaction":     {`{"type":"user","message":{"role":"user","content":"This session is being continued"},"isCompactSummary":true,` + stamp + `}`, Spending{At: at, Compacts: true}},
		"interrupted":      {`{"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"}]},` + stamp + `}`, Spending{At: at}},
		"what it has cost": {`{"type":"cost-state","sessionId":"s","totalCostUSD":0.02672,"modelUsage":{}}`, Spending{Cost: 0.02672}},
		"what it has taken": {
			`{"type":"cost-state","totalCostUSD":3.9,"modelUsage":{"claude-opus-5-5":{"inputTokens":990800,"outputTokens":72,"cacheReadInputTokens":3,"cacheCreationInputTokens":4},"claude-haiku-5-5":{"inputTokens":100,"outputTokens":-5}},"hasUnknownModelCost":true}`,
			Spending{Cost: 3.9, Whole: Tokens{990900, 72, 3, 4}, Guessed: true},
		},
		"a cost of nobody": {`{"type":"cost-state","totalCostUSD":-5}`, Spending{}},
		"something else":   {`{"type":"system","subtype":"turn_duration","durationMs":8849}`, Spending{}},
		"half a line":      {`{"type":"assistant","message":{"id":"m","usage":{"input_`, Spending{}},
	} {
		got, tells := Claude.Transcript.Spending([]byte(tt.line))
		if !tells {
			got.At = time.Time{}
		}
		if tt.want == (Spending{At: at}) {
			tt.want = Spending{}
		}
		if tells != (tt.want != Spending{}) {
			t.Errorf("%s: tells %v", name, tells)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got, want := Claude.Transcript.Subagents("/p/S.jsonl"), "/p/S/subagents"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func FuzzSpending(f *testing.F) {
	f.Add([]byte(`{"type":"assistant","message":{"id":"m","usage":{"input_tokens":5,"output_tokens":1}}}`))
	f.Add([]byte(`{"type":"cost-state","totalCostUSD":0.02672}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		s, _ := Claude.Transcript.Spending(line)
		if u := s.Tokens; s.Cost < 0 || s.Cost > maxCost || min(u.Input, u.Output, u.CacheRead, u.CacheWrite) < 0 || u.All() > 4*maxTokens {
			t.Errorf("beyond reason: %+v", s)
		}
	})
}
