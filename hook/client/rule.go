package client

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tools are those of Claude Code 2.1.329. Others belong to an MCP server:
// mcp__SERVER__TOOL.
var tools = []string{
	"Agent", "Artifact", "AskUserQuestion", "Bash", "ClaudeDesign", "CronCreate", "CronDelete", "CronList", "Edit",
	"EndConversation", "EnterPlanMode", "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep", "ListAgents",
	"ListMcpResourcesTool", "LSP", "Monitor", "NotebookEdit", "OfferChromeSetup", "PowerShell", "Projects", "propose_skills",
	"PushNotification", "Read", "ReadMcpResourceDirTool", "ReadMcpResourceTool", "ReadNotifications", "RemoteTrigger",
	"ReportFindings", "ScheduleWakeup", "SendFeedback", "SendMessage", "SendUserFile", "SendUserMessage", "SetGoal",
	"ShareOnboardingGuide", "ShowOnboardingRolePicker", "Skill", "SubagentHandback", "TaskCreate", "TaskGet", "TaskList",
	"TaskStop", "TaskUpdate", "TodoWrite", "ToolSearch", "WaitForMcpServers", "WebFetch", "WebSearch", "Workflow", "Write",
}

// formerNames are names that a rule may still use for a tool.
var formerNames = []string{
	"Task", "KillShell", "KillBash", "ListPeers", "Brief", "ListMcpResources", "ReadMcpResource", "ReadMcpResourceDir", "ProposeGoal", "Eval", "REPL",
}

// RuleProblem is what is wrong with a permission rule.
type RuleProblem struct {
	// Refused means that the client refuses the rule and opens a dialog at its
	// start, which nobody answers. Otherwise it accepts the rule, but the rule
	// never matches.
	Refused bool
	// Message says what is wrong, Hint what to write instead, or "".
	Message, Hint string
	// Tool is a name that no tool has, or "": then the hint is for the caller, who
	// can suggest a similar name.
	Tool string
}

// checkRule judges a permission rule like Claude Code 2.1.329.
func checkRule(rule string, allow bool) *RuleProblem {
	refused := func(message, hint string) *RuleProblem {
		return &RuleProblem{Refused: true, Message: message, Hint: hint}
	}
	r, ok := parseRule(rule)
	switch {
	case strings.TrimSpace(rule) == "":
		return refused("it is empty", "")
	case !ok:
		return refused("it is neither TOOL nor TOOL(WHAT)", `for example Read, or "Bash(git *)"`)
	case r.call && r.content == "":
		return refused("its brackets are empty", "write "+strings.TrimSpace(r.tool)+" alone, or what it may do")
	}
	server, mcp := serverOf(r.tool)
	switch {
	case mcp && r.call:
		return refused("rules for the tools of a server take no brackets", "write "+r.tool)
	case allow && strings.Contains(r.tool, "*") && (!mcp || strings.Contains(server, "*")):
		return refused("a * can stand only for the tools of one server", "write mcp__SERVER__*, or each tool by its name")
	case mcp:
		return nil
	case !strings.Contains(r.tool, "_") && !capital(r.tool):
		p := refused("names of tools begin with a capital letter", "")
		p.Tool = r.tool
		return p
	case r.call && ambiguous(r.content):
		return refused(`it is not clear which bracket \( or \) belongs to`, "write literal brackets in pairs, or as [(] and [)]")
	}
	if p := r.check(refused); p != nil {
		return p
	}
	if !slices.Contains(tools, r.tool) && !slices.Contains(formerNames, r.tool) && !strings.Contains(r.tool, "*") {
		return &RuleProblem{Message: fmt.Sprintf("Claude Code has no tool %q", r.tool), Tool: r.tool}
	}
	return nil
}

// fileTools take a path, and pathRules say which rules apply to the other tools'
// paths.
var (
	fileTools = []string{"Read", "Write", "Edit", "Glob", "NotebookRead", "NotebookEdit", "Cd"}
	pathRules = map[string]string{"Write": "Edit", "NotebookEdit": "Edit", "MultiEdit": "Edit", "Glob": "Read"}
)

