package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/hook/durable"
	"heartbeat/hook/flock"
	"heartbeat/orchestrator/state"
)

// folders are the open folders of the register.
type folders struct{ open, done shelf }

// file files a request with its answer. A request in done counts, even if it is still in the
// other folder, too.
func (f folders) file(r Request) error {
	if err := f.done.put(r); err != nil {
		return err
	}
	if err := f.open.drop(r.ID); err != nil {
		return err
	}
	return f.thin()
}

// waiting returns the requests without an answer, and an error about files that are not
// requests.
func (f folders) waiting() (all []Request, err error) {
	open, err := f.open.list()
	for _, r := range open {
		if _, answered := f.done.get(r.ID); answered != nil { // a kill between two steps of file left it there
			all = append(all, r)
		}
	}
	return all, err
}

// locked calls do with the register's lock held, and creates the folders.
func (l Register) locked(ctx context.Context, do func(folders) error) (err error) {
	open, err := durable.MakeBelow(l.stateDir, filepath.Join(l.stateDir, folder))
	if err != nil {
		return err
	}
	defer open.Close()
	done, err := open.MakeSub(doneIn)
	if err != nil {
		return err
	}
	defer done.Close()
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	unlock, err := flock.LockIn(ctx, open, lockFile)
	if err != nil {
		return err
	}
	return errors.Join(do(folders{shelf{open}, shelf{done}}), unlock())
}

// read calls do with the register's folders, if they exist.
func (l Register) read(do func(folders) error) error {
	open, err := durable.Open(filepath.Join(l.stateDir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the approvals: %w", err)
	}
	defer open.Close()
	done, err := open.Sub(doneIn)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is just being made
	}
	if err == nil {
		defer done.Close()
		err = do(folders{shelf{open}, shelf{done}})
	}
	if err != nil && !errors.Is(err, ErrNone) {
		return fmt.Errorf("cannot read the approvals: %w", err)
	}
	return err
}

// shelf is one of the folders.
type shelf struct{ *durable.Folder }

func (s shelf) put(r Request) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return s.Replace(r.ID+".json", append(data, '\n'))
}

// drop removes a request durably: one that came back would wait again.
func (s shelf) drop(id string) error {
	if _, err := s.Stat(id + ".json"); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return errors.Join(s.Remove(id+".json"), s.Sync())
}

// get returns a request. The error matches ErrNone, or state.ErrDamaged for a file that is not
// one.
func (s shelf) get(id string) (r Request, err error) {
	path := filepath.Join(s.Path(), id+".json")
	data, err := s.Read(id+".json", maxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, ErrNone
	case errors.Is(err, durable.ErrNotRegular), errors.Is(err, durable.ErrTooLarge):
		return r, state.Unusable(path, err)
	case err != nil:
		return r, fmt.Errorf("cannot read %q: %w", path, err)
	}
	if err = json.Unmarshal(data, &r); err == nil && r.ID != id {
		err = errors.New("it is not what heartbeat has written")
	}
	if err != nil {
		return Request{}, state.Unusable(path, err)
	}
	return r, nil
}

// list returns the requests. The error matches state.ErrDamaged if all others were read.
func (s shelf) list() (all []Request, err error) {
	entries, err := s.Entries()
	if err != nil {
		return nil, err
	}
	var unread, damaged []error
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || !idForm.MatchString(id) {
			continue
		}
		switch r, err := s.get(id); {
		case errors.Is(err, ErrNone): // it was just answered
		case errors.Is(err, state.ErrDamaged):
			damaged = append(damaged, err)
		case err != nil:
			unread = append(unread, err)
		default:
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(x, y Request) int { return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.ID, y.ID)) })
	if len(unread) > 0 {
		return all, errors.Join(unread...)
	}
	return all, errors.Join(damaged...)
}

// Undamaged returns the error of one call of Waiting or Done, without damaged files: one says
// neither yes nor no, and keeps no other request from its answer. What it held is asked again.
func Undamaged(err error) error {
	if errors.Is(err, state.ErrDamaged) {
		return nil
	}
	return err
}

// thin removes the oldest answered requests if there are too many. It keeps those whose answer
// the agent does not have yet, and those whose answer counts once other requests about the
// same check are answered.
func (f folders) thin() error {
	entries, err := f.done.Entries()
	if err != nil || len(entries) <= mostDone {
		return err
	}
	all, _ := f.done.list() // a file that cannot be read is not a request
	open, _ := f.open.list()
	counts := func(r Request) bool {
		return r.Name != "" && slices.ContainsFunc(open, func(o Request) bool { return o.Name != "" && r.stands(o.Key, o.Entry, o.About) })
	}
	over := len(all) - mostDone
	slices.SortStableFunc(all, func(x, y Request) int { return x.AnsweredAt.Compare(y.AnsweredAt) })
	for _, r := range all {
		if over <= 0 {
			break
		}
		if r.Owes() || counts(r) {
			continue
		}
		if err := f.done.Remove(r.ID + ".json"); err != nil {
			return err
		}
		over--
	}
	return nil
}
