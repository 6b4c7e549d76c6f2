package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/crashpoint"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
)

// The files in which prompts are handed over that the client would cut are named
// longPrefix, longTime and longSuffix; keptLong is how many of them are kept.
const (
	longPrefix = "prompt-"
	longTime   = "20060102T150405.000000000Z"
	longSuffix = ".txt"
	keptLong   = 4
)

// NeedsFile reports whether the client that writes a transcript may cut a text that a Stop
// hook hands over.
func NeedsFile(transcript, text string) bool {
	return client.Claude.Hooks.Cuts("", text) && client.Claude.Hooks.Cuts(VersionOf(transcript), text)
}

// longFile names a new file for a text that needs one, or returns "".
func longFile(home, transcript, text string) string {
	if !NeedsFile(transcript, text) {
		return ""
	}
	return filepath.Join(home, longPrefix+time.Now().UTC().Format(longTime)+longSuffix)
}

// NextPatience is how long Offer waits for the transcript to show the entry before: the hook
// lock is held meanwhile. Tests shorten it.
var NextPatience = time.Second

// Offerer records what is handed over: the holder of a queue, or of a session's.
type Offerer interface {
	Offer(*inbox.Entry, inbox.Offering) (*inbox.InFlight, error)
	Reoffer(inbox.Offering) (*inbox.Entry, *inbox.InFlight, error)
	TakeBack(*inbox.InFlight) (bool, error)
}

// Offer records an entry as offered by a Stop hook or, without one, what is in flight as
// offered again, and returns the text by which it is handed over. A file that this names is
// in home. last was in flight before.
func Offer(h Offerer, home string, e *inbox.Entry, again *inbox.InFlight, o inbox.Offering, last *inbox.InFlight) (text string, f *inbox.InFlight, err error) {
	if e == nil {
		if again != nil {
			o.File = longFile(home, o.Transcript, Whole(again, again.Prompt()))
		}
		o.TranscriptOffset = TranscriptSize(o.Transcript)
		e, f, err = h.Reoffer(o)
	} else {
		o.File = longFile(home, o.Transcript, e.Prompt)
		o.TranscriptOffset = NextOffset(o.Transcript, e.Prompt, last, NextPatience)
		f, err = h.Offer(e, o)
	}
	if err != nil {
		return "", nil, err
	}
	crashpoint.At("offered")
	text, err = wording(h, f, e.Prompt)
	return text, f, err
}

// wording returns the text by which an entry that was offered is handed over. A file
// that it names is on disk then; where that cannot be, the offer is taken back.
func wording(h Offerer, f *inbox.InFlight, prompt string) (string, error) {
	text := PromptFor(f, prompt)
	if f.File == "" {
		return text, nil
	}
	err := durable.Within(filepath.Dir(filepath.Dir(f.File)), filepath.Dir(f.File), func(folder *durable.Folder) error {
		err := folder.Replace(filepath.Base(f.File), []byte(Whole(f, prompt)))
		if err == nil {
			thinLong(folder, filepath.Base(f.File))
		}
		return err
	})
	if err != nil {
		_, back := h.TakeBack(f)
		return "", errors.Join(fmt.Errorf("cannot hand over entry %s by a file: %w", f.DeliveryID, err), back)
	}
	return text, nil
}

// thinLong removes the oldest of our files, and never the new one, whatever the clock
// says. The folder may be somebody's own, with names like ours. What cannot be removed
// stays: that is no reason to hand nothing over.
func thinLong(folder *durable.Folder, added string) {
	entries, err := folder.Entries()
	if err != nil {
		return
	}
	var ours []string
	for _, e := range entries {
		at, ok := strings.CutSuffix(strings.TrimPrefix(e.Name(), longPrefix), longSuffix)
		if _, err := time.Parse(longTime, at); ok && err == nil && e.Name() != added && longPrefix+at+longSuffix == e.Name() {
			ours = append(ours, e.Name())
		}
	}
	slices.Sort(ours)
	for _, name := range ours[:max(0, len(ours)+1-keptLong)] {
		_ = folder.Remove(name)
	}
}

// longTry is the file with which Unhandable finds out whether one can be written, and tryRoom
// is for what else a session writes before that.
const (
	longTry = ".prompt-try"
	tryRoom = 256 << 10
)

// Unhandable returns why a session could not hand over what it would begin with, or nil:
// the client cuts it, and the file by which it gets there cannot be written.
func Unhandable(p inbox.Place) error {
	if !mayHoldLong(p.Inbox) {
		return nil
	}
	text, err := firstText(p)
	if err != nil || client.Claude.Carries(text) || !client.Claude.Hooks.Cuts("", text) {
		return nil // what else is wrong with the queue is said elsewhere
	}
	what, err := trial(text)
	if err != nil {
		return err
	}
	return durable.Within(filepath.Dir(p.Home), p.Home, func(folder *durable.Folder) error {
		err := folder.Put(longTry, what)
		return errors.Join(err, folder.Remove(longTry))
	})
}

// trial takes as much room as a session needs to hand a text over: before the file, the
// record of what is in flight is written, with the text as JSON, perhaps beside the one that
// it replaces.
func trial(text string) ([]byte, error) {
	asJSON, err := json.Marshal(text)
	return slices.Concat([]byte(text), asJSON, asJSON, make([]byte, tryRoom)), err
}

// mayHoldLong reports whether a queue's files are so large that a long prompt may be in
// them.
func mayHoldLong(path string) bool {
	return slices.ContainsFunc([]string{path, inbox.Urgent(path)}, func(name string) bool {
		info, err := os.Lstat(name)
		return err == nil && (info.Size() > client.MostWhole || !info.Mode().IsRegular())
	})
}

// firstText is what a session that starts now is handed over first; "" for nothing.
func firstText(p inbox.Place) (string, error) {
	q, err := inbox.Open(p)
	if err != nil {
		return "", err
	}
	defer q.Close()
	f, err := q.Peek()
	if err != nil || f != nil {
		return wholeOf(f), err
	}
	next, err := q.List(1)
	if len(next) == 0 || err != nil {
		return "", err
	}
	return next[0].Prompt, nil
}

func wholeOf(f *inbox.InFlight) string {
	if f == nil {
		return ""
	}
	return Whole(f, f.Prompt())
}
