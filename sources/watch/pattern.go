package watch

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"heartbeat/hook/foreign"
)

// skipped are directories that match only patterns that name them, because their
// files change with each of the agent's turns.
var skipped = []string{".git", ".heartbeat", ".claude"}

// pattern is a glob relative to the agent's directory, prepared to tell which
// directories may contain matches.
type pattern struct {
	glob  string
	base  string   // the directory that all matches lie in; "." for the agent's
	depth int      // of a match below base, or 0 when there is no limit
	names []string // of skipped, those that the glob names
	open  bool     // it is about what editors keep beside a file
}

func parsePattern(glob string) (pattern, error) {
	parts := strings.FieldsFunc(glob, func(r rune) bool { return strings.ContainsRune("/{},", r) })
	if glob == "" || path.IsAbs(glob) || slices.Contains(parts, "..") || !doublestar.ValidatePattern(glob) {
		return pattern{}, fmt.Errorf("cannot watch %q: it is not a glob inside of the agent's directory", glob)
	}
	p := pattern{glob: glob, base: ".", open: namesKeptOpen(glob)}
	if !strings.Contains(glob, `\`) { // with escapes, look everywhere
		base, rest := doublestar.SplitPattern(glob)
		p.base = path.Clean(base)
		if !strings.ContainsAny(rest, "{[") && !strings.Contains(rest, "**") {
			p.depth = strings.Count(rest, "/") + 1
		}
	}
	for _, name := range skipped {
		if slices.Contains(parts, name) {
			p.names = append(p.names, name)
		}
	}
	return p, nil
}

// matches reports whether the pattern matches a file at rel, which uses slashes.
func (p *pattern) matches(rel string) bool {
	return doublestar.MatchUnvalidated(p.glob, rel) && !p.skips(rel) && (p.open || !keptOpen(path.Base(rel)))
}

// mayHold reports whether the directory rel, or one below it, may contain matches.
func (p *pattern) mayHold(rel string) bool {
	if rel == "." || p.base == rel || strings.HasPrefix(p.base, rel+"/") {
		return true
	}
	below := rel
	if p.base != "." {
		var ok bool
		if below, ok = strings.CutPrefix(rel, p.base+"/"); !ok {
			return false
		}
	}
	return !p.skips(rel) && (p.depth == 0 || strings.Count(below, "/")+1 < p.depth)
}

// skips reports whether rel is in a skipped directory that p does not name.
func (p *pattern) skips(rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		if slices.Contains(skipped, part) && !slices.Contains(p.names, part) {
			return true
		}
	}
	return false
}

// display returns a path for prompts, labels and states: unchanged, or quoted when
// it could be mistaken for something else. Whoever makes a file chooses its name.
func display(name string) string {
	if !strings.HasPrefix(name, `"`) && !strings.ContainsFunc(name, foreign.Acts) {
		return name
	}
	return strconv.Quote(name)
}
