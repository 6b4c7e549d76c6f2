package store

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/internal/crash/disk"
)

// mounted is a file system of its own, in memory, of so many MB; it skips where none can be
// mounted.
func mounted(t *testing.T, options string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("no file system of its own: mounting takes root")
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "mode=0700,"+options, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Skipf("no file system of its own: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "-l", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

// TestAFullDiskIsTold, and the end of it: what was confirmed is there.
func TestAFullDiskIsTold(t *testing.T) {
	t.Parallel()
	dir := mounted(t, "size=4m")
	l := take(t, dir)
	if err := Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s := opened(t, l)
	watched(t, s)
	confirmed := 0
	var full *FullError
	for n := range 100_000 {
		err := s.Write(t.Context(), add(3000+n))
		if is := errors.As(err, &full); is {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		confirmed++
	}
	if full == nil {
		t.Fatal("it is never full")
	}
	if is := has(t, s, Full, true); !strings.Contains(is.Do, "make room") || !strings.Contains(is.Do, "df ") {
		t.Errorf("%+v", is)
	}
	if got := numbers(t, s.Reader); len(got) != confirmed {
		t.Errorf("%d are there, %d were confirmed", len(got), confirmed)
	}
	if out, err := exec.Command("mount", "-o", "remount,size=64m", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	has(t, s, Full, false) // without a change of anybody
	if err := s.Write(t.Context(), add(1)); err != nil {
		t.Error(err)
	}
}

// TestABackupThatFindsNoRoomNamesItsDisk: it named the store's, and said that the fleet goes on
// by itself.
func TestABackupThatFindsNoRoomNamesItsDisk(t *testing.T) {
	t.Parallel()
	to := filepath.Join(mounted(t, "size=64k"), "b.db")
	_, l := fresh(t)
	s := opened(t, l)
	err := s.Backup(t.Context(), to)
	if err == nil || !strings.Contains(err.Error(), "df -h "+filepath.Dir(to)) || strings.Contains(err.Error(), s.path) {
		t.Error(err)
	}
	if exists(to) || exists(to+".new") {
		t.Error("half of it is left")
	}
	if err := s.Write(t.Context(), add(1)); err != nil || len(s.Troubles()) > 0 {
		t.Error(err, s.Troubles())
	}
}

// TestAFullDiskLeavesAReserve: the first change that finds no room frees the ballast, and
// changes are made again, as is told; the ballast comes back with the room.
func TestAFullDiskLeavesAReserve(t *testing.T) {
	t.Parallel()
	kind := disk.Kinds[0]
	template := kind.Template(t)
	m, err := kind.Mount(t, template)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmount(t)
	dir := filepath.Join(m.Dir, "fleet")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l := take(t, dir)
	if err := Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s := opened(t, l)
	s.ballast = 2 << 20
	if err := s.load(); err != nil || !exists(filepath.Join(dir, Ballast)) {
		t.Fatalf("no ballast: %v", err)
	}
	fill := filepath.Join(m.Dir, "fill")
	_ = exec.CommandContext(t.Context(), "dd", "if=/dev/zero", "of="+fill, "bs=4k", "status=none").Run() // until nothing is left
	refused, made := 0, 0
	for n := range 1000 {
		err := s.Write(t.Context(), add(n))
		switch _, full := errors.AsType[*FullError](err); {
		case full:
			refused++
		case err != nil:
			t.Fatal(err)
		default:
			made++
		}
		if refused > 0 && made > n/2 && made > 50 {
			break
		}
	}
	if refused != 1 || made < 50 {
		t.Errorf("%d changes were refused, %d made: want one, and then many", refused, made)
	}
	if is := has(t, s, Reserve, true); !strings.Contains(is.Do, "make room") {
		t.Errorf("%+v", is)
	}
	if exists(filepath.Join(dir, Ballast)) {
		t.Error("the ballast is still there")
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	watched(t, s)
	has(t, s, Reserve, false)
	if !exists(filepath.Join(dir, Ballast)) {
		t.Error("the ballast has not come back")
	}
	if err := errors.Join(s.Check(t.Context()), s.Close(), l.Release()); err != nil { // before it is unmounted
		t.Error(err)
	}
}

// TestAReadOnlyDiskIsTold while it is open, and where it is found so.
func TestAReadOnlyDiskIsTold(t *testing.T) {
	t.Parallel()
	dir := mounted(t, "size=8m")
	l := take(t, dir)
	if err := Create(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	s := opened(t, l)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	remount := func(how string) {
		t.Helper()
		if out, err := exec.Command("mount", "-o", "remount,"+how, dir).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if err := l.Release(); err != nil { // its file is open to be written
		t.Fatal(err)
	}
	remount("ro")
	found := Examine(t.Context(), dir, start)
	if len(found) != 1 || found[0].Kind != ReadOnly && found[0].Kind != Disk || found[0].Do == "" {
		t.Errorf("%+v", found)
	}
	_, err := Take(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("the lock: %v", err)
	}
	remount("rw")
	l = take(t, dir)
	again, err := Open(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(again.Write(t.Context(), add(1)), again.Close()); err != nil {
		t.Error(err)
	}
}

// TestAnotherUsersStoreIsRefused, as one that root has used once.
func TestAnotherUsersStoreIsRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("it takes root to give a file away")
	}
	for _, name := range []string{Name, Name + "-wal"} {
		dir, _ := fresh(t)
		path := filepath.Join(dir, name)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Close(), os.Chown(path, 12345, 12345)); err != nil {
			t.Fatal(err)
		}
		found := Examine(t.Context(), dir, start)
		if len(found) != 1 || found[0].Kind != Refused || !strings.Contains(found[0].Do, "chown 0 "+filepath.Join(dir, Name)+"*") {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
