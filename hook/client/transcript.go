package client

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"heartbeat/hook/foreign"
)

// Feedback begins the user message that holds a Stop hook's text.
const feedback = "Stop hook feedback:\n"

// said returns the texts of a line that is a message of the main conversation.
func said(role string, line []byte) []string { return texts(message(role, line)) }

// message returns the content of a line that is a message of the main
// conversation, or nil. Measured in 2.1.329: {"type":"user","message":
// {"role":"user","content":C},"timestamp":…}.
func message(role string, line []byte) json.RawMessage {
	var record struct {
		Type      string `json:"type"`
		Sidechain bool   `json:"isSidechain"`
		Message   struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &record) != nil || record.Type != role || record.Sidechain {
		return nil
	}
	return record.Message.Content
}

// texts returns a message's content: a string, or the text blocks of a list.
func texts(content json.RawMessage) []string {
	var one string
	if json.Unmarshal(content, &one) == nil {
		return []string{one}
	}
	blocks, err := foreign.List[struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}](content)
	if err != nil {
		return nil
	}
	var all []string
	for _, b := range blocks {
		if b.Type == "text" {
			all = append(all, b.Text)
		}
	}
	return all
}

// handedOver: the content is the feedback line, followed by "[COMMAND]: " and the
// text of exit 2, or by the reason of a block.
func handedOver(line []byte, text string) bool {
	want := plainTags(text)
	return asksWith(line, func(content string) bool {
		rest, ok := strings.CutPrefix(plainTags(content), feedback)
		if !ok || rest == want {
			return ok
		}
		command, ok := strings.CutSuffix(rest, "]: "+want)
		return ok && strings.HasPrefix(command, "[") && !strings.Contains(command, "\n")
	})
}

// asked: the content is the prompt itself.
func asked(line []byte, prompt string) bool {
	want := plainTags(prompt)
	return asksWith(line, func(content string) bool { return SamePrompt(plainTags(content), want) })
}

func asksWith(line []byte, is func(content string) bool) bool {
	return bytes.Contains(line, []byte(`"user"`)) && slices.ContainsFunc(said("user", line), is)
}

// plainTags undoes the client's escape of <system-reminder> tags in both texts that
// are compared.
func plainTags(s string) string { return strings.ReplaceAll(s, "&lt;", "<") }

// SamePrompt compares a submitted prompt with ours. 2.1.329 passes it on unchanged;
// white space at the ends is ignored in case another version does not.
func SamePrompt(got, want string) bool {
	return strings.TrimSpace(got) == strings.TrimSpace(want)
}

func answered(line []byte) (is bool, words []string, tool bool) {
	if !bytes.Contains(line, []byte(`"assistant"`)) {
		return false, nil, false
	}
	content := message("assistant", line)
	if content == nil {
		return false, nil, false
	}
	blocks, err := foreign.List[struct{ Type string }](content)
	tool = err == nil &&
		slices.ContainsFunc(blocks, func(b struct{ Type string }) bool { return b.Type == "tool_use" })
	return true, texts(content), tool
}

func begun(line []byte) bool {
	var record struct{ Type string }
	return json.Unmarshal(line, &record) == nil && (record.Type == "user" || record.Type == "assistant")
}

// queued: {"type":"queue-operation","operation":"enqueue"}, then "dequeue" or
// "remove", or "popAll".
func queued(line []byte) Queueing {
	if !bytes.Contains(line, []byte(`"queue-operation"`)) {
		return NotQueued
	}
	var record struct{ Type, Operation string }
	if json.Unmarshal(line, &record) != nil || record.Type != "queue-operation" {
		return NotQueued
	}
	switch record.Operation {
	case "enqueue":
		return Enqueued
	case "dequeue", "remove":
		return Dequeued
	case "popAll":
		return TakenBack
	}
	return NotQueued
}

// spoke: what a hook says is written when that hook has ended, before the record of
// the Stop.
func spoke(line []byte) Saying {
	var r struct {
		Type, Subtype string
		Attachment    struct{ Type, HookEvent string }
	}
	switch {
	case json.Unmarshal(line, &r) != nil:
	case r.Type == "assistant" || r.Subtype == stopSummary:
		return Silence
	case r.Attachment.Type == "hook_additional_context" && r.Attachment.HookEvent == Stop,
		slices.ContainsFunc(said("user", line), func(text string) bool { return strings.HasPrefix(text, feedback) }):
		return Said
	}
	return NothingSaid
}
