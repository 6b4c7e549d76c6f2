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
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

// envAdopt has the test's own program be the beginning of a run in a state directory.
const envAdopt = "HEARTBEAT_TEST_ADOPT"

func TestMain(m *testing.M) {
	dir := os.Getenv(envAdopt)
	if dir == "" {
		os.Exit(testbed.Run(m))
	}
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	s, release, err := Open(ctx, dir, log)
	if err == nil {
		fmt.Println("open")
		err = beside(ctx, s, log)
		release()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// lateBills is how many sessions are billed beside Rest.
const lateBills = 6

// beside is a run that takes over the rest, and has sessions billed meanwhile: of now, and, late,
// of slots that the rest has, too. It prints the bills that are kept.
func beside(ctx context.Context, s *store.Store, log *slog.Logger) error {
	until, err := writtenUntil(s.Dir())
	if err != nil || until < 10 {
		return err // it is not about that
	}
	rest := make(chan error)
	go func() { rest <- Rest(ctx, s, log) }()
	for n := range int64(lateBills) {
		at := time.Now()
		if n%2 == 0 {
			at = slotAt(until - n)
		}
		r := usage.Record{At: at, Agent: "a", Session: "late", Number: n, Sum: usage.Sum{Turns: 1}}
		if err := s.Write(ctx, func(c *store.Change) error { return series.Bill(c, r) }); err == nil {
			fmt.Println(n)
		}
	}
	return <-rest
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
		o := disturb(t, l.dir, call, errno, lasts)
		l.whole(fmt.Sprintf("call %d of %d, %v, lasts %v (it said %q, %s)", call, len(o.Calls), errno, lasts, o.Stdout, o.Stderr), put)
		return len(o.Calls)
	}
	walk(t, 40, at)
}

// walk has each call of a program be what it is killed before, or fail in each way; the sample is
// one of thin.
func walk(t *testing.T, thin int, at func(call int, errno syscall.Errno, lasts bool) (calls int)) {
	t.Helper()
	errnos := []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.EDQUOT}
	ways := 1 + 2*len(errnos)
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

// disturb runs the beginning of a run in a state directory, something of which happens at a call.
func disturb(t *testing.T, dir string, call int, errno syscall.Errno, lasts bool) stepper.Outcome {
	t.Helper()
	p := stepper.Program{Path: os.Args[0], Env: []string{envAdopt + "=" + dir}}
	o, err := stepper.Outcome{}, error(nil)
	if errno != 0 {
		o, err = stepper.Fail(p, call, errno, lasts)
	} else {
		o, err = stepper.Run(p, call)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestWhateverACallDoesBesideARun is that for what is taken over while the run writes rows of the
// same ten minutes: the next run has all of both, once.
func TestWhateverACallDoesBesideARun(t *testing.T) {
	t.Parallel()
	if testbed.Raced {
		t.Skip("the program works alone: the race detector has nothing to see")
	}
	stepper.Need(t, stepper.Program{Path: "/bin/true"})
	until := time.Now().Unix()/600 - 1000
	many := make([]uint32, seriesBatch+20)
	for i := range many {
		many[i] = uint32(i%7 + 1)
	}
	begin := until - int64(len(many)) + 1
	template := &lab{T: t, dir: filepath.Join(t.TempDir(), "fleet")}
	template.put("series/a.points", points(begin, many...))
	template.put("series/a.points.1", points(begin-2, 3, 4, 5)) // the clock was set back
	template.put("series/b.points", points(until, 9))
	template.put("series/.watched.points", points(begin, many...))
	template.put("series/.measured.points", points(begin+100, many[100:]...))
	_, release, err := Open(t.Context(), template.dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	release()
	template.put("series/.until", fmt.Sprintln(until)) // as of the version before: nothing is counted from elsewhere
	was := uint32(0)
	for _, n := range append(many, 3, 4, 5) {
		was += n
	}
	walk(t, 40, func(call int, errno syscall.Errno, lasts bool) (calls int) {
		l := &lab{T: t, dir: filepath.Join(t.TempDir(), "fleet")}
		if err := os.CopyFS(l.dir, os.DirFS(template.dir)); err != nil { // nobody has its store open
			t.Fatal(err)
		}
		o := disturb(t, l.dir, call, errno, lasts)
		where := fmt.Sprintf("call %d of %d, %v, lasts %v (it said %q, %s)", call, len(o.Calls), errno, lasts, o.Stdout, o.Stderr)
		s, release, err := Open(t.Context(), l.dir, slog.New(slog.NewTextHandler(&l.log, nil)))
		if err != nil {
			t.Errorf("%s: the next run: %v", where, err)
			return len(o.Calls)
		}
		defer release()
		l.store = s
		l.rest()
		bills := l.count(`SELECT COUNT(*) FROM usage`)
		for query, want := range map[string]int{
			`SELECT SUM(done) FROM series WHERE agent = 'a'`:                                   2 * int(was),
			`SELECT SUM(turns) FROM series WHERE agent = 'a'`:                                  6*int(was) + bills,
			`SELECT SUM(turns) FROM series WHERE agent = ''`:                                   6*int(was+9) + bills,
			`SELECT SUM(guessed) FROM series WHERE agent = 'b'`:                                14 * 9,
			`SELECT COUNT(*) FROM series WHERE looked = 1`:                                     len(many),
			`SELECT queued FROM series WHERE agent = '' AND at = ` + fmt.Sprint(until*600_000): int(many[len(many)-1]) + 9,
		} {
			if got := l.count(query); got != want {
				t.Errorf("%s: %s: %d, want %d", where, query, got, want)
			}
		}
		for n := range strings.FieldsSeq(strings.TrimPrefix(o.Stdout, "open")) {
			if l.count(`SELECT COUNT(*) FROM usage WHERE session = 'late' AND number = `+n) != 1 {
				t.Errorf("%s: bill %s is lost", where, n)
			}
		}
		for _, name := range []string{"a.points", "a.points.1", "b.points", ".watched.points", ".measured.points", ".until"} {
			l.is(false, "series/"+name)
			l.is(true, filepath.Join(Folder, "series", name))
		}
		if err := s.Check(t.Context()); err != nil || strings.Contains(l.log.String(), "damaged") {
			t.Errorf("%s: %v\n%s", where, err, &l.log)
		}
		return len(o.Calls)
	})
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
	l.rest()
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
