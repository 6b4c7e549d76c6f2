package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/state"
)

// Texts that are recorded at once share files: each file has the names of all texts that it
// holds, as links, so that each is found and forgotten by itself. Making a name takes a tenth
// of the time that a file takes. The limits bound what is read for one text.
const (
	mostTogether      = 64
	mostBytesTogether = 256 << 10
)

// texts are what a file holds: one text, or those that were recorded together.
type texts []Text

// UnmarshalJSON reads either.
func (all *texts) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("[")) {
		return json.Unmarshal(data, (*[]Text)(all))
	}
	*all = make(texts, 1)
	return json.Unmarshal(data, &(*all)[0])
}

// textsIn returns what a file holds; nothing for one that is not there, or damaged by a power
// cut.
func textsIn(load func(v any) error) (all texts, err error) {
	err = load(&all)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, state.ErrDamaged) {
		return nil, nil
	}
	return all, err
}

// textIn returns the text of an entry of an inbox from a file, or nil.
func textIn(id, inbox string, load func(v any) error) (*Text, error) {
	all, err := textsIn(load)
	if i := slices.IndexFunc(all, func(t Text) bool { return t.ID == id && t.Inbox == inbox }); i >= 0 && err == nil {
		return &all[i], nil
	}
	return nil, err
}

// keeper records the texts of one inbox.
type keeper struct {
	stateDir, inbox string
	folder          *state.Folder
	// together are those that are not recorded yet, size is how long they are.
	together texts
	size     int
}

// keep records what an entry says, by the next flush at the latest.
func (k *keeper) keep(l inbox.Letter) error {
	demand, err := DemandOf(k.stateDir, k.inbox, l.ID)
	if err != nil || demand != nil && demand.Nothing {
		return k.fails(l.ID, err)
	}
	if i := slices.IndexFunc(k.together, func(t Text) bool { return t.ID == l.ID }); i >= 0 {
		k.together[i].Unsure = k.together[i].Unsure || k.together[i].Text != l.Prompt
		return nil
	}
	t := Text{ID: l.ID, Inbox: k.inbox, Text: l.Prompt}
	known, err := textIn(l.ID, k.inbox, func(v any) error { return k.folder.Load(textName(l.ID), v) })
	switch {
	case err != nil:
		return k.fails(l.ID, err)
	case known != nil: // its name is taken
		t.Unsure = known.Unsure || known.Text != t.Text
		return k.alone(t)
	}
	if len(k.together) == mostTogether || k.size+len(t.Text) > mostBytesTogether {
		err = k.flush()
	}
	k.together, k.size = append(k.together, t), k.size+len(t.Text)
	return err
}

// flush records what is not recorded yet. Interrupted, some of it is.
func (k *keeper) flush() (err error) {
	all := k.together
	k.together, k.size = nil, 0
	if len(all) < 2 {
		for _, t := range all {
			err = errors.Join(err, k.alone(t))
		}
		return err
	}
	first := textName(all[0].ID)
	if err := k.folder.Put(first, all); err != nil {
		return fmt.Errorf("cannot record what %d entries say: %w", len(all), err)
	}
	for _, t := range all[1:] {
		if k.folder.Link(first, textName(t.ID)) != nil { // what stands there is damaged, or there are no links here
			err = errors.Join(err, k.alone(t))
		}
	}
	return err
}

// alone records a text in a file of its own.
func (k *keeper) alone(t Text) error { return k.fails(t.ID, k.folder.Put(textName(t.ID), t)) }

func (k *keeper) fails(id string, err error) error {
	if err != nil {
		err = fmt.Errorf("cannot record what entry %q says: %w", id, err)
	}
	return err
}

// reader reads the files of texts, each one once, whatever its names.
type reader struct {
	shared []struct {
		file fs.FileInfo
		texts
	}
}

func (r *reader) read(path string) (texts, error) {
	info, err := os.Lstat(path)
	if err == nil {
		for i := range r.shared {
			if os.SameFile(r.shared[i].file, info) {
				return r.shared[i].texts, nil
			}
		}
	}
	all, failed := textsIn(func(v any) error { return state.Load(path, v) })
	if failed == nil && err == nil && len(all) > 1 {
		r.shared = append(r.shared, struct {
			file fs.FileInfo
			texts
		}{info, all})
	}
	return all, failed
}
