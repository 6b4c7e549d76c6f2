package config

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// table is a mapping: key → value.
type table map[string]place

// follow returns the node that an alias stands for.
func follow(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}

// empty reports whether a value is left out or null.
func empty(n *yaml.Node) bool {
	n = follow(n)
	return n.Kind == 0 || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// kind names a node's kind, for messages.
func kind(n *yaml.Node) string {
	switch {
	case empty(n):
		return "nothing"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	}
	return fmt.Sprintf("%q", cut(n.Value))
}

// cut shortens a text for a message.
func cut(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// entries yields the keys and values of a mapping in order, then those merged by
// "<<". A key that is given twice is a problem.
func (l *loader) entries(p place) iter.Seq2[string, place] {
	return func(yield func(string, place) bool) {
		seen := map[string]int{}
		l.walk(p, seen, map[*yaml.Node]bool{}, yield)
	}
}

func (l *loader) walk(p place, seen map[string]int, visited map[*yaml.Node]bool, yield func(string, place) bool) bool {
	n := follow(p.node)
	if empty(n) || visited[n] {
		return true
	}
	if n.Kind != yaml.MappingNode {
		l.problem(p.here(), "must be a mapping, not "+kind(n), "write one KEY: VALUE a line below it")
		return true
	}
	own := len(visited) == 0
	visited[n] = true
	var merged []place
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			merged = append(merged, p.of(value, p.path))
			continue
		}
		if key.Kind != yaml.ScalarNode {
			l.problem(p.of(key, p.path), "a key must be a word, not "+kind(follow(key)), "")
			continue
		}
		if line, twice := seen[key.Value]; twice {
			if own {
				l.problem(p.of(key, p.join(key.Value)), fmt.Sprintf("is given twice, first on line %d", line), "remove one of them")
			}
			continue
		}
		seen[key.Value] = key.Line
		entry := place{node: value, path: p.join(key.Value), key: key, from: p.from}
		if empty(value) {
			// An empty value has no place in the file; its key has.
			entry.node = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: key.Line, Column: key.Column}
		}
		if !yield(key.Value, entry) {
			return false
		}
	}
	for _, m := range merged {
		if !l.walkMerged(m, seen, visited, yield) {
			return false
		}
	}
	return p.under == nil || l.walk(*p.under, seen, visited, yield)
}

// walkMerged walks the value of "<<": a mapping or a list of them.
func (l *loader) walkMerged(p place, seen map[string]int, visited map[*yaml.Node]bool, yield func(string, place) bool) bool {
	n := follow(p.node)
	if n.Kind != yaml.SequenceNode {
		return l.walk(p, seen, visited, yield)
	}
	for _, element := range n.Content {
		if !l.walk(p.of(element, p.path), seen, visited, yield) {
			return false
		}
	}
	return true
}

// elsewhere says where an unknown key belongs, or "".
type elsewhere func(key string) string

// table reads a mapping whose keys are known. It returns false when there is
// no mapping to read.
func (l *loader) table(p place, known []string, other elsewhere) (table, bool) {
	n := follow(p.node)
	if !empty(n) && n.Kind != yaml.MappingNode {
		l.problem(p.here(), "must be a mapping, not "+kind(n), "known keys: "+strings.Join(known, ", "))
		return nil, false
	}
	t := table{}
	for key, value := range l.entries(p) {
		if slices.Contains(known, key) {
			t[key] = value
			continue
		}
		if p.path == "" && strings.HasPrefix(key, "x-") {
			continue // the person's own, for anchors
		}
		l.unknown(key, value, known, other)
	}
	return t, true
}

// meant maps other programs' names for keys to ours, in lower case and without
// separators.
var meant = map[string]string{
	"directory": "dir", "folder": "dir", "path": "dir", "workdir": "dir", "workingdirectory": "dir", "cwd": "dir", "workspace": "dir",
	"cmd": "command", "run": "command", "exec": "command", "entrypoint": "command",
	"schedule": "cron", "tz": "timezone", "zone": "timezone", "environment": "env", "envfiles": "env-file",
	"text": "prompt", "message": "prompt", "task": "prompt", "interval": "every", "files": "watch", "glob": "watch",
	"concurrency": "max-sessions", "parallel": "max-sessions", "retries": "max-attempts", "includes": "include",
}

// unknown reports an unknown key, at the key.
func (l *loader) unknown(key string, p place, known []string, other elsewhere) {
	if len(l.problems) >= mostProblems {
		l.left++
		return // nobody reads on
	}
	hint, ours := "", meant[simplify(key)]
	if other != nil {
		hint = other(key)
	}
	if hint == "" && other != nil && ours != "" && !slices.Contains(known, ours) {
		if where := other(ours); where != "" {
			hint = "did you mean " + ours + "? " + where
		}
	}
	if near := Nearest(key, known); !slices.Contains(known, ours) && near != nil {
		ours = near[0]
	}
	switch {
	case hint != "":
	case slices.Contains(known, ours):
		hint = "did you mean " + ours + "?"
		l.misnamed[strings.TrimSuffix(p.path, key)+ours] = true
	default:
		hint = "known keys: " + strings.Join(known, ", ")
	}
	l.problem(p.named(), "unknown key", hint)
}

// absence reports a key that has to be there, unless it is by another name.
func (l *loader) absence(p place, hint string) {
	if !l.misnamed[p.path] {
		l.problem(p, "is missing", hint)
	}
}

// over returns t with the keys of base that t lacks.
func (t table) over(base table) table {
	if len(base) == 0 {
		return t
	}
	all := make(table, len(t)+len(base))
	maps.Copy(all, base)
	maps.Copy(all, t)
	return all
}
