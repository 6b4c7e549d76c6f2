package ledger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/orchestrator/state"
)

func open(t *testing.T, dir string) *Book {
	t.Helper()
	b, err := Open(dir, "a-1")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestAVerdictOutlivesItsScheduler: it belongs to one check of one entry, decided by
// one definition.
func TestAVerdictOutlivesItsScheduler(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now().UTC()
	about := Verdict{Delivery: "d1", Check: 2, Claimed: now, Definition: "h"}
	v := about
	v.Iteration, v.By, v.Output, v.At = 2, "check", "2 tests fail", now
	past, _ := guard.Past{}.After(guard.Iteration{Worked: time.Minute, Said: "x"}, guard.Rule{})
	answered := &Answered{Check: 2, Claimed: now, Definition: "h"}
	if err := open(t, dir).Keep(Course{Delivery: "d1", From: FromEntry, Past: past, Files: "f", Answered: answered, Verdict: &v}); err != nil {
		t.Fatal(err)
	}
	b := open(t, dir)
	c := b.Course("d1")
	if got := c.Stands(about); got == nil || cmp.Diff(*got, v) != "" {
		t.Errorf("got %+v, want %+v", got, v)
	}
	if c.Past.Iterations != 1 || c.Files != "f" || c.From != FromEntry || !c.Waits(about) {
		t.Errorf("got %+v", c)
	}
	for name, change := range map[string]func(*Verdict){
		"another entry": func(v *Verdict) { v.Delivery = "d2" }, "another check": func(v *Verdict) { v.Check++ },
		"another definition": func(v *Verdict) { v.Definition = "i" }, "another claim": func(v *Verdict) { v.Claimed = now.Add(1) },
	} {
		other := about
		if change(&other); c.Stands(other) != nil || name != "another entry" && c.Waits(other) {
			t.Errorf("%s has the same verdict", name)
		}
	}
	if b.Course("d2").Stands(about) != nil || b.Passed("d1") {
		t.Error("it is that of another entry, or counts as proven")
	}
	c.Verdict.Applied = true
	if c.Stands(about) != nil {
		t.Error("one that has not passed is applied twice")
	}
	if c.Verdict.Passed = true; c.Stands(about) == nil {
		t.Error("one that has passed is decided again")
	}
}

func TestSeveralCourses(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	keep := func(d string) {
		if err := b.Keep(Course{Delivery: d, Files: "files of " + d}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range mostCourses {
		keep(strconv.Itoa(i))
	}
	keep("0") // which is the last one then
	keep("other")
	for d, want := range map[string]bool{"0": true, "1": false, "2": true, "other": true} {
		if got := b.Course(d).Files != ""; got != want {
			t.Errorf("of %s something is known: %t", d, got)
		}
	}
}

func TestProven(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir)
	for i := range 3 {
		c := Course{Delivery: fmt.Sprint("d", i), Verdict: &Verdict{Delivery: fmt.Sprint("d", i), Passed: true}}
		for range 2 { // applied twice is proven once
			if err := b.Keep(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	if b = open(t, dir); !b.Passed("d0") || !b.Passed("d2") || b.Passed("d3") || len(b.book.Proven) != 3 {
		t.Errorf("proven are %v", b.book.Proven)
	}
	b.book.Proven = make([]Proven, 2*mostProven)
	if err := b.Keep(Course{Delivery: "e", Verdict: &Verdict{Delivery: "e", Passed: true}}); err != nil {
		t.Fatal(err)
	}
	if n := len(b.book.Proven); n != mostProven || !b.Passed("e") {
		t.Errorf("%d are kept", n)
	}
}

// TestWhatCannotBeWrittenIsNotKept: in memory neither.
func TestWhatCannotBeWrittenIsNotKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "proofs"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Keep(Course{Delivery: "d", Verdict: &Verdict{Delivery: "d", Passed: true}}); err == nil {
		t.Error("no error")
	}
	if b.Passed("d") || b.Course("d").Verdict != nil {
		t.Error("it is kept")
	}
}

func TestDamagedBookIsPutAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "proofs", "a-1.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	b, err := Open(dir, "a-1")
	if !errors.Is(err, state.ErrDamaged) || b == nil {
		t.Fatalf("got %v", err)
	}
	if err := b.Begins(true); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Error(err)
	}
	if !open(t, dir).Demands() {
		t.Error("what was recorded after that is gone")
	}
}

// TestWhatHasPassedIsKnownForTheRun: after 256 more it was called forged.
func TestWhatHasPassedIsKnownForTheRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := Open(dir, "a")
	if err != nil {
		t.Fatal(err)
	}
	b.Courses = nil
	for i := range mostProven + 20 {
		d := strconv.Itoa(i)
		if i > 0 && i < mostProven+19 { // without a write for each
			b.passes(d)
			b.Proven = append(b.Proven, Proven{Delivery: d})
			continue
		}
		if err := b.Keep(Course{Delivery: d, Verdict: &Verdict{Delivery: d, Passed: true}}); err != nil {
			t.Fatal(err)
		}
	}
	if !b.Passed("0") || !b.Passed("1") || len(b.Proven) != mostProven || b.Passed("none") {
		t.Errorf("%d are kept", len(b.Proven))
	}
}

// TestWhatWaitsIsRemembered: entries that pass while another one is set aside take the
// room of each other, not that of what waits for a person.
func TestWhatWaitsIsRemembered(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	now := time.Now()
	if err := b.Keep(Course{Delivery: "waits", Answered: &Answered{Check: 1, Claimed: now}}); err != nil {
		t.Fatal(err)
	}
	back := Course{Delivery: "returns", Verdict: &Verdict{Delivery: "returns", Applied: true}}
	if err := b.Keep(back); err != nil {
		t.Fatal(err)
	}
	for i := range 3 * mostCourses {
		c := Course{Delivery: strconv.Itoa(i), Verdict: &Verdict{Delivery: strconv.Itoa(i), Passed: i%2 == 0, Applied: true}}
		if i%2 != 0 {
			c.Verdict.GiveUp = inbox.MaxTime
		}
		if err := b.Keep(c); err != nil {
			t.Fatal(err)
		}
	}
	if c := b.Course("waits"); !c.Waits(Verdict{Check: 1, Claimed: now}) {
		t.Error("that a check has passed is forgotten while people decide")
	}
	if b.Course("returns").Verdict == nil {
		t.Error("the iterations of an entry that comes back are forgotten")
	}
	for i := range 3 * mostCourses {
		if err := b.Keep(Course{Delivery: "c" + strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(b.book.Courses); got > mostCourses || b.Course("waits").Answered == nil {
		t.Errorf("%d are kept, at most %d may be; or the one that waits is not among them", got, mostCourses)
	}
}
