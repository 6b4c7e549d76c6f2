package hook

import (
	"fmt"
	"strings"
)

// denial is the answer to a PermissionRequest: the model reads the message as
// the tool's result, and the turn goes on (measured in 2.1.329).
func denial(p *payload) []byte {
	type verdict struct {
		Behavior string `json:"behavior"`
		Message  string `json:"message"`
	}
	type output struct {
		Event    string  `json:"hookEventName"`
		Decision verdict `json:"decision"`
	}
	message := fmt.Sprintf("heartbeat refused %s: nobody is there to answer a permission dialog. "+
		"To allow it, a person adds %q to this agent's permissions.allow in heartbeat.yaml and runs: heartbeat apply",
		what(p), rule(p))
	answer, err := encode(struct {
		Output output `json:"hookSpecificOutput"`
	}{output{onPermissionRequest, verdict{"deny", message}}})
	if err != nil {
		return nil // strings only: cannot happen
	}
	return answer
}

func refused(p *payload) string { return "permission refused: " + what(p) + "; allow it by " + rule(p) }

// what names the tool call that was refused.
func what(p *payload) string {
	if d := detail(p); d != "" {
		return p.ToolName + "(" + shorten(d, 200) + ")"
	}
	return p.ToolName
}

// rule is the allow rule that would have let it pass.
func rule(p *payload) string {
	if p.ToolName == "Bash" {
		if program, _, _ := strings.Cut(strings.TrimSpace(detail(p)), " "); program != "" {
			return "Bash(" + shorten(program, 100) + " *)"
		}
	}
	return p.ToolName
}

// detail is the part of a tool's input that a person recognises it by.
func detail(p *payload) string {
	for _, s := range []string{p.Tool.Command, p.Tool.Path, p.Tool.URL, p.Tool.Query} {
		if s != "" {
			return s
		}
	}
	return ""
}
