package hook

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
)

// Bounds of one look at a transcript: it is the client's file, but the agent
// may write it.
const (
	maxTranscript     = 64 << 20
	maxTranscriptLine = 16 << 20
)

// Transcripts are written behind: up to 2 s (measured in 2.1.329).
const (
	writtenBehind = 2 * time.Second
	lookAgain     = 20 * time.Millisecond
)

// feedback begins the user message in which a Stop hook's text stands.
const feedback = "Stop hook feedback:\n"

// handover is what a transcript is searched for.
type handover struct {
	path   string
	offset int64 // nothing before it is looked at
	via    inbox.Via
	text   string // as PromptFor gives it
}

// nothingProves is the offset of a hand-over that a transcript cannot prove.
const nothingProves = math.MaxInt64

// wait looks until the hand-over stands in the transcript or patience is over.
func (h handover) wait(patience time.Duration) inbox.Arrival {
	deadline := time.Now().Add(patience)
	for {
		arrived, next := h.look()
		if arrived == inbox.Seen || !time.Now().Add(lookAgain).Before(deadline) {
			return arrived
		}
		h.offset = next
		time.Sleep(lookAgain)
	}
}

// look reads the complete lines from the offset on. It returns where the
// next look goes on.
func (h handover) look() (arrived inbox.Arrival, next int64) {
	arrived, next = inbox.Unseen, h.offset
	err := eachLine(h.path, h.offset, func(line []byte, end int64) bool {
		if next = end; h.matches(line) {
			arrived = inbox.Seen
		}
		return arrived != inbox.Seen
	})
	if err != nil {
		return inbox.Unknown, next
	}
	return arrived, next
}

// eachLine calls do with the complete lines of a transcript from an offset on
// and where each ends, until do returns false. A transcript that is shorter, or
// has more than is looked at, is an error.
func eachLine(path string, offset int64, do func(line []byte, end int64) bool) error {
	f, err := durable.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.Size() < offset:
		return fmt.Errorf("%q is shorter than it was", path)
	case info.Size()-offset > maxTranscript:
		return fmt.Errorf("%q has more than %d bytes to look at", path, maxTranscript)
	}
	if _, err := f.Seek(offset, io.SeekStart); err != nil {
		return err
	}
	in := bufio.NewReaderSize(io.LimitReader(f, maxTranscript), 64<<10)
	for {
		line, length, err := durable.Line(in, maxTranscriptLine)
		if errors.Is(err, io.EOF) {
			return nil // the rest of a line is to come
		}
		if err != nil {
			return err
		}
		if offset += length; !do(line, offset) {
			return nil
		}
	}
}

// ConfigDir is where a client with an environment keeps its conversations
// (measured in 2.1.329). Of a name that stands there twice the last one counts.
func ConfigDir(env []string) string {
	var dir, home string
	for _, kv := range env {
		switch name, value, _ := strings.Cut(kv, "="); name {
		case "CLAUDE_CONFIG_DIR":
			dir = value
		case "HOME":
			home = value
		}
	}
	return cmp.Or(dir, filepath.Join(home, ".claude"))
}

