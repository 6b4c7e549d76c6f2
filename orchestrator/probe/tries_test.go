package probe

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

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
	cut := errors.New("the client cannot be started")
	for name, tt := range map[string]struct {
		tries  string // what each finds broken; "!" is an error
		broken string
		once   int
		known  bool
	}{
		"nothing is broken":                    {". x x", "", 0, true},
		"the second try is in order":           {"A . x", "", 1, true},
		"two tries are the same":               {"A A x", "A", 0, true},
		"the third try is in order":            {"A B .", "", 2, true},
		"the third try is the first":           {"A B A", "A", 1, true},
		"the third try is the second":          {"A B B", "B", 1, true},
		"no two tries are the same":            {"A B C", "", 3, false},
		"the same, and more in the second":     {"A AB x", "A", 1, true},
		"the same, and more in the first":      {"AB A x", "A", 1, true},
		"one that could not be played is none": {"! A A", "A", 0, true},
		"one that broke off, then the same":    {"A! A x", "A", 0, true},
		"two could not be played":              {"! ! x", "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play := strings.Fields(tt.tries)
			seen, once, err := tries(t.Context(), func(try int) (tally, error) {
				found := newTally()
				for _, p := range strings.Trim(play[try], ".!") {
					if found.broken[Promise(p)] = "seen"; p == 'x' {
						t.Errorf("it is tried %d times", try+1)
					}
				}
				if strings.HasSuffix(play[try], "!") {
					return found, cut
				}
				return found, nil
			})
			all := newTally()
			all.doubt(once, seen)
			var broken strings.Builder
			for _, p := range slices.Sorted(maps.Keys(seen.broken)) {
				broken.WriteString(string(p))
			}
			if broken.String() != tt.broken || len(all.once) != tt.once || (err == nil) != tt.known {
				t.Errorf("broken %q, seen once %q, %v", broken.String(), all.once, err)
			}
		})
	}
}

// TestTheThirdTryDecides, of a client that breaks something else each time.
func TestTheThirdTryDecides(t *testing.T) {
	t.Parallel()
	argv := byTry(t, "case $try in 0-0) faults='--broken no-usage';; 0-1) faults='--broken no-status-line';; esac")
	decided := func(r Result) bool { return r.Verdict() == Good && len(r.Once) == 2 }
	if r := probeUntil(t, argv, os.Getenv("PATH"), decided); !decided(r) {
		t.Errorf("%s: %+v", r.Verdict(), r)
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
		testbed.Await(testbed.Patience, func() bool { _, err := os.Stat(far); return err == nil })
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
			script := fmt.Sprintf("#!/bin/sh\ncase $1 in %s) sleep 1;; esac\nexec %s \"$@\"\n", tt.with, program)
			if err := os.WriteFile(filepath.Join(slow, tt.program), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			path := slow + string(filepath.ListSeparator) + os.Getenv("PATH")
			named := func(r Result) bool {
				return slices.ContainsFunc(r.Broken, func(b Breach) bool { return b.Promise == tt.want })
			}
			if r := probeUntil(t, standIn(t, fault), path, named); !named(r) {
				t.Errorf("%s is not named: %+v", tt.want, r)
			}
		})
	}
}
