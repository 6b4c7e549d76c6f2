// Package later keeps prompts that are to be sent at a time: one file each in the
// folder later of an agent's .heartbeat, synced before it counts. Whoever sends one
// puts it into the queue under its id and removes the file after that, with the
// folder's lock held, so that after a crash it is sent again and refused as a
// duplicate, and one that was cancelled is never sent.
package later

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
)

// Prompt is one that is to be sent.
type Prompt struct {
	ID   string    `json:"id"` // of its entry
	At   time.Time `json:"at"`
	Text string    `json:"prompt"`
	// Urgent puts it before those that are not.
	Urgent bool `json:"urgent,omitempty"`
	// In is how long it was to wait, if that was said and not a time; else 0.
	In time.Duration `json:"in,omitempty"`
}

// Outcomes that callers act on.
var (
	// ErrExists means that a prompt with this id waits already.
	ErrExists = errors.New("a prompt with this id waits already")
	// ErrNone means that no prompt with this id waits.
	ErrNone = errors.New("no prompt with this id waits for its time")
)

const (
	lockFile = ".lock"
	lockWait = 5 * time.Second
	// most is how many may wait for one agent; overhead is what a file has beside the
	// text, which JSON may make six times as long.
	most     = 1000
	overhead = 4096
)

// mostBytes bounds what the files of one agent hold together: the agent can put more there,
// and all of it is read each time.
func mostBytes(a *config.Agent) int64 { return max(16<<20, 2*mostOfOne(a)) }

func mostOfOne(a *config.Agent) int64 { return 6*int64(a.MaxEntry) + overhead }

// Path is the folder of an agent's prompts.
func Path(a *config.Agent) string { return a.Later() }

// fileOf names the file of a prompt: an id may have any characters.
func fileOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:12]) + ".json"
}

// Put keeps a prompt and returns it. When it returns nil, the prompt is on disk. If one
// with its id waits already, it returns that one, and the error is ErrExists.
func Put(ctx context.Context, a *config.Agent, p Prompt) (Prompt, error) {
	f, err := durable.MakeBelow(a.Dir, Path(a))
	if err != nil {
		return p, fmt.Errorf("cannot keep the prompt: %w", err)
	}
	defer f.Close()
	err = locked(ctx, f, func() error {
		all, bytes, _ := list(f, a) // what cannot be read is said by who lists them
		if i := slices.IndexFunc(all, func(o Prompt) bool { return o.ID == p.ID }); i >= 0 {
			p = all[i]
			return ErrExists
		}
		if len(all) >= most {
			return fmt.Errorf("cannot keep the prompt: %d wait for their time already", most)
		}
		data, err := json.Marshal(p)
		if err != nil {
			return err
		}
		if most := mostBytes(a); bytes+int64(len(data)) > most {
			return fmt.Errorf("cannot keep the prompt: those that wait for their time may have %d MiB together", most>>20)
		}
		return f.Replace(fileOf(p.ID), append(data, '\n'))
	})
	return p, err
}

// Find returns the prompt with an id that waits for its time; nil: none does.
func Find(a *config.Agent, id string) (*Prompt, error) {
	f, err := open(a)
	if f == nil || err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := read(f, a, fileOf(id))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &p, nil
}

// List returns the prompts that wait for their time, the next one first. The error is
// about files that are none; the others are returned anyway.
func List(a *config.Agent) ([]Prompt, error) {
	f, err := open(a)
	if f == nil || err != nil {
		return nil, err
	}
	defer f.Close()
	all, _, err := list(f, a)
	return all, err
}

// Cancel removes a prompt; with ErrNone there is none: it may have been sent.
func Cancel(ctx context.Context, a *config.Agent, id string) error {
	f, err := open(a)
	if f == nil && err == nil {
		return ErrNone
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return locked(ctx, f, func() error {
		if _, err := read(f, a, fileOf(id)); errors.Is(err, fs.ErrNotExist) {
			return ErrNone
		}
		return remove(f, fileOf(id))
	})
}

// sendDue sends the prompts of an agent whose time has come, in its order. One that send
// refuses stays, and is not waited for.
func sendDue(ctx context.Context, a *config.Agent, isDue func(Prompt) bool, send func(Prompt) error) error {
	f, err := open(a)
	if f == nil || err != nil {
		return err
	}
	defer f.Close()
	all, _, unread := list(f, a)
	if !slices.ContainsFunc(all, isDue) {
		return unread
	}
	return errors.Join(unread, locked(ctx, f, func() error {
		var failed error
		for _, p := range all {
			if !isDue(p) {
				continue
			}
			if _, err := read(f, a, fileOf(p.ID)); errors.Is(err, fs.ErrNotExist) {
				continue // it was cancelled meanwhile
			}
			err := send(p)
			if err == nil {
				err = remove(f, fileOf(p.ID))
			}
			failed = cmp.Or(failed, err)
		}
		return failed
	}))
}

// open opens an agent's folder, or returns nil if there is none.
func open(a *config.Agent) (*durable.Folder, error) {
	if _, err := os.Lstat(Path(a)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f, err := durable.OpenBelow(a.Dir, Path(a))
	if err != nil {
		return nil, fmt.Errorf("cannot read the prompts that wait for their time: %w", err)
	}
	return f, nil
}

func locked(ctx context.Context, f *durable.Folder, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	unlock, err := flock.LockIn(ctx, f, lockFile)
	if err != nil {
		return fmt.Errorf("cannot use the prompts that wait for their time: %w", err)
	}
	return errors.Join(do(), unlock())
}

// list returns the prompts in a folder, the next one first, and how many bytes their files
// have. What stands there beyond most and mostBytes is not looked at. The error is about files
// that are none: it names the first.
func list(f *durable.Folder, a *config.Agent) (all []Prompt, bytes int64, err error) {
	entries, err := f.Entries()
	if err != nil {
		return nil, 0, fmt.Errorf("cannot read the prompts that wait for their time: %w", err)
	}
	var unread error
	more := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		p, size, err := Prompt{}, int64(0), fmt.Errorf("cannot read %s: %d prompts or %d MiB are there already", filepath.Join(f.Path(), e.Name()), most, mostBytes(a)>>20)
		if len(all) < most && bytes < mostBytes(a) {
			p, size, err = readSized(f, a, e.Name())
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was just sent
		case err == nil:
			all = append(all, p)
		case unread == nil:
			unread = err
		default:
			more++
		}
		bytes += size
	}
	if more > 0 {
		unread = fmt.Errorf("%w; nor can %d more files there be read", unread, more)
	}
	slices.SortFunc(all, func(x, y Prompt) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.ID, y.ID)) })
	return all, bytes, unread
}

func read(f *durable.Folder, a *config.Agent, name string) (Prompt, error) {
	p, _, err := readSized(f, a, name)
	return p, err
}

// readSized is read, and returns how many bytes it has read.
func readSized(f *durable.Folder, a *config.Agent, name string) (p Prompt, size int64, err error) {
	data, err := f.Read(name, mostOfOne(a))
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err == nil && fileOf(p.ID) != name {
		err = errors.New("it is not what heartbeat has written")
	}
	if err != nil {
		return p, int64(len(data)), fmt.Errorf("cannot read %s: %w", filepath.Join(f.Path(), name), err)
	}
	return p, int64(len(data)), nil
}

// remove removes a file for good: one that came back would be sent again.
func remove(f *durable.Folder, name string) error {
	if err := f.Remove(name); err != nil {
		return err
	}
	return f.Sync()
}
