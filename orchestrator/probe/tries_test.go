package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// byTry is the stand-in behind a script that does something first, which may choose the
// faults for the try that it is called in: "0-1" is the first scene's second one.
func byTry(t *testing.T, first string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "claude")
	script := fmt.Sprintf("#!/bin/sh\nfaults= try=${HOME%%/home} try=${try##*/}\n%s\nexec %s $faults \"$@\"\n", first, strings.Join(standIn(t), " "))
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return []string{path}
}

// TestWhatIsSeenOnceBreaksNothing: a busy machine may show one thing in one try and
// another in the next.
func TestWhatIsSeenOnceBreaksNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tries string
		want  Verdict
		once  int
	}{
		"the third try is in order":  {"0-0) faults='--broken no-usage';; 0-1) faults='--broken no-status-line';;", Good, 2},
		"the third try is the first": {"0-1) faults='--broken no-status-line';; 0-*) faults='--broken no-usage';;", Bad, 1},
		"no two tries are the same":  {"0-0) faults='--broken no-usage';; 0-1) faults='--broken no-status-line';; 0-2) faults='--broken resume-anew';;", Unknown, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := probe(t, Prober{Patience: 8 * time.Second}, byTry(t, "case $try in "+tt.tries+" esac"))
			if r.Verdict() != tt.want || len(r.Once) != tt.once {
				t.Errorf("%s, want %s and %d seen once: %+v", r.Verdict(), tt.want, tt.once, r)
			}
		})
	}
}

// TestAFirstTryThatIsCutShortBreaksNothing: nothing was seen twice.
func TestAFirstTryThatIsCutShortBreaksNothing(t *testing.T) {
	t.Parallel()
	far := filepath.Join(t.TempDir(), "far")
	argv := byTry(t, "case $* in *--resume*) touch "+far+";; esac; faults='--broken no-usage'")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	go func() {
		testbed.Await(time.Minute, func() bool { _, err := os.Stat(far); return err == nil })
		stop(errors.New("the run is stopped"))
	}()
	r := Prober{Self: self}.Probe(ctx, argv, os.Getenv("PATH"))
	if r.Verdict() != Unknown || r.Failure == "" || len(r.Once) != 1 { // what is cut off, such as the wait for an end, is no breach
		t.Errorf("%s: %+v", r.Verdict(), r)
	}
}

// TestASlowMachineHidesNothing: what must not happen was looked for before a slow machine
// had come to it, and what must happen in a moment was seen from an earlier one.
func TestASlowMachineHidesNothing(t *testing.T) {
	t.Parallel()
	for fault, tt := range map[string]struct {
		program, with string // is slow
		want          Promise
	}{
		"sources-ignored":                {"mkdir", "*/Theirs.*", SettingsFlag},
		"status-line-only-between-turns": {"touch", "by-ours", StatusLine},
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(tt.program)
			if err != nil {
				t.Fatal(err)
			}
			slow := t.TempDir()
			script := fmt.Sprintf("#!/bin/sh\ncase $1 in %s) sleep 2;; esac\nexec %s \"$@\"\n", tt.with, program)
			if err := os.WriteFile(filepath.Join(slow, tt.program), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			path := slow + string(filepath.ListSeparator) + os.Getenv("PATH")
			r := Prober{Self: self, Patience: 8 * time.Second}.Probe(t.Context(), standIn(t, fault), path)
			if !slices.ContainsFunc(r.Broken, func(b Breach) bool { return b.Promise == tt.want }) {
				t.Errorf("%s is not named: %+v", tt.want, r)
			}
		})
	}
}
