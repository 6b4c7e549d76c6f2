package journal

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/hook/flock"
)

func kinds(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	for e, err := range Read(dir) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(e.Kind))
	}
	return all
}

func openTestJournal(t *testing.T, dir string, limit int64) *Journal {
	t.Helper()
	j, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	j.max = limit
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestJournalIsRotated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one, two := openTestJournal(t, dir, 4096), openTestJournal(t, dir, 4096)
	const n = 400
	for i := range n {
		j := one
		if i%3 == 0 {
			j = two // another process
		}
		if err := j.Add(Event{Kind: Kind(fmt.Sprintf("k%d", i))}); err != nil {
			t.Fatal(err)
		}
		j.sharing.Wait()
	}
	one.sharing.Wait()
	two.sharing.Wait()
	got := kinds(t, dir)
	if len(got) < 50 || got[len(got)-1] != fmt.Sprintf("k%d", n-1) {
		t.Fatalf("%d events, the last %v", len(got), got[max(0, len(got)-1):])
	}
	for i, k := range got {
		if want := fmt.Sprintf("k%d", n-len(got)+i); k != want {
			t.Fatalf("event %d is %s, want %s: nothing between may be missing", i, k, want)
		}
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range names {
		if info, err := f.Info(); err != nil || info.Size() > 8192 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), info, err)
		}
	}
	if len(names) != 3 { // the present one, the old one, the lock
		t.Errorf("files %v", names)
	}
}

func TestATornJournalIsMended(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, presentFile)
	text := `{"at":"2026-11-21T05:00:00Z","kind":"one"}` + "\n" + "no event\n" + strings.Repeat("x", maxEventLine+1) + "\n" +
		`{"at":"2026-11-21T05:00:00Z","kind":"to` // the writer died
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := kinds(t, dir); len(got) != 1 || got[0] != "one" {
		t.Errorf("read %q", got)
	}
	j := openTestJournal(t, dir, fullSize)
	for _, kind := range []string{"two", "three"} {
		if err := j.Add(Event{Kind: Kind(kind)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(kinds(t, dir), " "); got != "one two three" {
		t.Errorf("read %q", got)
	}
}

func TestNoJournal(t *testing.T) {
	t.Parallel()
	if got := kinds(t, t.TempDir()); len(got) != 0 {
		t.Errorf("read %q", got)
	}
}

func TestFollowOverRotations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		j, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		j.max = 20_000
		if err := j.Add(Event{Kind: "before"}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		caughtUp := make(chan struct{})
		var got []string
		var follower sync.WaitGroup
		follower.Go(func() {
			for e, err := range Follow(ctx, dir, func() { close(caughtUp) }) {
				if err != nil {
					t.Error(err)
					return
				}
				if got = append(got, string(e.Kind)); e.Kind == "last" {
					return
				}
			}
		})
		<-caughtUp
		// A rotation takes some 400 events, and the follower sees each file.
		for i := range 1000 {
			if i%100 == 0 {
				time.Sleep(lookAgain)
			}
			if err := j.Add(Event{Kind: Kind(fmt.Sprintf("k%d", i))}); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Add(Event{Kind: "last"}); err != nil {
			t.Fatal(err)
		}
		follower.Wait()
		if len(got) != 1002 || got[0] != "before" || got[1] != "k0" || got[1001] != "last" {
			t.Errorf("%d events seen, want all 1002", len(got))
		}
	})
}

// TestKindsAreAClosedList: no event is written with a kind that is not declared
// here.
func TestKindsAreAClosedList(t *testing.T) {
	t.Parallel()
	looked := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || types.ExprString(lit.Type) != "journal.Event" {
				return true
			}
			for _, field := range lit.Elts {
				kv := field.(*ast.KeyValueExpr)
				if types.ExprString(kv.Key) != "Kind" {
					continue
				}
				if looked++; !strings.HasPrefix(types.ExprString(kv.Value), "journal.") {
					t.Errorf("%s: the kind %s is not of the list", path, types.ExprString(kv.Value))
				}
			}
			return true
		})
		return nil
	})
	if err != nil || looked < 15 {
		t.Errorf("looked at %d events: %v", looked, err)
	}
}

// What one agent did all day was all that the journal held: its fires had pushed
// the past of the others out.
func TestOneAgentPushesNobodyOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTestJournal(t, dir, 20_000)
	quiet := []string{"a", "b", ""}
	for i := range 5000 {
		e := Event{Agent: "noisy", Kind: Fired, Trigger: fmt.Sprint(i)}
		if i < 60 {
			e = Event{Agent: quiet[i%3], Kind: Ended, Trigger: fmt.Sprint(i)}
		}
		if err := j.Add(e); err != nil {
			t.Fatal(err)
		}
		j.sharing.Wait() // as if events came slower than they are sorted out
	}
	seen, last := map[string]int{}, ""
	for e, err := range Read(dir) {
		if err != nil {
			t.Fatal(err)
		}
		seen[e.Agent]++
		last = e.Trigger
	}
	if seen["a"] != 20 || seen["b"] != 20 || seen[""] != 20 || seen["noisy"] < 100 || last != "4999" {
		t.Errorf("left of the past: %v, the last %s", seen, last)
	}
	total := int64(0)
	for _, name := range []string{oldFile, presentFile, fullFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			total += info.Size()
		}
	}
	if total > 4*20_000 {
		t.Errorf("the journal has %d bytes", total)
	}
}

