package client

import (
	"slices"
	"testing"
)

func TestRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rule           string
		allow, refused bool
		message, hint  string // "" for a good rule
		tool           string
	}{
		{"Read", true, false, "", "", ""},
		{"Bash(git *)", true, false, "", "", ""},
		{"Bash(echo (x))", true, false, "", "", ""},
		{`Bash(echo \(x\))`, true, false, "", "", ""},
		{"mcp__github__*", true, false, "", "", ""},
		{"mcp__*", false, false, "", "", ""},
		{"Task(x)", true, false, "", "", ""},
		{"propose_skills", true, false, "", "", ""},
		{"WebFetch(domain:*.example.org)", true, false, "", "", ""},
		{"read", true, true, "names of tools begin with a capital letter", "", "read"},
		{"Reed(src/**)", true, false, `Claude Code has no tool "Reed"`, "", "Reed"},
		{"Read (src/**)", true, false, `Claude Code has no tool "Read "`, "", "Read "},
		{"Bash(git *", true, true, "it is neither TOOL nor TOOL(WHAT)", `for example Read, or "Bash(git *)"`, ""},
		{"Bash()", false, true, "its brackets are empty", "write Bash alone, or what it may do", ""},
		{"mcp__a__b(x)", false, true, "rules for the tools of a server take no brackets", "write mcp__a__b", ""},
		{"*", true, true, "a * can stand only for the tools of one server", "write mcp__SERVER__*, or each tool by its name", ""},
		{"*", false, false, "", "", ""},
		{`Bash(a\((b)`, true, true, `it is not clear which bracket \( or \) belongs to`, "write literal brackets in pairs, or as [(] and [)]", ""},
		{"WebSearch(go *)", true, true, "WebSearch rules take no * and ?", "write the words themselves", ""},
		{"WebFetch(https://example.org)", true, true, "WebFetch rules name a domain", "for example WebFetch(domain:example.org)", ""},
		{"Bash(:*)", true, true, "there is no command before :*", `for example "Bash(git *)"`, ""},
		{"Bash(git:* push)", true, false, "a :* that is not at its end is read as * with a colon before it", "write Bash(git * push)", ""},
		{"Read(src:*)", true, true, "only Bash rules take :*", "write a glob, for example Read(src/**)", ""},
		{"Write(src/**)", false, false, "only Edit rules apply to paths", "write Edit(src/**)", ""},
		{"Glob(src/**)", true, false, "only Read rules apply to paths", "write Read(src/**)", ""},
		{" ", true, true, "it is empty", "", ""},
	} {
		got := checkRule(tt.rule, tt.allow)
		if got == nil {
			got = &RuleProblem{}
		}
		if want := (RuleProblem{tt.refused, tt.message, tt.hint, tt.tool}); *got != want {
			t.Errorf("%q: %+v, want %+v", tt.rule, *got, want)
		}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(tools)))) != len(tools) {
		t.Error("a tool is named twice")
	}
}

func FuzzCheckRule(f *testing.F) {
	for _, rule := range []string{"Read", "Bash(git *)", `Bash(a\((b)`, "mcp__a__*", "(x)", `\(`, "))((", "Write(a:*)"} {
		f.Add(rule, true)
	}
	f.Fuzz(func(t *testing.T, rule string, allow bool) {
		if wrong := checkRule(rule, allow); wrong != nil && wrong.Message == "" {
			t.Errorf("%q: no word of what is wrong", rule)
		}
	})
}
