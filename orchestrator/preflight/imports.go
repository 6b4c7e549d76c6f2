package preflight

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"heartbeat/hook/durable"
)

// Limits for the search for imports: the agent writes these files.
const (
	maxMemory      = 1 << 20
	maxMemoryFiles = 200
	maxImportDepth = 5
)

var (
	importForm = regexp.MustCompile(`(?:^|\s)@((?:[^\s\\]|\\ )+)`)
	fenceForm  = regexp.MustCompile("(?ms)^[ \t]*(```|~~~).*?^[ \t]*(```|~~~)")
	spanForm   = regexp.MustCompile("`[^`\n]*`")
)

// importsOf returns the existing files outside of dir that the project's
// memory files import: CLAUDE.md, CLAUDE.local.md, .claude/CLAUDE.md and
// .claude/rules/*.md in dir and all folders above it. The client asks about
// them before a session (measured; not about what the user's own memory
// imports, nor about missing files or code).
func importsOf(dir, home string) []string {
	w := &importWalk{dir: dir, home: home, seen: map[string]bool{}}
	for at := dir; ; at = filepath.Dir(at) {
		for _, name := range []string{"CLAUDE.md", "CLAUDE.local.md", ".claude/CLAUDE.md"} {
			path := filepath.Join(at, name)
			if path != filepath.Join(home, ".claude", "CLAUDE.md") {
				w.file(path, 0)
			}
		}
		if at != home {
			w.rules(filepath.Join(at, ".claude", "rules"))
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	slices.Sort(w.outside)
	return slices.Compact(w.outside)
}

type importWalk struct {
	dir, home string
	seen      map[string]bool
	outside   []string
}

func (w *importWalk) rules(dir string) {
	looked := 0
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if looked++; err != nil || looked > 10*maxMemoryFiles {
			return fs.SkipAll
		}
		if d.Type().IsRegular() && strings.HasSuffix(path, ".md") {
			w.file(path, 0)
		}
		return nil
	})
}

func (w *importWalk) file(path string, depth int) {
	if w.seen[path] || len(w.seen) >= maxMemoryFiles {
		return
	}
	w.seen[path] = true
	data, err := durable.Read(path, maxMemory)
	if err != nil {
		return
	}
	for _, target := range imported(string(data)) {
		target = w.resolve(filepath.Dir(path), target)
		info, err := os.Stat(target)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if !below(w.dir, target) {
			w.outside = append(w.outside, target)
		} else if depth < maxImportDepth {
			w.file(target, depth+1)
		}
	}
}

func (w *importWalk) resolve(dir, target string) string {
	target = strings.ReplaceAll(target, `\ `, " ")
	if rest, ok := strings.CutPrefix(target, "~/"); ok {
		return filepath.Join(w.home, rest)
	}
	if filepath.IsAbs(target) {
		return filepath.Clean(target)
	}
	return filepath.Join(dir, target)
}

// imported returns the @paths of a text that are not in code.
func imported(text string) []string {
	text = spanForm.ReplaceAllString(fenceForm.ReplaceAllString(text, ""), "")
	var paths []string
	for _, m := range importForm.FindAllStringSubmatch(text, -1) {
		path, _, _ := strings.Cut(m[1], "#")
		if path != "" {
			paths = append(paths, path)
		}
	}
	return paths
}

// below reports whether path is dir or is inside it.
func below(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}
