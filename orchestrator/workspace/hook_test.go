package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook/flock"
	"heartbeat/hook/settings"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/state"
)

// TestMain is a hook where it is called as one: this program is a scheduler's
// own in some tests.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "hook" {
		os.Exit(0)
	}
	os.Exit(testbed.Run(m))
}

// place makes programs in a folder of its own.
func place(t *testing.T, names ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), names[0])
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, n := range names[1:] {
		script(t, filepath.Join(dir, n), "# "+n+"\n")
	}
	return dir
}

// script writes a program. It is made in two steps, so that no child of a
// parallel test holds it open for writing when it is run (ETXTBSY).
func script(t *testing.T, path, text string) {
	t.Helper()
	err := os.WriteFile(path+".new", []byte("#!/bin/sh\n"+text), 0o755)
	if err = errors.Join(err, os.Rename(path+".new", path)); err != nil {
		t.Fatal(err)
	}
}

func TestFindHook(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		programs []string
		spoil    string // is not executable
		want     string
	}{
		"itself":                    {[]string{"bin", "heartbeat"}, "", "heartbeat"},
		"the small one beside it":   {[]string{"bin", "heartbeat", "heartbeat-stop"}, "", "heartbeat-stop"},
		"beside it, not executable": {[]string{"bin", "heartbeat", "heartbeat-stop"}, "heartbeat-stop", "heartbeat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, state := place(t, tt.programs...), filepath.Join(t.TempDir(), "my state")
			if tt.spoil != "" {
				if err := os.Chmod(filepath.Join(dir, tt.spoil), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			h, err := FindHook(filepath.Join(dir, "heartbeat"), state)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(state); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("finding made the copy: %v", err)
			}
			if err := errors.Join(os.Mkdir(state, 0o700), h.ready(state)); err != nil {
				t.Fatal(err)
			}
			copied, err := os.ReadFile(h.binary)
			if err != nil || string(copied) != "#!/bin/sh\n# "+tt.want+"\n" || filepath.Base(h.binary) != tt.want {
				t.Errorf("%s holds %q, %v", h.binary, copied, err)
			}
			if !strings.Contains(h.Command, "my state/bin/") || !settings.Ours(h.Command) {
				t.Errorf("%q is not known as ours", h.Command)
			}
		})
	}
}

// TestAHookOutlivesItsBinaries: an upgrade in place, and one into another folder
// with the old one removed, left sessions without hooks: they did one turn and
// stood still. What a scheduler began with goes on, and is put back where
// somebody removes it.
func TestAHookOutlivesItsBinaries(t *testing.T) {
	t.Parallel()
	for name, upgrade := range map[string]func(t *testing.T, dir string){
		"in place": func(t *testing.T, dir string) {
			script(t, filepath.Join(dir, "heartbeat"), "# new\nexit 9\n")
			script(t, filepath.Join(dir, "heartbeat-stop"), "# new\nexit 9\n")
		},
		"written over": func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "heartbeat-stop"), []byte("#!/bin/sh\nexit 9\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		},
		"moved away": func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, state := place(t, "v1", "heartbeat", "heartbeat-stop"), t.TempDir()
			h, err := FindHook(filepath.Join(dir, "heartbeat"), state)
			if err != nil {
				t.Fatal(err)
			}
			k := &keeper{stateDir: state, hook: h}
			first, err := k.current()
			if err != nil {
				t.Fatal(err)
			}
			upgrade(t, dir)
			again, err := k.current()
			if err != nil || again.Command != first.Command || first.runs() != nil {
				t.Fatalf("%+v, %v; want %+v", again, err, first)
			}
			// Without its copy the scheduler's own program takes over: no other
			// version does.
			if err := os.RemoveAll(filepath.Join(state, "bin")); err != nil {
				t.Fatal(err)
			}
			own, err := k.current()
			if err != nil {
				t.Fatal(err)
			}
			if self, err := sumOfFile("/proc/self/exe"); err == nil && filepath.Base(filepath.Dir(own.binary)) != self {
				t.Errorf("%s is not this program", own.binary)
			}
		})
	}
}

// A hook that cannot be run is no hook: the agent is held, and told of it.
func TestAHookThatDoesNotRun(t *testing.T) {
	t.Parallel()
	dir, state := place(t, "bin", "heartbeat"), t.TempDir()
	for name, text := range map[string]string{"fails": "exit 1\n", "talks": "echo x >&2\n", "hands over": "echo x >&2; exit 2\n"} {
		script(t, filepath.Join(dir, "heartbeat"), text)
		h, err := FindHook(filepath.Join(dir, "heartbeat"), state)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.ready(state); err == nil {
			t.Errorf("%s: it is said to run", name)
		}
	}
}

