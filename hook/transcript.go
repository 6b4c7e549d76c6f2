package hook

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
)

// Bounds of one look at a transcript: it is the client's file, but the agent
// may write it.
const (
	maxTranscript     = 64 << 20
	maxTranscriptLine = 16 << 20
)

// lookAgain is the pause between two looks at what is written behind.
const lookAgain = 20 * time.Millisecond

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

// FindTranscript looks in a client's configuration folder for the transcript of
// a conversation; "" when the client has written none. An error means that this
// cannot be told.
func FindTranscript(configDir, id string) (string, error) {
	if id == "" || filepath.Base(id) != id || !filepath.IsAbs(configDir) {
		return "", fmt.Errorf("cannot look for the conversation %q in %q", id, configDir)
	}
	projects, err := durable.Open(filepath.Join(configDir, client.Claude.Transcript.Folder))
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
		found = client.Claude.Transcript.Begun(line)
		return !found
	})
	return found
}

// matches reports whether a line shows that the entry reached the model.
func (h handover) matches(line []byte) bool {
	t := client.Claude.Transcript
	switch h.via {
	case inbox.ViaResume:
		return t.Asked(line, GoOnPrompt)
	case inbox.ViaKickoff:
		return t.Asked(line, KickoffPrompt(h.text))
	}
	return t.HandedOver(line, h.text)
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
