package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

const tempMark = ".tmp-"

// tempName returns a unique name that begins with a dot.
func tempName(name string) string {
	var unique [8]byte
	_, _ = rand.Read(unique[:]) // never fails (crypto/rand)
	return "." + strings.TrimPrefix(name, ".") + tempMark + hex.EncodeToString(unique[:])
}

func isTemp(name string) bool {
	at := strings.LastIndex(name, tempMark)
	if at < 1 || name[0] != '.' {
		return false
	}
	unique, err := hex.DecodeString(name[at+len(tempMark):])
	return err == nil && len(unique) == 8
}

// MaxEntries limits how many names of a folder are read.
const MaxEntries = 10_000

// Entries returns the folder's names, up to MaxEntries of them, in no particular
// order.
func (f *Folder) Entries() ([]os.DirEntry, error) {
	dir, err := f.root.Open(".")
	if err != nil {
		return nil, f.fail("list", ".", err)
	}
	defer dir.Close()
	entries, err := dir.ReadDir(MaxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, f.fail("list", ".", err)
	}
	return entries, nil
}

// Sweep removes temporary files that a killed process left behind, if they are
// older than age, or as far in the future: those were written while the clock was
// wrong. It reads a limited number of names.
func (f *Folder) Sweep(age time.Duration) error {
	return f.sweep(func(_ string, made time.Time) bool { return time.Since(made).Abs() >= age })
}

// SweepOf is Sweep for the temporary files of some names, whatever their age: for
// callers that seldom meet somebody who replaces those now. Whoever does that, other
// than by ReplaceFunc, begins again.
func (f *Folder) SweepOf(names ...string) error {
	return f.sweep(func(temp string, _ time.Time) bool {
		of := temp[:strings.LastIndex(temp, tempMark)]
		return slices.ContainsFunc(names, func(name string) bool { return of == "."+strings.TrimPrefix(name, ".") })
	})
}

// sweep removes the temporary files that are stale.
func (f *Folder) sweep(stale func(name string, made time.Time) bool) error {
	entries, err := f.Entries()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !isTemp(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !stale(e.Name(), info.ModTime()) {
			continue
		}
		if err := f.Remove(e.Name()); err != nil {
			return err
		}
	}
	return nil
}

// Thin removes the files whose names begin with prefix, except the last most of
// them in the order of their names. It reads a limited number of names.
func (f *Folder) Thin(prefix string, most int) error {
	entries, err := f.Entries()
	if err != nil {
		return err
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	for _, name := range names[:max(0, len(names)-most)] {
		if err := f.Remove(name); err != nil {
			return err
		}
	}
	return nil
}
