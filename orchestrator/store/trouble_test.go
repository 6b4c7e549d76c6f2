package store

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// envHold has the test's own program be a process that holds a transaction of a store open
// until its stdin ends: what it does is the variable's value, before a colon and the path.
const envHold = "HEARTBEAT_TEST_HOLD"

func holdUntilEOF(what string) {
	statement, path, _ := strings.Cut(what, ":")
	pool, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(20000)")
	if err != nil {
		panic(err)
	}
	conn, err := pool.Conn(context.Background())
	if err != nil {
		panic(err)
	}
	for one := range strings.SplitSeq(statement, ";") {
		if _, err := conn.ExecContext(context.Background(), one); err != nil {
			panic(err)
		}
	}
	fmt.Println("holds")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// holder is another process that has a transaction open; end ends it.
func holder(t *testing.T, path, statements string) (pid int, end func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = []string{envHold + "=" + statements + ":" + path}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if lines := bufio.NewScanner(out); !lines.Scan() {
		t.Fatal("it does not hold the store")
	}
	return cmd.Process.Pid, func() { in.Close(); _ = cmd.Wait() }
}

// watched watches a store until the test ends. lost gets what Watch returns.
func watched(t *testing.T, s *Store) (lost <-chan error) {
	t.Helper()
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { ended <- s.Watch(ctx, slog.New(slog.DiscardHandler)); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return ended
}

// patience is how long a trouble may take to be told on a machine that is busy; meant is how
// long on one that is not.
const patience = 20 * time.Second

// has waits until a store has a trouble of a kind, or has none of it.
func has(t *testing.T, s *Store, kind Kind, want bool) (is Trouble) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		at := slices.IndexFunc(s.Troubles(), func(x Trouble) bool { return x.Kind == kind })
		switch {
		case at >= 0 == want && want:
			return s.Troubles()[at]
		case at >= 0 == want:
			return is
		case time.Now().After(end):
			t.Fatalf("trouble %q: want %v of %+v", kind, want, s.Troubles())
		}
	}
}

// TestAStoreThatIsLockedIsTold, by whom, while the first change still waits for it.
func TestAStoreThatIsLockedIsTold(t *testing.T) {
	t.Parallel()
	_, l := fresh(t)
	s := opened(t, l)
	watched(t, s)
	pid, end := holder(t, s.path, "BEGIN IMMEDIATE")
	wrote := make(chan error, 1)
	go func() { wrote <- s.Write(t.Context(), add(1)) }()
	is := has(t, s, Locked, true)
	if named := "process " + strconv.Itoa(pid); lockedBy(s.path, writing) != nil && (!strings.Contains(is.Text, named) || !strings.Contains(is.Do, "kill "+strconv.Itoa(pid))) {
		t.Errorf("it is not named: %+v, want %s", is, named)
	}
	end()
	err := <-wrote
	if _, is := errors.AsType[*BusyError](err); err != nil && !is {
		t.Error(err)
	}
	has(t, s, Locked, false)
}

// TestALockedStoreKeepsNobodyWaiting: each change waited as long as the first, one behind the
// other, and heartbeat pause was told that the scheduler does not answer, and to kill it.
func TestALockedStoreKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	_, l := fresh(t)
	s := opened(t, l)
	_, end := holder(t, s.path, "BEGIN IMMEDIATE")
	defer end()
	begin := time.Now()
	for n := range 5 {
		err := s.Write(t.Context(), add(n))
		if _, busy := errors.AsType[*BusyError](err); !busy {
			t.Errorf("change %d: %v", n, err)
		}
	}
	if took := time.Since(begin); took > 3*busyFor {
		t.Errorf("five changes waited %s", took)
	}
}

