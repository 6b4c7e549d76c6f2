package main

import (
	"cmp"
	"strconv"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/foreign"
)

// problemsText prints what is wrong in a fleet's files: for each problem its line,
// which begins with FILE:LINE:COLUMN for programs, and below it the line of the file
// with a caret under the column.
func problemsText(p *page, all config.Problems) {
	for _, problem := range all {
		p.whole("", problem.String())
		if strings.TrimSpace(problem.Source) != "" {
			p.excerpt(problem.Line, problem.Column, problem.Source)
		}
	}
}

// excerpt adds a line of a file, with a caret under a column of it, both counted
// from 1. A long line is cut around the column.
func (p *page) excerpt(line, column int, text string) {
	number := strconv.Itoa(line)
	gutter := "  " + strings.Repeat(" ", len(number)) + " | "
	runes := []rune(foreign.Line(text)) // as many as the file has: a column counts them
	at := min(column-1, len(runes))
	room := max(cmp.Or(p.columns, pageColumns)-len(gutter), leastColumns)
	before, behind := string(runes[:at]), string(runes[at:])
	if keep := room * 2 / 3; width(before) >= keep {
		cut := 0
		for width(before[cut:]) >= keep {
			cut += len(string([]rune(before[cut:])[:1]))
		}
		before = "…" + before[cut:]
	}
	p.coloured(p.dim, "  "+number+" | ")
	p.printf("%s\n", before+shorten(behind, room-width(before)))
	p.coloured(p.dim, gutter)
	p.coloured(p.red, strings.Repeat(" ", width(before))+"^")
	p.printf("\n")
}
