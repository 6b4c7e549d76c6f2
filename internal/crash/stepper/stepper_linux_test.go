package stepper_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"heartbeat/internal/crash/stepper"
)

const small = `package main

import (
	"fmt"
	"os"
)

func main() {
	done := make(chan bool)
	go func() {
		os.WriteFile("a", []byte("1"), 0o600)
		close(done)
	}()
	<-done
	os.Rename("a", "b")
	fmt.Print("said")
	os.Exit(3)
}
`

// program builds small.
func program(t *testing.T) string {
	t.Helper()
	src := t.TempDir()
	if err := os.WriteFile(filepath.Join(src, "main.go"), []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(src, "small")
	if out, err := exec.Command("go", "build", "-o", exe, filepath.Join(src, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// TestKillsBeforeEachCall: a program of several threads, of which the calls
// and what each kill leaves are known.
func TestKillsBeforeEachCall(t *testing.T) {
	t.Parallel()
	exe := program(t)
	want := []string{"openat", "write a", "renameat", "write memfd:stepper (deleted)", "exit_group"}
	left := []string{"", "a=", "a=1", "b=1", "b=1", "b=1"}
	for n := range len(want) + 1 {
		p := stepper.Program{Path: exe, Dir: t.TempDir()}
		o, err := stepper.Run(p, n)
		if errors.Is(err, stepper.ErrUnavailable) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		calls := want
		status, said, files := 3, "said", left[5]
		if n > 0 {
			calls, status, files = want[:n], -1, left[n-1]
			if n < 5 {
				said = ""
			}
		}
		if !slices.Equal(o.Calls, calls) || o.Status != status || o.Stdout != said || o.Killed != (n > 0) {
			t.Errorf("kill at %d: %+v", n, o)
		}
		if got := listing(t, p.Dir); got != files {
			t.Errorf("kill at %d left %q, want %q", n, got, files)
		}
	}
}

// TestACallFails once, or as all that follow do.
func TestACallFails(t *testing.T) {
	t.Parallel()
	exe := program(t)
	for _, c := range []struct {
		at    int
		lasts bool
		left  string
	}{{1, false, ""}, {2, false, "b="}, {3, false, "a=1"}, {2, true, "a="}, {4, true, "b=1"}} {
		p := stepper.Program{Path: exe, Dir: t.TempDir()}
		o, err := stepper.Fail(p, c.at, syscall.ENOSPC, c.lasts)
		if errors.Is(err, stepper.ErrUnavailable) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := listing(t, p.Dir); got != c.left || o.Stdout != "said" || o.Status != 3 {
			t.Errorf("call %d fails, lasts %v: left %q, want %q: %+v", c.at, c.lasts, got, c.left, o)
		}
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, n := range names {
		data, err := os.ReadFile(filepath.Join(dir, n.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n.Name()+"="+string(data))
	}
	return strings.Join(all, " ")
}
