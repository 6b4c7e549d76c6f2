// Bench times the release binaries as whole processes, the way the client
// calls them, and prints percentiles and ratios beside their targets:
//
//	go run ./internal/bench [-n 300] [-drain 5000] [-dir FOLDER]
//
// What is compared is measured in turns in the same run, because a busy or a
// throttled machine changes from minute to minute; only ratios mean something
// elsewhere. The folder should lie on the disk that agents live on: most of a
// tick is waiting for it. A missed target is printed as MISSED and the exit
// status is 1.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// settings are the flags.
type settings struct {
	n     int    // samples of each thing
	drain int    // entries of the drain
	big   int    // entries of the large queue
	dir   string // scratch
}

func main() {
	s := settings{}
	flag.IntVar(&s.n, "n", 300, "samples of each thing that is timed")
	flag.IntVar(&s.drain, "drain", 5_000, "entries to drain, one process each")
	flag.IntVar(&s.big, "big", 1_000_000, "entries of the large queue, 188 bytes each")
	dir := flag.String("dir", "", "where to work (a new folder in it; default: the temporary folder)")
	flag.Parse()
	if flag.NArg() > 0 || s.n < 10 || s.drain < 100 || s.big < 2*s.n {
		flag.Usage()
		os.Exit(1)
	}
	missed, err := s.bench(*dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if missed > 0 {
		fmt.Printf("\n%d targets MISSED\n", missed)
		os.Exit(1)
	}
}

// bench runs everything and returns how many targets were missed.
func (s settings) bench(parent string) (missed int, err error) {
	if s.dir, err = os.MkdirTemp(parent, "heartbeat-bench-"); err != nil {
		return 0, err
	}
	defer os.RemoveAll(s.dir)
	r := &report{}
	hook, err := build(s.dir, "heartbeat/cmd/heartbeat-stop", "")
	if err != nil {
		return 0, err
	}
	empty, err := build(s.dir, "empty", "package main\n\nfunc main() {}\n")
	if err != nil {
		return 0, err
	}
	for _, part := range []func(*report, string, string) error{s.start, s.ticks, s.wake, s.drains} {
		if err := part(r, hook, empty); err != nil {
			return 0, err
		}
	}
	return r.missed, nil
}

// build builds a package, or a program of that name given as source, as
// releases are built.
func build(dir, pkg, source string) (string, error) {
	out := filepath.Join(dir, filepath.Base(pkg))
	if source != "" {
		pkg = out + ".go"
		if err := os.WriteFile(pkg, []byte(source), 0o600); err != nil {
			return "", err
		}
	}
	text, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build %s: %w\n%s", pkg, err, text)
	}
	// As an installation has it: pages that the linker wrote through a mapping
	// are slower to run from than pages that were written or read as a file.
	linked, err := os.ReadFile(out)
	if err != nil {
		return "", err
	}
	return out, errors.Join(os.Remove(out), os.WriteFile(out, linked, 0o700))
}
