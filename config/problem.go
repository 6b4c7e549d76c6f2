package config

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Problem is one thing that is wrong in the file.
type Problem struct {
	File         string
	Line, Column int // from 1
	// Key is the path of the key, e.g. "agents.triage.trigger.cron", or "" where
	// the file is not valid YAML.
	Key string
	// Message says what was found; Hint what to write instead, or "".
	Message, Hint string
	// Source is the line of the file, without its end. It is "" for a warning, and
	// where env:, webhook: or url: begins in the line or above it: their values may be
	// secret.
	Source string
}

// String returns FILE:LINE:COLUMN: KEY: MESSAGE (HINT).
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column) + ": ")
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Problems are all problems of a file, in its order.
type Problems []Problem

// Error lists the problems, one per line: FILE:LINE:COLUMN: KEY: MESSAGE (HINT).
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// place is a value in the file, with the path of its key.
type place struct {
	node *yaml.Node
	path string
	key  *yaml.Node // or nil
	from *source
	// under is a mapping whose keys count where this one lacks them, or nil.
	under *place
}

// of returns the place of a node of the same file.
func (p place) of(node *yaml.Node, path string) place {
	return place{node: node, path: path, from: p.from}
}

// named returns the place of p's key.
func (p place) named() place { return p.of(p.key, p.path) }

// lacking returns the place of a key that p lacks.
func (p place) lacking(key string) place { return p.of(follow(p.node), p.join(key)) }

// here returns p with an alias replaced by what it stands for.
func (p place) here() place {
	p.node = follow(p.node)
	return p
}

// within returns the place at offset bytes into p's text, as far as it can be
// known: the line in a text of several lines (|), the column in a text on one line.
func (p place) within(offset int) place {
	n := *follow(p.node)
	switch {
	case n.Style == yaml.LiteralStyle:
		n.Line += 1 + strings.Count(n.Value[:min(offset, len(n.Value))], "\n")
		n.Column = 1
	case offset == 0 || n.Anchor != "" || strings.Contains(n.Value, "\n"):
		return p
	case n.Style == yaml.SingleQuotedStyle || n.Style == yaml.DoubleQuotedStyle:
		n.Column += 1 + offset
	case n.Style == 0:
		n.Column += offset
	}
	p.node = &n
	return p
}

// where describes p's place to somebody who looks at other.
func (p place) where(other place) string {
	if p.from == other.from {
		return "line " + strconv.Itoa(p.node.Line)
	}
	return p.from.name + ":" + strconv.Itoa(p.node.Line)
}

// below returns the place of an element of p.
func (p place) below(i int, node *yaml.Node) place {
	return p.of(node, p.path+"["+strconv.Itoa(i)+"]")
}

// join returns the path of a key in p.
func (p place) join(key string) string {
	if p.path == "" {
		return key
	}
	return p.path + "." + key
}

// laidOver returns a mapping with p's keys, and those of base that p lacks.
func (p place) laidOver(base place) place {
	if base.node == nil || follow(base.node).Kind != yaml.MappingNode || follow(p.node).Kind != yaml.MappingNode {
		return p
	}
	p.under = &base
	return p
}

// problem records what is wrong at p. The same message at the same place is
// recorded once: a default is read again for every agent.
func (l *loader) problem(p place, message, hint string) {
	l.note(&l.problems, p, message, hint)
}

// mostProblems bounds how many problems are recorded: a file with more is probably
// not a heartbeat.yaml.
const mostProblems = 1000

func (l *loader) note(list *Problems, p place, message, hint string) {
	if len(*list) >= mostProblems {
		l.left++
		return
	}
	found := Problem{
		File: p.from.name, Line: max(p.node.Line, 1), Column: max(p.node.Column, 1),
		Key: p.path, Message: message, Hint: hint,
	}
	same := found
	same.Key = ""
	if !l.noted[same] {
		l.noted[same] = true
		*list = append(*list, found)
	}
}

// quoted adds the lines of the files to problems.
func (l *loader) quoted(list Problems) Problems {
	lines := map[string][][]byte{}
	for _, src := range l.files {
		lines[src.name] = nil
	}
	for i := range list {
		p := &list[i]
		of, known := lines[p.File]
		if known && of == nil {
			of = bytes.Split(l.read(p.File), []byte("\n"))
			lines[p.File] = of
		}
		if p.Line <= len(of) && !underSecret(of[:p.Line]) {
			p.Source = strings.ReplaceAll(strings.ToValidUTF8(string(bytes.TrimRight(of[p.Line-1], "\r")), "\ufffd"), "\x00", "\ufffd")
		}
	}
	return list
}

// read returns what a file of the fleet says.
func (l *loader) read(name string) []byte {
	return l.files[slices.IndexFunc(l.files, func(src *source) bool { return src.name == name })].text
}

var secretKey = pattern(`\b(?:env|webhook|url|token)["']? *:`)

// underSecret reports whether the last line is in the value of a key whose value may
// be secret, or has such a key.
func underSecret(lines [][]byte) bool {
	least := -1 // the indentation of the innermost key above that was looked at
	for _, line := range slices.Backward(lines) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		n := indent(line)
		if least < 0 || n < least {
			if secretKey().Match(line) {
				return true
			}
			least = n
		}
		if least == 0 {
			break
		}
	}
	return false
}

// sorted returns problems in the order of the files.
func (l *loader) sorted(list Problems) Problems {
	order := make(map[string]int, len(l.files))
	for i, src := range l.files {
		order[src.name] = i
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(order[a.File]-order[b.File], a.Line-b.Line, a.Column-b.Column)
	})
	return list
}
