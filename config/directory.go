package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

var (
	// variable matches what is expanded: ${NAME}, and $$, which is a $ itself.
	variable = pattern(`\$\$|\$\{([^}]*)\}`)
	// unbraced matches what a shell would expand and heartbeat does not.
	unbraced = pattern(`\$(?:([A-Za-z_][A-Za-z0-9_]*)|[{(])`)
)

// unreplaced reports a variable that is not written as ${NAME}.
func (l *loader) unreplaced(p place, text string) bool {
	m := unbraced().FindStringSubmatch(variable().ReplaceAllString(text, ""))
	if m == nil {
		return false
	}
	name := m[1]
	if name == "" {
		name = "NAME"
	}
	l.problem(p, fmt.Sprintf("%s is not expanded", cut(text)), "write ${"+name+"} for a variable, or $$ for a $ in a name")
	return true
}

// expand reads a path. It expands ~ and ${VAR}; a relative path begins at the
// file's directory.
func (l *loader) expand(p place) (string, bool) { return l.expandFrom(p, p.from.base) }

func (l *loader) expandFrom(p place, base string) (string, bool) {
	text, ok := l.substitute(p)
	if !ok {
		return "", false
	}
	return l.joined(base, text), true
}

// joined returns path, relative to base unless it is absolute.
func (l *loader) joined(base, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	l.relative = l.relative || base == l.files[0].base
	return filepath.Join(base, path)
}

// substitute reads a text and expands ~, ${VAR} and $$.
func (l *loader) substitute(p place) (string, bool) {
	text, ok := l.filled(p)
	if !ok || l.unreplaced(p, text) {
		return "", false
	}
	if text == "~" || strings.HasPrefix(text, "~/") {
		text = "${HOME}" + text[1:]
	} else if strings.HasPrefix(text, "~") {
		l.problem(p, fmt.Sprintf("%q: only your own ~ is supported", cut(text)), "write the whole path")
		return "", false
	}
	text = variable().ReplaceAllStringFunc(text, func(use string) string {
		if use == "$$" {
			return "$"
		}
		name := use[2 : len(use)-1]
		value, set := l.lookup(name)
		switch {
		case !variableForm().MatchString(name):
			l.problem(p, fmt.Sprintf("%s is not expanded", cut(use)), "write ${NAME}, without a default, for a variable")
			ok = false
		case !set:
			l.problem(p, fmt.Sprintf("the variable %s is not set", cut(name)), "set it where heartbeat is started, as with export "+name+"=…, or write the path")
			ok = false
		}
		return value
	})
	switch {
	case !ok:
		return "", false
	case strings.ContainsFunc(text, unicode.IsControl):
		l.problem(p, "holds control characters", "remove them")
		return "", false
	}
	return text, true
}

// directory reads an agent's directory. It need not exist yet: then missing is
// true.
func (l *loader) directory(p place) (dir string, missing bool) {
	text, ok := l.expand(p)
	if !ok {
		return "", false
	}
	named, err := os.Lstat(text)
	isFolder := err == nil && named.IsDir()
	if was := l.before(text); was != "" && err == nil && !isFolder {
		l.disk.folders[text] = was
		l.warn(p, cut(text)+" is not a folder any more: it was one when the fleet last ran or was applied",
			"put the folder back, or write another path: heartbeat does not follow what is there now")
		return was, false
	}
	dir, err = l.resolve(text)
	if err != nil {
		l.problem(p, fmt.Sprintf("cannot resolve %s: %v", cut(text), reason(err)), "")
		return "", false
	}
	if isFolder {
		l.disk.folders[text] = dir
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		// Nobody would declare this; another agent may have put it there.
		l.warn(p, dir+" is not a folder but a FIFO, a socket or a device", "replace it with a folder: nothing runs there until then")
		return dir, false
	}
	if err == nil && !info.IsDir() {
		l.problem(p, dir+" is not a directory", "")
		return "", false
	}
	return dir, errors.Is(err, fs.ErrNotExist)
}

// before returns the path of a directory that was a folder earlier, or "".
func (l *loader) before(text string) string {
	if l.disk.known == nil {
		return ""
	}
	return l.disk.known()[text]
}

