package hook

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/handover"
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

// longFile names a new file for a text if the client that writes a transcript may cut
// it, or returns "".
func longFile(home, transcript, text string) string {
	if !client.Claude.Hooks.Cuts("", text) || !client.Claude.Hooks.Cuts(handover.VersionOf(transcript), text) {
		return ""
	}
	return filepath.Join(home, longPrefix+time.Now().UTC().Format(longTime)+longSuffix)
}

// wording returns the text by which an entry that was offered is handed over. A file
// that it names is on disk then; where that cannot be, the offer is taken back.
func wording(h *inbox.Held, f *inbox.InFlight, prompt string) (string, error) {
	text := handover.PromptFor(f, prompt)
	if f.File == "" {
		return text, nil
	}
	err := inHome(filepath.Dir(f.File), func(folder *durable.Folder) error {
		if err := folder.Replace(filepath.Base(f.File), []byte(handover.Whole(f, prompt))); err != nil {
			return err
		}
		return thinLong(folder, filepath.Base(f.File))
	})
	if err != nil {
		_, back := h.TakeBack(f)
		return "", errors.Join(fmt.Errorf("cannot hand over entry %s by a file: %w", f.DeliveryID, err), back)
	}
	return text, nil
}

// thinLong removes the oldest of our files, and never the new one, whatever the clock
// says. The folder may be somebody's own, with names like ours.
func thinLong(folder *durable.Folder, added string) error {
	entries, err := folder.Entries()
	if err != nil {
		return err
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
		err = errors.Join(err, folder.Remove(name))
	}
	return err
}
