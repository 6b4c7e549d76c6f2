package crash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/hook/inbox"
	"heartbeat/internal/promise"
	"heartbeat/internal/testbed"
)

// fsKind is a file system that the power is cut of.
type fsKind struct {
	name    string
	size    int64
	mkfs    []string
	options string
}

var fsKinds = []fsKind{
	{"ext4", 16 << 20, []string{"mkfs.ext4", "-q", "-F"}, ""},
	{"xfs", 300 << 20, []string{"mkfs.xfs", "-q", "-f"}, "nouuid"},
	{"btrfs", 114 << 20, []string{"mkfs.btrfs", "-q", "-f", "--mixed"}, ""},
}

// cut is one line of the table: how entries are written and what happens to
// an orphan.
type cut struct {
	fs     fsKind
	synced bool // the entries were written by `send`; otherwise by `echo`
	policy inbox.OrphanPolicy
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
	for _, kind := range fsKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			template := kind.template(t)
			for _, c := range testbed.SampleOf(t, []cut{
				{kind, true, inbox.DeadLetter}, {kind, false, inbox.DeadLetter}, {kind, false, inbox.Retry}, {kind, true, inbox.Retry},
			}, 2) {
				c.run(t, template, fewest)
			}
		})
	}
}

// template makes an empty image, or skips where one cannot be made or mounted.
func (k fsKind) template(t *testing.T) string {
	if _, err := exec.LookPath(k.mkfs[0]); err != nil {
		t.Skip("no power cuts here: ", err)
	}
	path := filepath.Join(t.TempDir(), "template")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(k.size); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if out, err := exec.Command(k.mkfs[0], append(k.mkfs[1:], path)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", k.mkfs, err, out)
	}
	m, err := k.mount(t, path)
	if err != nil {
		t.Skipf("no power cuts here: cannot mount %s: %v", k.name, err)
	}
	m.unmount(t)
	sparse := path + ".sparse" // 64 MB of XFS's log are zeros, which each copy would copy
	if out, err := exec.Command("cp", "--sparse=always", path, sparse).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	return sparse
}

// mounted is an image that is mounted.
type mounted struct{ dir string }

func (k fsKind) mount(t *testing.T, image string) (*mounted, error) {
	dir, err := os.MkdirTemp(t.TempDir(), "mnt")
	if err != nil {
		t.Fatal(err)
	}
	return k.mountAt(t, image, dir)
}

func (k fsKind) mountAt(t *testing.T, image, dir string) (*mounted, error) {
	options := "loop"
	if k.options != "" {
		options += "," + k.options
	}
	if out, err := exec.Command("mount", "-t", k.name, "-o", options, image, dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	m := &mounted{dir}
	t.Cleanup(func() { m.unmount(t) })
	return m, nil
}

func (m *mounted) unmount(t *testing.T) {
	if m.dir == "" {
		return
	}
	// A child of another test that was just forked may hold a descriptor for
	// a moment, until its exec.
	var out []byte
	err := errors.New("busy")
	for deadline := time.Now().Add(testbed.Patience); err != nil && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		out, err = exec.Command("umount", m.dir).CombinedOutput()
	}
	if err != nil {
		t.Errorf("umount: %v: %s", err, out)
		_ = exec.Command("umount", "-l", m.dir).Run()
	}
	m.dir = ""
}

// copyImage copies a sparse file.
func copyImage(t *testing.T, from, to string) {
	if out, err := exec.Command("cp", "--sparse=auto", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
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
					t.Errorf("%s, tick %d: nothing was cut off", c.fs.name, tick)
				}
				break // what this lab has queued takes fewer calls
			}
			points, duplicates = points+1, duplicates+doubled
		}
	}
	t.Logf("%-5s synced %-5v %-10s %3d cut points, %d duplicates", c.fs.name, c.synced, c.policy, points, duplicates)
}

// point cuts the power before a call of a tick and returns how many duplicates that made;
// killed is false if the tick makes no such call.
func (c cut) point(t *testing.T, template string, tick, call int) (duplicates int, killed bool) {
	where := fmt.Sprintf("%s, synced %v, %s, tick %d, call %d", c.fs.name, c.synced, c.policy, tick, call)
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	copyImage(t, template, before)
	m, err := c.fs.mount(t, before)
	if err != nil {
		t.Fatal(err)
	}
	defer m.unmount(t)
	l := newLab(t, m.dir, session, c.policy)
	defer l.unlock()
	l.transcript = filepath.Join(dir, "transcript.jsonl") // the client's: not what is tried here
	c.fill(l)
	l.launch()
	for range tick {
		l.step(0, true)
	}
	if !l.step(call, false).Killed {
		l.die()
		m.unmount(t)
		return 0, false
	}
	copyImage(t, before, after)
	l.die()
	m.unmount(t)
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
	m, err := c.fs.mount(t, image)
	if err != nil {
		t.Errorf("%s: cannot mount what the cut left: %v", where, err)
		return
	}
	defer m.unmount(t)
	defer l.die() // what it holds open would keep it mounted
	if c.offered(l) {
		// The tick that handed the first one over has synced all of them.
		l.accepted(plain3...)
	}
	l.home = filepath.Join(m.dir, ".heartbeat")
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
