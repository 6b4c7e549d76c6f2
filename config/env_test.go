package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadEnvFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.env")
	put := func(text string, mode fs.FileMode) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	put("# a comment\n\nA=1\r\n  B= two words  \nC=\"kept \"\nD='x\"y'\nE=\nF=a=b\nG=\"\n  # another\nH=last", 0o600)
	got, err := readEnvFile(path)
	want := []string{"A=1", "B=two words", "C=kept ", `D=x"y`, "E=", "F=a=b", `G="`, "H=last"}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	put("A=1\n", 0o400)
	if _, err := readEnvFile(path); err != nil {
		t.Errorf("a file that only its owner can read: %v", err)
	}
	for name, bad := range map[string]struct {
		text string
		mode fs.FileMode
		want string
	}{
		"others may read":  {"A=s3cret\n", 0o604, "chmod 600"},
		"others may write": {"A=s3cret\n", 0o602, "chmod 600"},
		"no name":          {"A=1\n=s3cret\n", 0o600, "line 2 is not NAME=VALUE"},
		"no value":         {"s3cret\n", 0o600, "line 1 is not NAME=VALUE"},
		"export":           {"export A=s3cret\n", 0o600, "line 1 is not NAME=VALUE"},
		"ours":             {"HEARTBEAT_SESSION=s3cret\n", 0o600, "HEARTBEAT_SESSION is set by heartbeat itself"},
		"NUL":              {"A=s3cret\x00\n", 0o600, "it holds a NUL character, in line 1, byte 9"},
		"too large":        {"A=" + strings.Repeat("x", maxEnvFile), 0o600, "over 1 MiB"},
	} {
		put(bad.text, bad.mode)
		env, err := readEnvFile(path)
		if err == nil || env != nil || !strings.Contains(err.Error(), bad.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", name, err, bad.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error tells the secret: %v", name, err)
		}
	}
}

func TestReadEnvFileRefusesWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := readEnvFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := readEnvFile(dir); err == nil {
		t.Error("a directory was read")
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readEnvFile(fifo); err == nil {
		t.Error("a FIFO was read")
	}
}
