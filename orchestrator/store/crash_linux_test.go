package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"heartbeat/internal/crash/disk"
	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/testbed"
)

// envDeed has the test's own program do something with a store that is killed at one of its
// system calls, or has one fail: the variable's value is its name, a colon, and the folder.
const envDeed = "HEARTBEAT_TEST_DEED"

func init() { programs[envDeed] = doDeed }

// deed is something that is done with a store. What it says on its stdout was promised.
type deed struct {
	name string
	// prepare makes what the folder has before, do is the program, and judge looks at what it
	// has left: said are the words that it has printed.
	prepare func(t *testing.T, dir string)
	do      func(ctx context.Context, dir string) error
	judge   func(t *testing.T, dir string, said []string) error
}

var deeds = []deed{
	{"commits", prepareCommits, doCommits, judgeCommits},
	{"create", func(*testing.T, string) {}, doCreate, judgeCreate},
	{"migrate", prepareMigration, doCreate, judgeMigration},
	{"restore", prepareRestore, doRestore, judgeRestore},
	{"backup", prepareCommits, doBackup, judgeBackup},
}

func doDeed(what string) {
	name, dir, _ := strings.Cut(what, ":")
	i := slices.IndexFunc(deeds, func(d deed) bool { return d.name == name })
	if err := deeds[i].do(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// withStore opens a fleet's store for a program.
func withStore(ctx context.Context, dir string, open func(context.Context, *Lock) (*Store, error), use func(*Store) error) error {
	l, err := Take(ctx, dir)
	if err != nil {
		return err
	}
	s, err := open(ctx, l)
	if err == nil {
		err = errors.Join(use(s), s.Close())
	}
	return errors.Join(err, l.Release())
}

// The numbers that are there before commits, and those that these add.
const had, added = 3, 6

func prepareCommits(t *testing.T, dir string) {
	l := take(t, dir)
	if err := Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s := opened(t, l)
	for n := 1; n <= had; n++ {
		if err := s.Write(t.Context(), add(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(s.Close(), l.Release()); err != nil {
		t.Fatal(err)
	}
}

func doCommits(ctx context.Context, dir string) error {
	return withStore(ctx, dir, Open, func(s *Store) error {
		for n := had + 1; n <= had+added; n++ {
			err := s.Write(ctx, func(c *Change) error {
				_, err := c.Do(`INSERT INTO tries (n, text) VALUES ($1, $2)`, n, strings.Repeat("x", 2500*n))
				return err
			})
			full, isFull := errors.AsType[*FullError](err)
			switch {
			case err == nil:
				fmt.Println(n)
			case isFull && full.Hint() != "":
				fmt.Println("not", n)
			}
		}
		return nil
	})
}

func judgeCommits(t *testing.T, dir string, said []string) error {
	return withStore(t.Context(), dir, Open, func(s *Store) error {
		got := numbers(t, s.Reader)
		for n := 1; n <= had; n++ {
			if !slices.Contains(got, n) {
				return fmt.Errorf("%d is lost: there are %v", n, got)
			}
		}
		for i, word := range said {
			n, err := strconv.Atoi(word)
			if err == nil && (i == 0 || said[i-1] != "not") != slices.Contains(got, n) {
				return fmt.Errorf("it said %q, there are %v", said, got)
			}
		}
		return errors.Join(s.Check(t.Context()), s.Write(t.Context(), add(1000)))
	})
}

func doCreate(ctx context.Context, dir string) error {
	return withStore(ctx, dir, OpenOrCreate, func(s *Store) error { fmt.Println(s.ID()); return nil })
}

func judgeCreate(t *testing.T, dir string, said []string) error {
	return withStore(t.Context(), dir, OpenOrCreate, func(s *Store) error {
		if len(said) > 0 && s.ID() != said[0] {
			return fmt.Errorf("another store stands there than %q", said)
		}
		return s.Check(t.Context())
	})
}

// prepareMigration makes a store as the first version had it.
func prepareMigration(t *testing.T, dir string) {
	path := filepath.Join(dir, Name)
	pool, err := sql.Open("sqlite", dsn(path, "rwc", "auto_vacuum(incremental)"))
	if err != nil {
		t.Fatal(err)
	}
	first, err := files.ReadFile("steps/0001-store.sql")
	if err == nil {
		_, err = pool.ExecContext(t.Context(), string(first)+`
			INSERT INTO store (one, store_id, version, made, inode, born, machine, clean) VALUES (1, 'first', 1, 0, 0, 0, '', 1);
			INSERT INTO adopted (file, at) VALUES ('x', 7)`)
	}
	if err = errors.Join(err, pool.Close(), os.Chmod(path, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func judgeMigration(t *testing.T, dir string, said []string) error {
	err := withStore(t.Context(), dir, OpenOrCreate, func(s *Store) error {
		at := 0
		err := s.Read(t.Context(), func(v *View) error { _, err := v.One(`SELECT at FROM adopted WHERE file = 'x'`, nil, &at); return err })
		if err != nil || at != 7 || s.ID() != "first" {
			return fmt.Errorf("it has lost what it knew: %d, %q, %w", at, s.ID(), err)
		}
		return s.Check(t.Context())
	})
	backups, globErr := filepath.Glob(filepath.Join(dir, Name+".before-*[0-9Z]"))
	if len(said) > 0 && len(backups) == 0 {
		return fmt.Errorf("no backup was made of the store of the first version")
	}
	for _, b := range backups {
		err = errors.Join(err, whole(t, b))
	}
	return errors.Join(err, globErr)
}

// prepareRestore makes a store with a log, as after a kill, and an older backup of it.
func prepareRestore(t *testing.T, dir string) {
	prepareCommits(t, dir)
	l := take(t, dir)
	s := opened(t, l)
	if err := s.Backup(t.Context(), filepath.Join(dir, "old.db")); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), add(had+1)); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(t.TempDir(), "killed")
	copyFolder(t, dir, killed)
	if err := errors.Join(s.Close(), l.Release(), os.RemoveAll(dir)); err != nil {
		t.Fatal(err)
	}
	copyFolder(t, killed, dir)
	if info, err := os.Stat(filepath.Join(dir, Name+"-wal")); err != nil || info.Size() == 0 {
		t.Fatalf("it has no log: %v", err)
	}
}

func doRestore(ctx context.Context, dir string) error {
	l, err := Take(ctx, dir)
	if err != nil {
		return err
	}
	if _, err = Restore(ctx, l, filepath.Join(dir, "old.db"), nothing); err == nil {
		fmt.Println("restored")
	}
	return errors.Join(err, l.Release())
}

func judgeRestore(t *testing.T, dir string, said []string) error {
	has := func() (int, error) {
		n := 0
		err := withStore(t.Context(), dir, Open, func(s *Store) error { n = len(numbers(t, s.Reader)); return s.Check(t.Context()) })
		return n, err
	}
	n, err := has()
	switch {
	case len(said) > 0 && (err != nil || n != had):
		return fmt.Errorf("after restore it has %d numbers: %w", n, err)
	case errors.Is(err, ErrNone):
		if _, gone := errors.AsType[*GoneError](gone(dir)); !gone { // the next run would begin with an empty one
			return errors.New("nobody can tell that there was a store")
		}
	case err != nil:
		return err
	}
	if n != had+1 { // what was there is beside it
		l := take(t, dir)
		before := filepath.Join(dir, Name+".before-restore-1")
		if _, err := Restore(t.Context(), l, before, nothing); err != nil {
			return fmt.Errorf("what was there cannot be put back: %w", err)
		}
		if err := l.Release(); err != nil {
			return err
		}
		if n, err := has(); n != had+1 || err != nil {
			return fmt.Errorf("put back it has %d numbers: %w", n, err)
		}
	}
	if err := doRestore(t.Context(), dir); err != nil {
		return fmt.Errorf("once more: %w", err)
	}
	if n, err := has(); n != had || err != nil {
		return fmt.Errorf("once more, it has %d numbers: %w", n, err)
	}
	return nil
}

func doBackup(ctx context.Context, dir string) error {
	r, err := OpenReader(ctx, dir)
	if err != nil {
		return err
	}
	if err = r.Backup(ctx, filepath.Join(dir, "backup.db")); err == nil {
		fmt.Println("written")
	}
	return errors.Join(err, r.Close())
}

func judgeBackup(t *testing.T, dir string, said []string) error {
	path := filepath.Join(dir, "backup.db")
	if exists(path) {
		if err := errors.Join(whole(t, path), os.Remove(path)); err != nil {
			return err
		}
	} else if len(said) > 0 {
		return errors.New("there is no backup")
	}
	if err := errors.Join(doBackup(t.Context(), dir), whole(t, path)); err != nil {
		return err
	}
	return judgeCommits(t, dir, nil)
}

// whole returns an error if a backup is none.
func whole(t *testing.T, path string) error {
	to := path + ".tried"
	defer func() { _ = discard(to) }()
	return copyWhole(t.Context(), path, to)
}

// way is what happens to a process: it is killed, or a call of it fails, once or with all
// that follow.
type way struct {
	errno syscall.Errno
	lasts bool
}

func (w way) String() string {
	switch {
	case w.errno == 0:
		return "killed before"
	case w.lasts:
		return fmt.Sprintf("%v from", w.errno)
	}
	return fmt.Sprintf("%v at", w.errno)
}

var ways = func() (all []way) {
	for _, errno := range []syscall.Errno{0, syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.EDQUOT} {
		all = append(all, way{errno, false})
		if errno != 0 {
			all = append(all, way{errno, true})
		}
	}
	return all
}()

// disturbed is a deed in a folder, something of which happens at a call.
func (d deed) disturbed(dir string, w way, call int) (stepper.Outcome, error) {
	p := stepper.Program{Path: os.Args[0], Env: []string{envDeed + "=" + d.name + ":" + dir}}
	if w.errno != 0 {
		return stepper.Fail(p, call, w.errno, w.lasts)
	}
	return stepper.Run(p, call)
}

// stepped skips a test where processes cannot be stepped, or make other calls than their own.
func stepped(t *testing.T) {
	t.Helper()
	if testbed.Raced {
		t.Skip("the program works alone: the race detector has nothing to see")
	}
	stepper.Need(t, stepper.Program{Path: "/bin/true"})
}

// TestWhateverACallDoes: whatever a process is killed at, and whichever call of it fails, what
// it has promised is there, nothing is half, and the same once more succeeds.
func TestWhateverACallDoes(t *testing.T) {
	t.Parallel()
	stepped(t)
	const thin = 24
	for _, d := range deeds {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			template := filepath.Join(t.TempDir(), "fleet")
			if err := os.Mkdir(template, 0o700); err != nil {
				t.Fatal(err)
			}
			d.prepare(t, template)
			at := func(w way, call int) (calls int) {
				dir := filepath.Join(filepath.Dir(template), fmt.Sprintf("%d-%d-%v", call, w.errno, w.lasts))
				defer os.RemoveAll(dir)
				copyFolder(t, template, dir)
				o, err := d.disturbed(dir, w, call)
				if err != nil {
					t.Fatal(err)
				}
				if err := d.judge(t, dir, strings.Fields(o.Stdout)); err != nil {
					t.Errorf("%v call %d of %d (%q): %v; it said %q, %s", w, call, len(o.Calls), last(o.Calls, call), err, o.Stdout, o.Stderr)
				}
				return len(o.Calls)
			}
			calls := at(way{}, 0)
			kills, fails, stride := 0, 0, testbed.Stride(thin)
			for k := testbed.Turn(t, thin); k < calls*len(ways); k += stride {
				w := ways[k%len(ways)]
				at(w, 1+k/len(ways))
				if w.errno == 0 {
					kills++
				} else {
					fails++
				}
			}
			testbed.Played(t, testbed.Kills, kills)
			testbed.Played(t, testbed.FailingCalls, fails)
			t.Logf("%d calls, %d kills, %d failing calls", calls, kills, fails)
		})
	}
}

// last are some calls before one.
func last(calls []string, before int) []string {
	before = min(before, len(calls))
	return calls[max(0, before-3):before]
}

// copyFolder is not done by this process, which may have the store open.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// TestAPowerCut at a call loses nothing that was promised: an image of the file system, as it
// had reached the disk, is mounted again.
func TestAPowerCut(t *testing.T) {
	t.Parallel()
	stepped(t)
	if os.Geteuid() != 0 {
		t.Skip("no power cuts here: mounting takes root")
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	for _, kind := range testbed.SampleOf(t, disk.Kinds, 3) {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			template := kind.Template(t)
			for _, d := range testbed.SampleOf(t, deeds, 3) {
				const thin = 20
				points := 0
				for n := 1 + testbed.Turn(t, thin); d.cut(t, kind, template, n); n += testbed.Stride(thin) {
					points++
				}
				testbed.Played(t, testbed.PowerCuts, points)
				t.Logf("%s, %s: %d cuts", kind.Name, d.name, points)
			}
		})
	}
}

// cut cuts the power before a call, and reports whether it has come to that.
func (d deed) cut(t *testing.T, kind disk.Kind, template string, call int) bool {
	t.Helper()
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	disk.Copy(t, template, before)
	m, err := kind.Mount(t, before)
	if err != nil {
		t.Fatal(err)
	}
	fleet := filepath.Join(m.Dir, "fleet")
	if err := os.Mkdir(fleet, 0o700); err != nil {
		t.Fatal(err)
	}
	d.prepare(t, fleet)
	if out, err := exec.CommandContext(t.Context(), "sync", "-f", fleet).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	o, err := d.disturbed(fleet, way{}, call)
	if err != nil {
		t.Fatal(err)
	}
	disk.Copy(t, before, after)
	at := m.Dir
	m.Unmount(t)
	os.Remove(before)
	defer os.Remove(after)
	back, err := kind.MountAt(t, after, at)
	if err != nil {
		t.Errorf("cannot mount what the cut left: %v", err)
		return o.Killed
	}
	defer back.Unmount(t)
	if err := d.judge(t, fleet, strings.Fields(o.Stdout)); err != nil {
		t.Errorf("%s, %s, the power cut before call %d (%q): %v; it said %q", kind.Name, d.name, call, last(o.Calls, call), err, o.Stdout)
	}
	return o.Killed
}
