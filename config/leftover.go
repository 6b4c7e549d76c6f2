package config

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// takes reports whether a pattern of include takes a file that it matches, both with
// slashes. It takes no hidden file, and none in a hidden folder, unless it says the dot
// itself, as in a shell: Emacs has its locks there (.#x.yaml), vim what is not saved
// (.x.yaml.swp), and a ConfigMap its versions (..data). Nor does it take what editors leave
// beside a file.
func takes(pattern, name string) bool {
	said := strings.Split(pattern, "/")
	for part := range strings.SplitSeq(name, "/") {
		names := func(p string) bool { return strings.HasPrefix(p, ".") && doublestar.MatchUnvalidated(p, part) }
		if strings.HasPrefix(part, ".") && !slices.ContainsFunc(said, names) {
			return false
		}
	}
	return !leftover(name[strings.LastIndexByte(name, '/')+1:])
}

// leftover reports whether a file's name is one that editors give to copies and locks:
// x.yaml~, #x.yaml#, .#x.yaml, x.yaml.swp, and 4913, with which vim tries whether it may write.
func leftover(name string) bool {
	return strings.HasSuffix(name, "~") || strings.HasPrefix(name, ".#") || strings.HasPrefix(name, "#") && strings.HasSuffix(name, "#") ||
		name == "4913" || slices.ContainsFunc([]string{".swp", ".swo", ".swx"}, func(end string) bool { return strings.HasSuffix(name, end) })
}
