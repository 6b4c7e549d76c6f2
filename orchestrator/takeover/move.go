package takeover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/handwired/files"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/store"
)

// Where files are moved to: in the agent's .heartbeat, or in the inbox's folder where that is not
// in the agent's directory; those of the state directory to Folder there.
const (
	Folder    = store.Former // before-store: they were taken over
	asideName = "set-aside"  // they appeared later, in a folder for each time
	unended   = "new"        // one of these that is not whole yet
)

// present returns the old files in an inbox's folder with their inodes.
func present(in *durable.Folder, inbox string) (map[string]int64, error) {
	all := map[string]int64{}
	names := append(slices.Clone(markers), files.Inbox.Flag, files.DeadFile, files.IDsFile, waitingFile, begunFile(inbox), keptFile(inbox), keptFile(files.Urgent.Lines))
	found, err := in.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range found {
		if !slices.Contains(names, e.Name()) && !isArchive(e.Name(), inbox) {
			continue
		}
		info, err := in.Stat(e.Name())
		if err != nil {
			return nil, err
		}
		all[e.Name()] = inodeOf(info)
	}
	return all, nil
}

// isArchive reports whether a name is that of a drained inbox that was moved aside.
func isArchive(name, inbox string) bool {
	for _, lines := range []string{inbox, files.Urgent.Lines} {
		stem, ext, _ := strings.Cut(lines, ".")
		middle, ours := strings.CutPrefix(name, stem+".")
		middle, is := strings.CutSuffix(middle, "."+ext)
		if ours && is && middle != "" && strings.Trim(middle, "0123456789") == "" {
			return true
		}
	}
	return false
}

func inodeOf(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(stat.Ino) //nolint:gosec // it is only compared
	}
	return 0
}

// owe notes why something is left to do with files.
func (t *taker) owe(err error) {
	if t.out.Owed == nil {
		t.out.Owed = err
	}
}

// away moves files of one folder into another one.
type away struct {
	in       *durable.Folder // both are below it
	from, to string
	moved    bool
	err      error
}

// awayFrom moves files from a folder to one below the agent's .heartbeat, or below the folder
// itself where that is not in the agent's directory.
func (t *taker) awayFrom(folder, to string) *away {
	w := &away{from: ".", to: to}
	root := folder
	from, err := filepath.Rel(t.agent.Dir, folder)
	home, failed := filepath.Rel(t.agent.Dir, t.agent.Home)
	if err == nil && failed == nil && filepath.IsLocal(from) && filepath.IsLocal(home) {
		root, w.from, w.to = t.agent.Dir, from, filepath.Join(home, to)
	}
	if w.in, w.err = durable.OpenBelow(t.agent.Dir, root); w.err == nil {
		w.in.Guard = t.guard
	}
	return w
}

// move moves a file, if it is there. Another one of its name keeps its place.
func (w *away) move(name string) error {
	if w.err != nil {
		return w.err
	}
	root := w.in.Root()
	if _, err := root.Lstat(filepath.Join(w.from, name)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !w.moved {
		if err := root.MkdirAll(w.to, 0o700); err != nil {
			return fmt.Errorf("cannot move %q: %w", name, err)
		}
	}
	to := filepath.Join(w.to, name)
	for n := 1; ; n++ {
		if _, err := root.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		}
		if n > 1000 {
			return fmt.Errorf("cannot move %q: its name is taken in %q", name, w.to)
		}
		to = filepath.Join(w.to, fmt.Sprintf("%s.%d", name, n))
	}
	w.moved = true
	err := w.in.Do(durable.Step{Verb: durable.Rename, Name: name}, func() error { return root.Rename(filepath.Join(w.from, name), to) })
	if err != nil {
		err = fmt.Errorf("cannot move %q: %w", filepath.Join(w.in.Path(), w.from, name), err)
	}
	return err
}

// close makes what was moved durable.
func (w *away) close() error {
	if w.in == nil {
		return w.err
	}
	var err error
	if w.moved {
		for _, folder := range []string{w.to, filepath.Dir(w.to), w.from} {
			in, failed := durable.OpenBelow(w.in.Path(), filepath.Join(w.in.Path(), folder))
			if failed == nil {
				in.Guard = w.in.Guard
				failed = errors.Join(in.Sync(), in.Close())
			}
			err = errors.Join(err, failed)
		}
	}
	return errors.Join(err, w.in.Close())
}

// move moves what was taken, and notes that.
func (t *taker) move(ctx context.Context) error {
	k, err := t.known(ctx)
	if err != nil {
		return err
	}
	folder := filepath.Dir(t.agent.Inbox)
	var here map[string]int64
	if err := t.within(folder, func(in *durable.Folder) error {
		here, err = present(in, filepath.Base(t.agent.Inbox))
		return err
	}); err != nil {
		return err
	}
	away := t.awayFrom(folder, Folder)
	left := false
	for name, inode := range k.files {
		if now, is := here[name]; !is || now != inode {
			left = left || is && slices.Contains(markers, name)
			continue
		}
		t.owe(away.move(name))
	}
	if len(here) == 0 {
		away.err = nil // the folder is gone
	}
	t.owe(away.close())
	t.owe(t.moveState())
	if t.out.Owed != nil {
		return nil
	}
	if err := t.store.Write(ctx, func(c *store.Change) error {
		if _, err := c.Do(`UPDATE takeovers SET moved = 1 WHERE agent = $1 AND inbox = $2`, t.key, t.agent.Inbox); err != nil {
			return err
		}
		_, err := c.Do(`DELETE FROM takeover_files WHERE agent = $1`, t.key)
		return err
	}); err != nil || !left {
		return err
	}
	return t.setAside()
}

