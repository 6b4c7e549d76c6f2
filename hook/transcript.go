package hook

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"heartbeat/hook/inbox"
)

// Bounds of one look at a transcript: it is the client's file, but the agent
// may write it.
const (
	maxTranscript     = 64 << 20
	maxTranscriptLine = 16 << 20
)

// Transcripts are written behind (claude-code.md 21 L).
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
	// since is when it was offered: an equal text handed over earlier may
	// have been written only after the offset was noted.
	since time.Time
	via   inbox.Via
	text  string // as PromptFor gives it
}

// wait looks until the hand-over stands in the transcript or patience is over.
func (h handover) wait(patience time.Duration) bool {
	deadline := time.Now().Add(patience)
	for {
		found, next := h.look()
		if found {
			return true
		}
		h.offset = next
		if !time.Now().Add(lookAgain).Before(deadline) {
			return false
		}
		time.Sleep(lookAgain)
	}
}

// look reads the complete lines from the offset on. It returns where the
// next look goes on. What cannot be read proves nothing.
func (h handover) look() (found bool, next int64) {
	f, err := openTranscript(h.path)
	if err != nil {
		return false, h.offset
	}
	defer f.Close()
	if _, err := f.Seek(h.offset, io.SeekStart); err != nil {
		return false, h.offset
	}
	in := bufio.NewReaderSize(io.LimitReader(f, maxTranscript), 64<<10)
	next = h.offset
	for {
		line, length, err := readLine(in)
		if err != nil {
			return false, next
		}
		next += length
		if h.matches(line) {
			return true, next
		}
	}
}

func openTranscript(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, errors.Join(err, fmt.Errorf("%q is not a regular file", path))
	}
	return f, nil
}

// readLine returns a complete line and its length with the newline. Of a line
// over maxTranscriptLine only the length comes back.
func readLine(in *bufio.Reader) (line []byte, length int64, err error) {
	for {
		part, err := in.ReadSlice('\n')
		length += int64(len(part))
		if length <= maxTranscriptLine {
			line = append(line, part...)
		} else {
			line = nil
		}
		if err == nil || !errors.Is(err, bufio.ErrBufferFull) {
			return line, length, err
		}
	}
}

// matches reports whether a line is the user message that carries the entry.
// Measured in 2.1.329: {"type":"user","message":{"role":"user","content":C},
// "timestamp":…} where C is the prompt itself, or the feedback line followed
// by "[COMMAND]: " and the text of exit 2, or by the reason of a block.
func (h handover) matches(line []byte) bool {
	if !bytes.Contains(line, []byte(`"user"`)) {
		return false
	}
	var record struct {
		Type      string    `json:"type"`
		Sidechain bool      `json:"isSidechain"`
		Timestamp time.Time `json:"timestamp"`
		Message   struct {
			Content json.RawMessage `json:"content"`
		} `json:"message"`
	}
	if json.Unmarshal(line, &record) != nil || record.Type != "user" || record.Sidechain {
		return false
	}
	// The client's clock has milliseconds.
	if !record.Timestamp.IsZero() && record.Timestamp.Before(h.since.Truncate(time.Millisecond)) {
		return false
	}
	return slices.ContainsFunc(texts(record.Message.Content), h.carries)
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

// transcriptSize is where the record of what is handed over now would appear.
func transcriptSize(path string) int64 {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0
	}
	return info.Size()
}
