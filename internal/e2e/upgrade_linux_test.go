package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"heartbeat/hook"
)

// TestAFleetOutlivesAnUpgrade: the binaries are replaced in place, or moved
// away, while a session waits: it is handed the next prompt all the same, and so
// is the next session.
func TestAFleetOutlivesAnUpgrade(t *testing.T) {
	t.Parallel()
	for name, upgrade := range map[string]func(f *fleet, dir string) error{
		"in place": func(f *fleet, dir string) error {
			for _, name := range []string{"heartbeat", "heartbeat-stop"} {
				f.write(filepath.Join(dir, "new"), "#!/bin/sh\nexit 9\n")
				if err := os.Chmod(filepath.Join(dir, "new"), 0o755); err != nil {
					return err
				}
				if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, name)); err != nil {
					return err
				}
			}
			return nil
		},
		"moved away": func(_ *fleet, dir string) error { return os.RemoveAll(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, persist)
				f.teach()
				built, v1 := f.bin, filepath.Join(f.Dir, "v1")
				// By another process: no child of a parallel test holds the copies
				// open for writing when they are run (ETXTBSY).
				if out, err := exec.Command("cp", "-a", built, v1).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				f.bin = v1
				f.start()
				f.bin = built
				f.send("before")
				f.Until("the first reply", func() bool { return len(f.outbox()) == 1 })
				f.phase(hook.Waiting)
				first := f.session()
				if err := upgrade(f, v1); err != nil {
					t.Fatal(err)
				}
				f.send("after")
				f.Until("the second reply", func() bool { return len(f.outbox()) == 2 })
				f.phase(hook.Waiting)
				if r := f.session(); r.Session != first.Session {
					t.Errorf("another session: %v", f.ends())
				}
				if err := kill(first.Client, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				f.Until("the session's end", func() bool { return len(f.ends()) == 1 })
				f.send("in another session")
				f.Until("the third reply", func() bool { return len(f.outbox()) == 3 })
				for _, d := range f.outbox() {
					if d.Attempt != 1 {
						t.Errorf("%+v", d)
					}
				}
			})
		})
	}
}
