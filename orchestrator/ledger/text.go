package ledger

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/state"
)

// Text is what an entry says that one of our senders has queued and that has to be proven.
// It is kept here until the entry ends, because the agent can write the inbox.
type Text struct {
	ID    string `json:"id"`
	Inbox string `json:"inbox"`
	Text  string `json:"text"`
	// Unsure is true if two entries of different texts were queued with the id. Then
	// neither is known.
	Unsure bool `json:"unsure,omitempty"`
}

// textFolder returns the folder with the texts of one inbox.
func textFolder(stateDir, inbox string) string {
	return filepath.Join(stateDir, "texts", hashOf(inbox, 8))
}

func textName(id string) string { return hashOf(id, 16) + ".json" }

func hashOf(s string, bytes int) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:bytes])
}

// Queued records what entries say that were queued just now, of those that may have to be
// proven. Every sender of ours calls it, and whoever queues dead letters again. It is not
// synced: after a power cut an entry may be unknown, as a line that somebody else has
// written.
func Queued(stateDir string, a *config.Agent, letters ...inbox.Letter) (err error) {
	letters = slices.DeleteFunc(slices.Clone(letters), func(l inbox.Letter) bool { return l.ID == "" || a.Until == nil && !l.Checked })
	if len(letters) == 0 {
		return nil
	}
	folder, err := state.Open(textFolder(stateDir, a.Inbox))
	if err != nil {
		return fmt.Errorf("cannot record what %d entries say: %w", len(letters), err)
	}
	k := keeper{stateDir: stateDir, inbox: a.Inbox, folder: folder}
	for _, l := range letters {
		err = errors.Join(err, k.keep(l))
	}
	return errors.Join(err, k.flush(), folder.Close())
}

// TextOf returns what the entry with an id was queued with; nil: that is not known.
func TextOf(stateDir, inbox, id string) (*Text, error) {
	t, err := textAt(stateDir, inbox, id)
	if err != nil {
		return nil, fmt.Errorf("cannot tell what entry %q was queued with: %w", id, err)
	}
	if t != nil && t.Unsure {
		return nil, nil
	}
	return t, nil
}

func textAt(stateDir, inbox, id string) (*Text, error) {
	if id == "" {
		return nil, nil
	}
	path := filepath.Join(textFolder(stateDir, inbox), textName(id))
	return textIn(id, inbox, func(v any) error { return state.Load(path, v) })
}

// DropTexts forgets what entries say.
func DropTexts(stateDir, inbox string, ids ...string) (err error) {
	for _, id := range ids {
		failed := os.Remove(filepath.Join(textFolder(stateDir, inbox), textName(id)))
		if failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("cannot forget what entry %q says: %w", id, failed))
		}
	}
	return err
}

// Texts are the entries of an inbox whose text is recorded. To make them reads no text.
type Texts struct {
	folder, inbox string
	names         map[string]bool // of the files
	changed       time.Time       // the folder; zero: a moment ago, or it is not there
}

// Still reports whether these demonstrably are those that are recorded now.
func (t Texts) Still() bool { return !t.changed.IsZero() && t.changed.Equal(changed(t.folder)) }

// changed returns when a folder has changed, if that is so long ago that a later change has
// another time.
func changed(folder string) (at time.Time) {
	info, err := os.Lstat(folder)
	if err != nil || time.Since(info.ModTime()).Abs() < 2*time.Second {
		return at
	}
	return info.ModTime()
}

// TextsOf returns those of an inbox.
func TextsOf(stateDir, inbox string) (Texts, error) {
	t := Texts{folder: textFolder(stateDir, inbox), inbox: inbox, names: map[string]bool{}}
	t.changed = changed(t.folder)
	entries, err := os.ReadDir(t.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t, fmt.Errorf("cannot tell what entries were queued with: %w", err)
	}
	for _, e := range entries {
		if len(e.Name()) == len(textName("")) && filepath.Ext(e.Name()) == ".json" {
			t.names[e.Name()] = true
		}
	}
	return t, nil
}

// Len is how many there are.
func (t Texts) Len() int { return len(t.names) }

// In reports whether all of them are among others.
func (t Texts) In(others Texts) bool {
	for name := range t.names {
		if !others.names[name] {
			return false
		}
	}
	return true
}

// Without returns those whose id is not among the given ones.
func (t Texts) Without(ids []string) Texts {
	t.names = maps.Clone(t.names)
	for _, id := range ids {
		delete(t.names, textName(id))
	}
	return t
}

// Load reads the texts. A file that cannot be one is removed.
func (t Texts) Load() (all []Text, err error) {
	var r reader
	for _, name := range slices.Sorted(maps.Keys(t.names)) {
		path := filepath.Join(t.folder, name)
		known, failed := r.read(path)
		i := slices.IndexFunc(known, func(one Text) bool { return one.Inbox == t.inbox && textName(one.ID) == name })
		switch {
		case failed != nil:
			err = errors.Join(err, failed)
		case i < 0:
			_ = os.Remove(path) // the next look tries again
		default:
			all = append(all, known[i])
		}
	}
	return all, err
}
