package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/status"
)

// TestAProgramOfAnotherVersion: heartbeat was installed again while the fleet ran, and nobody
// said that the run is still the old one.
func TestAProgramOfAnotherVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.ok("apply")
	program, err := os.ReadFile(testbed.Program(t, "heartbeat"))
	if err != nil {
		t.Fatal(err)
	}
	for name, build := range map[string][]byte{"another build": append(program[:len(program):len(program)], 0), "the same, elsewhere": program} {
		old := filepath.Join(w.dir, "old-heartbeat")
		if err := errors.Join(os.RemoveAll(old), os.WriteFile(old, build, 0o755)); err != nil {
			t.Fatal(err)
		}
		like := w.command("run")
		var run *exec.Cmd
		until(t, "the program can be started", func() bool {
			run = exec.Command(old, "run")
			run.Dir, run.Env = like.Dir, like.Env
			err := run.Start()
			if err != nil && !errors.Is(err, syscall.ETXTBSY) { // what another test forked meanwhile has it open for a moment
				t.Fatal(err)
			}
			return err == nil
		})
		until(t, "the scheduler answers", func() bool { return w.fleet().Scheduler.PID == run.Process.Pid })
		says := name == "another build"
		if out := strings.Join(strings.Fields(w.ok("status")), " "); strings.Contains(out, "the scheduler is another build of heartbeat") != says ||
			says && !strings.Contains(out, "than this program: where the scheduler is the older one, restart it when it suits: heartbeat stop, then heartbeat run") {
			t.Errorf("%s: status:\n%s", name, out)
		}
		if out := w.run("doctor").stdout; strings.Contains(out, "other-version") != says {
			t.Errorf("%s: doctor:\n%s", name, out)
		}
		if err := run.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = run.Wait()
	}
	own := thisVersion().words()
	for run, says := range map[string]string{
		"": "an older heartbeat, which does not say its version; this program is " + own, own: "", "v0.1.0 (abc)": "the scheduler is heartbeat v0.1.0 (abc); this program is " + own,
	} {
		if got := otherProgram(status.Run{PID: os.Getpid(), Program: run}); !strings.Contains(got, says) || says == "" && got != "" {
			t.Errorf("a run that says %q: %q", run, got)
		}
	}
}
