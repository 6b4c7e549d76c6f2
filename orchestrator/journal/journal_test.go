package journal

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// lab is a fleet's journal.
type lab struct {
	*testing.T
	dir   string
	store *store.Store
	*Journal
	said strings.Builder
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{T: t, dir: t.TempDir()}
	l.store = storetest.New(t, l.dir)
	l.Journal = New(l.store, slog.New(slog.NewTextHandler(&l.said, nil)), nil)
	return l
}

// all are the events that are read now.
func (l *lab) all() (all []Event) {
	l.Helper()
	for e, err := range Read(l.dir) {
		if err != nil {
			l.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// TestEventsStayInTheirOrder: those that are added, those that are written with something
// else, and more than are read at once.
func TestEventsStayInTheirOrder(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	const n = 2*page + 7
	for i := range n {
		if i%500 != 499 {
			l.Add(Event{Kind: Kind(fmt.Sprintf("k%d", i))})
			continue
		}
		l.must(l.Flush())
		l.must(l.store.Write(t.Context(), func(c *store.Change) error { return Write(c, Event{Kind: Kind(fmt.Sprintf("k%d", i))}) }))
	}
	l.must(l.Close())
	got := l.all()
	if len(got) != n {
		t.Fatalf("%d events, want %d", len(got), n)
	}
	for i, e := range got {
		if want := Kind(fmt.Sprintf("k%d", i)); e.Kind != want {
			t.Fatalf("event %d is %s, want %s", i, e.Kind, want)
		}
	}
}

// TestTheLastOfAKind is found without the others, of the agent that is meant.
func TestTheLastOfAKind(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for i := range 5 {
		l.Add(Event{Agent: "a", Kind: Ended, Session: fmt.Sprint(i)})
		l.Add(Event{Agent: "b", Kind: Ended, Session: "other"})
		l.Add(Event{Agent: "a", Kind: Fired, Session: "none"})
	}
	l.must(l.Close())
	if e, known, err := LastOf(l.dir, "a", Ended); err != nil || !known || e.Session != "4" || e.Agent != "a" {
		t.Errorf("%+v, %v, %v", e, known, err)
	}
	for dir, agent := range map[string]string{l.dir: "c", t.TempDir(): "a"} {
		if e, known, err := LastOf(dir, agent, Ended); err != nil || known {
			t.Errorf("%+v, %v, %v", e, known, err)
		}
	}
}

// TestNoStoreIsNoJournal: a fleet that never ran has nothing to read.
func TestNoStoreIsNoJournal(t *testing.T) {
	t.Parallel()
	for e, err := range Read(t.TempDir()) {
		t.Error(e, err)
	}
	if v, err := Verify(t.Context(), t.TempDir()); err != nil || v.Lines != 0 {
		t.Error(v, err)
	}
}

// TestFollow sees what is there, and then what comes, once.
func TestFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, end := storetest.Open(t, dir)
		defer end()
		j := New(s, slog.New(slog.DiscardHandler), nil)
		j.Add(Event{Kind: "before"})
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
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
		for i := range 300 {
			if i%30 == 0 {
				time.Sleep(lookAgain)
			}
			j.Add(Event{Kind: Kind(fmt.Sprintf("k%d", i))})
		}
		j.Add(Event{Kind: "last"})
		follower.Wait()
		if len(got) != 302 || got[0] != "before" || got[1] != "k0" || got[301] != "last" {
			t.Errorf("%d events seen, want all 302", len(got))
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What one agent did all day was all that the journal held: its fires had pushed
// the past of the others out.
func TestOneAgentPushesNobodyOut(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.most = 1000
	quiet := []string{"a", "b", ""}
	for i := range 5000 {
		e := Event{Agent: "noisy", Kind: Fired, Trigger: fmt.Sprint(i)}
		if i < 60 {
			e = Event{Agent: quiet[i%3], Kind: Ended, Trigger: fmt.Sprint(i)}
		}
		l.Add(e)
	}
	l.must(l.Close())
	l.pruned = 0
	l.must(l.prune())
	seen, last := map[string]int{}, ""
	for _, e := range l.all() {
		seen[e.Agent]++
		last = e.Trigger
	}
	if seen["a"] != 20 || seen["b"] != 20 || seen[""] != 20 || seen["noisy"] != 940 || last != "4999" {
		t.Errorf("left of the past: %v, the last %s", seen, last)
	}
}

// A line for each turn must not push an agent's failures out.
func TestStopsGoFirst(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.most = 500
	for i := range 3000 {
		e := Event{Agent: "a", Kind: Stopped, Answer: "gave", Entry: "afbd9f4429f1"}
		if i%100 == 0 {
			e = Event{Agent: "a", Kind: Ended, Trigger: fmt.Sprint(i)}
		}
		l.Add(e)
	}
	l.must(l.Close())
	l.pruned = 0
	l.must(l.prune())
	seen, last := map[Kind]int{}, Kind("")
	for _, e := range l.all() {
		seen[e.Kind]++
		last = e.Kind
	}
	if seen[Ended] != 30 || seen[Stopped] != 470 || last != Stopped {
		t.Errorf("left of the past: %v, the last %s", seen, last)
	}
}

// TestEventsWaitForAStoreThatIsBusy: as many as there is room for, and it is said how many
// were too many.
func TestEventsWaitForAStoreThatIsBusy(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	hold, begun := make(chan struct{}), make(chan struct{}, 1)
	var busy sync.WaitGroup
	busy.Go(func() {
		_ = l.store.Write(t.Context(), func(*store.Change) error { begun <- struct{}{}; <-hold; return nil })
	})
	<-begun
	l.writing.Lock() // as if a batch were on its way
	for range mostWaiting + 50 {
		l.Add(Event{Kind: Fired})
	}
	l.writing.Unlock()
	close(hold)
	busy.Wait()
	if !testbed.Await(testbed.Patience, func() bool { return len(l.all()) > 0 }) {
		t.Error("nothing is written")
	}
	l.must(l.Close())
	if n := len(l.all()); n != mostWaiting || !strings.Contains(l.said.String(), "events=50") {
		t.Errorf("%d events, want %d; said:\n%s", n, mostWaiting, &l.said)
	}
}

// TestDamageIsFound: a changed event, and one that was cut; those of versions without checksums
// are read as ever.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for i := range 5 {
		l.Add(Event{Agent: "a", Kind: Ended, Reason: foreign.Text(fmt.Sprintf("it says %d", i))})
	}
	l.must(l.Close())
	harm := func(statement string) {
		l.must(l.store.Write(t.Context(), func(c *store.Change) error { _, err := c.Do(statement); return err }))
	}
	harm(`UPDATE events SET crc = -1 WHERE n = 1`)
	v, err := Verify(t.Context(), l.dir)
	if err != nil || v.Lines != 5 || v.Unsummed != 1 || len(v.Damaged) != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	harm(`UPDATE events SET body = replace(body, '"it says', '"it sayt') WHERE n = 2`)
	harm(`UPDATE events SET body = substr(body, 1, length(body) - 1) WHERE n = 4`)
	v, err = Verify(t.Context(), l.dir)
	if err != nil || strings.Join(v.Damaged, ", ") != "event 2, event 4" {
		t.Errorf("%+v, %v", v, err)
	}
	if n := len(l.all()); n != 5 {
		t.Errorf("%d events are read", n)
	}
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
