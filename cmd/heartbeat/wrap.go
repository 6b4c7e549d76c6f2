package main

import (
	"cmp"
	"regexp"
	"strings"
	"sync"

	"heartbeat/hook/foreign"
)

// wrap breaks text at blanks into lines of at most n columns; a longer word gets a
// line of its own. A command line of ours that a line has room for is not broken: it is
// there to be copied.
func wrap(text string, n int) []string { return wrapFrom(text, n, n) }

// wrapFrom is wrap for a text whose first line has a room of its own. That line is empty if
// the first word does not fit into it and the other lines have more room.
func wrapFrom(text string, first, n int) []string {
	var lines []string
	line, room := "", first
	for word := range strings.FieldsSeq(glued(text, n)) {
		word = strings.ReplaceAll(word, glue, " ")
		switch {
		case line == "" && (width(word) <= room || room >= n):
			line = word
		case line == "" || width(line)+1+width(word) > room:
			lines, line, room = append(lines, line), word, n
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// ofOurs finds command lines of ours, up to what ends them in a sentence.
var ofOurs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\bheartbeat(?: --?[a-z]+ \S+)* (?:` + fleetCommands + `|` + otherCommands + `)\b(?: [^\s;,:()\x60]*[^\s;,:().\x60])*`)
})

// glue stands for a blank at which a line is not broken. No text has one.
const glue = "\x00"

// glued is a text whose command lines are one word each, as far as they fit into n columns.
func glued(text string, n int) string {
	return ofOurs().ReplaceAllStringFunc(text, func(line string) string {
		if width(line) > n {
			return line
		}
		return strings.ReplaceAll(line, " ", glue)
	})
}

// prose is how wide lines of text are: the page, or a narrower terminal.
func (p *page) prose() int { return min(cmp.Or(p.columns, pageColumns), pageColumns) }

// lines prints prose, wrapped, each line with an indent.
func (p *page) lines(indent, text string) {
	for _, line := range wrap(text, p.prose()-len(indent)) {
		p.printf("%s%s\n", indent, line)
	}
}

// linesf is printf for prose: it is wrapped.
func (p *page) linesf(format string, args ...any) {
	p.lines("", p.format(format, args...))
}

// saidf is printf for one line of prose: on a terminal it is wrapped.
func (p *page) saidf(format string, args ...any) {
	p.rest(0, foreignIndent, p.format(format, args...))
}

// rest goes on in a line of which so many columns are used with a text that is wrapped on
// a terminal, its further lines behind an indent; elsewhere a line stays one.
func (p *page) rest(used int, indent, text string) {
	text = foreign.Line(text)
	if p.columns == 0 {
		p.printf("%s\n", text)
		return
	}
	words := strings.TrimLeft(text, " ")
	lead := text[:len(text)-len(words)]
	for i, line := range wrapFrom(words, p.left(used)-len(lead), p.columns-len(indent)) {
		switch {
		case i > 0:
			p.printf("\n%s", indent)
		case line != "":
			p.printf("%s", lead)
		}
		p.printf("%s", line)
	}
	p.printf("\n")
}

// left is how many columns of a terminal's line are left when so many are used.
func (p *page) left(used int) int {
	if used > 0 && used%p.columns == 0 {
		return 0
	}
	return p.columns - used%p.columns
}

// word goes on in a line of which so many columns are used with a text in a colour that is
// not broken: on a terminal it begins the next line, behind an indent, if this one has no
// room for it. It returns how many columns are used then.
func (p *page) word(used int, indent, colour, text string) int {
	if p.columns > 0 && used > len(indent) && width(text) > p.left(used) {
		p.printf("\n%s", indent)
		used = len(indent)
	}
	p.coloured(colour, text)
	return used + width(text)
}

// told is whole for what is mostly prose: on a terminal, lines that do not fit are wrapped.
func (p *page) told(indent, text string) {
	for line := range foreign.Lines(text) {
		if p.columns == 0 || len(indent)+width(line) <= p.columns {
			p.whole(indent, line+"\n")
			continue
		}
		p.printf("%s", indent)
		p.rest(len(indent), indent, line)
	}
}

// advice goes on in a line of which so many columns are used with what to do. On a
// terminal it is wrapped, unless it is one command line of ours, which is there to be
// copied.
func (p *page) advice(used int, text string) {
	if isCommand(cmp.Or(p.ours, "heartbeat"), text) {
		p.printf("%s\n", text)
		return
	}
	p.rest(used, strings.Repeat(" ", used), text)
}

// isCommand reports whether a text is a command line of ours, and nothing else.
func isCommand(ours, text string) bool {
	return (strings.HasPrefix(text, ours+" ") || strings.HasPrefix(text, "heartbeat ")) && !strings.ContainsAny(text, ",;:")
}
