package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// watched is a pattern of a watch trigger.
type watched struct {
	where   place
	pattern string
	agent   *Agent
}

// linked warns about patterns that lead through a symbolic link, which a watch neither
// follows nor matches: nothing would ever fire, and nobody would know why. Of what stands
// behind the first *, ?, [ or { only the watch itself knows.
func (l *loader) linked() {
	for _, w := range l.claims.watched {
		if w.agent.Name == "" || w.agent.Dir == "" {
			continue // the defaults themselves belong to nobody
		}
		link, to := firstLink(w.agent.Dir, fixed(w.pattern))
		if link == "" {
			continue
		}
		l.warn(w.where, fmt.Sprintf("%s is a symbolic link (to %s), which a watch does not follow: nothing fires", cut(link), cut(to)),
			"watch the place that it leads to, in the agent's dir, or put the files there themselves; a bind mount works, too")
	}
}

// fixed returns the part of a pattern that names files itself.
func fixed(pattern string) string {
	if strings.ContainsAny(pattern, `\`) {
		return "" // with escapes, nothing is certain
	}
	if !strings.ContainsAny(pattern, "*?[{") {
		return pattern
	}
	base, _ := doublestar.SplitPattern(pattern)
	return path.Clean(base)
}

// Absent returns the folder that a pattern of a watch below dir names, and that is not there;
// "": it is there, or nobody knows.
func Absent(dir, pattern string) string {
	folder := fixed(pattern)
	if folder == pattern { // a file
		folder = path.Dir(folder)
	}
	if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(folder))); folder == "" || !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return folder
}

// firstLink returns the first symbolic link on a path below a directory, and where it
// leads; "": there is none.
func firstLink(dir, below string) (link, to string) {
	for part := range strings.SplitSeq(below, "/") {
		if link = path.Join(link, part); link == "" || link == "." {
			continue
		}
		full := filepath.Join(dir, filepath.FromSlash(link))
		info, err := os.Lstat(full)
		if err != nil {
			return "", ""
		}
		if info.Mode()&os.ModeSymlink != 0 {
			to, _ := os.Readlink(full)
			return link, to
		}
	}
	return "", ""
}
