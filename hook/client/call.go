package client

import (
	"bytes"
	"encoding/json"
	"strings"

	"heartbeat/hook/foreign"
)

// Call is a call of a tool, as the transcript has it. Rule is the allow rule that
// would allow it.
type Call struct{ ID, Name, Rule string }

// AllowRule returns the rule that would allow the call of a tool; command is that of
// Bash, which is allowed by its program. It may be of any length, as a model wrote it.
func AllowRule(tool, command string) string {
	if tool == "Bash" {
		if program, _, _ := strings.Cut(strings.TrimSpace(command), " "); program != "" {
			return "Bash(" + program + " *)"
		}
	}
	return tool
}

// denied reads which calls were refused because nothing allows them, by their ids.
// Measured in 2.1.329: with dontAsk the result is an error, "Permission to use NAME
// has been denied because Claude Code is running in don't ask mode. …"; what a
// PermissionRequest hook of ours has refused has our words. A rule that forbids the
// call says "… has been denied." alone: that is meant.
func denied(line []byte) (ids []string) {
	if !bytes.Contains(line, []byte(`"tool_result"`)) {
		return nil
	}
	content := message("user", line)
	blocks, err := foreign.List[struct {
		Type    string          `json:"type"`
		UseID   string          `json:"tool_use_id"`
		IsError bool            `json:"is_error"`
		Content json.RawMessage `json:"content"`
	}](content)
	if err != nil {
		return nil
	}
	for _, b := range blocks {
		if b.Type != "tool_result" || !b.IsError {
			continue
		}
		for _, text := range texts(b.Content) {
			text = strings.TrimPrefix(text, "<tool_use_error>")
			if strings.HasPrefix(text, "Permission to use ") && strings.Contains(text, "don't ask mode") || strings.HasPrefix(text, DenialBegins) {
				ids = append(ids, b.UseID)
				break
			}
		}
	}
	return ids
}

// DenialBegins begins the message with which our PermissionRequest hook refuses.
const DenialBegins = "heartbeat refused "

// calls reads which tools a line of the main conversation calls, and the calls of
// which it has the results, by their ids. Measured in 2.1.329: a call is written
// before its tool runs, and the result when it has ended, also when the tool was
// refused or interrupted.
func calls(line []byte) (begun []Call, ended []string) {
	if !bytes.Contains(line, []byte(`"tool_`)) {
		return nil, nil
	}
	var r struct {
		Sidechain bool `json:"isSidechain"`
		Message   struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &r) != nil || r.Sidechain {
		return nil, nil
	}
	blocks, err := foreign.List[struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		UseID string          `json:"tool_use_id"`
		Input json.RawMessage `json:"input"`
	}](r.Message.Content)
	if err != nil {
		return nil, nil
	}
	for _, b := range blocks {
		switch {
		case b.Type == "tool_use" && b.ID != "":
			begun = append(begun, Call{b.ID, b.Name, AllowRule(b.Name, commandOf(b.Input))})
		case b.Type == "tool_result" && b.UseID != "":
			ended = append(ended, b.UseID)
		}
	}
	return begun, ended
}

// names reads which calls of a line have a text in what they are called with, by their ids.
func names(line []byte, text string) (ids []string) {
	if !bytes.Contains(line, []byte(`"tool_use"`)) {
		return nil
	}
	blocks, err := foreign.List[struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Input json.RawMessage `json:"input"`
	}](message("assistant", line))
	if err != nil {
		return nil
	}
	for _, b := range blocks {
		if b.Type == "tool_use" && b.ID != "" && bytes.Contains(b.Input, []byte(text)) {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

// worked reads which calls of a line have a result that is no error, by their ids: what was
// refused, what failed and what there is no tool for is an error (2.1.329).
func worked(line []byte) (ids []string) {
	if !bytes.Contains(line, []byte(`"tool_result"`)) {
		return nil
	}
	blocks, err := foreign.List[struct {
		Type    string `json:"type"`
		UseID   string `json:"tool_use_id"`
		IsError bool   `json:"is_error"`
	}](message("user", line))
	if err != nil {
		return nil
	}
	for _, b := range blocks {
		if b.Type == "tool_result" && b.UseID != "" && !b.IsError {
			ids = append(ids, b.UseID)
		}
	}
	return ids
}

// commandOf returns the command that a tool is called with, or "".
func commandOf(input json.RawMessage) (command string) {
	var says struct {
		Command json.RawMessage `json:"command"`
	}
	if json.Unmarshal(input, &says) != nil || json.Unmarshal(says.Command, &command) != nil {
		return ""
	}
	return command
}
