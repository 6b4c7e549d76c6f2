package fakeapi

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const forever = 24 * time.Hour

// Rule says which requests get which answer.
type Rule struct {
	// Match is a text that the request's newest user message must contain, or a file that
	// this says a task is in; "" matches every one. With AfterTool it is looked for in the tool
	// result instead.
	Match string
	// AfterTool makes the rule one for requests whose newest user message
	// brings a tool's result. Other rules never match these, so a rule that
	// asks for a tool is not asked again by its own result.
	AfterTool bool
	// Times bounds how often the rule is used; 0 means always.
	Times  int
	Answer Answer
	// Then are the answers to the results of the tools that Answer asked for,
	// one after the other, before any rule is looked at.
	Then []Answer
}

// Answer is what a model call gets. The zero value is an empty text.
type Answer struct {
	Text  string    // the assistant's text; left out before tools when ""
	Tools []ToolUse // tools the assistant asks for, after the text
	Empty bool      // neither: no content at all

	// Status, when 400 or more, makes the answer an API error.
	Status    int
	ErrorType string // e.g. "rate_limit_error"
	Message   string
	Header    http.Header // of any answer, e.g. {"X-Should-Retry": {"false"}}

	Usage Usage // what it cost; zero: a few tokens

	Delay time.Duration // before anything is sent
	Await string        // a file that has to be there before anything is sent
	Pause time.Duration // between the pieces of a streamed text
	Hang  Hang
	Break Break

	unread *Answer // instead, if the tool before it has failed
}

// ToolUse is one tool_use block.
type ToolUse struct {
	Name  string
	Input map[string]any
}

// Hang says where an answer stops for ever. It ends when the client goes away
// or the server is closed.
type Hang string

// Where an answer may hang.
const (
	HangBeforeHeaders Hang = "before-headers" // the request is read, nothing comes
	HangAfterHeaders  Hang = "after-headers"  // status and headers, no event
	HangMidText       Hang = "mid-text"       // half of the text
	HangPinging       Hang = "pinging"        // half of the text, then a ping every five seconds
)

// Break says how a streamed answer ends in the middle of its text.
type Break string

// How an answer may break.
const (
	BreakCut   Break = "cut"   // the connection is closed
	BreakError Break = "error" // an error event: overloaded
)

// Bash is the tool use that runs a command in the foreground.
func Bash(command string) ToolUse {
	return ToolUse{Name: "Bash", Input: map[string]any{"command": command, "description": "run a command"}}
}

// Read is the tool use that reads the first line of a file, however long that is (the last
// since 2.1.332).
func Read(path string) ToolUse {
	return ToolUse{Name: "Read", Input: map[string]any{"file_path": path, "limit": 1, "allow_large": true}}
}

// CannotRead is what a model says of a task in a file that it may not read.
const CannotRead = "I cannot read the file."

// inFile is how heartbeat says that a task is in a file.
var inFile = regexp.MustCompile(`It is in the file ("(?:[^"\\\n]|\\.)*"), which has`)

// TaskFile returns the file that has what a model is asked to do, and what it says; false:
// it is asked that itself.
func TaskFile(asked string) (path, task string, is bool) {
	m := inFile.FindStringSubmatch(asked)
	if m == nil {
		return "", "", false
	}
	path, err := strconv.Unquote(m[1])
	if err != nil {
		return "", "", false
	}
	data, err := os.ReadFile(path)
	return path, string(data), err == nil
}

// BackgroundBash is the tool use that starts a command in the background.
func BackgroundBash(command string) ToolUse {
	t := Bash(command)
	t.Input["run_in_background"] = true
	return t
}

// matches reports whether a rule is for a request; asked is what the model is asked.
func (r *rule) matches(req *Request, asked string) bool {
	last := req.newestUser()
	result, isResult := last.toolResult()
	if r.AfterTool != isResult {
		return false
	}
	if r.AfterTool {
		return strings.Contains(result, r.Match)
	}
	return strings.Contains(asked, r.Match)
}
