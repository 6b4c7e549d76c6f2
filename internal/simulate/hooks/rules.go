package hooks

import (
	"regexp"
	"slices"
	"strings"
)

var (
	ruleForm  = regexp.MustCompile(`(?s)^([^()]*)(?:\((.*)\))?$`)
	mcpTool   = regexp.MustCompile(`^mcp__(.+?)(?:__(.*))?$`)
	lowercase = regexp.MustCompile(`^[a-z][^_]*$`)
)

// fileTools take globs.
var fileTools = []string{"Read", "Write", "Edit", "Glob", "NotebookRead", "NotebookEdit", "Cd"}

// refusal is why the client passes a permission rule over and asks a person at
// its start, as 2.1.329 does; "" for one that it takes. Escaped brackets are
// not covered.
func refusal(rule string, allow bool) string {
	m := ruleForm.FindStringSubmatch(rule)
	if m == nil {
		return "Malformed Tool(content) rule"
	}
	tool, what, call := m[1], m[2], len(m[1]) < len(rule)
	mcp := mcpTool.FindStringSubmatch(tool)
	switch {
	case call && what == "":
		return "Empty parentheses"
	case mcp != nil && call:
		return "MCP rules do not support patterns in parentheses"
	case allow && strings.Contains(tool, "*") && (mcp == nil || strings.Contains(mcp[1], "*")):
		return "Wildcard tool name is not supported in allow rules"
	case mcp != nil:
		return ""
	case lowercase.MatchString(tool):
		return "Tool names must start with uppercase"
	case !call || what == "*":
		return ""
	case tool == "WebSearch" && strings.ContainsAny(what, "*?"):
		return "WebSearch does not support wildcards"
	case tool == "WebFetch" && (strings.Contains(what, "://") || !strings.HasPrefix(what, "domain:")):
		return `WebFetch permissions must use "domain:" prefix`
	case tool == "Bash" && what == ":*":
		return "Prefix cannot be empty before :*"
	case slices.Contains(fileTools, tool) && strings.Contains(what, ":*"):
		return `The ":*" syntax is only for Bash prefix rules`
	}
	return ""
}

// takeRules are the rules of a list that the client takes; it warns of others.
func (s *Settings) takeRules(list string, rules []string) []string {
	return slices.DeleteFunc(rules, func(rule string) bool {
		why := refusal(rule, list == "allow")
		if why != "" {
			s.warn("permissions.%s: Invalid permission rule %q was skipped: %s", list, rule, why)
		}
		return why != ""
	})
}
