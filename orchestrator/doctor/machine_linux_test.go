package doctor

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestInotifyOfThisMachine: what a process of ours watches is counted.
func TestInotifyOfThisMachine(t *testing.T) {
	t.Parallel()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	for _, dir := range []string{t.TempDir(), t.TempDir()} {
		if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE); err != nil {
			t.Fatal(err)
		}
	}
	in := inotifyLimits()
	if !in.Known || in.MaxInstances <= 0 || in.MaxWatches <= 0 || in.UsedInstances < 1 || in.UsedWatches < 2 {
		t.Errorf("%+v, with an instance that watches two folders", in)
	}
}