// resolve follows the links of a path as far as it exists. Parents that agents
// share are resolved once.
func (l *loader) resolve(path string) (string, error) {
	if real, ok := l.disk.resolved[path]; ok || path == filepath.Dir(path) {
		return cmp.Or(real, path), nil
	}
	var real string
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		real, err = filepath.EvalSymlinks(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s is a broken link", path)
		}
	case err == nil || errors.Is(err, fs.ErrNotExist):
		if real, err = l.resolve(filepath.Dir(path)); err == nil {
			real = filepath.Join(real, filepath.Base(path))
		}
	}
	if err != nil {
		return "", err
	}
	l.disk.resolved[path] = real
	return real, nil
}

// inbox returns the path of an agent's inbox; `inbox:` is relative to its
// directory.
func (l *loader) inbox(a *Agent, t table) string {
	standard := filepath.Join(a.Home, "inbox.jsonl")
	p, ok := t["inbox"]
	if !ok {
		return standard
	}
	text, ok := l.expandFrom(p, a.Dir)
	if !ok {
		return standard
	}
	folder, err := l.resolve(filepath.Dir(text))
	if err != nil {
		l.problem(p, fmt.Sprintf("cannot resolve %s: %v", text, err), "")
		return standard
	}
	if message, hint := l.notAnInbox(a, folder, filepath.Base(text)); message != "" {
		l.problem(p, message, hint)
		return standard
	}
	if info, err := os.Lstat(text); err == nil && !info.Mode().IsRegular() {
		l.problem(p, text+" is not a regular file", "name a file, for example .heartbeat/inbox.jsonl")
	}
	return filepath.Join(folder, filepath.Base(text))
}

// collisions reports agents whose names differ only in case, agents that share a
// directory, and directories inside another agent's. An inbox is always in its
// agent's directory.
func (l *loader) collisions() {
	names := map[string]declared{}
	for _, d := range l.agents {
		if first, ok := names[strings.ToLower(d.Name)]; ok {
			l.problem(d.name, fmt.Sprintf("differs from agent %q (%s) only in case", first.Name, first.name.where(d.name)), "give it another name")
		}
		names[strings.ToLower(d.Name)] = d
	}
	l.nested()
}

const ownDirectory = "give each agent a directory of its own, none inside another"

func (l *loader) shared(first, second declared) {
	l.problem(second.dir, fmt.Sprintf("is also the directory of agent %q (%s): %s", first.Name, first.name.where(second.dir), second.Dir), ownDirectory)
}

// nested compares each directory with those that contain it. In a list sorted with
// a trailing slash, everything inside a directory follows it directly.
func (l *loader) nested() {
	sorted := slices.Clone(l.agents)
	for i := range sorted {
		sorted[i].place = slashed(l.disk.places.of(sorted[i].Dir))
	}
	slices.SortStableFunc(sorted, func(a, b declared) int { return cmp.Compare(a.place, b.place) })
	var above []declared
	for _, d := range sorted {
		for len(above) > 0 && !strings.HasPrefix(d.place, above[len(above)-1].place) {
			above = above[:len(above)-1]
		}
		if len(above) > 0 {
			l.overlap(above[len(above)-1], d)
		}
		above = append(above, d)
	}
}

// overlap reports that inner's directory equals outer's or is inside it. The
// problem is reported for the agent declared later.
func (l *loader) overlap(outer, inner declared) {
	switch {
	case outer.place == inner.place:
		l.shared(outer, inner) // the sort kept the order of the file
	case outer.index <= inner.index:
		l.problem(inner.dir, fmt.Sprintf("lies inside the directory of agent %q (%s): %s", outer.Name, outer.name.where(inner.dir), inner.Dir), ownDirectory)
	default:
		l.problem(outer.dir, fmt.Sprintf("contains the directory of agent %q (%s): %s", inner.Name, inner.name.where(outer.dir), inner.Dir), ownDirectory)
	}
}

func slashed(dir string) string { return strings.TrimSuffix(dir, "/") + "/" }
