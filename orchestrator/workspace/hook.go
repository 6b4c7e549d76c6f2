package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/session"
)

// Hook is the program that generated hooks name: a copy in the state directory, so
// that it exists as long as a session names it, whatever happens to the binaries
// that it was copied from. The name of its folder identifies its content.
type Hook struct {
	// Command is the hooks' command line.
	Command string

	binary   string
	copyFrom string // where binary is copied from, or "": it is no copy
	sum      string // of the content
}

// FindHook chooses the hook program for the running binary self: heartbeat-stop
// beside it, which starts faster, or self. It copies nothing (see Install).
func FindHook(self, stateDir string) (*Hook, error) {
	if stop := filepath.Join(filepath.Dir(self), "heartbeat-stop"); executable(stop) {
		return chooseHook(stop, "heartbeat-stop", stateDir)
	}
	return chooseHook(self, "heartbeat", stateDir)
}

func chooseHook(source, name, stateDir string) (*Hook, error) {
	if forbidsPrograms(stateDir) && !temporary(source) {
		return &Hook{Command: settings.Command(source), binary: source}, nil
	}
	sum, err := sumOfFile(source)
	if err != nil {
		return nil, fmt.Errorf("cannot choose the hook program: %w", err)
	}
	kept := filepath.Join(stateDir, "bin", sum, name) // recognised as ours by its name
	return &Hook{Command: settings.Command(kept), binary: kept, copyFrom: source, sum: sum}, nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// temporary reports whether a path is in a build folder of the go command (go help
// build: GOTMPDIR; its folders are called go-build…).
func temporary(path string) bool {
	return slices.ContainsFunc(strings.Split(path, string(filepath.Separator)), func(s string) bool {
		return strings.HasPrefix(s, "go-build")
	})
}

// sumOfFile is the sum of a program, which need not be in memory as a whole: every
// apply and run asks for it.
func sumOfFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return sumOf(f)
}

// sumOf is short: the client shows a hook's command to the model. The polynomial is one
// that processors know: the sum tells binaries apart, and guards against nobody who could
// also write the copy.
func sumOf(program io.Reader) (string, error) {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	_, err := io.CopyBuffer(sum, struct{ io.Reader }{program}, make([]byte, 256<<10)) // a file would choose one of its own
	return fmt.Sprintf("%08x", sum.Sum32()), err
}

// keptCopies is how many copies of binaries remain in the state directory beside those
// that are named: for schedulers of another version that are still running.
const keptCopies = 4

// errUpgraded means that the binary is no longer the one that was chosen.
var errUpgraded = errors.New("it was replaced by another one")

// Install makes the copy that Command names, if it does not exist yet. The caller
// holds the lock of the state directory.
func (h *Hook) Install() error {
	if h.copyFrom == "" {
		return nil
	}
	now := time.Now()
	if executable(h.binary) {
		return os.Chtimes(filepath.Dir(h.binary), now, now) // it is in use
	}
	if err := h.copy(); err != nil {
		return fmt.Errorf("cannot copy the hook program %q: %w", h.copyFrom, err)
	}
	bin := filepath.Dir(filepath.Dir(h.binary))
	wanted, err := wantedCopies(filepath.Dir(bin))
	if err != nil {
		return nil // what cannot be read may name any of them
	}
	return dropOldCopies(bin, wanted)
}

func (h *Hook) copy() (err error) {
	dir, name := filepath.Split(h.binary)
	source, err := os.Open(h.copyFrom)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(dir) // unless there is something in it
		}
	}()
	folder, err := durable.Open(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	err = folder.SweepOf(name)
	if err == nil {
		err = folder.ReplaceFunc(name, true, func(w io.Writer) error {
			sum, err := sumOf(io.TeeReader(source, w))
			if err == nil && sum != h.sum {
				err = errUpgraded
			}
			return err
		})
	}
	if err == nil {
		err = folder.Sync()
	}
	if err == nil {
		err = os.Chmod(h.binary, 0o700)
	}
	return err
}

