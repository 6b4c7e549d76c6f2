package config

import (
	"bytes"
	"errors"

	"gopkg.in/yaml.v3"
)

const (
	conflict     = "a merge conflict is not resolved: git left its marker "
	conflictHint = "choose what is right, and remove the lines that begin with <<<<<<<, ======= and >>>>>>>"
)

// noYAML notes what stands in place of YAML: another encoding, what git left of a merge,
// a page of a proxy. Its parser would complain about an innocent line.
func (l *loader) noYAML(src *source) bool {
	at := func(line, column int, message, hint string) bool {
		l.problem(place{from: src}.of(&yaml.Node{Line: line, Column: column}, ""), message, hint)
		return true
	}
	if bad, ok := errors.AsType[*NotTextError](src.bad); ok {
		return at(bad.Line, bad.Column, bad.Why, bad.Hint)
	}
	if page().Match(src.text) {
		return at(1, 1, "it is an HTML page", "whatever fetched the file was answered with a page, perhaps of a proxy or for a login")
	}
	if line, left := leftOfMerge(src.text); line > 0 {
		return at(line, 1, conflict+left, conflictHint)
	}
	return false
}

// leftOfMerge returns the first line with a marker that git left of a merge, and the marker;
// 0: there is none.
func leftOfMerge(text []byte) (line int, left string) {
	for l := range bytes.Lines(text) {
		line++
		if marker().Match(l) {
			return line, string(l[:7])
		}
	}
	return 0, ""
}

var (
	page = pattern(`(?i)^\s*<(!doctype|html|head|body|\?xml)\b`)
	// marker never begins a line of YAML: what continues a text is indented.
	marker = pattern(`^(<{7}|>{7}|\|{7})( |\r?\n?$)`)
)