// A rotation that was killed in the middle is ended by the next one.
func TestAKilledRotationIsEnded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTestJournal(t, dir, 2000)
	for i := range 20 {
		if err := j.Add(Event{Agent: "a", Kind: Ended, Trigger: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	j.sharing.Wait()
	if err := os.Rename(filepath.Join(dir, presentFile), filepath.Join(dir, fullFile)); err != nil {
		t.Fatal(err)
	}
	if n := len(kinds(t, dir)); n != 20 {
		t.Errorf("%d events are read meanwhile, want 20", n)
	}
	for i := range 100 {
		if err := j.Add(Event{Agent: "b", Kind: Ended, Trigger: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	j.sharing.Wait()
	if _, err := os.Stat(filepath.Join(dir, fullFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was left is still there: %v", err)
	}
}

// A journal of 4 TB, which is sparse and costs nothing, held events, history
// and the end of a run for good.
func TestAHugeJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTestJournal(t, dir, 20_000)
	if err := os.Truncate(filepath.Join(dir, presentFile), 4<<40); err != nil {
		t.Skipf("this file system has no such files: %v", err)
	}
	if n := len(kinds(t, dir)); n != 0 {
		t.Errorf("it holds %d events", n)
	}
	for range 3 {
		if err := j.Add(Event{Agent: "a", Kind: Ended}); err != nil {
			t.Fatal(err)
		}
	}
	j.sharing.Wait()
	if n := len(kinds(t, dir)); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
}

// Each event beyond the size of a file read all of the journal again where that
// could not be shortened, and a writer waited for that, with the scheduler's lock
// held.
func TestARotationThatFailsForGood(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTestJournal(t, dir, 2000)
	inTheWay := filepath.Join(dir, oldFile, "x")
	if err := errors.Join(os.Mkdir(filepath.Dir(inTheWay), 0o700), os.WriteFile(inTheWay, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	add := func() error {
		err := j.Add(Event{Agent: "a", Kind: Ended, Trigger: "0123456789"})
		j.sharing.Wait()
		return err
	}
	told := 0
	for range 60 {
		if add() != nil {
			told++
		}
	}
	if told == 0 || told > 35 { // 20 events are two files' worth; then each is refused
		t.Errorf("told %d times", told)
	}
	total := int64(0)
	for _, name := range []string{presentFile, fullFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			total += info.Size()
		}
	}
	if total > 4*2000 {
		t.Errorf("the journal has %d bytes", total)
	}
	if err := os.RemoveAll(filepath.Dir(inTheWay)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := add(); err != nil {
			t.Errorf("it is in order again: %v", err)
		}
	}
	if n := len(kinds(t, dir)); n < 20 {
		t.Errorf("%d events are left", n)
	}
}

// A rotation in progress keeps nobody waiting.
func TestARotationIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTestJournal(t, dir, 500)
	unlock, err := flock.TryLock(filepath.Join(dir, lockFile)) // one that takes its time
	if err != nil {
		t.Fatal(err)
	}
	free := make(chan struct{})
	j.sharing.Go(func() { <-free })
	for range 100 {
		if err := j.Add(Event{Agent: "a", Kind: Ended}); err != nil {
			t.Fatal(err)
		}
	}
	close(free)
	j.sharing.Wait()
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if n := len(kinds(t, dir)); n != 100 {
		t.Errorf("%d events", n)
	}
}

// A line for each turn must not push an agent's failures out.
func TestStopsGoFirst(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := openTestJournal(t, dir, 20_000)
	for i := range 3000 {
		e := Event{Agent: "a", Kind: Stopped, Answer: "gave", Entry: "afbd9f4429f1"}
		if i%100 == 0 {
			e = Event{Agent: "a", Kind: Ended, Trigger: fmt.Sprint(i)}
		}
		if err := j.Add(e); err != nil {
			t.Fatal(err)
		}
		j.sharing.Wait()
	}
	seen, last := map[Kind]int{}, Kind("")
	for e, err := range Read(dir) {
		if err != nil {
			t.Fatal(err)
		}
		seen[e.Kind]++
		last = e.Kind
	}
	if seen[Ended] != 30 || seen[Stopped] < 100 || last != Stopped {
		t.Errorf("left of the past: %v, the last %s", seen, last)
	}
}
