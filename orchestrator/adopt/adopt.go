// Package adopt takes over what earlier versions of heartbeat kept in files of a fleet's
// state directory into its store: once, when the first run of this version begins, or the first
// command that writes the store without a run. It alone still reads those formats.
//
// A file is taken in one transaction, which also notes that it was; then it is moved to
// before-store/ in the state directory. So a kill at any moment repeats nothing and loses
// nothing. A file of the same name that is there again later, because an earlier version ran
// meanwhile, is moved as well, and told.
package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/store"
)

// Folder is where files are moved to that were taken over, in the state directory.
const Folder = store.Former

// old is a file that an earlier version kept, or a folder of files KEY.json, where a KEY may have
// a folder of its own: FOLDER/KEY.
type old struct {
	file string // in the state directory
	// take puts what it says into the store; each what a file of the folder says.
	take func(c *store.Change, data []byte) error
	each func(c *store.Change, key string, data []byte) error
	// lost is what is not known where the file is damaged.
	lost string
}

// all are the files that are taken over.
var all = []old{
	{file: "page/tokens.json", take: tokens, lost: "who may see the page: each browser and each command line needs a new token"},
	{file: "page/orders.json", take: orders, lost: "what people have ordered by the page in the last day: a form that is sent again is carried out again"},
	{file: "journal.1.jsonl", take: events, lost: "what happened in the past"},
	{file: "journal.2.jsonl", take: events, lost: "what happened in the past"},
	{file: "journal.jsonl", take: events, lost: "what happened in the past"},
	{file: "identities.json", take: identities, lost: "who the agents are: each is known by its name now"},
	{file: "paused.json", take: pauses, lost: "which agents are paused: all of them run"},
	{file: "holds", each: hold, lost: "why an agent is held: it is tried again"},
	{file: "triggers", each: triggers, lost: "what the triggers of an agent have fired: they start over"},
	{file: "conversations", each: conversation, lost: "in which conversation an agent's sessions go on: the next one begins a new one"},
	{file: "awaited", each: waits, lost: "who waits for the reply to a prompt: it is sent to nobody"},
	{file: "approvals", each: request, lost: "what an agent asks people for, or the answer: what a check needs is asked again, what an agent asked by itself is not"},
	{file: "notices.json", take: notices, lost: "what people were told: they are told again what is wrong, and what was on its way to them is not sent"},
	{file: "notices.jsonl.1", take: messages, lost: "what became of messages in the past"},
	{file: "notices.jsonl", take: messages, lost: "what became of messages in the past"},
	{file: "foreign-stop-hooks.json", take: stopHooks, lost: "which Stop hooks have continued clients: it is learned again"},
	{file: "accounts.json", take: accounts, lost: "until when accounts are parked: each is asked once more"},
}

// maxFile limits what is read, in bytes.
const maxFile = 256 << 20

// lockWait is how long a run waits for a command that has the fleet's store just then.
const lockWait = 10 * time.Second

// Open takes a fleet's lock and opens its store for a run, with all that earlier versions
// kept in files; release ends both. The error is a *store.HeldError while another run has it.
func Open(ctx context.Context, stateDir string, log *slog.Logger) (s *store.Store, release func(), err error) {
	return open(ctx, stateDir, lockWait, log)
}

func open(ctx context.Context, stateDir string, wait time.Duration, log *slog.Logger) (s *store.Store, release func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	lock, err := store.Take(waiting, stateDir)
	if err != nil {
		return nil, nil, err
	}
	if err = checkEarlier(stateDir); err == nil {
		s, err = store.OpenOrCreate(ctx, lock)
	}
	if err != nil {
		return nil, nil, errors.Join(err, lock.Release())
	}
	release = func() {
		if err := errors.Join(s.Close(), lock.Release()); err != nil {
			log.Warn("the store was not closed in order", "err", err)
		}
	}
	if err := All(ctx, s, log); err != nil {
		release()
		return nil, nil, err
	}
	switch found := s.Found(); {
	case found.Cloned != nil:
		log.Warn(found.Cloned.Error(), "do", found.Cloned.Hint())
	case found.Moved:
		log.Warn("the store is a copy, or was restored: what happened after the copy was made is not in it", "store", filepath.Join(stateDir, store.Name))
	}
	return s, release, nil
}

// actWait is how long Use waits for the fleet's lock, which commands have for some
// milliseconds.
const actWait = 2 * time.Second

// Use has use write the store of a fleet that no run has. The error is a *store.HeldError if a
// run has it: ask that one.
func Use(ctx context.Context, stateDir string, use func(*store.Store) error) error {
	s, release, err := open(ctx, stateDir, actWait, slog.Default())
	if err != nil {
		return err
	}
	defer release()
	return use(s)
}

// Act changes the store of a fleet that no run has; the changes are those of a run. Its errors
// are those of Use.
func Act(ctx context.Context, stateDir string, act func(*store.Change) error) error {
	return Use(ctx, stateDir, func(s *store.Store) error { return s.Write(ctx, act) })
}

// Note writes events into the journal of a fleet that no run has. A run that has begun
// meanwhile finds what was done, and tells of it itself.
func Note(ctx context.Context, stateDir string, events ...journal.Event) error {
	err := Act(ctx, stateDir, func(c *store.Change) error { return journal.Write(c, events...) })
	if _, held := errors.AsType[*store.HeldError](err); held {
		return nil
	}
	return err
}

