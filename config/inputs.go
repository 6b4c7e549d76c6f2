package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Inputs are all files that a load read or looked for, and the folders that it
// listed. As long as they look the same, loading again gives the same result.
// Env-files are not among them: they are read when something is started.
type Inputs struct {
	looks []look
	known map[string]bool
}

// look is what a file or folder looked like before it was read.
type look struct {
	now  func() string
	then string
}

// Then returns what the inputs looked like when they were read, as text for
// comparison.
func (in *Inputs) Then() string {
	var text strings.Builder
	for _, l := range in.looks {
		text.WriteString(l.then + "\n")
	}
	return text.String()
}

// Now returns what they look like now.
func (in *Inputs) Now() string {
	var text strings.Builder
	for _, l := range in.looks {
		text.WriteString(l.now() + "\n")
	}
	return text.String()
}

// note records one input, once.
func (in *Inputs) note(name, then string, now func() string) {
	if !in.known[name] {
		in.known[name] = true
		in.looks = append(in.looks, look{now, then})
	}
}

// file records a file that is about to be read.
func (in *Inputs) file(path string) {
	in.note(path, looksOf(path), func() string { return looksOf(path) })
}

// looksOf describes a file by its metadata.
func looksOf(path string) string {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "gone"
	}
	if err != nil {
		return err.Error()
	}
	inode := uint64(0) // a file that was put in its place, with its times
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size(), info.Mode(), inode)
}

// noted is a shelf that records what is taken from another shelf.
type noted struct {
	shelf
	inputs *Inputs
}

func (n noted) real(path string) (string, error) {
	n.inputs.file(path)
	return n.shelf.real(path)
}

func (n noted) prompt(path string) (string, error) {
	n.inputs.file(path)
	return n.shelf.prompt(path)
}

func (n noted) glob(dir, pattern string) ([]string, error) {
	found, err := n.shelf.glob(dir, pattern)
	n.inputs.note(dir+"\n"+pattern, listed(found, err), func() string { return listed(n.shelf.glob(dir, pattern)) })
	return found, err
}

func listed(found []string, err error) string {
	return strings.Join(slices.Sorted(slices.Values(found)), "\n") + fmt.Sprint(err)
}