// TestALogThatOnlyGrowsIsTold: a reader that does not end keeps it, and is named.
func TestALogThatOnlyGrowsIsTold(t *testing.T) {
	t.Parallel()
	_, l := fresh(t)
	s := opened(t, l)
	s.longLog = keptLog + 1<<20
	pid, end := holder(t, s.path, "BEGIN;SELECT COUNT(*) FROM tries")
	watched(t, s)
	n := 0
	grow := func(by int) {
		for to := n + by; n < to; n++ {
			if err := s.Write(t.Context(), func(c *Change) error {
				_, err := c.Do(`INSERT INTO tries (n, text) VALUES ($1, $2)`, n, strings.Repeat("x", 60000))
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	grow(320)
	is := has(t, s, Long, true)
	if lockedBy(s.path, reading) != nil && (!strings.Contains(is.Text, strconv.Itoa(pid)) || strings.Contains(is.Text, "itself")) {
		t.Errorf("it is not named: %+v, want %d", is, pid)
	}
	end()
	grow(5)
	has(t, s, Long, false)
}

// TestDamageIsTold: a store whose last writer was killed is looked at in the background; one
// that is damaged replaces no backup, and the next run looks again.
func TestDamageIsTold(t *testing.T) {
	t.Parallel()
	dir, l := fresh(t)
	s := opened(t, l)
	for n := range 400 { // most of the file
		if err := s.Write(t.Context(), add(2000+n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	damage(t, s.path)
	mark(t, s.path, `UPDATE store SET clean = 0`) // as after a kill
	for range 2 {
		s, err := Open(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if !s.Found().Unclean {
			t.Error("it was closed in order")
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Watch(ctx, slog.New(slog.DiscardHandler)) }()
		if is := has(t, s, Damaged, true); !strings.Contains(is.Do, "heartbeat restore FILE") {
			t.Errorf("%+v", is)
		}
		if _, err := s.KeepBackups(t.Context(), time.Now()); err == nil {
			t.Error("a backup of a damaged store")
		}
		if names, err := filepath.Glob(filepath.Join(dir, Backups, "*")); err != nil || len(names) > 0 {
			t.Error(names, err)
		}
		cancel()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	}
}

// damage overwrites the last pages, which are of the table tries.
func damage(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for at := info.Size() - 2*4096; at < info.Size(); at += 4096 {
		if _, err := f.WriteAt([]byte(strings.Repeat("\xff", 100)), at&^4095); err != nil {
			t.Fatal(err)
		}
	}
}

// mark has SQLite change a store that nobody has open.
func mark(t *testing.T, path, statement string) {
	t.Helper()
	pool, err := sql.Open("sqlite", dsn(path, "rw"))
	if err == nil {
		_, err = pool.ExecContext(t.Context(), statement)
		err = errors.Join(err, pool.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestALostStoreIsNoticed, also while nobody writes.
func TestALostStoreIsNoticed(t *testing.T) {
	t.Parallel()
	_, l := fresh(t)
	s := opened(t, l)
	ended := watched(t, s)
	if err := os.Rename(s.path, s.path+".old"); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if _, is := errors.AsType[*LostError](err); !is {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("nobody has noticed")
	}
	if is := has(t, s, Lost, true); is.Do == "" || is.Text == "" {
		t.Errorf("%+v", is)
	}
}

// TestALogThatIsRemovedLosesNothing: SQLite wrote on to a log without a name, all that was
// confirmed since was lost with the process, and nobody was told.
func TestALogThatIsRemovedLosesNothing(t *testing.T) {
	t.Parallel()
	swap := func(path string) error {
		return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, nil, 0o600))
	}
	for what, c := range map[string]struct {
		harm  func(path string) error
		of    string
		quiet bool // nobody writes afterwards
	}{
		"the log is removed":           {os.Remove, "-wal", false},
		"the log is removed, at rest":  {os.Remove, "-wal", true},
		"the log is replaced":          {swap, "-wal", false},
		"the log is replaced, at rest": {swap, "-wal", true},
		"its index is removed":         {os.Remove, "-shm", false},
		"its index is removed at rest": {os.Remove, "-shm", true},
		"its index is replaced":        {swap, "-shm", false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			_, l := fresh(t)
			s := opened(t, l)
			want := []int{1}
			if err := errors.Join(s.Write(t.Context(), add(1)), c.harm(s.path+c.of)); err != nil {
				t.Fatal(err)
			}
			if !c.quiet {
				want = append(want, 2)
				if err := s.Write(t.Context(), add(2)); err != nil {
					t.Errorf("a change that is kept: %v", err)
				}
			}
			select {
			case err := <-watched(t, s):
				if _, is := errors.AsType[*LostError](err); !is || !strings.Contains(err.Error(), "its log") {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Fatal("nobody has noticed")
			}
			if is := has(t, s, Lost, true); !strings.Contains(is.Do, "nothing is lost") || !strings.HasSuffix(is.Do, "; then heartbeat run") {
				t.Errorf("%+v", is)
			}
			if _, lost := errors.AsType[*LostError](s.Write(t.Context(), add(3))); !lost {
				t.Error("a change is confirmed")
			}
			killed := t.TempDir() // what a kill now would leave; reading it here would drop our locks
			if out, err := exec.CommandContext(t.Context(), "cp", s.path, killed).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			if err := os.Chmod(killed, 0o700); err != nil {
				t.Fatal(err)
			}
			r, err := OpenReader(t.Context(), killed)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if got := numbers(t, r); !slices.Equal(got, want) {
				t.Errorf("there are %v, want %v", got, want)
			}
		})
	}
}

// TestAStoreThatNobodyElseCanOpenIsTold, and the end of it: the run went on, status said
// nothing, and each command and the next run refused the store.
func TestAStoreThatNobodyElseCanOpenIsTold(t *testing.T) {
	t.Parallel()
	_, l := fresh(t)
	s := opened(t, l)
	watched(t, s)
	n := 0
	for what, c := range map[string]struct{ harm, mend func() error }{
		"others may write it":      {func() error { return os.Chmod(s.path, 0o666) }, func() error { return os.Chmod(s.path, 0o600) }},
		"others may write its log": {func() error { return os.Chmod(s.path+"-wal", 0o666) }, func() error { return os.Chmod(s.path+"-wal", 0o600) }},
		"it has another name":      {func() error { return os.Link(s.path, s.path+".2") }, func() error { return os.Remove(s.path + ".2") }},
	} {
		if err := c.harm(); err != nil {
			t.Fatal(err)
		}
		if is := has(t, s, Refused, true); is.Text == "" || is.Do == "" {
			t.Errorf("%s: %+v", what, is)
		}
		n++
		if err := errors.Join(s.Write(t.Context(), add(n)), c.mend()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		has(t, s, Refused, false)
	}
}

// TestAFleetThatHadAStoreGetsNoEmptyOne: it would run what was paused.
func TestAFleetThatHadAStoreGetsNoEmptyOne(t *testing.T) {
	t.Parallel()
	for _, trace := range []string{"", Backups + "/heartbeat-20261129T100000Z.db", Name + "-wal", Name + ".before-restore-1", Former + "/page/orders.json"} {
		dir, l := fresh(t)
		path := filepath.Join(dir, trace)
		if err := os.Remove(filepath.Join(dir, Name)); err != nil {
			t.Fatal(err)
		}
		if trace != "" {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("x"), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		found := Examine(t.Context(), dir, time.Now())
		s, err := OpenOrCreate(t.Context(), l)
		if trace == "" {
			if err != nil || len(found) > 0 {
				t.Error(found, err)
			} else if err := s.Close(); err != nil {
				t.Error(err)
			}
			continue
		}
		gone, is := errors.AsType[*GoneError](err)
		if !is || len(found) != 1 || found[0].Kind != Lost || strings.HasPrefix(trace, Backups) && !strings.HasSuffix(gone.Hint(), " "+path) {
			t.Errorf("%s: %v, found %+v", trace, err, found)
		}
		if Exists(dir) {
			t.Errorf("%s: a store was made", trace)
		}
	}
}

// TestWhatIsWrongAtRest walks what Examine finds, and that each says what to do.
func TestWhatIsWrongAtRest(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		harm func(path string) error
		kind Kind
	}{
		"nothing":                  {func(string) error { return nil }, ""},
		"another program's tables": {func(p string) error { return errors.Join(os.Remove(p), other(p)) }, Refused},
		"text":                     {func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("text\n", 2000)), 0o600) }, Damaged},
		"half of it":               {func(p string) error { return os.Truncate(p, 5000) }, Damaged},
		"nothing of it":            {func(p string) error { return os.Truncate(p, 0) }, Refused},
		"a folder":                 {func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o700)) }, Refused},
		"others may write":         {func(p string) error { return os.Chmod(p, 0o666) }, Refused},
		"its log is a folder":      {func(p string) error { return os.Mkdir(p+"-wal", 0o700) }, Disk},
		"newer tables":             {says("version = 10000"), Newer},
		"older tables":             {says("version = 1"), ""},
		"another machine's":        {says("machine = 'another'"), Cloned},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if c.kind == Cloned && machineID() == "" {
				t.Skip("this machine has no id")
			}
			dir, _ := fresh(t)
			if err := c.harm(filepath.Join(dir, Name)); err != nil {
				t.Fatal(err)
			}
			found := Examine(t.Context(), dir, time.Now())
			if whole := ExamineWhole(t.Context(), dir, time.Now()); !slices.Equal(whole, found) {
				t.Errorf("found %+v, and of the whole %+v", found, whole)
			}
			if c.kind == "" && len(found) > 0 || c.kind != "" && (len(found) != 1 || found[0].Kind != c.kind || found[0].Text == "" || found[0].Do == "") {
				t.Errorf("found %+v, want %q", found, c.kind)
			}
		})
	}
}

// says has the table "store" say something else.
func says(what string) func(path string) error {
	return func(path string) error {
		pool, err := sql.Open("sqlite", dsn(path, "rw"))
		if err == nil {
			_, err = pool.Exec(`UPDATE store SET ` + what)
			err = errors.Join(err, pool.Close())
		}
		return err
	}
}

// TestAClonedMachineIsToldOnce: the next writer makes the store this machine's.
func TestAClonedMachineIsToldOnce(t *testing.T) {
	t.Parallel()
	if machineID() == "" {
		t.Skip("this machine has no id")
	}
	dir, l := fresh(t)
	if err := says("machine = 'another'")(filepath.Join(dir, Name)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		s := opened(t, l)
		if is := s.Found().Cloned != nil; is != want {
			t.Errorf("it is cloned: %v, want %v", is, want)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if found := Examine(t.Context(), dir, time.Now()); len(found) > 0 {
		t.Errorf("%+v", found)
	}
}

// TestATableThatIsGoneIsDamage: doctor found nothing, and commands had SQLite's words and no advice.
func TestATableThatIsGoneIsDamage(t *testing.T) {
	t.Parallel()
	for _, harm := range []string{`DROP TABLE pauses`, `ALTER TABLE pauses DROP COLUMN until`} {
		dir, l := fresh(t)
		pool, err := sql.Open("sqlite", dsn(filepath.Join(dir, Name), "rw"))
		if err == nil {
			_, err = pool.Exec(harm)
			err = errors.Join(err, pool.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		if found := ExamineWhole(t.Context(), dir, time.Now()); len(found) != 1 || found[0].Kind != Damaged || !strings.Contains(found[0].Text, "it has no pauses.") {
			t.Errorf("%s: found %+v", harm, found)
		}
		s := opened(t, l)
		var damaged *DamagedError
		err = s.Read(t.Context(), func(v *View) error {
			_, err := v.One(`SELECT until FROM pauses`, nil)
			return err
		})
		if !errors.As(err, &damaged) {
			t.Errorf("%s: read: %v", harm, err)
		}
		err = s.Write(t.Context(), func(c *Change) error {
			_, err := c.Do(`UPDATE pauses SET until = 0`)
			return err
		})
		if !errors.As(err, &damaged) || !s.health.has(Damaged) {
			t.Errorf("%s: write: %v", harm, err)
		}
	}
}

// TestALogOfAnotherDatabaseIsFound: a backup that was copied over the store of a killed run has
// the killed one's log applied to it, and doctor found nothing.
func TestALogOfAnotherDatabaseIsFound(t *testing.T) {
	t.Parallel()
	from := func(first int) func(*Change) error { // so many that the log begins again
		return func(c *Change) error {
			for n := range 3000 {
				if err := add(3000*(first+n) + 2999)(c); err != nil {
					return err
				}
			}
			return nil
		}
	}
	_, l := fresh(t)
	killed := opened(t, l)
	copied, l := fresh(t)
	backup := opened(t, l)
	if err := errors.Join(killed.Write(t.Context(), from(5000)), killed.Write(t.Context(), add(3000*6500)), backup.Write(t.Context(), from(0)), backup.Close()); err != nil {
		t.Fatal(err)
	}
	// Another process copies: to close one of these files here would drop our locks.
	if out, err := exec.CommandContext(t.Context(), "cp", killed.path+"-wal", copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if found := ExamineWhole(t.Context(), copied, time.Now()); len(found) != 1 || found[0].Kind != Damaged {
		t.Errorf("found %+v", found)
	}
}

// other makes a database that is not heartbeat's.
func other(path string) error {
	pool, err := sql.Open("sqlite", dsn(path, "rwc"))
	if err != nil {
		return err
	}
	_, err = pool.Exec(`CREATE TABLE x (y INTEGER)`)
	return errors.Join(err, pool.Close())
}