// Agents were held until a person came where another apply had the lock for a
// while, or where the machine had no memory, threads, processes or disk for the
// hook just then.
func TestWhatPassesNeedsNoPerson(t *testing.T) {
	t.Parallel()
	held := fmt.Errorf("%w: %w", flock.ErrHeld, context.DeadlineExceeded)
	for _, cause := range []error{held, syscall.ENOSPC, syscall.EDQUOT, syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		err := error(&HookError{fmt.Errorf("cannot copy it: %w", cause)})
		if errors.Is(err, launch.ErrNeedsPerson) || !launch.Passes(err) {
			t.Errorf("%v: needs a person", err)
		}
	}
	if err := error(&HookError{fs.ErrPermission}); !errors.Is(err, launch.ErrNeedsPerson) || launch.Passes(err) {
		t.Errorf("%v: needs nobody", err)
	}
	for text, passes := range map[string]bool{"kill -KILL $$\n": true, "kill -ABRT $$\n": true, "exit 1\n": false, "echo x\n": false} {
		dir, state := place(t, "bin", "heartbeat"), t.TempDir()
		script(t, filepath.Join(dir, "heartbeat"), text)
		h, err := FindHook(filepath.Join(dir, "heartbeat"), state)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.ready(state); err == nil || launch.Passes(err) != passes {
			t.Errorf("%q: %v, passes %v", text, err, !passes)
		}
	}
}

// A copy that another process has open for writing for a moment is no broken one.
func TestAHookThatIsBusy(t *testing.T) {
	t.Parallel()
	dir, state := place(t, "bin", "heartbeat"), t.TempDir()
	h, err := FindHook(filepath.Join(dir, "heartbeat"), state)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.ready(state); err != nil {
		t.Fatal(err)
	}
	copied, err := os.OpenFile(h.binary, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if h.runs() == nil {
		t.Skip("this system lets programs run that are written")
	}
	time.AfterFunc(busyWait/4, func() { copied.Close() })
	if err := h.ready(state); err != nil {
		t.Error(err)
	}
}

// `go run` removes its build folder when it ends: hooks must not name it.
func TestFindHookOfGoRun(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	build := filepath.Join(t.TempDir(), "go-build123", "b001", "exe")
	if err := os.MkdirAll(build, 0o755); err != nil {
		t.Fatal(err)
	}
	self := filepath.Join(build, "heartbeat")
	for i := range keptCopies + 2 {
		program := bytes.Repeat([]byte{byte(i)}, 100)
		if err := os.WriteFile(self, program, 0o755); err != nil {
			t.Fatal(err)
		}
		h, err := FindHook(self, state)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(h.binary); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("finding made the copy: %v", err)
		}
		for range 2 {
			if err := h.Install(); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(h.binary)
		if err != nil || !bytes.Equal(got, program) || !strings.HasPrefix(h.binary, state) {
			t.Fatalf("the copy %q: %v", h.binary, err)
		}
		if !executable(h.binary) || !settings.Ours(h.Command) {
			t.Errorf("%q is not executable, or not known as ours", h.Command)
		}
		// Copies of one moment have no order: say when this one was used.
		at := time.Now().Add(time.Duration(i-10) * time.Minute)
		if err := os.Chtimes(filepath.Dir(h.binary), at, at); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadDir(filepath.Join(state, "bin"))
	if err != nil || len(kept) != keptCopies {
		t.Errorf("%d copies are kept, %v; want %d", len(kept), err, keptCopies)
	}
}

// A client reads what it is passed by --settings once: without the copy that it names,
// nothing that its session does is heard any more.
func TestACopyThatIsNamedOutlivesUpgrades(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string
		data func(command string) any
		kept int
	}{
		"by a live session's client": {"passed/a.json", func(command string) any { return map[string]string{"command": command} }, keptCopies + 1},
		"by a settings file": {"applied/a/applied.json", func(command string) any {
			return record{Want: settings.Want{Command: command}}
		}, keptCopies + 1},
		"by what a settings file may still have": {"applied/a/applied.json", func(command string) any {
			return record{Earlier: []settings.Want{{Command: command}}}
		}, keptCopies + 1},
		"by what cannot be read": {"applied/a/applied.json", func(string) any { return "damaged" }, keptCopies + 3},
		"by nothing":             {"passed/a.json", func(string) any { return "" }, keptCopies},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stateDir, dir := t.TempDir(), t.TempDir()
			var first *Hook
			for i := range keptCopies + 3 {
				script(t, filepath.Join(dir, "heartbeat"), fmt.Sprintf("# version %d\n", i))
				h, err := FindHook(filepath.Join(dir, "heartbeat"), stateDir)
				if err == nil {
					err = h.Install()
				}
				at := time.Now().Add(time.Duration(i-10) * time.Minute)
				err = errors.Join(err, os.Chtimes(filepath.Dir(h.binary), at, at))
				if first == nil {
					first = h
					err = errors.Join(err, state.Save(filepath.Join(stateDir, c.file), c.data(h.Command)))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			kept, err := os.ReadDir(filepath.Join(stateDir, "bin"))
			if err != nil || len(kept) != c.kept {
				t.Errorf("%d copies are kept, %v; want %d", len(kept), err, c.kept)
			}
			if executable(first.binary) != (c.kept > keptCopies) {
				t.Errorf("the first copy is there: %v", executable(first.binary))
			}
		})
	}
}

// TestAProgramThatIsReplacedMeanwhileIsNotCopied: under the name of one content there is
// never another.
func TestAProgramThatIsReplacedMeanwhileIsNotCopied(t *testing.T) {
	t.Parallel()
	state, source := t.TempDir(), filepath.Join(t.TempDir(), "heartbeat-stop")
	if err := os.WriteFile(source, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	h, err := chooseHook(source, "heartbeat-stop", state)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(source, []byte("#!/bin/sh\n# another\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := h.Install(); !errors.Is(err, errUpgraded) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(filepath.Join(state, "bin")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
