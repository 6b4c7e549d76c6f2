package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// space draws white space as people and programs leave it.
func space(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "", "", " ", "\n", "\r\n", "\n  ", "\t", "\n\n\t\t", "  \r\n "}).Draw(t, "space")
}

func literal(t *rapid.T) string {
	return rapid.SampledFrom([]string{
		"0", "-0", "1e400", "-1.5E-3", "123456789012345678901234567890", "true", "false", "null",
		`""`, `"a b"`, `"\ud800"`, `"\"}{"`, `"<&>"`, "\"\xff\"", `"[,]"`, `"\\"`,
	}).Draw(t, "literal")
}

func anything(t *rapid.T, depth int) string {
	n := rapid.IntRange(0, 3).Draw(t, "items")
	kind := rapid.SampledFrom([]string{"literal", "array", "object"}).Draw(t, "kind")
	if depth == 0 || kind == "literal" {
		return literal(t)
	}
	items := make([]string, n)
	for i := range items {
		items[i] = space(t) + anything(t, depth-1) + space(t)
		if kind == "object" {
			key := rapid.SampledFrom([]string{"a", "b", "hooks", `\u0061`, ""}).Draw(t, "key")
			items[i] = space(t) + `"` + key + `"` + space(t) + ":" + items[i]
		}
	}
	return wrap(kind, items, space(t))
}

func wrap(kind string, items []string, empty string) string {
	inner := strings.Join(items, ",")
	if len(items) == 0 {
		inner = empty
	}
	if kind == "array" {
		return "[" + inner + "]"
	}
	return "{" + inner + "}"
}

// settingsFile draws a file of the client's shape: anything in the places that
// are not ours, hooks and permissions in theirs, keys also twice.
func settingsFile(t *rapid.T) []byte {
	handlers := func(t *rapid.T) string {
		return rapid.SampledFrom([]string{
			`{"type":"command","command":"mine"}`, `{ "type" : "command" , "command" : "mine" , "timeout" : 5 }`,
			`{"type":"command","command":"/x/heartbeat hook"}`, `{"type":"command","command":"'/x y/heartbeat-stop' hook","timeout":7}`,
			"{\n\"command\":\"/x/heartbeat-stop hook\",\n\"async\":true}", `{"type":"prompt","prompt":"?"}`, `{}`,
		}).Draw(t, "handler")
	}
	list := func(what string, draw func(*rapid.T) string) func(*rapid.T) string {
		return func(t *rapid.T) string {
			items := make([]string, rapid.IntRange(0, 3).Draw(t, what))
			for i := range items {
				items[i] = space(t) + draw(t) + space(t)
			}
			return wrap("array", items, space(t))
		}
	}
	group := func(t *rapid.T) string {
		matcher := rapid.SampledFrom([]string{"", `"matcher":"Bash",`, `"matcher": "",`, `"matcher":"*" , `}).Draw(t, "matcher")
		return "{" + matcher + space(t) + `"hooks":` + list("handlers", handlers)(t) + space(t) + "}"
	}
	object := func(what string, keys []string, draw func(*rapid.T) string) func(*rapid.T) string {
		return func(t *rapid.T) string {
			items := make([]string, rapid.IntRange(0, 4).Draw(t, what))
			for i := range items {
				items[i] = space(t) + `"` + rapid.SampledFrom(keys).Draw(t, "key") + `"` + space(t) + ":" + space(t) + draw(t) + space(t)
			}
			return wrap("object", items, space(t))
		}
	}
	rule := func(t *rapid.T) string {
		return rapid.SampledFrom([]string{`"Read"`, `"Bash(git *)"`, `"Bash"`, `"\u0052ead"`}).Draw(t, "rule")
	}
	member := func(t *rapid.T) string {
		switch rapid.IntRange(0, 3).Draw(t, "member") {
		case 0:
			return `"hooks":` + space(t) + object("events", []string{"Stop", "PreToolUse", "PostToolUse", "SessionEnd"}, list("groups", group))(t)
		case 1:
			return `"permissions" : ` + object("permissions", []string{"allow", "deny", "ask"}, list("rules", rule))(t)
		case 2:
			return `"env":` + object("env", []string{"A", "B"}, func(*rapid.T) string { return `"1"` })(t)
		default:
			return `"other"` + space(t) + ":" + anything(t, 3)
		}
	}
	items := make([]string, rapid.IntRange(0, 4).Draw(t, "members"))
	for i := range items {
		items[i] = space(t) + member(t) + space(t)
	}
	prefix := rapid.SampledFrom([]string{"", "", "\ufeff"}).Draw(t, "bom")
	return []byte(prefix + space(t) + wrap("object", items, space(t)) + space(t))
}

