package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"heartbeat/internal/crash/disk"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// cut is one line of the table: how entries are written and what happens to
// an orphan.
type cut struct {
	fs     disk.Kind
	synced bool // the entries were written by `send`; otherwise by `echo`
	policy promise.Policy
}

// TestPowerCut kills a hook before each of its calls, copies the image of the
// mounted file system at that moment (what has reached the disk), and goes on
// with the copy: recover, three more entries, drain. Nothing that was accepted
// may be missing, nothing garbled or swallowed, and nothing may be given again
// under deadletter once a tool had run.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	needPtrace(t)
	if os.Geteuid() != 0 {
		t.Skip("no power cuts here: mounting takes root")
	}
	// A hook saves more when a second has passed since the one before: a slow
	// machine must not count calls that a faster moment does not make.
	fewest := callsOf(t, session)
	for range 2 {
		for tick, n := range callsOf(t, session) {
			fewest[tick] = min(fewest[tick], n)
		}
	}
	for _, kind := range disk.Kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			template := kind.Template(t)
			for _, c := range testbed.SampleOf(t, []cut{
				{kind, true, promise.DeadLetter}, {kind, false, promise.DeadLetter}, {kind, false, promise.Retry}, {kind, true, promise.Retry},
			}, 2) {
				c.run(t, template, fewest)
			}
		})
	}
}

// sampleStride thins the cut points outside of -full. The
// first call of each tick stays: it shows what the tick before has made durable.
const sampleStride = 117

// run cuts the power at each point of each tick.
func (c cut) run(t *testing.T, template string, calls []int) {
	points, duplicates, all := 0, 0, testbed.Turn(t, sampleStride)
	for tick, n := range calls {
		for call := 1; call <= n; call++ {
			if all++; all%testbed.Stride(sampleStride) != 0 && call > 1 {
				continue
			}
			doubled, killed := c.point(t, template, tick, call)
			if !killed {
				if call == 1 {
					t.Errorf("%s, tick %d: nothing was cut off", c.fs.Name, tick)
				}
				break // what this lab has queued takes fewer calls
			}
			points, duplicates = points+1, duplicates+doubled
		}
	}
	testbed.Played(t, testbed.PowerCuts, points)
	t.Logf("%-5s synced %-5v %-10s %3d cut points, %d duplicates", c.fs.Name, c.synced, c.policy, points, duplicates)
}

// point cuts the power before a call of a tick and returns how many duplicates that made;
// killed is false if the tick makes no such call.
func (c cut) point(t *testing.T, template string, tick, call int) (duplicates int, killed bool) {
	where := fmt.Sprintf("%s, synced %v, %s, tick %d, call %d", c.fs.Name, c.synced, c.policy, tick, call)
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	disk.Copy(t, template, before)
	m, err := c.fs.Mount(t, before)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmount(t)
	l := newLab(t, m.Dir, session, c.policy)
	defer l.unlock()
	l.transcript = filepath.Join(dir, "transcript.jsonl") // the client's: not what is tried here
	c.fill(l)
	l.launch()
	for range tick {
		l.step(0, true)
	}
	if !l.step(call, false).Killed {
		l.die()
		m.Unmount(t)
		return 0, false
	}
	disk.Copy(t, before, after)
	l.die()
	m.Unmount(t)
	os.Remove(before)
	c.goOn(t, l, after, where)
	os.Remove(after)
	return l.record.Count().Repeats, true
}

func (c cut) fill(l *lab) {
	if c.synced {
		for _, p := range []string{"alpha: one", "beta: two\nlines", "gamma: three"} {
			l.send(p)
		}
		return
	}
	// A plain writer has promised nothing before the first tick has seen its
	// lines; the folder itself is on disk, as apply made it.
	d, err := os.Open(l.home)
	if err == nil {
		err = d.Sync()
		d.Close()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	l.echo("alpha: one\nbeta: two\ngamma: three\n")
	l.sent(promise.Meant, "test", plain3...)
}

// plain3 are the prompts of a plain writer.
var plain3 = []string{"alpha: one", "beta: two", "gamma: three"}

// goOn is the time after the power came back.
func (c cut) goOn(t *testing.T, l *lab, image, where string) {
	m, err := c.fs.Mount(t, image)
	if err != nil {
		t.Errorf("%s: cannot mount what the cut left: %v", where, err)
		return
	}
	defer m.Unmount(t)
	defer l.die() // what it holds open would keep it mounted
	if c.offered(l) {
		// The tick that handed the first one over has synced all of them.
		l.accepted(plain3...)
	}
	l.home = filepath.Join(m.Dir, ".heartbeat")
	if err := os.MkdirAll(l.home, 0o700); err != nil {
		t.Fatal(err)
	}
	l.inbox = filepath.Join(l.home, "inbox.jsonl")
	l.recoverOrphan(0)
	l.launch()
	for i := range 3 {
		p := fmt.Sprintf("cut%d: after it", i)
		l.echo(p+"\n", p)
	}
	l.drain()
	l.check(where)
}

// offered reports whether plain lines are promised: one was handed over.
func (c cut) offered(l *lab) bool { return !c.synced && l.record.Count().Given > 0 }