// FindTranscript looks in a client's configuration folder for the transcript of
// a conversation; "" when the client has written none. An error means that this
// cannot be told. Measured in 2.1.329: projects/DIRECTORY/ID.jsonl.
func FindTranscript(configDir, id string) (string, error) {
	if id == "" || filepath.Base(id) != id || !filepath.IsAbs(configDir) {
		return "", fmt.Errorf("cannot look for the conversation %q in %q", id, configDir)
	}
	projects, err := durable.Open(filepath.Join(configDir, "projects"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer projects.Close()
	entries, err := projects.Entries()
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		name := filepath.Join(e.Name(), id+".jsonl")
		if info, err := projects.Stat(name); err == nil && info.Mode().IsRegular() {
			return filepath.Join(projects.Path(), name), nil
		}
	}
	if len(entries) >= durable.MaxEntries {
		return "", fmt.Errorf("there are over %d folders in %q", durable.MaxEntries, projects.Path())
	}
	return "", nil
}

// Prompted reports whether a transcript holds a prompt, or an answer, behind an
// offset. What cannot be read holds none.
func Prompted(path string, offset int64) bool {
	found := false
	_ = eachLine(path, offset, func(line []byte, _ int64) bool {
		var record struct{ Type string }
		found = json.Unmarshal(line, &record) == nil && (record.Type == "user" || record.Type == "assistant")
		return !found
	})
	return found
}

// matches reports whether a line is the user message that carries the entry.
// Measured in 2.1.329: {"type":"user","message":{"role":"user","content":C},
// "timestamp":…} where C is the prompt itself, or the feedback line followed
// by "[COMMAND]: " and the text of exit 2, or by the reason of a block.
func (h handover) matches(line []byte) bool {
	if !bytes.Contains(line, []byte(`"user"`)) {
		return false
	}
	return slices.ContainsFunc(said("user", line), h.carries)
}

// said returns the texts of a line that is a message of the main conversation.
func said(role string, line []byte) []string { return texts(message(role, line)) }

// message returns the content of a line that is a message of the main
// conversation, or nil.
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

// callsTool reports whether a line is the agent's call of a tool.
func callsTool(line []byte) bool {
	if !bytes.Contains(line, []byte(`"tool_use"`)) {
		return false
	}
	var blocks []struct{ Type string }
	return json.Unmarshal(message("assistant", line), &blocks) == nil &&
		slices.ContainsFunc(blocks, func(b struct{ Type string }) bool { return b.Type == "tool_use" })
}

// cutShort reports whether a line says of a Stop that a hook had the client stop
// there, whatever others said.
func cutShort(line []byte) bool {
	if !bytes.Contains(line, []byte(`"stop_hook_summary"`)) {
		return false
	}
	var r stopRecord
	return json.Unmarshal(line, &r) == nil && r.Subtype == "stop_hook_summary" && !r.Sidechain && r.Prevented
}

// texts returns a message's content: a string, or the text blocks of a list.
func texts(content json.RawMessage) []string {
	var one string
	if json.Unmarshal(content, &one) == nil {
		return []string{one}
	}
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &blocks) != nil {
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

func (h handover) carries(content string) bool {
	want := plainTags(h.text)
	content = plainTags(content)
	if h.via == inbox.ViaResume {
		return samePrompt(content, GoOnPrompt)
	}
	if h.via == inbox.ViaKickoff {
		return samePrompt(content, plainTags(KickoffPrompt(h.text)))
	}
	rest, ok := strings.CutPrefix(content, feedback)
	if !ok {
		return false
	}
	if rest == want {
		return true
	}
	command, ok := strings.CutSuffix(rest, "]: "+want)
	return ok && strings.HasPrefix(command, "[") && !strings.Contains(command, "\n")
}

// plainTags undoes the client's escape of <system-reminder> tags, in both
// texts that are compared.
func plainTags(s string) string { return strings.ReplaceAll(s, "&lt;", "<") }

// samePrompt compares a submitted prompt with ours. 2.1.329 passes it on to
// the byte; blank space at the ends is forgiven in case another one does not.
func samePrompt(got, want string) bool {
	return strings.TrimSpace(got) == strings.TrimSpace(want)
}

// TranscriptSize is where the record of what is handed over now would appear.
func TranscriptSize(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}

// nextOffset is TranscriptSize for a prompt that follows a hand-over of the
// same client. An equal one before it may not be written yet, and would prove
// this one: it is waited for, with the hook lock held.
func nextOffset(path, prompt string, before *inbox.InFlight) int64 {
	if before != nil && before.Via == inbox.ViaStop && before.Prompt() == prompt && before.TranscriptOffset != nothingProves {
		h := handoverOf(before)
		if h.path == "" {
			h.path = path
		}
		if h.path == path && h.wait(lineBehind) != inbox.Seen {
			return nothingProves
		}
	}
	return TranscriptSize(path)
}
