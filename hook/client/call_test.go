package client

import (
	"slices"
	"testing"
)

// TestWhichToolsALineCalls: those of the main conversation, and no text about one.
func TestWhichToolsALineCalls(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		begun []Call
		ended []string
	}{
		`{"type":"assistant","message":{"content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t1","name":"Bash","input":{}},{"type":"tool_use","id":"t2","name":"Read"}]}}`: {begun: []Call{{"t1", "Bash", "Bash"}, {"t2", "Read", "Read"}}},
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"},{"type":"text","text":"y"}]}}`:                                                {ended: []string{"t1"}},
		`{"type":"assistant","isSidechain":true,"message":{"content":[{"type":"tool_use","id":"t1","name":"Bash"}]}}`:                                                                {},
		`{"type":"user","message":{"content":"a \"tool_use\" in words"}}`:                                                                                                            {},
		`{"message":{"content":[{"type":"tool_use","name":"Bash"}]}}`:                                                                                                                {},
		`{"tool_`: {},
		``:        {},
	} {
		begun, ended := calls([]byte(line))
		if !slices.Equal(begun, want.begun) || !slices.Equal(ended, want.ended) {
			t.Errorf("%s: %v, %v", line, begun, ended)
		}
	}
}

// TestWhichCallsWereRefused: those that no rule allows, and not those that one forbids.
func TestWhichCallsWereRefused(t *testing.T) {
	t.Parallel()
	result := func(isError, content string) string {
		return `{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","is_error":` + isError + `,"content":` + content + `}]}}`
	}
	const dontAsk = `Permission to use Bash has been denied because Claude Code is running in don't ask mode. IMPORTANT: You *may*`
	for line, want := range map[string][]string{
		result("true", `"`+dontAsk+`"`):                                                         {"t1"},
		result("true", `[{"type":"text","text":"`+dontAsk+`"}]`):                                {"t1"},
		result("true", `"heartbeat refused Bash(rm x): nobody is there"`):                       {"t1"},
		result("true", `"Permission to use Bash has been denied."`):                             nil,
		result("false", `"`+dontAsk+`"`):                                                        nil,
		result("true", `"exit status 1: `+dontAsk+`"`):                                          nil,
		`{"type":"user","message":{"role":"user","content":"\"tool_result\" ` + dontAsk + `"}}`: nil,
	} {
		if got := denied([]byte(line)); !slices.Equal(got, want) {
			t.Errorf("%s: %q", line, got)
		}
	}
	begun, _ := calls([]byte(`{"message":{"content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":" git push -f"}}]}}`))
	if len(begun) != 1 || begun[0].Rule != "Bash(git *)" {
		t.Errorf("%+v", begun)
	}
}
