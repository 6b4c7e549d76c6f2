package hook

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/handover"
	"heartbeat/hook/inbox"
)

// longPrefix begins the names of the files in which prompts are handed over that the
// client would cut, and keptLong is how many of them are kept.
const (
	longPrefix = "prompt-"
	keptLong   = 4
)

// longFile names a new file for a text if the client that writes a transcript may cut
// it, or returns "".
func longFile(home, transcript, text string) string {
	if !client.Claude.Hooks.Cuts("", text) || !client.Claude.Hooks.Cuts(handover.ClientOf(transcript), text) {
		return ""
	}
	return filepath.Join(home, longPrefix+time.Now().UTC().Format("20060102T150405.000000000Z")+".txt")
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
		return folder.Thin(longPrefix, keptLong)
	})
	if err != nil {
		_, back := h.TakeBack(f)
		return "", errors.Join(fmt.Errorf("cannot hand over entry %s by a file: %w", f.DeliveryID, err), back)
	}
	return text, nil
}
