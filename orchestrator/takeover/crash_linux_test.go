package takeover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/entries/entriestest"
	"heartbeat/orchestrator/intake"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/queue"
)

// envTake has the test's own program take over the queue in a folder.
const envTake = "HEARTBEAT_TEST_TAKEOVER"

func init() {
	programs[envTake] = func(dir string) {
		if err := takeIn(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func takeIn(dir string) error {
	ctx := context.Background()
	l, err := store.Take(ctx, dir+"/state")
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, l)
	if err != nil {
		return err
	}
	_, err = Take(ctx, s, dir+"/state", agentIn(dir), key)
	return errors.Join(err, s.Close(), l.Release())
}

// everything makes a queue with one entry of each kind, and a store that nobody has open.
func everything(t *testing.T, dir string) {
	t.Helper()
	r := &rig{TB: t, state: dir + "/state", agent: agentIn(dir)}
	if err := errors.Join(os.MkdirAll(r.state, 0o700), os.MkdirAll(r.agent.Home, 0o700)); err != nil {
		t.Fatal(err)
	}
	s, end := storetest.Open(t, r.state)
	for table, schema := range schemas {
		entriestest.Apply(t, s, table, schema)
	}
	end()
	r.fill()
}

// isWhole takes the queue over once more, and looks whether each entry has come once.
func isWhole(t *testing.T, dir, where string) {
	t.Helper()
	r := rigIn(t, dir)
	got, err := Take(t.Context(), r.store, r.state, r.agent, key)
	if err != nil || got.Asks != nil || got.Owed != nil || got.SetAside != nil {
		t.Errorf("%s: the next time: %+v, %v", where, got, err)
		return
	}
	taken, err := intake.Take(t.Context(), r.store, intake.Place{Agent: key, Dir: r.agent.Dir, Inbox: r.agent.Inbox}, time.Now())
	if err != nil || taken.Queued+taken.Dead+taken.Duplicates > 0 {
		t.Errorf("%s: the inbox has %+v, %v", where, taken, err)
	}
	for state, want := range map[queue.State][]string{
		queue.Queued: {"urgent", "queued", "by hand"}, queue.Checking: {"checked"}, queue.Suspended: {"aside"}, queue.Dead: {"dead"}, queue.Later: {"later"},
		queue.Done: nil, queue.Offered: nil,
	} {
		if got := r.is(state); !slices.Equal(got, want) {
			t.Errorf("%s: %s are %q, want %q", where, state, got, want)
		}
	}
	for _, name := range append(slices.Clone(markers), ".ids", ".dead-letter.jsonl", ".waiting.jsonl", ".inbox.jsonl.kept") {
		if r.exists(name) {
			t.Errorf("%s: %s is still there", where, name)
		}
	}
	for _, name := range []string{".inbox-offset", ".inbox-meta", ".in-flight", ".ids", ".dead-letter.jsonl", ".waiting.jsonl"} {
		if !r.exists(Folder, name) {
			t.Errorf("%s: %s is gone", where, name)
		}
	}
	for _, name := range []string{"proofs/" + key + ".json", "asides/" + key} {
		if _, err := os.Lstat(r.state + "/" + Folder + "/" + name); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	if err := r.store.Check(t.Context()); err != nil {
		t.Errorf("%s: %v", where, err)
	}
}

// TestWhateverACallDoes: a program that takes over a queue is killed before each of its calls, or
// one of them fails; the next one has each entry once, and its files are put away.
func TestWhateverACallDoes(t *testing.T) {
	t.Parallel()
	if testbed.Raced {
		t.Skip("the program works alone: the race detector has nothing to see")
	}
	stepper.Need(t, stepper.Program{Path: "/bin/true"})
	errnos := []syscall.Errno{syscall.ENOSPC, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.EDQUOT}
	at := func(call int, errno syscall.Errno, lasts bool) int {
		dir := t.TempDir()
		everything(t, dir)
		p := stepper.Program{Path: os.Args[0], Env: []string{envTake + "=" + dir}}
		o, err := stepper.Outcome{}, error(nil)
		if errno != 0 {
			o, err = stepper.Fail(p, call, errno, lasts)
		} else {
			o, err = stepper.Run(p, call)
		}
		if err != nil {
			t.Fatal(err)
		}
		isWhole(t, dir, fmt.Sprintf("call %d of %d, %v, lasts %v (%s)", call, len(o.Calls), errno, lasts, o.Stderr))
		return len(o.Calls)
	}
	const thin = 40
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

// TestWhateverAMoveDoes: one that fails, or after which nothing more is done, is made up for.
func TestWhateverAMoveDoes(t *testing.T) {
	t.Parallel()
	stop := errors.New("stop")
	for step := 0; ; step++ {
		for _, done := range []bool{false, true} {
			dir := t.TempDir()
			everything(t, dir)
			steps := 0
			func() {
				s, end := storetest.Open(t, dir+"/state")
				defer end()
				k := &taker{store: s, stateDir: dir + "/state", agent: agentIn(dir), key: key, now: time.Now()}
				k.guard = func(_ durable.Step, run func() error) error {
					steps++
					if steps-1 < step {
						return run()
					}
					if steps-1 == step && done {
						return errors.Join(run(), stop)
					}
					return stop
				}
				if got, err := k.take(t.Context()); err != nil || got.Owed == nil && steps > step {
					t.Errorf("step %d: %+v, %v", step, got, err)
				}
			}()
			if steps <= step {
				t.Logf("%d steps", step)
				return
			}
			isWhole(t, dir, fmt.Sprintf("step %d, done %v", step, done))
		}
	}
}