// check judges the text in the brackets.
func (r rule) check(refused func(message, hint string) *RuleProblem) *RuleProblem {
	what := r.content
	if !r.call || what == "*" {
		return nil
	}
	switch other, path := pathRules[r.tool]; {
	case r.tool == "WebSearch" && strings.ContainsAny(what, "*?"):
		return refused("WebSearch rules take no * and ?", "write the words themselves")
	case r.tool == "WebFetch" && !strings.HasPrefix(what, "domain:") || r.tool == "WebFetch" && strings.Contains(what, "://"):
		return refused("WebFetch rules name a domain", "for example WebFetch(domain:example.org)")
	case r.tool == "Bash" && what == ":*":
		return refused("there is no command before :*", `for example "Bash(git *)"`)
	case r.tool == "Bash" && strings.Contains(what, ":*") && !strings.HasSuffix(what, ":*"):
		return &RuleProblem{Message: "a :* that is not at its end is read as * with a colon before it", Hint: "write " + strings.ReplaceAll(r.text, ":*", " *")}
	case slices.Contains(fileTools, r.tool) && strings.Contains(what, ":*"):
		return refused("only Bash rules take :*", "write a glob, for example "+r.tool+"(src/**)")
	case path:
		return &RuleProblem{Message: "only " + other + " rules apply to paths", Hint: "write " + other + "(" + what + ")"}
	}
	return nil
}

// rule is TOOL or TOOL(CONTENT).
type rule struct {
	text, tool, content string
	call                bool
}

// parseRule reads a rule as the client does: brackets may be escaped, and the last
// one ends the rule.
func parseRule(text string) (rule, bool) {
	open, end := unescaped(text, '('), lastUnescaped(text, ')')
	if open < 0 && end < 0 {
		return rule{text: text, tool: text}, true
	}
	if open < 0 || end <= open || end != len(text)-1 || strings.ContainsAny(text[:open], "()") {
		return rule{}, false
	}
	r := rule{text: text, tool: text[:open], content: text[open+1 : end], call: true}
	if r.tool == "" && r.content != "" { // the whole of it is a name
		return rule{text: text, tool: text}, true
	}
	return r, true
}

// unescaped returns where a character first occurs without an odd number of
// backslashes before it, or -1; lastUnescaped where it last does.
func unescaped(text string, c byte) int {
	for i := range len(text) {
		if text[i] == c && !escaped(text, i) {
			return i
		}
	}
	return -1
}

func lastUnescaped(text string, c byte) int {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == c && !escaped(text, i) {
			return i
		}
	}
	return -1
}

func escaped(text string, i int) bool {
	before := text[:i]
	return (len(before)-len(strings.TrimRight(before, `\`)))%2 == 1
}

// ambiguous reports whether only some of the brackets are escaped.
func ambiguous(content string) bool {
	if !escapesBracket(content) {
		return false
	}
	depth := 0
	for i := range len(content) {
		switch {
		case content[i] == '(' && !escaped(content, i):
			depth++
		case content[i] == ')' && !escaped(content, i):
			depth--
		}
	}
	return depth != 0
}

// escapesBracket reports whether a bracket somewhere has one backslash, and not
// two, before it.
func escapesBracket(content string) bool {
	for i := range len(content) - 1 {
		if content[i] == '\\' && (content[i+1] == '(' || content[i+1] == ')') && (i == 0 || content[i-1] != '\\') {
			return true
		}
	}
	return false
}

// serverOf returns the server in an MCP tool's name.
func serverOf(tool string) (server string, ok bool) {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return "", false
	}
	server, _, _ = strings.Cut(rest, "__")
	return server, server != ""
}

// capital reports whether a name begins with a character that equals its capital
// letter; a digit does.
func capital(name string) bool {
	r, _ := utf8.DecodeRuneInString(name)
	return unicode.ToUpper(r) == r
}
