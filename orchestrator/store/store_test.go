package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/volume"
)

// envWrite has the test's own program write as a process of its own that is killed.
const envWrite = "HEARTBEAT_TEST_STORE"

func TestMain(m *testing.M) {
	for name, program := range programs {
		if of := os.Getenv(name); of != "" {
			program(of)
		}
	}
	os.Exit(testbed.Run(m))
}

// programs are what the test's own program is instead of the tests, by the variable that says
// so, with its value.
var programs = map[string]func(of string){envWrite: writeUntilKilled, envHold: holdUntilEOF}

// start is a time at which something begins.
var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// fresh makes a store, and returns its directory and the fleet's lock.
func fresh(t *testing.T) (string, *Lock) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l := take(t, dir)
	if err := Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return dir, l
}

func take(t *testing.T, dir string) *Lock {
	t.Helper()
	l, err := Take(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Release() })
	return l
}

// opened opens a store with a table to write into.
func opened(t *testing.T, l *Lock) *Store {
	t.Helper()
	s, err := Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	err = s.Write(t.Context(), func(c *Change) error {
		_, err := c.Do(`CREATE TABLE IF NOT EXISTS tries (n INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func add(n int) func(*Change) error {
	return func(c *Change) error {
		_, err := c.Do(`INSERT INTO tries (n, text) VALUES ($1, $2)`, n, strings.Repeat("x", n%3000))
		return err
	}
}

// numbers are those that a store has.
func numbers(t *testing.T, r *Reader) (all []int) {
	t.Helper()
	err := r.Read(t.Context(), func(v *View) error {
		all = nil
		return v.Each(`SELECT n FROM tries ORDER BY n`, nil, func(scan Scan) error {
			all = append(all, 0)
			return scan(&all[len(all)-1])
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	dir, l := fresh(t)
	s := opened(t, l)
	var all sync.WaitGroup
	for n := range 500 {
		all.Go(func() {
			if err := s.Write(t.Context(), add(n)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	r, err := OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := numbers(t, r); len(got) != 500 {
		t.Errorf("%d numbers, want 500", len(got))
	}
	if r.ID() != s.ID() || len(r.ID()) < 20 {
		t.Errorf("ids %q and %q", r.ID(), s.ID())
	}
	if err := r.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestOneBadChangeFailsAlone: the others of its batch are done, nothing of it is kept.
func TestOneBadChangeFailsAlone(t *testing.T) {
	t.Parallel()
	_, l := fresh(t)
	s := opened(t, l)
	if err := s.Write(t.Context(), add(7)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("it is not to be")
	hold := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { // so that the others are one batch
		_ = s.Write(t.Context(), func(*Change) error { <-hold; return nil })
	})
	errs := make([]error, 20)
	for n := range errs {
		all.Go(func() {
			errs[n] = s.Write(t.Context(), func(c *Change) error {
				if err := add(n)(c); err != nil || n%5 != 1 {
					return err
				}
				return broken
			})
		})
	}
	close(hold)
	all.Wait()
	want := []int{}
	for n, err := range errs {
		switch {
		case n == 7:
			if code(err)&0xff != sqlite3.SQLITE_CONSTRAINT {
				t.Errorf("%d: %v, want a duplicate", n, err)
			}
			want = append(want, n)
		case n%5 == 1:
			if !errors.Is(err, broken) {
				t.Errorf("%d: %v", n, err)
			}
		case err != nil:
			t.Errorf("%d: %v", n, err)
		default:
			want = append(want, n)
		}
	}
	if got := numbers(t, s.Reader); !slices.Equal(got, want) {
		t.Errorf("there are %v, want %v", got, want)
	}
}

// TestAReaderCannotWrite: a statement that would write in what only reads is refused.
func TestAReaderCannotWrite(t *testing.T) {
	t.Parallel()
	dir, l := fresh(t)
	opened(t, l)
	r, err := OpenReader(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = r.Read(t.Context(), func(v *View) error {
		_, err := v.One(`INSERT INTO tries (n, text) VALUES (1, '') RETURNING n`, nil, new(int))
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Errorf("%v, want a refusal", err)
	}
	if got := numbers(t, r); len(got) != 0 {
		t.Errorf("there are %v", got)
	}
}

// TestAStoreThatIsLostConfirmsNothing walks what can happen to the file of an open store.
func TestAStoreThatIsLostConfirmsNothing(t *testing.T) {
	t.Parallel()
	for what, harm := range map[string]func(path string) error{
		"removed": os.Remove,
		"renamed": func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			data, err := os.ReadFile(path + ".copy")
			return errors.Join(err, os.WriteFile(path+".2", data, 0o600), os.Rename(path+".2", path))
		},
		"emptied":        func(path string) error { return os.Truncate(path, 0) },
		"folder removed": func(path string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+".old") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, l := fresh(t)
			s := opened(t, l)
			path := filepath.Join(dir, Name)
			if err := s.Backup(t.Context(), path+".copy"); err != nil {
				t.Fatal(err)
			}
			if err := harm(path); err != nil {
				t.Fatal(err)
			}
			for n := range 3 {
				err := s.Write(t.Context(), add(n))
				lost, is := errors.AsType[*LostError](err)
				if !is || lost.Hint() == "" {
					t.Errorf("write %d: %v, want that the store is lost", n, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
}

// TestWhatIsNoStoreIsRefused walks what may stand at the store's name.
func TestWhatIsNoStoreIsRefused(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		put  func(path string) error
		want string
	}{
		"nothing":          {os.Remove, "no store yet"},
		"a folder":         {func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }, "not a regular file"},
		"a pipe":           {func(p string) error { return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600)) }, "not a regular file"},
		"a link":           {func(p string) error { return errors.Join(os.Rename(p, p+".1"), os.Symlink(p+".1", p)) }, "not a regular file"},
		"a dangling link":  {func(p string) error { return errors.Join(os.Remove(p), os.Symlink(p+".1", p)) }, "not a regular file"},
		"another name":     {func(p string) error { return os.Link(p, p+".1") }, "hard link"},
		"an empty file":    {func(p string) error { return os.Truncate(p, 0) }, "empty"},
		"other text":       {func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("no database\n", 1000)), 0o600) }, "damaged"},
		"half of it":       {func(p string) error { return os.Truncate(p, 5000) }, "damaged"},
		"others may write": {func(p string) error { return os.Chmod(p, 0o666) }, "write"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir, l := fresh(t)
			if err := c.put(filepath.Join(dir, Name)); err != nil {
				t.Fatal(err)
			}
			_, err := OpenReader(t.Context(), dir)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("read: %v, want %q", err, c.want)
			}
			if _, err := Open(t.Context(), l); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("write: %v, want %q", err, c.want)
			}
			if what == "nothing" {
				if _, err := os.Lstat(filepath.Join(dir, Name)); err == nil {
					t.Error("opening has made a store")
				}
			}
		})
	}
}

// TestAnotherVersionOfTheTablesIsRefused, and Migrate alone brings an older one forward.
func TestAnotherVersionOfTheTablesIsRefused(t *testing.T) {
	t.Parallel()
	for _, v := range []int{Version - 1, Version + 1} {
		dir, l := fresh(t)
		s := opened(t, l)
		err := s.Write(t.Context(), func(c *Change) error {
			_, err := c.Do(`UPDATE store SET version = $1`, v)
			return err
		})
		if err = errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		_, err = OpenReader(t.Context(), dir)
		if e, is := errors.AsType[*VersionError](err); !is || e.Has != v || e.Hint() == "" {
			t.Errorf("version %d: %v", v, err)
		}
		from, err := Migrate(t.Context(), l)
		if _, is := errors.AsType[*VersionError](err); is != (v > Version) || from != v {
			t.Errorf("migrate from %d: %d, %v", v, from, err)
		}
	}
}

// TestKilledWritersLoseNothing: what a killed writer has confirmed is there, and what it has
// not is there whole or not at all.
func TestKilledWritersLoseNothing(t *testing.T) {
	t.Parallel()
	dir, l := fresh(t)
	if err := opened(t, l).Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	confirmed, unclean := 0, 0
	for round := range 15 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = []string{envWrite + "=" + dir}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 1+round*7 && lines.Scan(); n++ {
			if confirmed, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatalf("round %d: %q", round, lines.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() { // what it had said when it was killed
			if confirmed, err = strconv.Atoi(lines.Text()); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Wait()
		lock, err := Take(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), lock)
		if err != nil {
			t.Fatal(err)
		}
		if s.Found().Unclean {
			unclean++
		}
		if s.Found().Moved {
			t.Error("it is the same file")
		}
		got := numbers(t, s.Reader)
		if len(got) < confirmed || len(got) > confirmed+1 || len(got) > 0 && got[len(got)-1] != len(got) {
			t.Errorf("round %d: %d are confirmed, %d are there", round, confirmed, len(got))
		}
		if err := errors.Join(s.Check(t.Context()), s.Close(), lock.Release()); err != nil {
			t.Fatal(err)
		}
	}
	if unclean == 0 {
		t.Error("no kill was found")
	}
}

// writeUntilKilled adds one number after the other, and says each that is confirmed.
func writeUntilKilled(dir string) {
	ctx := context.Background()
	l, err := Take(ctx, dir)
	if err != nil {
		panic(err)
	}
	s, err := Open(ctx, l)
	if err != nil {
		panic(err)
	}
	n := 0
	for err == nil {
		err = s.Write(ctx, func(c *Change) error {
			if _, err := c.One(`SELECT COALESCE(MAX(n), 0) FROM tries`, nil, &n); err != nil {
				return err
			}
			n++
			return add(n)(c)
		})
		fmt.Println(n)
	}
	panic(err)
}

// TestABackupIsAWholeStore: it is made while others write, and restored where a store with a
// log is.
func TestABackupIsAWholeStore(t *testing.T) {
	t.Parallel()
	dir, l := fresh(t)
	s := opened(t, l)
	stop, stopped := make(chan struct{}), make(chan int)
	go func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				stopped <- n
				return
			default:
			}
			if err := s.Write(t.Context(), add(n)); err != nil {
				t.Error(err)
			}
		}
	}()
	backup := filepath.Join(dir, "backup.db")
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), backup); err == nil {
		t.Error("a backup was replaced")
	}
	close(stop)
	written := <-stopped
	if err := s.Write(t.Context(), add(1_000_000)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	id := s.ID()
	highest := -1
	before, err := Restore(t.Context(), l, backup, func(was *View, c *Change) error {
		if _, err := was.One(`SELECT MAX(n) FROM tries`, nil, &highest); err != nil {
			return err
		}
		_, err := c.Do(`INSERT INTO tries (n, text) VALUES ($1, '')`, -1)
		return err
	})
	if err != nil || before == "" || highest != 1_000_000 {
		t.Fatal(before, highest, err)
	}
	s, err = Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	got := numbers(t, s.Reader)
	if len(got) == 0 || got[0] != -1 {
		t.Fatalf("what was carried over is not there: %v", got)
	}
	got = got[1:]
	if len(got) > written || len(got) > 0 && got[len(got)-1] != len(got)-1 || s.ID() != id || !s.Found().Moved {
		t.Errorf("of %d numbers %d are there; found %+v", written, len(got), s.Found())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Restore(t.Context(), l, before, nothing); err != nil { // and back
		t.Fatal(err)
	}
	s, err = Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got := numbers(t, s.Reader); len(got) != written+1 {
		t.Errorf("%d numbers, want %d", len(got), written+1)
	}
}

// nothing is carried over into a backup.
func nothing(*View, *Change) error { return nil }

// TestWhatABackupMayNotBringBackIsKnownOrNot: of a store that cannot be read nothing is known.
func TestWhatABackupMayNotBringBackIsKnownOrNot(t *testing.T) {
	t.Parallel()
	for what, harm := range map[string]func(path string) error{
		"none":      os.Remove,
		"no store":  func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("text\n", 3000)), 0o600) },
		"half":      func(path string) error { return os.Truncate(path, 5000) },
		"a folder":  func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"as it was": func(string) error { return nil },
	} {
		dir, l := fresh(t)
		s := opened(t, l)
		backup := filepath.Join(dir, "backup.db")
		if err := errors.Join(s.Backup(t.Context(), backup), s.Close(), harm(filepath.Join(dir, Name))); err != nil {
			t.Fatal(err)
		}
		known := false
		_, err := Restore(t.Context(), l, backup, func(was *View, _ *Change) error { known = was != nil; return nil })
		if err != nil || known != (what == "as it was") {
			t.Errorf("%s: known %v, %v", what, known, err)
		}
		opened(t, l)
	}
}

// TestThreeBackupsAreKept: one a day, and not for a clock that was ahead for ever.
func TestThreeBackupsAreKept(t *testing.T) {
	t.Parallel()
	dir, l := fresh(t)
	s := opened(t, l)
	names := func() int {
		all, err := filepath.Glob(filepath.Join(dir, Backups, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	for day, want := range []int{1, 2, 3, 3, 3} {
		now := start.AddDate(0, 0, day)
		for _, at := range []time.Duration{0, time.Hour} {
			after, err := s.KeepBackups(t.Context(), now.Add(at))
			if err != nil || after != daily-at || names() != want {
				t.Errorf("day %d, %v: %d are kept, want %d; again after %v; %v", day, at, names(), want, after, err)
			}
		}
	}
	if _, err := s.KeepBackups(t.Context(), start); err != nil || names() != 3 {
		t.Errorf("%d are kept: %v", names(), err)
	}
}

// TestABackupThatFailedIsTriedSoon, not in a day.
func TestABackupThatFailedIsTriedSoon(t *testing.T) {
	t.Parallel()
	dir, l := fresh(t)
	s := opened(t, l)
	if err := os.WriteFile(filepath.Join(dir, Backups), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if after, err := s.KeepBackups(t.Context(), start); err == nil || after != time.Hour {
		t.Errorf("again after %v: %v", after, err)
	}
}

// TestUnfinishedBackupsGo: each was as large as the store, and stayed for ever. One that a
// command writes meanwhile stays, and so does what a restore put aside.
func TestUnfinishedBackupsGo(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"opening", "the daily backup"} {
		dir, l := fresh(t)
		var s *Store
		if by != "opening" {
			s = opened(t, l)
		}
		if err := os.Mkdir(filepath.Join(dir, Backups), 0o700); err != nil {
			t.Fatal(err)
		}
		goes := []string{
			Backups + "/heartbeat-20261101T100000Z.db.new", Backups + "/heartbeat-20261101T100000Z.db.new-journal",
			Name + ".before-15-20261129T100000.000Z.new", Name + ".before-15-20261129T100000.000Z.new-wal",
			Name + ".before-9-20261103T100000.000Z",
		}
		stays := []string{
			Backups + "/heartbeat-20261101T110000Z.db.new", Name + ".before-restore-1", Name + ".before-restore-1-wal",
			Name + ".before-9-20261104T100000.000Z", Name + ".before-10-20261105T100000.000Z", Name + ".before-15-20261106T100000.000Z",
		}
		for _, name := range slices.Concat(goes, stays) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		now := time.Now()
		for _, name := range goes[:2] {
			if err := os.Chtimes(filepath.Join(dir, name), now, now.Add(-2*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		if s == nil {
			opened(t, l)
		} else if _, err := s.KeepBackups(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		for i, name := range slices.Concat(goes, stays) {
			if _, err := os.Lstat(filepath.Join(dir, name)); (err != nil) != (i < len(goes)) {
				t.Errorf("%s, %s: %v", by, name, err)
			}
		}
	}
}

// TestWhatIsNoBackupIsNotRestored, and the store stays as it is.
func TestWhatIsNoBackupIsNotRestored(t *testing.T) {
	t.Parallel()
	dir, l := fresh(t)
	for what, data := range map[string]string{"nothing": "", "text": strings.Repeat("text\n", 2000)} {
		path := filepath.Join(dir, what)
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(t.Context(), l, path, nothing); err == nil {
			t.Errorf("%s was restored", what)
		}
	}
	if _, err := Restore(t.Context(), l, filepath.Join(dir, "none"), nothing); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	opened(t, l)
}

// TestOneWriterAtATime: who finds the lock taken is told by whom.
func TestOneWriterAtATime(t *testing.T) {
	t.Parallel()
	dir, l := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Take(ctx, dir)
	if held, is := errors.AsType[*HeldError](err); !is || runtime.GOOS == "linux" && held.PID != os.Getpid() {
		t.Errorf("taken twice: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Take(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}

// TestWhoHasGoneIsLeftOut: a change whose caller went before its turn is not made.
func TestWhoHasGoneIsLeftOut(t *testing.T) {
	t.Parallel()
	_, l := fresh(t)
	s := opened(t, l)
	ctx, cancel := context.WithCancel(t.Context())
	hold, begun := make(chan struct{}), make(chan struct{}, 1)
	var all sync.WaitGroup
	all.Go(func() {
		_ = s.Write(t.Context(), func(*Change) error { begun <- struct{}{}; <-hold; return nil })
	})
	<-begun
	all.Go(func() {
		if err := s.Write(ctx, add(1)); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	for len(s.asked) == 0 { // until it waits
		runtime.Gosched()
	}
	cancel()
	close(hold)
	all.Wait()
	if got := numbers(t, s.Reader); len(got) != 0 {
		t.Errorf("there are %v", got)
	}
}

// TestEveryTableIsDescribed: people read the store with sqlite3, whose .schema shows what stands
// within a statement, and not what stood before it.
func TestEveryTableIsDescribed(t *testing.T) {
	t.Parallel()
	_, l := fresh(t)
	s, err := Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tables := 0
	err = s.Read(t.Context(), func(v *View) error {
		return v.Each(`SELECT name, sql FROM sqlite_schema WHERE type = 'table'`, nil, func(scan Scan) error {
			var name, schema string
			if err := scan(&name, &schema); err != nil {
				return err
			}
			tables++
			if !strings.Contains(schema, "(\n  -- ") {
				t.Errorf("table %s is not described:\n%s", name, schema)
			}
			return nil
		})
	})
	if err != nil || tables < 10 {
		t.Errorf("%d tables: %v", tables, err)
	}
}

// TestOnlyItsOwnerMayReadAStore: it, its log, and its backups, from when they begin, whatever the
// umask says. The store could be read by others.
func TestOnlyItsOwnerMayReadAStore(t *testing.T) {
	t.Parallel()
	dir, l := fresh(t)
	s, backup := opened(t, l), filepath.Join(t.TempDir(), "b")
	if err := s.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, Name), filepath.Join(dir, Name+"-wal"), filepath.Join(dir, Name+"-shm"), backup} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	begun := filepath.Join(dir, "begun")
	if err := begin(begun); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(begun); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestANetworkFileSystemIsRefused: its error names the variable that puts the state elsewhere.
func TestANetworkFileSystemIsRefused(t *testing.T) {
	t.Parallel()
	for _, v := range []volume.Volume{{Network: "NFS"}, {Network: "9p"}, {Fuse: true}} {
		refused, is := errors.AsType[*NetworkError](Suits("/state/f", v))
		if !is || !strings.Contains(refused.Error(), "/state/f") || !strings.Contains(refused.Hint(), "HEARTBEAT_STATE_DIR") {
			t.Errorf("%+v: %v", v, refused)
		}
	}
	if err := Suits("/state/f", volume.Volume{InMemory: true}); err != nil {
		t.Error(err)
	}
}
