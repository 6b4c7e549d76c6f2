// Package transcript reads what an agent said and did from the client's own record
// of a conversation, a JSONL file (measured with 2.1.329). The client may change
// the format, and the agent can write the file: what is not understood is skipped,
// every line is limited, and no link is followed. It is for people to read; nothing
// is decided from it.
package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/foreign"
	"heartbeat/hook/handover"
)

// Kind is the kind of a line of a conversation.
type Kind string

// The kinds.
const (
	Prompt Kind = "prompt" // what it was given
	Text   Kind = "text"   // what the agent said
	Tool   Kind = "tool"   // a tool that it called
	Result Kind = "result" // what the tool answered
)

// Line is one thing that was said or done.
type Line struct {
	At   time.Time `json:"at"`
	Kind Kind      `json:"kind"`
	// Name is the tool's.
	Name foreign.Text `json:"name,omitempty"`
	// Text is a prompt, a text, a tool's input as JSON, or its answer; at most 16
	// KiB of it, then it ends with "…".
	Text foreign.Text `json:"text"`
	// Failed is true for the result of a tool that failed.
	Failed bool `json:"failed,omitempty"`
}

const (
	maxLine = 16 << 20 // longer lines are skipped
	maxText = 16 << 10
	// maxLook is how much of a file is read at once, from its end: an agent can
	// make the file any size.
	maxLook = 256 << 20
)

// Reader reads a transcript, and continues where it stopped when more was written.
type Reader struct {
	f  *os.File
	at int64 // the end of the last whole line
	// within is true if at is inside a line, whose rest is skipped.
	within bool
}

// Open opens a transcript, as Find names it. Neither it nor its folder may be a
// link.
func Open(path string) (*Reader, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read transcript: %w", err)
	}
	return &Reader{f: f}, nil
}

func open(path string) (*os.File, error) {
	if filepath.Ext(path) != ".jsonl" {
		return nil, fmt.Errorf("the name %q does not end in .jsonl", path)
	}
	folder, name := filepath.Split(path)
	projects, err := durable.Open(filepath.Dir(filepath.Clean(folder)))
	if err != nil {
		return nil, err
	}
	defer projects.Close()
	project, err := projects.Sub(filepath.Base(folder))
	if err != nil {
		return nil, err
	}
	defer project.Close()
	return project.OpenFile(name, os.O_RDONLY)
}

// Close closes the file.
func (r *Reader) Close() error { return r.f.Close() }

// Each calls do with what was said and done since the last call, until do returns
// false. Of a very large file it reads only the end.
func (r *Reader) Each(do func(Line) bool) error {
	info, err := r.f.Stat()
	if err != nil {
		return fmt.Errorf("cannot read transcript: %w", err)
	}
	if info.Size()-r.at > maxLook {
		r.at, r.within = info.Size()-maxLook, true
	}
	in := bufio.NewReaderSize(io.NewSectionReader(r.f, r.at, info.Size()-r.at), 64<<10)
	for {
		line, length, err := durable.Line(in, maxLine)
		if errors.Is(err, io.EOF) && length > maxLine {
			r.at, r.within = r.at+length, true // it is not read again
		}
		if errors.Is(err, io.EOF) {
			return nil // the rest of the line is still to come
		}
		if err != nil {
			return fmt.Errorf("cannot read transcript: %w", err)
		}
		r.at += length
		if r.within {
			r.within = false
			continue
		}
		for _, l := range parse(line) {
			if !do(l) {
				return nil
			}
		}
	}
}

// Skip has Each begin with the last so many bytes, at the first line that begins there.
func (r *Reader) Skip(but int64) error {
	info, err := r.f.Stat()
	if err != nil {
		return fmt.Errorf("cannot read transcript: %w", err)
	}
	r.at = max(0, info.Size()-but)
	r.within = r.at > 0
	return nil
}

// lastLooks are how much of the end of a file Last reads: little first.
var lastLooks = []int64{64 << 10, 1 << 20}

// Last returns the last wanted line near the end of the file, if there is one. Each
// continues after it.
func (r *Reader) Last(wanted func(Line) bool) (last Line, found bool, err error) {
	for _, look := range lastLooks {
		info, err := r.f.Stat()
		if err != nil {
			return Line{}, false, fmt.Errorf("cannot read transcript: %w", err)
		}
		if err := r.Skip(look); err != nil {
			return Line{}, false, err
		}
		err = r.Each(func(l Line) bool {
			if wanted(l) {
				last, found = l, true
			}
			return true
		})
		if err != nil || found || info.Size() <= look {
			return last, found, err
		}
	}
	return Line{}, false, nil
}

// record is a line of the file, as far as it is read.
type record struct {
	Type      string    `json:"type"`
	Sidechain bool      `json:"isSidechain"` // a subagent's
	Timestamp time.Time `json:"timestamp"`
	Message   struct {
		Content json.RawMessage `json:"content"`
	} `json:"message"`
}

// block is a part of a message.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

func parse(line []byte) []Line {
	var r record
	if json.Unmarshal(line, &r) != nil || r.Sidechain || r.Type != "user" && r.Type != "assistant" {
		return nil
	}
	var lines []Line
	for _, b := range blocks(r.Message.Content) {
		l := Line{At: r.Timestamp}
		switch {
		case b.Type == "text" && r.Type == "user":
			l.Kind, l.Text = Prompt, foreign.Text(handedOver(b.Text))
		case b.Type == "text":
			l.Kind, l.Text = Text, foreign.Text(b.Text)
		case b.Type == "tool_use":
			l.Kind, l.Name, l.Text = Tool, foreign.Text(b.Name), foreign.Text(compact(b.Input))
		case b.Type == "tool_result":
			l.Kind, l.Text, l.Failed = Result, foreign.Text(plain(b.Content)), b.IsError
		default:
			continue
		}
		l.Text = foreign.Text(cut(l.Text.Raw()))
		lines = append(lines, l)
	}
	return lines
}

// blocks returns the parts of a message: a text, or a list.
func blocks(content json.RawMessage) []block {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	list, _ := foreign.List[block](content) // what is no list has no parts
	return list
}

// handedOver strips what precedes an entry: our first line of a prompt argument, or
// what the client puts before the words of a Stop hook, a line and the hook's
// command in brackets.
func handedOver(text string) string {
	text = strings.TrimPrefix(text, handover.KickoffPrompt(""))
	rest, ok := strings.CutPrefix(text, "Stop hook feedback:\n")
	if !ok {
		return text
	}
	if command, entry, ok := strings.Cut(rest, "]: "); ok && strings.HasPrefix(command, "[") && !strings.Contains(command, "\n") {
		return entry
	}
	return rest
}

// plain returns the text of a tool's answer.
func plain(content json.RawMessage) string {
	var texts []string
	for _, b := range blocks(content) {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		} else if b.Type != "" {
			texts = append(texts, "["+b.Type+"]")
		}
	}
	return strings.Join(texts, "\n")
}

func compact(input json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, input) != nil {
		return ""
	}
	return b.String()
}

func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}
