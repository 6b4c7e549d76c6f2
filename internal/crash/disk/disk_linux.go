package disk

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// Kind is a file system that the power is cut of.
type Kind struct {
	Name    string
	size    int64
	mkfs    []string
	options string
}

// Kinds are those that are tried.
var Kinds = []Kind{
	{"ext4", 16 << 20, []string{"mkfs.ext4", "-q", "-F"}, ""},
	{"xfs", 300 << 20, []string{"mkfs.xfs", "-q", "-f"}, "nouuid"},
	{"btrfs", 114 << 20, []string{"mkfs.btrfs", "-q", "-f", "--mixed"}, ""},
}

// Template makes an empty image, or skips where one cannot be made or mounted.
func (k Kind) Template(t testing.TB) string {
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
	m, err := k.Mount(t, path)
	if err != nil {
		t.Skipf("no power cuts here: cannot mount %s: %v", k.Name, err)
	}
	m.Unmount(t)
	sparse := path + ".sparse" // 64 MB of XFS's log are zeros, which each copy would copy
	if out, err := exec.Command("cp", "--sparse=always", path, sparse).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	return sparse
}

// Mounted is an image that is mounted.
type Mounted struct{ Dir string }

// Mount mounts an image in a folder of its own until the test ends.
func (k Kind) Mount(t testing.TB, image string) (*Mounted, error) {
	dir, err := os.MkdirTemp(t.TempDir(), "mnt")
	if err != nil {
		t.Fatal(err)
	}
	return k.MountAt(t, image, dir)
}

// MountAt mounts an image in a folder.
func (k Kind) MountAt(t testing.TB, image, dir string) (*Mounted, error) {
	options := "loop"
	if k.options != "" {
		options += "," + k.options
	}
	if out, err := exec.Command("mount", "-t", k.Name, "-o", options, image, dir).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	m := &Mounted{dir}
	t.Cleanup(func() { m.Unmount(t) })
	return m, nil
}

// Unmount unmounts it.
func (m *Mounted) Unmount(t testing.TB) {
	if m.Dir == "" {
		return
	}
	// A child of another test that was just forked may hold a descriptor for
	// a moment, until its exec.
	var out []byte
	err := errors.New("busy")
	for deadline := time.Now().Add(testbed.Patience); err != nil && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		out, err = exec.Command("umount", m.Dir).CombinedOutput()
	}
	if err != nil {
		t.Errorf("umount: %v: %s", err, out)
		_ = exec.Command("umount", "-l", m.Dir).Run()
	}
	m.Dir = ""
}

// Copy copies a sparse file.
func Copy(t testing.TB, from, to string) {
	if out, err := exec.Command("cp", "--sparse=auto", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
}
