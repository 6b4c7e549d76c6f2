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
		`{"type":"assistant","message":{"content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t1","name":"Bash","input":{}},{"type":"tool_use","id":"t2","name":"Read"}]}}`: {begun: []Call{{"t1", "Bash"}, {"t2", "Read"}}},
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
