package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// TestQuickstartTwice: the README's first command does the same each time,
// for all three kinds of trigger.
func TestQuickstartTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../examples/quickstart")); err != nil {
		t.Fatal(err)
	}
	// What a run in the checkout may have left is not part of the example.
	for _, left := range []string{".heartbeat", ".claude", ".home"} {
		paths, _ := filepath.Glob(filepath.Join(dir, "agents", "*", left))
		for _, p := range paths {
			if err := os.RemoveAll(p); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := []string{
		"Sort the mail in mail/ and say what needs an answer today.", "Review incoming/release-notes.md",
		"Work on ticket 41: the login page is blank in Safari", "Work on ticket 42: export all rows",
	}
	slices.Sort(want)
	for round := range 2 {
		log := filepath.Join(dir, "model.jsonl")
		_ = os.Remove(log)
		cmd := exec.Command(filepath.Join(testbed.Programs(t), "heartbeat"), "run", "-f", filepath.Join(dir, "heartbeat.yaml"), "--once", "--fire")
		cmd.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "SIMULATE_LOG=" + log,
			"HEARTBEAT_STATE_DIR=" + filepath.Join(dir, "state"),
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("run %d: %v\n%s", round+1, err, out)
		}
		var got []string
		for _, r := range readLines[struct{ Prompts []string }](t, log) {
			for _, p := range r.Prompts {
				got = append(got, unframe(p))
			}
		}
		slices.Sort(got)
		for _, agent := range []string{"clerk", "reviewer", "fixer"} {
			for _, r := range readLines[struct{ Reply string }](t, filepath.Join(dir, "agents", agent, ".heartbeat", "outbox.jsonl")) {
				if strings.HasPrefix(r.Reply, "done: ") {
					t.Errorf("no rule of script.json answers %q", r.Reply)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("run %d: the model got\n%s\nwant\n%s", round+1, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
