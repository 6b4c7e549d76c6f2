package config

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Text is one file of a fleet as it was read.
type Text struct {
	Path string `json:"path"` // absolute
	Data []byte `json:"data"`
}

// Folders maps agents' directories, absolute and as the file names them, to their
// paths with the links of their parents resolved. It holds those that were folders
// and not links.
type Folders map[string]string

// Recall checks texts in the same way as the Load that read them (Fleet.Texts,
// Fleet.Folders), whatever is at their paths now. Variables have their current
// values.
func Recall(texts []Text, folders Folders) (*Fleet, error) {
	if len(texts) == 0 {
		return nil, fmt.Errorf("cannot recall a configuration: %w", fs.ErrNotExist)
	}
	known := func() Folders { return folders }
	return parse(texts[0].Path, texts[0].Data, newPlaces(identify), recalled(texts[1:]), known)
}

// keep records a file of the fleet, once.
func (l *loader) keep(path string, data []byte) {
	if !l.isKept[path] {
		l.isKept[path] = true
		l.kept = append(l.kept, Text{Path: path, Data: data})
	}
}

// shelf is where a fleet's other files come from.
type shelf interface {
	// real returns the path with its links resolved.
	real(path string) (string, error)
	read(path string) ([]byte, error)
	prompt(path string) (string, error)
	// glob returns the paths of the files in dir that match and are taken, in any order.
	glob(dir, pattern string) ([]string, error)
}

// disk is the shelf of the files as they are now.
type disk struct{}

func (disk) real(path string) (string, error) { return filepath.EvalSymlinks(path) }

func (disk) read(path string) ([]byte, error) { return readSource(path) }

func (disk) prompt(path string) (string, error) { return readPrompt(path) }

func (disk) glob(dir, pattern string) ([]string, error) {
	found, err := doublestar.Glob(os.DirFS(dir), pattern, doublestar.WithFilesOnly())
	found = slices.DeleteFunc(found, func(name string) bool { return !takes(pattern, name) })
	for i := range found {
		found[i] = filepath.Join(dir, filepath.FromSlash(found[i]))
	}
	return found, err
}

// recalled is the shelf of the files as they were.
type recalled []Text

func (r recalled) real(path string) (string, error) {
	_, err := r.read(path)
	return path, err
}

func (r recalled) read(path string) ([]byte, error) {
	for _, t := range r {
		if t.Path == path {
			return t.Data, nil
		}
	}
	return nil, fs.ErrNotExist
}

func (r recalled) prompt(path string) (string, error) {
	data, err := r.read(path)
	return string(data), err
}

func (r recalled) glob(dir, pattern string) ([]string, error) {
	var found []string
	for _, t := range r {
		below, ok := strings.CutPrefix(t.Path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
		if below = filepath.ToSlash(below); ok && doublestar.MatchUnvalidated(pattern, below) && takes(pattern, below) {
			found = append(found, t.Path)
		}
	}
	return found, nil
}
