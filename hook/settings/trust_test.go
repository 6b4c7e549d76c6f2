package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestTrust(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, want string }{
		{"nothing", "", "{\n  \"projects\": {\n    \"/work\": {\n      \"hasTrustDialogAccepted\": true\n    }\n  }\n}\n"},
		{
			"no projects", "{\n  \"theme\": \"dark\"\n}\n",
			"{\n  \"theme\": \"dark\",\n  \"projects\": {\n    \"/work\": {\n      \"hasTrustDialogAccepted\": true\n    }\n  }\n}\n",
		},
		{
			"other projects", "{\n  \"projects\": {\n    \"/other\": {\n      \"allowedTools\": []\n    }\n  },\n  \"userID\": \"x\"\n}",
			"{\n  \"projects\": {\n    \"/other\": {\n      \"allowedTools\": []\n    },\n    \"/work\": {\n      \"hasTrustDialogAccepted\": true\n    }\n  },\n  \"userID\": \"x\"\n}",
		},
		{
			"not asked yet", `{"projects":{"/work":{"allowedTools":["x"]},"/b":{}}}`,
			`{"projects":{"/work":{"allowedTools":["x"],"hasTrustDialogAccepted":true},"/b":{}}}`,
		},
		{
			"refused", `{"projects":{"/work":{"hasTrustDialogAccepted":false,"a":1}}}`,
			`{"projects":{"/work":{"hasTrustDialogAccepted":true,"a":1}}}`,
		},
		{"trusted", `{"projects": {"/work": {"hasTrustDialogAccepted" :true}}}`, `{"projects": {"/work": {"hasTrustDialogAccepted" :true}}}`},
		{
			"the last of two counts", `{"projects":{"/work":{"hasTrustDialogAccepted":true},"/work":{}}}`,
			`{"projects":{"/work":{"hasTrustDialogAccepted":true},"/work":{"hasTrustDialogAccepted":true}}}`,
		},
	} {
		got, changed, err := Trust([]byte(tt.file), "/work")
		if err != nil || changed != (tt.file != tt.want) {
			t.Errorf("%s: changed %v, %v", tt.name, changed, err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestTrustRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ file, want string }{
		{`{"projects": []}`, "1:14: projects: must be an object, not an array"},
		{`{"projects": {"/work": 5}}`, `1:24: projects["/work"]: must be an object, not a number`},
		{"{\n// no\n}", "2:1: a comment; Claude Code takes strict JSON only"},
	} {
		_, _, err := Trust([]byte(tt.file), "/work")
		if place, ok := errors.AsType[*Error](err); !ok || place.Error() != tt.want {
			t.Errorf("%s: %v", tt.file, err)
		}
	}
}

// TestTrustChangesOneKey: decoded, exactly one key differs, whatever the file.
func TestTrustChangesOneKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		dirs := rapid.SampledFrom([]string{"/work", "/a b", `/qu"ote`, "/ünï", "/"})
		scalar := rapid.SampledFrom([]any{true, false, 1.5, "text", nil, []any{"x", 2.0}, map[string]any{"k": "v"}})
		project := rapid.MapOfN(rapid.SampledFrom([]string{"hasTrustDialogAccepted", "allowedTools", "x"}), scalar, 0, 3)
		root := map[string]any{}
		maps.Copy(root, rapid.MapOfN(rapid.SampledFrom([]string{"theme", "numStartups", "y"}), scalar, 0, 3).Draw(t, "root"))
		if rapid.Bool().Draw(t, "with projects") {
			projects := map[string]any{}
			for k, v := range rapid.MapOfN(dirs, project, 0, 4).Draw(t, "projects") {
				projects[k] = v
			}
			root["projects"] = projects
		}
		file, err := json.MarshalIndent(root, "", rapid.SampledFrom([]string{"", "  ", "\t"}).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "compact") {
			var b bytes.Buffer
			if err := json.Compact(&b, file); err != nil {
				t.Fatal(err)
			}
			file = b.Bytes()
		}
		dir := dirs.Draw(t, "dir")
		got, _, err := Trust(file, dir)
		if err != nil {
			t.Fatal(err)
		}
		var want, have map[string]any
		if json.Unmarshal(file, &want) != nil || json.Unmarshal(got, &have) != nil {
			t.Fatalf("no JSON: %s", got)
		}
		projects, _ := want["projects"].(map[string]any)
		if projects == nil {
			projects = map[string]any{}
			want["projects"] = projects
		}
		mine, _ := projects[dir].(map[string]any)
		if mine == nil {
			mine = map[string]any{}
			projects[dir] = mine
		}
		mine["hasTrustDialogAccepted"] = true
		if diff := cmp.Diff(want, have); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if again, changed, err := Trust(got, dir); err != nil || changed || !bytes.Equal(again, got) {
			t.Fatalf("trusting again: %v, %v", changed, err)
		}
	})
}
