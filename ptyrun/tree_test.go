package ptyrun

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
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
	tests := map[string]struct {
		flags func(whole time.Duration) []string // that end it after so long; nil: act does
		act   func(t *testing.T, cmd *exec.Cmd, exitSignal string)
		code  int
	}{
		"timeout": {flags: func(whole time.Duration) []string { return []string{"timeout=" + whole.String()} }, code: CodeTimeout},
		"exit signal": {act: func(t *testing.T, _ *exec.Cmd, exitSignal string) {
			if err := os.WriteFile(exitSignal, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, code: 0},
		"SIGTERM to us": {act: kill(syscall.SIGTERM), code: 143},
		"SIGINT to us":  {act: kill(syscall.SIGINT), code: 130},
		"SIGHUP to us":  {act: kill(syscall.SIGHUP), code: 129},
		"stalled": {flags: func(whole time.Duration) []string {
			return []string{"idle-timeout=" + (whole / 3).String(), "max-idle-retries=2"}
		}, code: CodeStalled},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.flags == nil {
				if !leavesNothing(t, nil, tt.act, tt.code) {
					t.Error("it ended by itself")
				}
				return
			}
			for whole := time.Second; !leavesNothing(t, tt.flags(whole), nil, tt.code); whole *= 2 {
				if whole > testbed.Patience {
					t.Fatalf("the tree never ran within %v", whole)
				}
			}
		})
	}
}

// leavesNothing runs a tree until act, or its flags, end it; false: they ended it before
// all of it ran, which proves nothing.
func leavesNothing(t *testing.T, flags []string, act func(*testing.T, *exec.Cmd, string), want int) bool {
	t.Helper()
	tr := newTree(t, `sh -c "$live"`)
	exitSignal := filepath.Join(t.TempDir(), "exit")
	args := append(flags, "exit-signal="+exitSignal, "--")
	cmd := role(t, "run", append(args, tr.argv...)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	procs, all := tr.upBefore(ended)
	if all && act != nil {
		act(t, cmd, exitSignal)
	}
	<-ended
	requireGone(t, procs)
	if code := cmd.ProcessState.ExitCode(); code != want {
		t.Errorf("exit code %d, want %d", code, want)
	}
	return all
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
