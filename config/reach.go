package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"heartbeat/hook/inpath"
)

// Files that an agent can write must not decide what runs outside its permissions.
// The fleet's file, and everything that it names (commands, the scripts they
// interpret, env-files, prompts, included files), must be outside every agent's
// directory, unless the agent has `trust-dir: true`.

// mention is a file that the fleet's file names.
type mention struct {
	where place
	path  string // absolute
}

// names records that the fleet's file names a file.
func (l *loader) names(where place, path string) {
	if path != "" {
		l.claims.mentions = append(l.claims.mentions, mention{where, path})
	}
}

// withinReach reports files in the directory of an agent that is not trusted with
// them. For trusted agents it lists the files to guard.
func (l *loader) withinReach() {
	l.claims.owners = map[string]declared{}
	for _, d := range l.agents {
		l.claims.owners[l.disk.places.of(d.Dir)] = d
	}
	for _, c := range l.claims.programs {
		l.ofProgram(c)
	}
	seen := map[string]bool{}
	for _, n := range l.claims.mentions {
		for _, in := range l.reach(n.path) {
			key := in.path + "\n" + in.owner.Name
			if !in.owner.TrustDir && n.where.node != nil {
				l.problem(n.where, fmt.Sprintf("%s lies in the directory of agent %q, which could rewrite it", in.path, in.owner.Name), trustHint(in.owner))
			} else if !seen[key] {
				l.guard(n.where, in)
			}
			seen[key] = true
		}
	}
	for _, src := range l.files[:1] {
		for _, in := range l.reach(src.path) {
			if !in.owner.TrustDir {
				l.problem(in.owner.dir, src.name+", which says what runs, lies in it: the agent could rewrite it", trustHint(in.owner))
				continue
			}
			l.guard(in.owner.dir, in)
		}
	}
	for _, d := range l.agents {
		slices.Sort(d.Guarded)
		d.Guarded = slices.Compact(d.Guarded)
	}
}

func trustHint(d declared) string {
	return fmt.Sprintf("move it out of %s, or write trust-dir: true in agent %q: rules then keep the client's own tools away from it, but not shell commands", d.Dir, d.Name)
}

// guardable are the characters that a permission rule takes literally.
const guardable = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=,.-/ "

func (l *loader) guard(where place, in spot) {
	rel, err := filepath.Rel(in.owner.Dir, in.path)
	if err != nil || !filepath.IsLocal(rel) || strings.Trim(rel, guardable) != "" {
		l.problem(where, fmt.Sprintf("no permission rule can name %s, which lies in the directory of agent %q", in.path, in.owner.Name), "rename it, or move it out")
		return
	}
	in.owner.Guarded = append(in.owner.Guarded, rel)
}

// spot is a place in an agent's directory on the way to a file: a link, or the file
// itself.
type spot struct {
	owner declared
	path  string
}

// mostLinks bounds how many links of a path are followed (the kernel follows 40).
const mostLinks = 40

// reach lists the places in agents' directories on the way to a file.
func (l *loader) reach(path string) []spot {
	if known, ok := l.claims.reached[path]; ok {
		return known
	}
	var found []spot
	at, rest, links := "/", parts(path), 0
	for len(rest) > 0 && links <= mostLinks {
		next := filepath.Join(at, rest[0])
		rest = rest[1:]
		target := ""
		if info, err := os.Lstat(next); err == nil && info.Mode()&os.ModeSymlink != 0 {
			target, _ = os.Readlink(next)
		}
		if owner, in := l.inside(at); in && (target != "" || len(rest) == 0) {
			found = append(found, spot{owner, next})
		}
		switch {
		case target == "":
			at = next
		case filepath.IsAbs(target):
			at, rest, links = "/", append(parts(target), rest...), links+1
		default:
			rest, links = append(parts(target), rest...), links+1
		}
	}
	if l.claims.reached == nil {
		l.claims.reached = map[string][]spot{}
	}
	l.claims.reached[path] = found
	return found
}

func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

// inside returns the agent whose directory is a folder or contains it.
func (l *loader) inside(dir string) (declared, bool) {
	for ; ; dir = filepath.Dir(dir) {
		if d, ok := l.claims.owners[l.disk.places.of(dir)]; ok {
			return d, true
		}
		if dir == filepath.Dir(dir) {
			return declared{}, false
		}
	}
}

// ofProgram records the files that a command runs.
func (l *loader) ofProgram(c program) {
	if c.agent.Name == "" || c.agent.Dir == "" {
		return // the defaults themselves belong to nobody
	}
	l.names(c.where, l.located(c))
	name := strings.TrimRight(filepath.Base(c.word), "0123456789.")
	for i, element := range c.rest {
		word := follow(element).Value
		switch {
		case slices.Contains(interpreters, name) && !strings.HasPrefix(word, "-"):
		case c.session && i > 0 && slices.Contains(filesOfClient, follow(c.rest[i-1]).Value):
		case c.session && strings.Contains(word, "=") && slices.Contains(filesOfClient, word[:strings.IndexByte(word, '=')]):
			_, word, _ = strings.Cut(word, "=")
		default:
			continue
		}
		if !filepath.IsAbs(word) {
			word = filepath.Join(c.agent.Dir, word)
		}
		if info, err := os.Stat(word); err == nil && info.Mode().IsRegular() {
			l.names(place{node: element, path: c.where.path, from: c.where.from}, word)
		}
	}
}

// interpreters run the file that their arguments name; filesOfClient are the
// client's flags that name a file of settings or servers.
var (
	interpreters = []string{
		"sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox", "python", "perl", "ruby", "node", "deno", "bun", "php", "lua", "osascript",
		"env", "nice", "timeout", "nohup", "setsid", "sudo", "xargs", "make", "awk", "sed",
	}
	filesOfClient = []string{"--settings", "--mcp-config"}
)

// located returns where a command's program is: beside the file that names it, or
// in PATH.
func (l *loader) located(c program) string {
	if path := beside(c.where, c.word); path != "" {
		return path
	}
	if c.session && c.agent.Env["PATH"] != "" {
		return l.inPath(c.agent.Env["PATH"], c.word)
	}
	search, _ := l.lookup("PATH")
	return l.inPath(search, c.word)
}

func (l *loader) inPath(search, word string) string {
	for path := range inpath.Files(search, word) {
		if l.unfit(path) == "" { // it remembers, as many agents name the same programs
			return path
		}
	}
	return ""
}

// beside returns the absolute path of a word with a slash, relative to the folder
// of the file that contains it; "" for a word without a slash.
func beside(p place, word string) string {
	switch {
	case !strings.Contains(word, "/") || p.from == nil:
		return ""
	case filepath.IsAbs(word):
		return filepath.Clean(word)
	}
	return filepath.Join(p.from.base, word)
}

// program is a command that an agent's sessions or triggers run.
type program struct {
	where   place
	word    string
	rest    []*yaml.Node // its arguments
	session bool         // it starts sessions, which have an environment of their own
	agent   *Agent
}

// runs records that a command will run, so that its program can be checked after
// everything is read. It returns the program's path when it has a slash.
func (l *loader) runs(p place, command []string, session bool) string {
	if len(command) == 0 || session && command[0] == "heartbeat" {
		return ""
	}
	p = p.here()
	where := p.below(0, p.node.Content[0])
	l.claims.programs = append(l.claims.programs, program{where: where, word: command[0], rest: p.node.Content[1:], session: session})
	path := beside(where, command[0])
	if path != "" && !filepath.IsAbs(command[0]) {
		l.relative = l.relative || p.from.base == l.files[0].base
	}
	return path
}
