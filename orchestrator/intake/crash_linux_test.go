package intake

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/crash/disk"
	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/entries/entriestest"
	"heartbeat/orchestrator/store"
	"heartbeat/queue/line"
)

// envTake has the test's own program take in the inbox of a world, the folder that is the
// variable's value.
const envTake = "HEARTBEAT_TEST_TAKE"

func init() {
	programs[envTake] = func(dir string) {
		if _, err := takeWorld(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// place is that of a world, a folder that has the agent's directory and a store.
func place(dir string) Place {
	return Place{Agent: "a", Dir: filepath.Join(dir, "a"), Inbox: filepath.Join(dir, "a", ".heartbeat", "inbox.jsonl"), MaxEntry: 2000}
}

// takeWorld takes in all, as of a minute ahead: nobody writes any more.
func takeWorld(ctx context.Context, dir string) (got Taken, err error) {
	l, err := store.Take(ctx, filepath.Join(dir, "state"))
	if err != nil {
		return Taken{}, err
	}
	defer func() { err = errors.Join(err, l.Release()) }()
	s, err := store.Open(ctx, l)
	if err != nil {
		return Taken{}, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return takeAll(ctx, s, place(dir), time.Now().Add(time.Minute))
}

// story is what a world's inbox goes through, and what is in the store in the end.
type story struct {
	name string
	tell func(t *testing.T, take func(), p Place)
	want []string
}

var stories = []story{
	{"new mail", func(t *testing.T, _ func(), p Place) {
		five, _ := line.Encode(line.Envelope{ID: "id-5", Source: "send", Prompt: "five"})
		add(t, p.Inbox, "three\nfour\n")
		syncAll(t, p.Dir) // what follows may not be on the disk when it is taken in
		add(t, p.Inbox, string(five)+strings.Repeat("l", 2500)+"\n"+`{"heartbeat":1,"id":"x","pro`+"\n"+string(five)+"six")
	}, []string{"three", "four", "five", strings.Repeat("l", 2500), `{"heartbeat":1,"id":"x","pro`, "six"}},
	{"a line that is ended, one that is not, and mail beside files that were moved", func(t *testing.T, take func(), p Place) {
		add(t, p.Inbox, "zero\nnull\n")
		take()
		add(t, p.Inbox, "one\n")
		take()
		add(t, filepath.Join(filepath.Dir(p.Inbox), takenName, "inbox.jsonl.2"), "two\nthree")
		add(t, p.Inbox, "four\nfi")
		take()
		add(t, p.Inbox, "ve\n")
	}, []string{"zero", "null", "one", "two", "four", "three", "five"}},
	{"what was taken in is removed", func(t *testing.T, take func(), p Place) {
		add(t, p.Inbox, "one\ntwo\n")
		take()
		add(t, p.Inbox, "three\n")
		take()
		syncAll(t, p.Dir)
	}, []string{"one", "two", "three"}},
	{"the same again", func(t *testing.T, take func(), p Place) {
		add(t, p.Inbox, "same\nmail\n")
		take()
		add(t, p.Inbox, "same\nmail\n")
	}, []string{"same", "mail", "same", "mail"}},
}

// add appends to a file.
func add(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// syncAll has the file system of a folder written to the disk.
func syncAll(t *testing.T, dir string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "sync", "-f", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// build makes a world in which a story has been told. Each taking in it is at the time at which
// it is made.
func (s story) build(t *testing.T, dir string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "state"), 0o700), os.MkdirAll(filepath.Join(dir, "a", ".heartbeat"), 0o700)); err != nil {
		t.Fatal(err)
	}
	l, err := store.Take(t.Context(), filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	of, err := store.OpenOrCreate(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	entriestest.Make(t, of)
	makeTable(t, of)
	s.tell(t, func() {
		if _, err := takeAll(t.Context(), of, place(dir), time.Now()); err != nil {
			t.Fatal(err)
		}
	}, place(dir))
	if err := errors.Join(of.Close(), l.Release()); err != nil {
		t.Fatal(err)
	}
}

// copyWorld copies one: the files of the agent by a name more, so that they stay the same files.
func copyWorld(t *testing.T, from, to string) {
	t.Helper()
	for _, cmd := range [][]string{{"mkdir", to}, {"cp", "-a", from + "/state", to}, {"cp", "-al", from + "/a", to}} {
		if out, err := exec.CommandContext(t.Context(), cmd[0], cmd[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// judge takes in what is left, and compares: each line is there, once, in order; and in the end
// nothing is left to take.
func (s story) judge(t *testing.T, dir string) error {
	t.Helper()
	for range 2 { // what is known when nothing comes is removed
		if _, err := takeWorld(t.Context(), dir); err != nil {
			return err
		}
		if got := prompts(t, dir); !slices.Equal(got, s.want) {
			return fmt.Errorf("%.300q, want %.300q", got, s.want)
		}
	}
	return nil
}

// way is what happens to a process: it is killed, or a call of it fails, once or with all that
// follow.
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
	for _, errno := range []syscall.Errno{0, 0, syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EACCES} {
		all = append(all, way{errno, false})
		if errno != 0 {
			all = append(all, way{errno, true})
		}
	}
	return all
}()

// disturbed takes in a world, and something happens at a call.
func disturbed(dir string, w way, call int) (stepper.Outcome, error) {
	p := stepper.Program{Path: os.Args[0], Env: []string{envTake + "=" + dir}}
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

// TestATakingThatIsCutOff: whatever it is killed at, and whichever call of it fails, nothing is
// lost and nothing comes twice.
func TestATakingThatIsCutOff(t *testing.T) {
	t.Parallel()
	stepped(t)
	const thin = 12
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			template := filepath.Join(t.TempDir(), "world")
			s.build(t, template)
			at := func(w way, call int) (calls int) {
				dir := filepath.Join(filepath.Dir(template), fmt.Sprintf("%d-%d-%v", call, w.errno, w.lasts))
				defer os.RemoveAll(dir)
				copyWorld(t, template, dir)
				o, err := disturbed(dir, w, call)
				if err != nil {
					t.Fatal(err)
				}
				if err := s.judge(t, dir); err != nil {
					t.Errorf("%v call %d of %d (%q): %v; it said %s", w, call, len(o.Calls), last(o.Calls, call), err, o.Stderr)
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

// last are some calls up to one.
func last(calls []string, call int) []string {
	call = min(call, len(calls))
	return calls[max(0, call-3):call]
}

// TestAPowerCutInATaking loses nothing that it has taken in, and nothing comes twice: an image of
// the file system, as it had reached the disk, is mounted again.
func TestAPowerCutInATaking(t *testing.T) {
	t.Parallel()
	stepped(t)
	if os.Geteuid() != 0 {
		t.Skip("no power cuts here: mounting takes root")
	}
	for _, kind := range testbed.SampleOf(t, disk.Kinds, 3) {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			template := kind.Template(t)
			for _, s := range testbed.SampleOf(t, stories, 2) {
				const thin = 12
				points := 0
				for n := 1 + testbed.Turn(t, thin); s.cut(t, kind, template, n); n += testbed.Stride(thin) {
					points++
				}
				testbed.Played(t, testbed.PowerCuts, points)
				t.Logf("%s, %s: %d cuts", kind.Name, s.name, points)
			}
		})
	}
}

// cut cuts the power of the agent's disk before a call, and reports whether it has come to that.
// The store is on another one, and forgets nothing. What the story has written is on the disk
// every other time; else it may be lost, as far as it was not taken in.
func (s story) cut(t *testing.T, kind disk.Kind, template string, call int) bool {
	t.Helper()
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	world := filepath.Join(dir, "world")
	home := filepath.Join(world, "a")
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	disk.Copy(t, template, before)
	m, err := kind.MountAt(t, before, home)
	if err != nil {
		t.Fatal(err)
	}
	s.build(t, world)
	synced := call%2 == 0
	if synced {
		syncAll(t, home)
	}
	o, err := disturbed(world, way{}, call)
	if err != nil {
		t.Fatal(err)
	}
	disk.Copy(t, before, after)
	m.Unmount(t)
	os.Remove(before)
	defer os.Remove(after)
	back, err := kind.MountAt(t, after, home)
	if err != nil {
		t.Errorf("cannot mount what the cut left: %v", err)
		return o.Killed
	}
	defer back.Unmount(t)
	judge := s.judge
	if !synced {
		judge = s.judgeTwice
	}
	if err := judge(t, world); err != nil {
		t.Errorf("%s, %s, the power cut before call %d (%q): %v", kind.Name, s.name, call, last(o.Calls, call), err)
	}
	return o.Killed
}

// judgeTwice is judge where mail may be lost that was not taken in: what was is there, and
// nothing comes twice.
func (s story) judgeTwice(t *testing.T, dir string) error {
	t.Helper()
	had := prompts(t, dir)
	if _, err := takeWorld(t.Context(), dir); err != nil {
		return err
	}
	got := prompts(t, dir)
	if !slices.Equal(got[:len(had)], had) {
		return fmt.Errorf("%.300q was %.300q", got, had)
	}
	left := slices.Clone(s.want)
	for _, p := range got {
		if i := slices.Index(left, p); i >= 0 {
			left = slices.Delete(left, i, i+1)
		} else if slices.Contains(s.want, p) {
			return fmt.Errorf("%.100q came twice: %.300q", p, got)
		}
	}
	return nil
}

// prompts are those in the store of a world.
func prompts(t *testing.T, dir string) (all []string) {
	t.Helper()
	r, err := store.OpenReader(t.Context(), filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, e := range entriesOf(t, r) {
		all = append(all, e.Prompt)
	}
	return all
}
