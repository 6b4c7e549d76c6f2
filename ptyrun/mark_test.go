package ptyrun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestWhoseEnvironmentMerelyHoldsAMark walks the ways in which a session's mark
// gets into the environment of a stranger's process, by a directory that is
// named after it for one: a shell that was opened there was killed.
func TestWhoseEnvironmentMerelyHoldsAMark(t *testing.T) {
	t.Parallel()
	cookie := mark()
	told := filepath.Join(t.TempDir(), "tree")
	h := startHolder(t, cookie, []string{"sh", "-c", `echo "$HEARTBEAT_TREE" >"$0.new" && mv "$0.new" "$0"; exec sleep 60`, told})
	var tree string
	for deadline := time.Now().Add(time.Minute); tree == ""; time.Sleep(time.Millisecond) {
		data, err := os.ReadFile(told)
		if err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
		tree = strings.TrimSpace(string(data))
	}
	var strangers []Process
	for _, m := range []string{cookie, tree, "HEARTBEAT_SESSION=" + cookie, "HEARTBEAT_TREE=" + tree} {
		dir := filepath.Join(t.TempDir(), m)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, env := range [][]string{
			{"PWD=" + dir, "OLDPWD=" + m},
			{m + "=x"},
			{"X_" + m},
			{"HEARTBEAT_SESSION=" + m + "x", "HEARTBEAT_TREE=x" + m},
			{"HEARTBEAT_SESSION=" + filepath.Dir(dir) + ":" + m, "HEARTBEAT_TREE=" + m + "/" + m},
			{"HEARTBEAT_SESSION=\n" + m, "HEARTBEAT_TREE=\n" + m},
		} {
			cmd := exec.Command("sleep", "60")
			cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH")}, env...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			start, err := StartTimeOf(cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			strangers = append(strangers, Process{PID: cmd.Process.Pid, Start: start})
		}
	}
	if exit := h.end(t, "end"); exit.Code != 143 || len(exit.Left) != 0 {
		t.Errorf("exit is %+v", exit)
	}
	if swept, err := Sweep(t.Context(), Remains{Cookie: cookie}, time.Second); err != nil || len(swept) > 0 {
		t.Errorf("swept %v, %v", swept, err)
	}
	if left := alive(strangers); len(left) != len(strangers) {
		t.Errorf("of %d strangers' processes %d are left", len(strangers), len(left))
	}
}

// TestNoEnvironmentLeavesTheTree: an orphan that was given to us is ended,
// whatever tree it says that it belongs to.
func TestNoEnvironmentLeavesTheTree(t *testing.T) {
	t.Parallel()
	told := filepath.Join(t.TempDir(), "pid")
	h := startHolder(t, "", []string{"sh", "-c", `
		(env -i "PATH=$PATH" HEARTBEAT_TREE=another HEARTBEAT_SESSION=another setsid sh -c 'echo $$ >"$0.new" && mv "$0.new" "$0"; exec sleep 60' "$0" &)
		exec sleep 60`, told})
	var orphan Process
	for deadline := time.Now().Add(time.Minute); orphan.PID == 0; time.Sleep(time.Millisecond) {
		if data, err := os.ReadFile(told); err == nil {
			orphan.PID, _ = strconv.Atoi(strings.TrimSpace(string(data)))
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	start, err := StartTimeOf(orphan.PID)
	if err != nil {
		t.Fatal(err)
	}
	orphan.Start = start
	h.end(t, "end")
	requireGone(t, []Process{orphan})
}
