package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// mostFiles bounds how many files a fleet may have.
const mostFiles = 10_000

// source is one file of the fleet.
type source struct {
	name string // as in problems
	path string // absolute
	real string // without links
	base string // its directory
	text []byte // what it says
	bad  error  // why that is no text (Written), or nil
	open bool   // it is being read: including it again would never end
	by   place  // where it is included, or nothing
}

// hiddenHint says which files no pattern takes.
const hiddenHint = "hidden files (.x.yaml) and editors' copies (x.yaml~) are taken only where they are named"

// includedKeys are the keys that an included file may have.
var includedKeys = []string{"version", "include", "defaults", "agents"}

// includes reads the files that a file includes, in the order of its list, then by
// name.
func (l *loader) includes(f *Fleet, t table, defaults table) {
	p, ok := t["include"]
	if !ok {
		return
	}
	const hint = "for example [agents/*.yaml]"
	for i, element := range l.listed(p, hint) {
		for _, path := range l.matches(element) {
			l.include(f, element, path, defaults)
		}
		if i > mostFiles || len(l.files) > mostFiles {
			l.problem(p, fmt.Sprintf("over %d files are included", mostFiles), "")
			return
		}
	}
}

// listed returns the elements of a list.
func (l *loader) listed(p place, hint string) []place {
	p = p.here()
	l.texts(p, hint) // for the problems
	var all []place
	for i, element := range p.node.Content {
		if n := follow(element); n.Kind != 0 && n.Value != "" {
			all = append(all, p.below(i, element).here())
		}
	}
	return all
}

// matches returns the absolute paths that an element of include matches.
func (l *loader) matches(p place) []string {
	text, ok := l.substitute(p)
	if !ok {
		return nil
	}
	if !strings.ContainsAny(text, "*?[{") {
		return []string{l.joined(p.from.base, text)}
	}
	if !doublestar.ValidatePattern(text) {
		l.problem(p, fmt.Sprintf("%q is not a valid pattern", cut(text)), patternHint)
		return nil
	}
	dir, pattern := doublestar.SplitPattern(filepath.ToSlash(text))
	found, err := l.shelf.glob(l.joined(p.from.base, dir), pattern)
	if err != nil {
		l.problem(p, fmt.Sprintf("cannot list %q: %v", cut(text), err), "")
	}
	if len(found) == 0 {
		l.warn(p, fmt.Sprintf("no file matches %q", cut(text)), hiddenHint)
	}
	slices.Sort(found)
	return found
}

// include reads one file and its agents.
func (l *loader) include(f *Fleet, p place, path string, defaults table) {
	real, err := l.shelf.real(path)
	if err != nil {
		l.problem(p, fmt.Sprintf("cannot read %s: %v", l.shown(path), reason(err)), "paths are relative to this file")
		return
	}
	if first := l.byPath[real]; first != nil {
		switch {
		case first.open:
			l.problem(p, l.shown(path)+" includes itself", "remove one of the includes")
		default:
			l.problem(p, fmt.Sprintf("%s is included already, at %s", l.shown(path), first.by.where(p)), "remove one of them")
		}
		return
	}
	l.names(p, path)
	data, err := l.shelf.read(path)
	if err != nil {
		l.problem(p, fmt.Sprintf("cannot read %s: %v", l.shown(path), err), mended(err, path))
		return
	}
	src := l.add(l.shown(path), path, real, data)
	src.by, src.open = p, true
	defer func() { src.open = false }()
	root, ok := l.parse(src)
	if !ok {
		return
	}
	t, ok := l.table(root, includedKeys, func(key string) string {
		if slices.Contains(topKeys, key) {
			return "it belongs in " + l.files[0].name
		}
		return agentElsewhere(key)
	})
	if !ok {
		return
	}
	if _, given := t["version"]; given {
		l.version(root, t)
	}
	l.declarations(f, t, defaults)
}

// add records a file of the fleet.
func (l *loader) add(name, path, real string, data []byte) *source {
	src := &source{name: name, path: path, real: real, base: filepath.Dir(path)}
	l.files = append(l.files, src)
	l.byPath[real] = src
	l.keep(path, data)
	if src.text, src.bad = Written(data); src.bad != nil {
		src.text = data
	}
	return src
}

// shown returns a path in the form in which the person wrote the first file's.
func (l *loader) shown(path string) string {
	if rel, err := filepath.Rel(l.files[0].base, path); err == nil && !filepath.IsAbs(l.files[0].name) {
		return filepath.Join(filepath.Dir(l.files[0].name), rel)
	}
	return path
}

// readSource reads a file of a fleet. A FIFO is rejected in an included file,
// because nobody would write to it.
func readSource(path string) ([]byte, error) {
	f, err := openOwned(path)
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	return readAll(f)
}

// reason returns an error without its path, which the message already contains.
func reason(err error) error {
	if wrapped, ok := errors.AsType[*fs.PathError](err); ok {
		return wrapped.Err
	}
	return err
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	if err == nil && len(data) > MaxFile {
		err = fmt.Errorf("it is over %d MiB", MaxFile>>20)
	}
	return data, err
}
