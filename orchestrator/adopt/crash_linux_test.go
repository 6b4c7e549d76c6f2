package adopt

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/store"
)

// envAdopt has the test's own program be the beginning of a run in a state directory.
const envAdopt = "HEARTBEAT_TEST_ADOPT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(envAdopt); dir != "" {
		_, release, err := Open(context.Background(), dir, slog.New(slog.DiscardHandler))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("open")
		release()
		os.Exit(0)
	}
	os.Exit(testbed.Run(m))
}

// TestWhateverACallDoes: a run that takes over a directory with each file of earlier versions
// is killed before each of its calls, or one of them fails; the next one has all of it, once,
// and each file is either where it was or put aside.
func TestWhateverACallDoes(t *testing.T) {
	t.Parallel()
	if testbed.Raced {
		t.Skip("the program works alone: the race detector has nothing to see")
	}
	stepper.Need(t, stepper.Program{Path: "/bin/true"})
	var put []string
	at := func(call int, errno syscall.Errno, lasts bool) (calls int) {
		l := &lab{T: t, dir: filepath.Join(t.TempDir(), "fleet")}
		files, whole := examples()
		put = put[:0]
		for _, o := range all {
			put = append(put, cmp.Or(files[o.file], o.file))
			l.put(put[len(put)-1], whole[o.file].text)
		}
		put = append(put, "usage/a.jsonl", "series/.until")
		l.put("series/.until", "5\n")
		l.put("usage/a.jsonl", bill(time.Now().Add(-time.Hour), "a"))
		p := stepper.Program{Path: os.Args[0], Env: []string{envAdopt + "=" + l.dir}}
		run := func() (stepper.Outcome, error) { return stepper.Run(p, call) }
		if errno != 0 {
			run = func() (stepper.Outcome, error) { return stepper.Fail(p, call, errno, lasts) }
		}
		o, err := run()
		if err != nil {
			t.Fatal(err)
		}
		l.whole(fmt.Sprintf("call %d of %d, %v, lasts %v (it said %q, %s)", call, len(o.Calls), errno, lasts, o.Stdout, o.Stderr), put)
		return len(o.Calls)
	}
	errnos := []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.EDQUOT}
	ways := 1 + 2*len(errnos)
	const thin = 40
	calls, kills, fails, stride := at(0, 0, false), 0, 0, testbed.Stride(thin)
	for k := testbed.Turn(t, thin); k < calls*ways; k += stride {
		call, way := 1+k/ways, k%ways
		if way == 0 {
			kills++
			at(call, 0, false)
			continue
		}
		fails++
		at(call, errnos[(way-1)/2], way%2 == 0)
	}
	testbed.Played(t, testbed.Kills, kills)
	testbed.Played(t, testbed.FailingCalls, fails)
	t.Logf("%d calls, %d kills, %d failing calls", calls, kills, fails)
}

// whole begins a run and looks whether it has all that the files had.
func (l *lab) whole(where string, put []string) {
	l.Helper()
	s, release, err := Open(l.Context(), l.dir, slog.New(slog.NewTextHandler(&l.log, nil)))
	if err != nil {
		l.Errorf("%s: the next run: %v", where, err)
		return
	}
	defer release()
	l.store = s
	_, whole := examples()
	for _, o := range all {
		if n := l.count(whole[o.file].count); n != 1 {
			l.Errorf("%s: %s: %d rows", where, o.file, n)
		}
	}
	if n := l.count(`SELECT COUNT(*) FROM usage`); n != 1 {
		l.Errorf("%s: %d bills", where, n)
	}
	if n := l.count(`SELECT COUNT(*) FROM series WHERE agent = 'a' AND turns = 1`); n != 1 {
		l.Errorf("%s: the bill is %d times in the series", where, n)
	}
	if strings.Contains(l.log.String(), "damaged") {
		l.Errorf("%s: %s", where, &l.log)
	}
	if err := s.Check(l.Context()); err != nil {
		l.Errorf("%s: %v", where, err)
	}
	for _, name := range put {
		n := 0
		_ = filepath.WalkDir(l.dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasPrefix(filepath.Base(path), filepath.Base(name)) {
				n++
			}
			return nil
		})
		if _, err := os.Lstat(filepath.Join(l.dir, name)); err == nil && name != Barrier || n == 0 {
			l.Errorf("%s: %s is still there, or gone: %d", where, name, n)
		}
	}
	if !store.Exists(l.dir) {
		l.Errorf("%s: there is no store", where)
	}
}
