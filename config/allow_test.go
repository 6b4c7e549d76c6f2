package config

import (
	"errors"
	"strings"
	"testing"
)

// TestARuleIsAllowedInAnyFile: in each way in which an agent's permissions may be written, the
// rule is there afterwards, with what the agent could do before, and nothing else has changed;
// or nothing is changed, and that is said.
func TestARuleIsAllowedInAnyFile(t *testing.T) {
	t.Parallel()
	const head = "version: 1\n# a comment: [x]\ndefaults:\n  permissions: {mode: acceptEdits, allow: [Read], deny: [\"Bash(rm *)\"]}\nagents:\n"
	for name, c := range map[string]struct{ agents, want string }{
		"a list in brackets":     {"  a: {dir: a, permissions: {allow: [Read, Edit]}} # last\n  b: {dir: b}\n", "  a: {dir: a, permissions: {allow: [\"Bash(git *)\", Read, Edit]}} # last\n  b: {dir: b}\n"},
		"a list below":           {"  a:\n    dir: a\n    permissions:\n      allow:\n        - Read # to look\n        - \"Edit\"\n", "  a:\n    dir: a\n    permissions:\n      allow:\n        - \"Bash(git *)\"\n        - Read # to look\n        - \"Edit\"\n"},
		"a list at the key":      {"  a:\n    permissions:\n      allow:\n      - Read\n    dir: a\n", "  a:\n    permissions:\n      allow:\n      - \"Bash(git *)\"\n      - Read\n    dir: a\n"},
		"over several lines":     {"  a: {dir: a, permissions: {allow: [\n    Read,\n    Edit,\n  ]}}\n", "  a: {dir: a, permissions: {allow: [\n    \"Bash(git *)\", Read,\n    Edit,\n  ]}}\n"},
		"an empty list":          {"  a: {dir: a, permissions: {allow: []}}\n", "  a: {dir: a, permissions: {allow: [\"Bash(git *)\"]}}\n"},
		"no list":                {"  a: {dir: a, permissions: {deny: [Edit]}}\n", "  a: {dir: a, permissions: {allow: [\"Bash(git *)\"], deny: [Edit]}}\n"},
		"no list, below":         {"  a:\n    permissions:\n      mode: default\n    dir: a\n", "  a:\n    permissions:\n      allow: [\"Bash(git *)\"]\n      mode: default\n    dir: a\n"},
		"those of all":           {"  a: {dir: a}\n  b: {dir: b}\n", "  a: {permissions: {mode: acceptEdits, allow: [\"Bash(git *)\", \"Read\"], deny: [\"Bash(rm *)\"]}, dir: a}\n  b: {dir: b}\n"},
		"those of all, below":    {"  a:\n    dir: a\n", "  a:\n    permissions: {mode: acceptEdits, allow: [\"Bash(git *)\", \"Read\"], deny: [\"Bash(rm *)\"]}\n    dir: a\n"},
		"characters of a width":  {"  b: {dir: \"é→\"}\n  a: {dir: \"é→\", permissions: {allow: [Read]}}\n", "  b: {dir: \"é→\"}\n  a: {dir: \"é→\", permissions: {allow: [\"Bash(git *)\", Read]}}\n"},
		"lines of Windows":       {"  a:\r\n    dir: a\r\n    permissions:\r\n      allow:\r\n        - Read\r\n", "  a:\r\n    dir: a\r\n    permissions:\r\n      allow:\r\n        - \"Bash(git *)\"\r\n        - Read\r\n"},
		"an alias":               {"  b: &b {dir: b}\n  a: *b\n", ""},
		"an alias of a list":     {"  b: {dir: b, permissions: {allow: &l [Read]}}\n  a: {dir: a, permissions: {allow: *l}}\n", ""},
		"a list that others use": {"  a: {dir: a, permissions: {allow: &l [Read]}}\n  b: {dir: b, permissions: {allow: *l}}\n", ""},
		"a merged mapping":       {"  b: &b {dir: b, permissions: {allow: [Read]}}\n  a: {<<: *b, dir: a}\n", ""},
		"nothing":                {"  a:\n", ""},
		"no such agent":          {"  b: {dir: b}\n", ""},
		"no YAML":                {"  a: [\n", ""},
	} {
		got, err := AllowRule([]byte(head+c.agents), "a", Permissions{Mode: "acceptEdits", Allow: []string{"Read"}, Deny: []string{"Bash(rm *)"}}, "Bash(git *)")
		switch {
		case c.want == "" && !errors.Is(err, ErrUnclear):
			t.Errorf("%s: %v, %s", name, err, got)
		case c.want != "" && (err != nil || string(got) != head+c.want):
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, strings.TrimPrefix(string(got), head), c.want)
		}
	}
}

// TestARuleIsQuoted: whatever a tool's call had in it is one rule.
func TestARuleIsQuoted(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{`Bash(echo "a" \ 'b' *)`, "Bash(a\nb\x1b\u2028é *)", "yes", "- x", "{a: b}", "a: b # c", "mcp__x__y", `Bash(sh -c ']}, deny: []' *)`} {
		got, err := AllowRule([]byte("agents: {a: {dir: a, permissions: {allow: [Read]}}}"), "a", Permissions{}, rule)
		if err != nil {
			t.Errorf("%q: %v %s", rule, err, got)
		}
	}
}