// wantedCopies says whether the client of a live session, or an agent's settings file, names
// the copy in a folder of bin.
func wantedCopies(stateDir string) (func(folder string) bool, error) {
	texts, err := session.Passed(stateDir)
	if err != nil {
		return nil, err
	}
	applied, err := recordsIn(stateDir)
	if err != nil {
		return nil, err
	}
	for _, r := range applied {
		for _, want := range r.merged() {
			texts = append(texts, []byte(want.Command))
		}
	}
	return func(folder string) bool {
		path := []byte("/bin/" + folder + "/")
		return slices.ContainsFunc(texts, func(text []byte) bool { return bytes.Contains(text, path) })
	}, nil
}

// dropOldCopies keeps the copies that are named, and those that were used last.
func dropOldCopies(bin string, wanted func(folder string) bool) error {
	entries, err := os.ReadDir(bin)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return wanted(e.Name()) })
	used := func(e fs.DirEntry) time.Time {
		info, err := e.Info()
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		return cmp.Or(used(b).Compare(used(a)), strings.Compare(a.Name(), b.Name()))
	})
	for _, e := range entries[min(len(entries), keptCopies):] {
		if err := os.RemoveAll(filepath.Join(bin, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// runWait limits the call that shows that a hook can run; it takes milliseconds.
const runWait = 20 * time.Second

// runs calls the hook's program without a session of ours: then it does nothing. The whole
// command line says 0 of a program that does not run, too.
func (h *Hook) runs() error {
	ctx, cancel := context.WithTimeout(context.Background(), runWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.binary, ask.Word)
	cmd.Dir = "/"
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, ask.EnvSession+"=") })
	out, err := cmd.CombinedOutput()
	if err == nil && len(out) == 0 {
		return nil
	}
	if interrupted(err) {
		err = fmt.Errorf("%w: %w", err, launch.ErrPasses)
	}
	return fmt.Errorf("the hook program %q does not run: %w", h.binary, errors.Join(err, errors.New(cut(out))))
}

// interrupted reports whether a program was ended by a signal: by us, because it
// took too long; by the system, because memory ran out; or by itself, because it
// could not create a thread (the hook aborts then).
func interrupted(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	return ok && !exit.Exited()
}

func cut(out []byte) string {
	const most = 200
	return strings.TrimSpace(strings.ToValidUTF8(string(out[:min(len(out), most)]), ""))
}

// ready makes sure that the hook exists and runs.
func (h *Hook) ready(stateDir string) error {
	unlock, err := lock(stateDir)
	if err != nil {
		return err
	}
	if err := errors.Join(h.Install(), unlock()); err != nil {
		return err
	}
	if h.runs() == nil {
		return nil
	}
	// A program that was forked while the copy was being written has it open until
	// it starts: until then it is busy (execve(2), ETXTBSY).
	time.Sleep(busyWait)
	return h.runs()
}

// busyWait is far more than a program needs from its fork to its start.
const busyWait = 200 * time.Millisecond

// keeper keeps the hook of a scheduler, which continues with the hook that it began
// with when its binaries are upgraded, moved or removed.
type keeper struct {
	stateDir string

	mu   sync.Mutex
	hook *Hook
}

// current returns the hook to wire now.
func (k *keeper) current() (*Hook, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := k.hook.ready(k.stateDir)
	if err == nil {
		return k.hook, nil
	}
	if launch.Passes(err) {
		return nil, &HookError{err}
	}
	// The copy is gone and so is its source: this program itself has the right
	// version, and can always be read.
	own, chosen := chooseHook(session.Self(), "heartbeat", k.stateDir)
	if chosen == nil {
		chosen = own.ready(k.stateDir)
	}
	if chosen != nil {
		return nil, &HookError{errors.Join(err, chosen)}
	}
	k.hook = own
	return own, nil
}

// HookError means that the hook program cannot be run, now or until a person helps.
type HookError struct{ cause error }

// Error says why.
func (e *HookError) Error() string { return "cannot install the hooks: " + e.cause.Error() }

// Unwrap returns the cause, and that only a person can help, if it does not pass by
// itself.
func (e *HookError) Unwrap() []error {
	if launch.Passes(e.cause) {
		return []error{e.cause}
	}
	return []error{e.cause, launch.ErrNeedsPerson}
}

// Hint says what to do.
func (e *HookError) Hint() string {
	return "install heartbeat again, and see that programs can be run from the state directory"
}
