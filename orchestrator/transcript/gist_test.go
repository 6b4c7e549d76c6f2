package transcript

import (
	"strings"
	"testing"

	"heartbeat/hook/foreign"
)

// TestTheGistOfACall: what a person wants to know of it, also where the input was cut or is
// none, and of tools that nobody knows.
func TestTheGistOfACall(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		`{"description":"Show what differs","command":"git status"}`:       "git status",
		`{"file_path":"/a/b.go","old_string":"x","new_string":"y"}`:        "/a/b.go",
		`{"content":"x","file_path":"/a"}`:                                 "/a",
		`{"pattern":"TODO","path":"src"}`:                                  "TODO",
		`{"count":3,"city":"Rome"}`:                                        "Rome",
		`{"file_path":"/long","content":"` + strings.Repeat("x", 99) + "…": "/long",
		`{"command":"` + strings.Repeat("x", 9) + "…":                      `{"command":"xxxxxxxxx…`,
		`{}`: "", ``: "", `[1]`: "[1]", `{"n":1}`: `{"n":1}`, `{"command":{"a":1}}`: `{"command":{"a":1}}`, `"text"`: `"text"`,
	} {
		if got := (Line{Kind: Tool, Name: "T", Text: foreign.Text(input)}).Gist(); got.Raw() != want {
			t.Errorf("%s: %q, want %q", input, got.Raw(), want)
		}
	}
	if got := (Line{Kind: Text, Text: `{"command":"x"}`}).Gist(); got != `{"command":"x"}` {
		t.Errorf("a text: %q", got)
	}
}
