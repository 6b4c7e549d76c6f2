package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/queue"
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

// FileFor names a new file in home for a text that needs one, or returns "".
func FileFor(home, transcript, text string) string {
	if !NeedsFile(transcript, text) {
		return ""
	}
	return filepath.Join(home, longPrefix+time.Now().UTC().Format(longTime)+longSuffix)
}

// NextPatience is how long who hands over waits for the transcript to show the entry before
// (NextOffset). Tests shorten it.
var NextPatience = time.Second

// TextOf returns the text by which an entry is handed over. A file that it names is on disk then.
func TextOf(g *queue.Given) (string, error) {
	text := PromptFor(g)
	if !ByFile(g) {
		return text, nil
	}
	file := g.Handover.File
	err := durable.Within(filepath.Dir(filepath.Dir(file)), filepath.Dir(file), func(folder *durable.Folder) error {
		err := folder.Replace(filepath.Base(file), []byte(Whole(g)))
		if err == nil {
			thinLong(folder, filepath.Base(file))
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("cannot hand over entry %s by a file: %w", g.Delivery, err)
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

// Unhandable returns why a session could not hand over the text that it would begin with, or nil:
// the client cuts it, and the file in home by which it gets there cannot be written.
func Unhandable(home, text string) error {
	if client.Claude.Carries(text) || !client.Claude.Hooks.Cuts("", text) {
		return nil
	}
	what, err := trial(text)
	if err != nil {
		return err
	}
	return durable.Within(filepath.Dir(home), home, func(folder *durable.Folder) error {
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
