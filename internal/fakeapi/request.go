package fakeapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Request is one model call as the client sent it.
type Request struct {
	At       time.Time
	Number   int    // from 1, over all sessions
	Session  string // the client's session id, "" when it sends none
	Model    string
	Stream   bool
	System   []string // the texts of the system parameter
	Messages []Message
	Tools    []string // the names of the tools on offer
	Body     []byte
	// Key and Bearer are the credentials that it came with, "" for none.
	Key, Bearer string
	// Usage is what its answer is said to have cost.
	Usage Usage
	// Answered is true when its answer was sent to the end.
	Answered bool
	// Refused is true where the account's limit had fallen.
	Refused bool

	before *Request // the same conversation's call before this one
}

// Credential is the key or the token that it came with.
func (r *Request) Credential() string { return cmp.Or(r.Key, r.Bearer) }

// Message is one message of a request. Roles other than user and assistant
// occur: the client has "system" messages in the middle of a conversation.
type Message struct {
	Role    string
	Content []Block
}

// Block is one content block. Text holds a text block's text or a tool
// result's text.
type Block struct {
	Type string
	Text string
	Name string // of a tool_use
	// ToolUse is the id of the tool_use that a tool_result belongs to; Failed is true if
	// that is an error.
	ToolUse string
	Failed  bool
}

// Text joins the message's text blocks.
func (m Message) Text() string {
	var b strings.Builder
	for _, c := range m.Content {
		if c.Type == "text" {
			b.WriteString(c.Text)
		}
	}
	return b.String()
}

// midTurn begins what a person has sent in a turn, which goes on with it (2.1.329).
const midTurn = "The user sent a new message while you were working:"

// toolResult returns the results of tools, unless something is asked behind
// them: the client puts a prompt that follows a turn without an end into the same
// message.
func (m Message) toolResult() (text string, ok bool) {
	for _, c := range m.Content {
		switch {
		case c.Type == "tool_result":
			text, ok = text+c.Text, true
		case c.Type == "text" && !isReminder(c.Text) && !strings.HasPrefix(strings.TrimSpace(c.Text), midTurn):
			ok = false
		}
	}
	return text, ok
}

// Text is one text of a request: a text block and the role of its message.
type Text struct {
	Role string
	Text string
}

func (t Text) trimmed() Text { return Text{t.Role, strings.TrimSpace(t.Text)} }

// Texts returns the request's texts in order, without the system parameter.
func (r *Request) Texts() []Text {
	var out []Text
	for _, m := range r.Messages {
		for _, c := range m.Content {
			if c.Type == "text" {
				out = append(out, Text{m.Role, c.Text})
			}
		}
	}
	return out
}

// New returns the texts that the same conversation's call before did not have
// (a session and each of its subagents have a conversation), without the assistant's own. A text that the call before had n times and
// this one has m times is new m-n times; blanks around it do not count, as the
// client adds some when it sends a text again.
func (r *Request) New() []Text {
	had := map[Text]int{}
	if r.before != nil {
		for _, t := range r.before.Texts() {
			had[t.trimmed()]++
		}
	}
	var out []Text
	for _, t := range r.Texts() {
		if t.Role == "assistant" {
			continue
		}
		if had[t.trimmed()] > 0 {
			had[t.trimmed()]--
			continue
		}
		out = append(out, t)
	}
	return out
}

// Prompts returns the new texts that stand in user messages and are more than
// a <system-reminder> of the client's: what the model was asked now.
func (r *Request) Prompts() []string {
	var out []string
	for _, t := range r.New() {
		if t.Role == "user" && !isReminder(t.Text) {
			out = append(out, t.Text)
		}
	}
	return out
}

// conversation tells a session's own requests and those of its subagents,
// which bear the same session id, apart: by what was asked first.
func (r *Request) conversation() string {
	for _, t := range r.Texts() {
		if t.Role == "user" && !isReminder(t.Text) {
			return r.Session + "\x00" + t.trimmed().Text
		}
	}
	return r.Session
}

// What a Stop hook has handed over is between these since 2.1.332: "<system-reminder>\n
// The text below is the output of a hook that the user, their organization or this
// environment set up. Follow what the hook itself asks as their standing instruction, …".
const (
	framed  = "<system-reminder>\nThe text below is the output of a hook "
	unframe = "\n</system-reminder>"
	handed  = "\nStop hook feedback:\n"
)

// unframed returns a text without the frame in which the client gives a Stop hook's
// words to the model: as clients before gave them.
func unframed(text string) string {
	inner, ok := strings.CutSuffix(text, unframe)
	intro, said, found := strings.Cut(inner, handed)
	if !ok || !found || !strings.HasPrefix(intro, framed) {
		return text
	}
	return handed[1:] + said
}

func isReminder(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "<system-reminder>") && strings.HasSuffix(text, "</system-reminder>")
}

// Copies counts how often a text stands in the request, in texts of any role,
// tool results and the system parameter.
func (r *Request) Copies(text string) int {
	n := 0
	for _, s := range r.System {
		n += strings.Count(s, text)
	}
	for _, m := range r.Messages {
		for _, c := range m.Content {
			n += strings.Count(c.Text, text)
		}
	}
	return n
}

func (r *Request) newestUser() Message {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "user" {
			return r.Messages[i]
		}
	}
	return Message{}
}

func parse(body []byte, h http.Header) (*Request, error) {
	var in struct {
		Model    string          `json:"model"`
		Stream   bool            `json:"stream"`
		System   json.RawMessage `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Metadata struct {
			UserID string `json:"user_id"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("cannot read the request: %w", err)
	}
	r := &Request{At: time.Now(), Model: in.Model, Stream: in.Stream, Body: body}
	r.Session = h.Get("X-Claude-Code-Session-Id")
	r.Key, r.Bearer = h.Get("X-Api-Key"), strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
	for _, b := range blocks(in.System) {
		r.System = append(r.System, b.Text)
	}
	for _, m := range in.Messages {
		r.Messages = append(r.Messages, Message{Role: m.Role, Content: blocks(m.Content)})
	}
	for _, t := range in.Tools {
		r.Tools = append(r.Tools, t.Name)
	}
	if r.Session == "" {
		r.Session = in.Metadata.UserID
	}
	return r, nil
}

// blocks reads a content: a string, or a list of blocks. The client sends the
// same message in either form at different times.
func blocks(raw json.RawMessage) []Block {
	var text string
	if json.Unmarshal(raw, &text) == nil && text != "" {
		return []Block{{Type: "text", Text: unframed(text)}}
	}
	var list []struct {
		Type    string          `json:"type"`
		Text    string          `json:"text"`
		Name    string          `json:"name"`
		ToolUse string          `json:"tool_use_id"`
		Failed  bool            `json:"is_error"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	var out []Block
	for _, b := range list {
		block := Block{Type: b.Type, Text: unframed(b.Text), Name: b.Name, ToolUse: b.ToolUse, Failed: b.Failed}
		for _, inner := range blocks(b.Content) {
			block.Text += inner.Text
		}
		out = append(out, block)
	}
	return out
}
