package workspace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/settings"
)

// Hook is the program that generated hooks name.
type Hook struct {
	// Command is the hooks' command line.
	Command string

	binary   string
	copyFrom string // where binary is to be copied from, or ""
}

// FindHook chooses the hook program for the running binary self: heartbeat-stop
// beside it, which starts faster, or self. A binary in a temporary build folder
// (go run) will not be there tomorrow: then a copy in the state directory is
// chosen, which Install makes.
func FindHook(self, stateDir string) (*Hook, error) {
	self = strings.TrimSuffix(self, " (deleted)") // Linux, after an upgrade
	if stop := filepath.Join(filepath.Dir(self), "heartbeat-stop"); executable(stop) {
		return &Hook{Command: settings.Command(stop), binary: stop}, nil
	}
	if !temporary(self) {
		return &Hook{Command: settings.Command(self), binary: self}, nil
	}
	sum, err := hashFile(self)
	if err != nil {
		return nil, fmt.Errorf("cannot choose the hook program: %w", err)
	}
	// The name is the program's, so that the hooks are known as ours.
	kept := filepath.Join(stateDir, "bin", sum, "heartbeat")
	return &Hook{Command: settings.Command(kept), binary: kept, copyFrom: self}, nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// temporary reports whether a path lies in a build folder of the go command
// (go help build: GOTMPDIR; its folders are called go-build…).
func temporary(path string) bool {
	return slices.ContainsFunc(strings.Split(path, string(filepath.Separator)), func(s string) bool {
		return strings.HasPrefix(s, "go-build")
	})
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// keptCopies is how many copies of binaries stay in the state directory.
const keptCopies = 4

// Install makes the copy that Command names, when it names one.
func (h *Hook) Install() error {
	if h.copyFrom == "" {
		return nil
	}
	if executable(h.binary) {
		now := time.Now()
		return os.Chtimes(h.binary, now, now) // it is in use
	}
	if err := h.copy(); err != nil {
		return fmt.Errorf("cannot copy the hook program: %w", err)
	}
	return dropOldCopies(filepath.Dir(filepath.Dir(h.binary)))
}

// copying are the names of copies that are under way. Install is called by one
// process at a time.
const copying = ".copy-*"

// matches lists the files of a folder that match.
func matches(dir, pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(escapeGlob(dir), pattern)) // the pattern is ours
	return found
}

func (h *Hook) copy() (err error) {
	dir := filepath.Dir(h.binary)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	from, err := os.Open(h.copyFrom)
	if err != nil {
		return err
	}
	defer from.Close()
	for _, left := range matches(dir, copying) { // by a copy that was killed
		if err := os.Remove(left); err != nil {
			return err
		}
	}
	to, err := os.CreateTemp(dir, copying)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(to.Name()))
		}
	}()
	_, err = io.Copy(to, from)
	if err == nil {
		err = to.Chmod(0o700)
	}
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return err
	}
	return os.Rename(to.Name(), h.binary)
}

// dropOldCopies keeps the copies used last.
func dropOldCopies(bin string) error {
	entries, err := os.ReadDir(bin)
	if err != nil {
		return err
	}
	used := func(e fs.DirEntry) time.Time {
		info, err := os.Stat(filepath.Join(bin, e.Name(), "heartbeat"))
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
