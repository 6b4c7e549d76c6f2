package ptyrun

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// Whichever way a session ends, nothing of its tree is left: with a control
// group of its own, where one may be made, and without.
func TestNoSurvivors(t *testing.T) {
	t.Parallel()
	for name, group := range map[string]func() string{"": func() string { return "" }, " in a group": PlanGroup} {
		t.Run("End"+name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, `sh -c "$live"`)
			h := startHolder(t, "", tr.argv, "PTYRUN_TEST_GROUP="+group())
			procs := tr.up()
			exit := h.end(t, "end")
			requireGone(t, procs)
			if exit.Signal != "SIGTERM" || exit.Code != 143 || len(exit.Left) != 0 {
				t.Errorf("exit is %+v", exit)
			}
			if len(exit.Swept) < 4 {
				t.Errorf("swept only %v", exit.Swept)
			}
		})
		t.Run("the child exits"+name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, `sh -c "$live" & while [ ! -e "`+filepath.Join(t.TempDir(), "no")+`" ] && [ "$(wc -l <"$0")" -lt 7 ]; do sleep .01; done; exit 7`)
			tr.argv = append(tr.argv, tr.file)
			h := startHolder(t, "", tr.argv, "PTYRUN_TEST_GROUP="+group())
			procs := tr.up()
			exit := h.end(t, "wait")
			requireGone(t, procs)
			if exit.Code != 7 || exit.Signal != "" || len(exit.Left) != 0 {
				t.Errorf("exit is %+v", exit)
			}
		})
		t.Run("the child is killed"+name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, `sh -c "$live"`)
			h := startHolder(t, "", tr.argv, "PTYRUN_TEST_GROUP="+group())
			procs := tr.up()
			if err := syscall.Kill(h.child.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			exit := h.end(t, "wait")
			requireGone(t, procs)
			if exit.Code != 137 || exit.Signal != "SIGKILL" {
				t.Errorf("exit is %+v", exit)
			}
		})
	}
}

// The same for Run: every way out of it, with its exit code.
func TestRunLeavesNothing(t *testing.T) {
	t.Parallel()
	file := func(t *testing.T) string { return filepath.Join(t.TempDir(), "exit") }
	tests := map[string]struct {
		flags []string
		act   func(t *testing.T, cmd *exec.Cmd, exitSignal string)
		code  int
	}{
		"timeout": {flags: []string{"timeout=5s"}, code: CodeTimeout},
		"exit signal": {act: func(t *testing.T, _ *exec.Cmd, exitSignal string) {
			if err := os.WriteFile(exitSignal, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, code: 0},
		"SIGTERM to us": {act: kill(syscall.SIGTERM), code: 143},
		"SIGINT to us":  {act: kill(syscall.SIGINT), code: 130},
		"SIGHUP to us":  {act: kill(syscall.SIGHUP), code: 129},
		"stalled":       {flags: []string{"idle-timeout=1500ms", "max-idle-retries=2"}, code: CodeStalled},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := newTree(t, `sh -c "$live"`)
			exitSignal := file(t)
			args := append(tt.flags, "exit-signal="+exitSignal, "--")
			cmd := role(t, "run", append(args, tr.argv...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			procs := tr.up()
			if tt.act != nil {
				tt.act(t, cmd, exitSignal)
			}
			_ = cmd.Wait()
			requireGone(t, procs)
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
		})
	}
}

func kill(sig syscall.Signal) func(*testing.T, *exec.Cmd, string) {
	return func(t *testing.T, cmd *exec.Cmd, _ string) {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
}

// When the process that holds the terminal is killed, Sweep ends the rest:
// all but what has also cleared its environment and is nobody's descendant.
//
// It runs alone: what the killed holder leaves becomes this process's, and a test that
// ends a child of this process would end it, too.
func TestSweepAfterKill(t *testing.T) {
	cookie := mark()
	tr := newTree(t, `sh -c "$live"`)
	h := startHolder(t, cookie, tr.argv)
	procs := tr.up()
	t.Cleanup(func() {
		for _, p := range alive(procs) {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	})
	started, err := StartTimeOf(h.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait()

	if swept, err := Sweep(t.Context(), Remains{Cookie: mark(), StartedAfter: started}, time.Second); err != nil || len(swept) != 0 {
		t.Errorf("another cookie sweeps %v, %v", swept, err)
	}
	if swept, err := Sweep(t.Context(), Remains{Cookie: cookie, StartedAfter: ^uint64(0)}, time.Second); err != nil || len(swept) != 0 {
		t.Errorf("a later start sweeps %v, %v", swept, err)
	}
	before := time.Now()
	swept, err := Sweep(t.Context(), Remains{Cookie: cookie, StartedAfter: started}, 300*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("swept %d processes in %v", len(swept), time.Since(before))
	within(t, "those that were ended are gone", func() bool { return len(alive(procs)) <= 1 }) // whoever adopted them reaps them
	if len(swept) == 0 {
		t.Error("nothing was swept")
	}
	if _, err := Sweep(t.Context(), Remains{}, time.Second); err == nil {
		t.Error("an empty cookie is accepted")
	}
}
