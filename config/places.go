package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"
)

// fileID identifies a directory whatever its spelling: one directory has two paths
// where a file system ignores case, or where it is mounted twice.
type fileID struct{ device, inode uint64 }

// identify returns false for a path that does not exist. Links are resolved by now,
// except where an agent replaced its directory by a link: that one is not followed.
func identify(path string) (fileID, bool) {
	info, err := os.Lstat(path)
	if err != nil {
		return fileID{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}, false
	}
	return fileID{uint64(stat.Dev), stat.Ino}, true // Dev is signed on darwin
}

// places gives each directory, even one that does not exist yet, one spelling, so
// that paths can be compared as text.
type places struct {
	identify func(path string) (fileID, bool)
	spelt    map[string]string // path → its one spelling
	first    map[fileID]string // the spelling of what exists
	folds    map[string]bool   // by a directory that exists: it ignores case
}

func newPlaces(identify func(string) (fileID, bool)) *places {
	return &places{identify: identify, spelt: map[string]string{}, first: map[fileID]string{}, folds: map[string]bool{}}
}

// of returns the spelling of a clean, absolute path. Use it for comparison only: it
// may name another mount of the same directory.
func (p *places) of(path string) string {
	if known, ok := p.spelt[path]; ok {
		return known
	}
	spelling, parent := path, filepath.Dir(path)
	id, exists := p.identify(path)
	first, seen := p.first[id]
	switch {
	case exists && seen:
		spelling = first
	case parent == path:
	case !exists && p.ignoresCase(parent):
		spelling = filepath.Join(p.of(parent), strings.ToLower(filepath.Base(path)))
	default:
		spelling = filepath.Join(p.of(parent), filepath.Base(path))
	}
	if exists && !seen {
		p.first[id] = spelling
	}
	p.spelt[path] = spelling
	return spelling
}

// ignoresCase reports whether file names below a directory, which need not exist
// yet, ignore case. Then the directory's own name has two spellings too.
func (p *places) ignoresCase(dir string) bool {
	if known, ok := p.folds[dir]; ok {
		return known
	}
	folds, parent := false, filepath.Dir(dir)
	id, exists := p.identify(dir)
	other := strings.Map(swapCase, filepath.Base(dir))
	switch {
	case parent == dir:
	case !exists || other == filepath.Base(dir):
		folds = p.ignoresCase(parent)
	default:
		same, ok := p.identify(filepath.Join(parent, other))
		folds = ok && same == id
	}
	p.folds[dir] = folds
	return folds
}

func swapCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}