func drawWant(t *rapid.T) Want {
	rules := rapid.SliceOfN(rapid.SampledFrom([]string{"Read", "Edit(.claude/**)", "Bash(git *)", "<&>"}), 0, 4)
	return Want{
		Command:     rapid.SampledFrom([]string{"/x/heartbeat hook", Command("/it's here/heartbeat-stop"), "/tmp/other hook"}).Draw(t, "command"),
		Timeouts:    map[string]int{"Stop": rapid.IntRange(1, 1_000_000).Draw(t, "timeout")},
		Allow:       rules.Draw(t, "allow"),
		Deny:        rules.Draw(t, "deny"),
		DefaultMode: rapid.SampledFrom([]string{"", "dontAsk"}).Draw(t, "mode"),
		Env:         rapid.SampledFrom([]map[string]string{nil, {"A": "1", "C": "x"}}).Draw(t, "env"),
	}
}

// TestMergeProperties checks every promise of Merge, Remove and Restore on
// files as strange as JSON allows.
func TestMergeProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		old, w := settingsFile(t), drawWant(t)
		if !json.Valid(bytes.TrimPrefix(old, bom)) {
			t.Fatalf("the generator made no JSON: %q", old)
		}
		merged, _, err := Merge(old, w)
		if err != nil {
			t.Fatalf("%q: %v", old, err)
		}
		checkMerged(t, old, merged, w)
		added, err := Missing(old, w)
		if err != nil {
			t.Fatal(err)
		}
		bare, _, err := Remove(old, Want{Command: w.Command})
		if err != nil {
			t.Fatal(err)
		}
		rest, _, err := Remove(merged, added)
		if err != nil {
			t.Fatal(err)
		}
		// What is left says the same as the old file without entries of ours.
		if got, want := meaning(rest), meaning(bare); got != want {
			t.Fatalf("%q\nmerged %q\nremoved %q\nmeans %s\nwant  %s", old, merged, rest, got, want)
		}
	})
}

// meaning returns a file's content without containers that hold nothing,
// where those are ours to remove.
func meaning(src []byte) string {
	d, err := read(src)
	if err != nil {
		return err.Error()
	}
	var write func(v *value, path string) string
	write = func(v *value, path string) string {
		if v.kind != '{' && v.kind != '[' {
			return string(d.src[v.start:v.end])
		}
		var parts []string
		for _, it := range v.items {
			if v.kind == '{' && v.find(it.key) != it.value {
				continue
			}
			inner := path + "." + it.key
			s := write(it.value, inner)
			top := strings.SplitN(inner, ".", 3)[1]
			if (s == "{}" || s == "[]") && (top == "hooks" || top == "permissions" || top == "env") {
				continue
			}
			parts = append(parts, fmt.Sprintf("%q:%s", it.key, s))
		}
		return wrap(map[byte]string{'{': "object", '[': "array"}[v.kind], parts, "")
	}
	return write(d.root, "")
}

// FuzzMerge checks that whatever the file holds, a merge either refuses it or
// keeps its promises, and refuses exactly what is no JSON object of the
// client's shape.
func FuzzMerge(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"a":1}`, "{\r\n\t\"hooks\": {\"Stop\": []}}", `{"hooks":{"Stop":[{"hooks":[{"command":"/x/heartbeat hook"}]}]}}`,
		`{"hooks":{},"hooks":{}}`, "\ufeff{}", `{"a":"\ud800\u0000"}`, "{\"a\":\"\xff\"}", `{"permissions":{"allow":["Read"]}}`, "[", "//", `{"a":1,}`,
	} {
		f.Add([]byte(s))
	}
	w := want()
	f.Fuzz(func(t *testing.T, old []byte) {
		merged, _, err := Merge(old, w)
		body := bytes.TrimPrefix(old, bom)
		if err != nil {
			if _, ok := err.(*Error); !ok {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if !json.Valid(body) && len(bytes.TrimSpace(body)) > 0 {
			t.Fatalf("accepted what is no JSON: %q", old)
		}
		checkMerged(t, old, merged, w)
		rest, _, err := Remove(merged, must(Missing(old, w)))
		if err != nil || !json.Valid(bytes.TrimPrefix(rest, bom)) {
			t.Fatalf("removed: %q, %v", rest, err)
		}
	})
}

func BenchmarkMerge(b *testing.B) {
	var src strings.Builder
	src.WriteString("{\n  \"x\": [")
	for i := range 200_000 {
		fmt.Fprintf(&src, "%d, ", i)
	}
	src.WriteString("0]\n}\n")
	b.SetBytes(int64(src.Len()))
	for b.Loop() {
		if _, _, err := Merge([]byte(src.String()), want()); err != nil {
			b.Fatal(err)
		}
	}
}
