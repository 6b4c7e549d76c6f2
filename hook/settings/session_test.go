package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestForSession: ours stands in place of theirs, in whatever the client is
// passed, and what else stands there is as it was.
func TestForSession(t *testing.T) {
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
		got, err := ForSession([]byte(tt.src), Session{StatusLine: "ours"})
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
	for _, src := range []string{`{"a":1,}`, `{"permissions":[]}`, `{"permissions":{"deny":"Bash"}}`, `{"env":[]}`} {
		if _, err := ForSession([]byte(src), Session{StatusLine: "ours"}); err == nil {
			t.Errorf("a file that the client refuses was rendered: %s", src)
		}
	}
	if got, want := StatusLineCommand("/x/heartbeat-stop", "it's mine"), `exec /x/heartbeat-stop hook status-line 'it'\''s mine'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestForSessionShutsMore: its rules and variables count beside the file's, and before a
// variable of the same name.
func TestForSessionShutsMore(t *testing.T) {
	t.Parallel()
	more := Session{StatusLine: "ours", Deny: []string{"A", "B"}, Env: []string{"V=1"}}
	for src, want := range map[string]string{
		"": `{"permissions":{"deny":["A","B"]},"env":{"V":"1"}}`,
		`{"permissions":{"allow":["A"],"deny":["C(<x>)"]},"env":{"V":"0","W":2e400}}`: `{"permissions":{"allow":["A"],"deny":["C(<x>)","A","B"]},"env":{"V":"1","W":2e400}}`,
	} {
		got, err := ForSession([]byte(src), more)
		if err != nil {
			t.Fatal(err)
		}
		var all map[string]json.RawMessage
		if json.Unmarshal(got, &all) != nil || all["statusLine"] == nil {
			t.Fatalf("%s", got)
		}
		delete(all, "statusLine")
		if diff := cmp.Diff(compacted(t, []byte(want)), compacted(t, encoded(all))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", src, diff)
		}
	}
}

// compacted returns JSON with its members in order and without blanks.
func compacted(t *testing.T, src []byte) string {
	t.Helper()
	var all map[string]json.RawMessage
	var b bytes.Buffer
	if err := errors.Join(json.Unmarshal(src, &all), json.Compact(&b, encoded(all))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
