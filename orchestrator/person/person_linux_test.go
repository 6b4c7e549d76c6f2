package person

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"heartbeat/hook"
	"heartbeat/orchestrator/session"
	"heartbeat/ptyrun"
)

// TestWhoIsAPerson: a process of a session is none, by whatever shows it; one that has
// ended may be anybody's.
func TestWhoIsAPerson(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sleeps := func(env ...string) *exec.Cmd {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sleep", "1000")
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	keep := func(name string, l session.Leftover) {
		t.Helper()
		data, err := json.Marshal(l)
		if err == nil {
			err = os.MkdirAll(filepath.Join(dir, "live"), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "live", name+".json"), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	shim, marked, person, gone := sleeps(), sleeps("HEARTBEAT_SESSION=token-1"), sleeps("HEARTBEAT_SESSION=another"), sleeps()
	_ = gone.Process.Kill()
	_ = gone.Wait()
	start, err := ptyrun.StartTimeOf(shim.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	keep("one", session.Leftover{Agent: "a", Session: "one", Cookie: "token-1", Shim: hook.Process{PID: 1 << 30, Start: 1}})
	keep("two", session.Leftover{Agent: "b", Session: "two", Cookie: "token-2", Shim: hook.Process{PID: shim.Process.Pid, Start: start}})
	for name, c := range map[string]struct {
		pid  int
		want string
	}{"a shim": {shim.Process.Pid, "b"}, "by its environment": {marked.Process.Pid, "a"}, "a person": {person.Process.Pid, ""}} {
		err := Check(c.pid, dir)
		if not, is := errors.AsType[*NobodyError](err); (is && not.Agent != c.want) || (err == nil) != (c.want == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Check(gone.Process.Pid, dir); !errors.Is(err, ErrGone) {
		t.Errorf("a process that has ended: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "live", "rubbish.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(person.Process.Pid, dir); err == nil {
		t.Error("where it cannot be told, anybody is a person")
	}
	if err := Check(person.Process.Pid, t.TempDir()); err != nil {
		t.Errorf("what cannot be read of another fleet: %v", err)
	}
}
