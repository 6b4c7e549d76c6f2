package durable

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// intruders are what can be put in the place of a file or folder. Those that
// lead elsewhere lead to victim.
func intruders(t *testing.T) map[string]func(path, victim string) error {
	all := map[string]func(path, victim string) error{
		"FIFO":   func(path, _ string) error { return syscall.Mkfifo(path, 0o600) },
		"folder": func(path, _ string) error { return os.MkdirAll(filepath.Join(path, "sub"), 0o700) },
		"file":   func(path, _ string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"link":   func(path, victim string) error { return os.Symlink(victim, path) },
		"link to nowhere": func(path, victim string) error {
			return os.Symlink(filepath.Join(filepath.Dir(victim), "nowhere"), path)
		},
		"link to itself": func(path, _ string) error { return os.Symlink(filepath.Base(path), path) },
		"socket": func(path, _ string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		},
	}
	if os.Geteuid() == 0 {
		all["device"] = func(path, _ string) error { return syscall.Mknod(path, syscall.S_IFCHR|0o600, 1<<8|7) } // full
	}
	return all
}

// within fails when do takes long.
func within(t *testing.T, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(testbed.Patience):
		t.Fatal("it blocks")
	}
}

func TestNothingIsOpenedButWhatIsMeant(t *testing.T) {
	t.Parallel()
	for kind, put := range intruders(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			base, err := os.MkdirTemp("", "open-") // a socket's path is short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(base) })
			dir, victim := filepath.Join(base, "agent"), filepath.Join(base, "victim")
			for _, d := range []string{dir, filepath.Join(victim, "sub")} {
				if err := os.MkdirAll(d, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, "name")
			if err := put(path, victim); err != nil {
				t.Fatal(err)
			}
			within(t, func() {
				isFolder, isFile := kind == "folder", kind == "file"
				for name, open := range map[string]func() (*Folder, error){
					"itself":         func() (*Folder, error) { return OpenBelow(dir, path) },
					"a folder in it": func() (*Folder, error) { return OpenBelow(dir, filepath.Join(path, "sub")) },
					"below it":       func() (*Folder, error) { return OpenBelow(path, filepath.Join(path, "sub")) },
					"made":           func() (*Folder, error) { return MakeBelow(dir, filepath.Join(path, "new")) },
				} {
					f, err := open()
					if (err == nil) != isFolder || err != nil && !errors.Is(err, ErrNotFolder) {
						t.Errorf("%s: %v", name, err)
					}
					if err == nil {
						f.Close()
					}
				}
				f, err := Open(path) // follows links
				if (err == nil) != (isFolder || kind == "link") {
					t.Errorf("Open: %v", err)
				}
				if err == nil {
					f.Close()
				}
				d, err := Open(dir)
				if err != nil {
					t.Error(err)
					return
				}
				defer d.Close()
				for _, flag := range []int{os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_RDWR | os.O_CREATE} {
					file, err := d.OpenFile("name", flag)
					if (err == nil) != isFile || err != nil && !errors.Is(err, ErrNotRegular) {
						t.Errorf("OpenFile %#x: %v", flag, err)
					}
					if err == nil {
						file.Close()
					}
					if file, err = OpenFile(path, flag); (err == nil) != isFile || err != nil && !errors.Is(err, ErrNotRegular) {
						t.Errorf("OpenFile by path %#x: %v", flag, err)
					}
					if err == nil {
						file.Close()
					}
				}
				if err := d.Append("name", []byte("x\n")); (err == nil) != isFile {
					t.Errorf("Append: %v", err)
				}
				if err := d.Replace("name", []byte("x")); (err == nil) == isFolder {
					t.Errorf("Replace: %v", err)
				}
			})
			if names, err := os.ReadDir(victim); err != nil || len(names) != 1 {
				t.Errorf("the victim holds %v, %v", names, err)
			}
			if _, err := os.Lstat(filepath.Join(base, "nowhere")); !errors.Is(err, fs.ErrNotExist) {
				t.Error("something was made elsewhere")
			}
		})
	}
}

func TestWhatStandsInTheWayIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("fifo", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"fifo": "it is not a regular file but a FIFO", "link": "it is not a regular file but a symbolic link"} {
		if _, err := Read(filepath.Join(dir, name), 1); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenBelow(dir, filepath.Join(dir, "fifo")); err == nil || !strings.HasSuffix(err.Error(), "it is not a folder but a FIFO") {
		t.Error(err)
	}
}