// moveState moves what was taken of the state directory.
func (t *taker) moveState() error {
	book, asides, demands, texts := stateFiles(t.agent.Inbox, t.key)
	for _, name := range []string{book, asides, demands, texts} {
		if _, err := os.Lstat(filepath.Join(t.stateDir, name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := adopt.SetAside(t.stateDir, name); err != nil {
			return err
		}
	}
	return nil
}

// setAside moves old files that appeared after the queue was taken, with the inbox that they are
// about.
func (t *taker) setAside() error {
	folder := filepath.Dir(t.agent.Inbox)
	var here map[string]int64
	if err := t.within(folder, func(in *durable.Folder) (err error) {
		here, err = present(in, filepath.Base(t.agent.Inbox))
		return err
	}); err != nil {
		return err
	}
	to := filepath.Join(asideName, unended)
	away := t.awayFrom(folder, to)
	err := errors.Join(away.move(filepath.Base(t.agent.Inbox)), away.move(files.Urgent.Lines))
	var last []string
	for name := range here {
		if slices.Contains(markers, name) {
			last = append(last, name) // as long as one is there, the rest is to be moved
			continue
		}
		err = errors.Join(err, away.move(name))
	}
	for _, name := range last {
		if err == nil {
			err = away.move(name)
		}
	}
	if err = errors.Join(err, away.close()); err != nil {
		return fmt.Errorf("cannot set old files aside: %w", err)
	}
	ended := t.now.UTC().Format("20060102T150405.000Z")
	whole := t.awayFrom(filepath.Join(t.asideRoot(), asideName), asideName)
	root := whole.in
	if root == nil {
		return whole.err
	}
	err = root.Do(durable.Step{Verb: durable.Rename, Name: ended}, func() error {
		return root.Root().Rename(filepath.Join(whole.from, unended), filepath.Join(whole.from, ended))
	})
	whole.moved = err == nil
	if err = errors.Join(err, whole.close()); err != nil {
		return fmt.Errorf("cannot set old files aside: %w", err)
	}
	t.out.SetAside = append(t.out.SetAside, filepath.Join(t.asideRoot(), asideName, ended))
	return nil
}

// isUnended reports whether setting aside was interrupted when all files were moved.
func (t *taker) isUnended() (is bool) {
	_ = t.within(filepath.Join(t.asideRoot(), asideName, unended), func(*durable.Folder) error { is = true; return nil })
	return is
}

// asideRoot is the folder in which the folder set-aside is.
func (t *taker) asideRoot() string {
	folder := filepath.Dir(t.agent.Inbox)
	if from, err := filepath.Rel(t.agent.Dir, folder); err == nil && filepath.IsLocal(from) {
		return t.agent.Home
	}
	return folder
}

// Waiting returns the folders of old files that were set aside, until Adopt takes them.
func Waiting(a *config.Agent) ([]string, error) {
	t := &taker{agent: a}
	var all []string
	err := t.within(filepath.Join(t.asideRoot(), asideName), func(in *durable.Folder) error {
		found, err := in.Entries()
		for _, e := range found {
			if e.IsDir() && e.Name() != unended {
				all = append(all, filepath.Join(in.Path(), e.Name()))
			}
		}
		slices.Sort(all)
		return err
	})
	return all, err
}

// Adopt takes the queues in old files that were set aside: a person has said so. An entry that the
// store knows, by its delivery id or its sender's, stays as it is there. What was in flight is
// queued, where another entry is, as one that was given before.
func Adopt(ctx context.Context, s *store.Store, stateDir string, a *config.Agent, key string) (Report, error) {
	t := &taker{store: s, stateDir: stateDir, agent: a, key: key, now: time.Now()}
	folders, err := Waiting(a)
	for _, folder := range folders {
		if err == nil {
			err = t.adoptAside(ctx, folder)
		}
	}
	if errors.Is(err, files.ErrNeedsOperator) {
		t.out.Asks, err = err, nil
	}
	if err != nil {
		err = fmt.Errorf("cannot take what was set aside of %s: %w", a.Name, err)
	}
	return t.out, err
}

func (t *taker) adoptAside(ctx context.Context, folder string) error {
	at := place{t.agent.Dir, filepath.Join(folder, filepath.Base(t.agent.Inbox)), t.agent.Home, t.agent.MaxEntry}
	was := false
	err := t.store.Read(ctx, func(v *store.View) (err error) {
		was, err = v.One(`SELECT at FROM takeovers WHERE agent = $1 AND inbox = $2`, []any{t.key, at.inbox}, new(int64))
		return err
	})
	if err == nil && !was {
		err = t.adopt(ctx, at, false)
	}
	if err != nil {
		return err
	}
	away := t.awayFrom(filepath.Dir(folder), Folder)
	return errors.Join(away.move(filepath.Base(folder)), away.close())
}
