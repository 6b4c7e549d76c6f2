package proving_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"heartbeat/internal/crash/disk"
	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/testbed"
)

// TestAPowerCutWhileTheDeskWorks cuts the power before each of its calls that change
// something: what was decided, answered and demanded is on disk before it is applied to
// the queue, so that after the cut there is one verdict, and nothing is done without it.
func TestAPowerCutWhileTheDeskWorks(t *testing.T) {
	t.Parallel()
	notRaced(t)
	stepper.Need(t, stepper.Program{Path: "/bin/true"})
	if os.Geteuid() != 0 {
		t.Skip("no power cuts here: mounting takes root")
	}
	kinds := testbed.SampleOf(t, disk.Kinds, 3)
	for _, kind := range kinds {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			template := kind.Template(t)
			for _, is := range testbed.SampleOf(t, trials(), 3) {
				const thin = 40
				points := 0
				stride := testbed.Stride(thin)
				for n := 1 + testbed.Turn(t, thin); deskCut(t, kind, template, is, n); n += stride {
					points++
				}
				testbed.Played(t, testbed.PowerCuts, points)
				t.Logf("%-5s an entry that %s: %d cut points", kind.Name, is.Name, points)
			}
		})
	}
}

// deskCut cuts the power before the n-th call, and reports whether it has come to that.
func deskCut(t *testing.T, kind disk.Kind, template string, is trial, n int) bool {
	t.Helper()
	dir := t.TempDir()
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	disk.Copy(t, template, before)
	m, err := kind.Mount(t, before)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmount(t)
	b := newBench(t, m.Dir, is)
	o, err := stepper.Run(b.desk(t), n)
	if err != nil {
		t.Fatal(err)
	}
	disk.Copy(t, before, after)
	m.Unmount(t)
	os.Remove(before)
	defer os.Remove(after)
	back, err := kind.MountAt(t, after, b.Home) // paths are known by their hashes
	if err != nil {
		t.Errorf("cannot mount what the cut left: %v", err)
		return o.Killed
	}
	defer back.Unmount(t)
	b.recovers(t, fmt.Sprintf("%s, an entry that %s, the power cut before call %d of %q", kind.Name, b.Name, n, o.Calls))
	return o.Killed
}
