package settings

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestWithStatusLine: ours stands in place of theirs, in whatever the client is
// passed, and what else stands there is as it was.
func TestWithStatusLine(t *testing.T) {
	t.Parallel()
	const ours = `{"type":"command","command":"ours"}`
	for name, tt := range map[string]struct{ src, theirs, want string }{
		"nothing":    {"", "", `{"statusLine":` + ours + `}`},
		"theirs":     {`{"env":{"A":"1"},"statusLine":{"type":"command","command":"mine | cut -c1-80","padding":2}}`, "mine | cut -c1-80", `{"env":{"A":"1"},"statusLine":{"type":"command","command":"ours","padding":2}}`},
		"a BOM":      {"\xef\xbb\xbf{\"hooks\":{}}\n", "", `{"hooks":{},"statusLine":` + ours + `}`},
		"of no kind": {`{"statusLine":{"type":"other","command":"x"}}`, "", `{"statusLine":` + ours + `}`},
		"no object":  {`{"statusLine":"x"}`, "", `{"statusLine":` + ours + `}`},
		"null":       {`{"statusLine":null}`, "", `{"statusLine":` + ours + `}`},
		"twice":      {`{"statusLine":{"type":"command","command":"one"},"statusLine":{"type":"command","command":"two"}}`, "two", `{"statusLine":` + ours + `}`},
	} {
		if got := StatusLine([]byte(tt.src)); got != tt.theirs {
			t.Errorf("%s: the status line is %q, want %q", name, got, tt.theirs)
		}
		got, err := WithStatusLine([]byte(tt.src), "ours")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var a, b any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(tt.want), &b) != nil {
			t.Fatalf("%s: %s", name, got)
		}
		if diff := cmp.Diff(b, a); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := WithStatusLine([]byte(`{"a":1,}`), "ours"); err == nil {
		t.Error("a file that the client refuses was rendered")
	}
	if got, want := StatusLineCommand("exec /x/heartbeat-stop hook", "it's mine"), `exec /x/heartbeat-stop hook status-line 'it'\''s mine'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
