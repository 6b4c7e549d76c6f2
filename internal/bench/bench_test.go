package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

func TestMain(m *testing.M) {
	os.Setenv("TMPDIR", os.TempDir()) // not in memory
	os.Exit(testbed.Run(m))
}

// enough is how many samples a target is judged by, at least.
const enough = 50

// series are the samples of one thing.
type series []time.Duration

func (s *series) add(d time.Duration) { *s = append(*s, d) }

// median is the middle one.
func (s series) median() time.Duration { return slices.Sorted(slices.Values(s))[len(s)/2] }

// report prints the median as unit-p50 and the slowest of ten as unit-p90.
func (s series) report(b *testing.B, unit string) {
	b.Helper()
	sorted := slices.Sorted(slices.Values(s))
	b.ReportMetric(float64(sorted[len(s)/2]), unit+"-p50-ns")
	b.ReportMetric(float64(sorted[len(s)*9/10]), unit+"-p90-ns")
}

// within reports a figure and fails where it is over its target.
func within(b *testing.B, samples int, got, most float64, unit string) {
	b.Helper()
	b.ReportMetric(got, unit)
	if samples >= enough && got > most {
		b.Errorf("%.2f %s, at most %.2f is wanted", got, unit, most)
	}
}

// ratio is that of two medians.
func ratio(a, b series) float64 { return float64(a.median()) / float64(b.median()) }

// program is a release program as an installation has it: pages that the linker
// wrote through a mapping are slower to run from than those of a file that was
// written.
func program(b *testing.B, path string) string {
	b.Helper()
	linked, err := os.ReadFile(path)
	installed := filepath.Join(b.TempDir(), filepath.Base(path))
	if err = errors.Join(err, os.WriteFile(installed, linked, 0o700)); err != nil {
		b.Fatal(err)
	}
	return installed
}

func hook(b *testing.B) string { return program(b, testbed.Program(b, "heartbeat-stop")) }

// made is a program of a few lines.
func made(b *testing.B, name, source string) string {
	b.Helper()
	dir := b.TempDir()
	file, out := filepath.Join(dir, name+".go"), filepath.Join(dir, name)
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		b.Fatal(err)
	}
	if text, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, file).CombinedOutput(); err != nil {
		b.Fatal(fmt.Errorf("cannot build %s: %w\n%s", name, err, text))
	}
	return program(b, out)
}

const empty = "package main\n\nfunc main() {}\n"

// BenchmarkStart compares a hook call that finds nothing to do with a program
// that does nothing.
func BenchmarkStart(b *testing.B) {
	hook, nothing := hook(b), made(b, "empty", empty)
	var ours, theirs series
	for b.Loop() {
		for path, to := range map[string]*series{hook: &ours, nothing: &theirs} {
			d, status, _ := timed(b, exec.Command(path, "hook"), payload(1))
			if status != 0 {
				b.Fatalf("%s ended with %d", path, status)
			}
			to.add(d)
		}
	}
	ours.report(b, "hook")
	theirs.report(b, "empty")
	within(b, len(ours), ratio(ours, theirs), 1.3, "x-empty-program")
}
