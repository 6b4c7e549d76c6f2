package hooks

import (
	"encoding/json"
	"strings"
)

// A Verdict is what one hook's answer asks of the client, whatever the event;
// which parts an event honours is the client's affair.
type Verdict struct {
	Block    bool   // decision:block, or exit 2
	ByExit   bool   // the block came as exit 2 and stderr
	Reason   string // of the block
	Stop     bool   // continue:false
	StopWhy  string
	Context  string // hookSpecificOutput.additionalContext
	Plain    string // stdout that is no JSON, where it means context
	Decision Permission
	Message  string // systemMessage
	Problem  string // not empty: the hook failed, or its answer was refused
}

// Permission is a decision on a tool call, by PreToolUse or PermissionRequest.
type Permission struct {
	Behavior  string // allow, deny, ask; "": none
	Why       string
	Interrupt bool
}

// answer is the document a hook may print.
type answer struct {
	Continue           *bool
	StopReason         string
	Decision           *string
	Reason             string
	SystemMessage      string
	Async              bool
	HookSpecificOutput *struct {
		AdditionalContext        string
		PermissionDecision       string
		PermissionDecisionReason string
		Decision                 *struct {
			Behavior, Message string
			Interrupt         bool
		}
	}
}

// Judge says what a result means. JSON counts whatever the exit status and
// wins over exit 2; it is refused when something still held the hook's output
// at its exit, because more could have come. A hook that was cut short says
// nothing.
func Judge(r Result) Verdict {
	switch {
	case r.Cut:
		return Verdict{}
	case r.Unstarted != nil:
		return Verdict{Problem: r.Unstarted.Error()}
	}
	a, isJSON, err := parseAnswer(r.Stdout)
	switch {
	case isJSON && err == nil && !r.Held:
		return a.verdict()
	case r.Exit == 2:
		why := r.Stderr
		if why == "" {
			why = "No stderr output"
		}
		return Verdict{Block: true, ByExit: true, Reason: why}
	case isJSON && err != nil:
		return Verdict{Problem: "JSON validation failed: " + err.Error()}
	case isJSON:
		return Verdict{Problem: "its stdio went quiet before end-of-stream and a dropped later document could have changed it; refusing to honor the suspect capture"}
	case r.Exit != 0:
		return Verdict{Problem: strings.TrimSpace("Failed with non-blocking status code: " + r.Stderr)}
	}
	return Verdict{Plain: r.Stdout}
}

// parseAnswer reads stdout as one JSON object. Leading blanks and a byte
// order mark are fine; anything but one object is not JSON or an error.
func parseAnswer(stdout string) (a answer, isJSON bool, err error) {
	text := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(stdout), "\ufeff"))
	if !strings.HasPrefix(text, "{") {
		return a, false, nil
	}
	return a, true, json.Unmarshal([]byte(text), &a)
}

func (a answer) verdict() Verdict {
	if a.Async {
		return Verdict{}
	}
	v := Verdict{Message: a.SystemMessage}
	if a.Decision != nil && *a.Decision == "block" {
		v.Block, v.Reason = true, a.Reason
		if v.Reason == "" {
			v.Reason = "Blocked by hook"
		}
	}
	if a.Decision != nil && *a.Decision == "approve" {
		v.Decision = Permission{Behavior: "allow", Why: a.Reason}
	}
	if a.Continue != nil && !*a.Continue {
		v.Stop, v.StopWhy = true, a.StopReason
	}
	if h := a.HookSpecificOutput; h != nil {
		v.Context = h.AdditionalContext
		if h.PermissionDecision != "" {
			v.Decision = Permission{Behavior: h.PermissionDecision, Why: h.PermissionDecisionReason}
		}
		if d := h.Decision; d != nil {
			v.Decision = Permission{Behavior: d.Behavior, Why: d.Message, Interrupt: d.Interrupt}
		}
	}
	return v
}