// All takes over what is there. What is damaged is moved, too, and told. From then on no run of
// a version that keeps files begins.
func All(ctx context.Context, s *store.Store, log *slog.Logger) error {
	for _, o := range all {
		if o.file == Barrier && isBarred(s.Dir()) {
			continue
		}
		if err := o.adopt(ctx, s, log); err != nil {
			return fmt.Errorf("cannot take over %q from the version before: %w", filepath.Join(s.Dir(), o.file), err)
		}
	}
	if err := bar(s.Dir()); err != nil {
		return err
	}
	if err := bills(ctx, s, log); err != nil {
		return err
	}
	return tail(ctx, s)
}

// Waits reports whether a fleet that has no store yet has files that Open takes over.
func Waits(stateDir string) bool {
	return !store.Exists(stateDir) && !isBarred(stateDir) && slices.ContainsFunc(all, func(o old) bool {
		_, err := os.Lstat(filepath.Join(stateDir, o.file))
		return err == nil
	})
}

// Remembers reports whether a fleet has a store, or will once Open, Use, Act or Note is called.
func Remembers(stateDir string) bool { return store.Exists(stateDir) || Waits(stateDir) }

// errDamaged means that a file does not hold what was written there.
var errDamaged = errors.New("it is damaged")

func (o old) adopt(ctx context.Context, s *store.Store, log *slog.Logger) error {
	path := filepath.Join(s.Dir(), o.file)
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	damaged := func(path string, err error) {
		log.Warn("a file of the version before is damaged; heartbeat goes on without it", "file", path, "err", err, "lost", o.lost)
	}
	again, err := false, error(nil)
	if o.each != nil {
		again, err = o.takeFolder(ctx, s, path, damaged)
	} else {
		again, err = o.takeFile(ctx, s, path, damaged)
	}
	if err != nil {
		return err
	}
	if again {
		log.Warn("a file of an earlier version of heartbeat is not used any more, so it was moved", "file", path, "to", filepath.Join(s.Dir(), Folder))
	}
	return o.setAside(s.Dir())
}

// takeFile takes a file, unless it was taken before.
func (o old) takeFile(ctx context.Context, s *store.Store, path string, damaged func(string, error)) (again bool, err error) {
	data, err := readFile(path)
	if err == nil {
		again, err = o.takeOnce(ctx, s, func(c *store.Change) error { return o.take(c, data) })
	}
	if errors.Is(err, errDamaged) {
		damaged(path, err)
		err = nil
	}
	return again, err
}

// takeFolder takes all files of a folder, unless they were taken before.
func (o old) takeFolder(ctx context.Context, s *store.Store, path string, damaged func(string, error)) (again bool, err error) {
	return o.takeOnce(ctx, s, func(c *store.Change) error { return o.takeBelow(c, path, "", damaged) })
}

// takeBelow takes all files of a folder in the folder of path, or of that itself.
func (o old) takeBelow(c *store.Change, path, folder string, damaged func(string, error)) error {
	files, err := os.ReadDir(filepath.Join(path, folder))
	if err != nil {
		return err
	}
	for _, f := range files {
		name := filepath.Join(folder, f.Name())
		if f.IsDir() {
			if err := o.takeBelow(c, path, name, damaged); err != nil {
				return err
			}
			continue
		}
		key, ok := strings.CutSuffix(name, ".json")
		if !ok || strings.HasPrefix(f.Name(), ".") {
			continue // a writer that died left it
		}
		file := filepath.Join(path, name)
		data, err := readFile(file)
		if err == nil {
			err = o.each(c, key, data)
		}
		switch {
		case errors.Is(err, errDamaged):
			damaged(file, err)
		case err != nil:
			return err
		}
	}
	return nil
}

// readFile reads a file; the error is errDamaged for what no version has written.
func readFile(path string) ([]byte, error) {
	data, err := durable.Read(path, maxFile)
	if errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLarge) {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	return data, err
}

// takeOnce has take put something into the store, unless that was done before.
func (o old) takeOnce(ctx context.Context, s *store.Store, take func(*store.Change) error) (again bool, err error) {
	err = s.Write(ctx, func(c *store.Change) error {
		var err error
		again, err = c.One(`SELECT at FROM adopted WHERE file = $1`, []any{o.file}, new(int64))
		if err != nil || again {
			return err
		}
		if err := take(c); err != nil {
			return err
		}
		_, err = c.Do(`INSERT INTO adopted (file, at) VALUES ($1, $2)`, o.file, time.Now().UnixMilli())
		return err
	})
	return again, err
}

// setAside moves a file to Folder. A folder of earlier versions that is empty then goes.
func (o old) setAside(stateDir string) error {
	if err := SetAside(stateDir, o.file); err != nil {
		return err
	}
	if dir := filepath.Dir(filepath.Join(stateDir, o.file)); dir != stateDir {
		_ = os.Remove(dir) // unless there is something in it
	}
	return nil
}

// SetAside moves a file or a folder of a state directory to Folder there, durably, under a name
// that nothing has.
func SetAside(stateDir, name string) error {
	from, to := filepath.Join(stateDir, name), filepath.Join(stateDir, Folder, name)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	for n, free := 1, to; ; n++ {
		if _, err := os.Lstat(free); errors.Is(err, fs.ErrNotExist) {
			to = free
			break
		}
		free = fmt.Sprintf("%s.%d", to, n)
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	for _, dir := range []string{filepath.Dir(to), filepath.Dir(from)} {
		in, err := durable.Open(dir)
		if err == nil {
			err = errors.Join(in.Sync(), in.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads JSON of a file.
func read(data []byte, into any) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	return nil
}
