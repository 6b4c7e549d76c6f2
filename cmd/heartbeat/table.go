package main

import (
	"slices"
	"strings"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/usage"
)

// cell is one field of a table, with the colour of its text.
type cell struct{ text, colour string }

// table adds rows whose columns stand under each other. Fields are one line
// each; the last one is not padded. On a terminal that is too narrow, free text is cut
// first, then columns go that say nothing of their own, then the text of the last column
// goes below its row; no name, id, number or time is ever cut. Where even that is not
// enough, each row is a few lines of its own. A table without rows is not printed.
func (p *page) table(header []string, rows [][]cell) {
	if len(rows) == 0 {
		return
	}
	for _, row := range rows {
		for i := range row {
			row[i].text = foreign.Line(row[i].text)
		}
	}
	if shown, of, widths, fits := fit(header, rows, p.columns); fits {
		p.grid(shown, of, widths, nil)
		return
	}
	last := len(header) - 1
	if slices.Contains(below, header[last]) {
		first, texts := make([][]cell, len(rows)), make([]cell, len(rows))
		for i, row := range rows {
			first[i], texts[i] = row[:last:last], row[last]
		}
		if shown, of, widths, fits := fit(header[:last:last], first, p.columns); fits {
			p.grid(shown, of, widths, texts)
			return
		}
	}
	p.records(header, rows, "")
}

// grid adds rows under their header, each with its text, if there are texts, below it.
func (p *page) grid(header []string, rows [][]cell, widths []int, texts []cell) {
	p.headed(header, widths)
	for i, row := range rows {
		p.row(widths, row)
		if texts != nil && says(texts[i].text) {
			const indent = "    "
			p.buf.WriteString(indent)
			p.coloured(texts[i].colour, shorten(texts[i].text, p.columns-len(indent)))
			p.buf.WriteByte('\n')
		}
	}
}

// pageColumns is how wide a listing is where there is no terminal, leastColumns
// its last column.
const pageColumns, leastColumns = 80, 20

// listing is a table whose last column is cut where the page ends, also where that is
// no terminal.
func (p *page) listing(header []string, rows [][]cell) {
	if p.columns == 0 {
		left := pageColumns
		for _, w := range widthsOf(header, rows)[:len(header)-1] {
			left -= w + gap
		}
		for _, row := range rows {
			last := &row[len(row)-1]
			last.text = shorten(foreign.Line(last.text), max(left, leastColumns))
		}
	}
	p.table(header, rows)
}

const (
	gap = 2 // between two columns
	// least is how narrow a column of free text can be made, leastText one of text that
	// stands whole elsewhere.
	least, leastText = 12, 6
)

// elsewhereWhole are the columns of text that stands whole elsewhere, texts the others of
// free text. What is not in them is read or typed next, and never cut: names, ids, reasons,
// numbers, times. twice are the columns that say what another one says, too.
var (
	elsewhereWhole = []string{"PROMPT", "QUESTION"}
	texts          = []string{"WHY", "WHAT", "WHEN", "OF", "FOR", "SOURCE", "IN FLIGHT", "LAST SESSION", "DIRECTORY", "PATH"}
	twice          = []string{"UTC", barHeader}
)

// below are the columns whose text can stand below its row, if they are the last.
var below = []string{"WHY", "WHAT", "WHEN", "PROMPT", "QUESTION"}

// barHeader is the header of a column that draws what another one says.
const barHeader = "BAR"

// widthsOf are the widths that columns want.
func widthsOf(header []string, rows [][]cell) []int {
	widths := make([]int, len(header))
	for i, h := range header {
		widths[i] = width(h)
	}
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], width(foreign.Line(c.text)))
		}
	}
	return widths
}

// fit returns a table as it fits into so many columns; 0: there is no end. It cuts free
// text; if that is not enough, the columns go that say what others say, then those that say
// nothing in any row. It reports whether the table fits.
func fit(header []string, rows [][]cell, columns int) (shown []string, of [][]cell, widths []int, fits bool) {
	widths = widthsOf(header, rows)
	if columns == 0 || cut(header, widths, columns) {
		return header, rows, widths, true
	}
	for _, idle := range []func(i int) bool{
		func(i int) bool { return slices.Contains(twice, header[i]) },
		func(i int) bool {
			return !slices.ContainsFunc(rows, func(row []cell) bool { return says(row[i].text) })
		},
	} {
		header, rows = without(header, rows, idle)
		widths = widthsOf(header, rows)
		if len(header) > 0 && cut(header, widths, columns) {
			return header, rows, widths, true
		}
	}
	return header, rows, widths, false
}

// says reports whether a cell is neither empty nor zero.
func says(text string) bool {
	return !slices.Contains([]string{"", "-", "0", usage.Sum{}.Price()}, text)
}

// without returns a table without the columns that are idle.
func without(header []string, rows [][]cell, idle func(i int) bool) (kept []string, of [][]cell) {
	of = make([][]cell, len(rows))
	for i, h := range header {
		if idle(i) {
			continue
		}
		kept = append(kept, h)
		for n, row := range rows {
			of[n] = append(of[n], row[i])
		}
	}
	return kept, of
}

// cut makes columns of free text narrower until all columns fit: first those whose text
// stands whole elsewhere, then the widest ones, one by one. It reports whether they do.
func cut(header []string, widths []int, columns int) bool {
	over := gap*(len(widths)-1) - columns
	for _, w := range widths {
		over += w
	}
	for i, h := range header {
		if cut := min(over, widths[i]-leastText); cut > 0 && slices.Contains(elsewhereWhole, h) {
			widths[i] -= cut
			over -= cut
		}
	}
	for ; over > 0; over-- {
		widest := -1
		for i, w := range widths {
			if w > least && slices.Contains(texts, header[i]) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return false
		}
		widths[widest]--
	}
	return true
}

// records adds each row as lines of NAME VALUE, for narrow terminals. Free text is cut;
// everything else, and the column told, stands whole: beside its name, or below it.
func (p *page) records(header []string, rows [][]cell, told string) {
	label := 0
	for _, h := range header {
		label = max(label, width(h)+gap)
	}
	label = min(label, p.columns/2)
	for i, row := range rows {
		if i > 0 {
			p.buf.WriteByte('\n')
		}
		for j, c := range row {
			if c.text == "" || header[j] == barHeader {
				continue
			}
			p.coloured(p.dim, shorten(header[j], label-1))
			free := header[j] != told && (slices.Contains(elsewhereWhole, header[j]) || slices.Contains(texts, header[j]))
			p.value(c, label, min(width(header[j]), label-1), free)
		}
	}
}

// value adds what stands beside a label, from a column on; the label has some of them.
func (p *page) value(c cell, from, label int, free bool) {
	left := p.columns - from
	lines := []string{c.text}
	switch {
	case free:
		lines[0] = shorten(c.text, left)
	case width(c.text) <= left:
	case strings.Contains(c.text, " "):
		lines = broken(wrap(c.text, left), left)
	default: // below the label, in one piece if a line has room for it
		p.buf.WriteByte('\n')
		lines, from, label = broken(lines, p.columns), 0, 0
	}
	for _, line := range lines {
		p.buf.WriteString(strings.Repeat(" ", from-label))
		p.coloured(c.colour, line)
		p.buf.WriteByte('\n')
		label = 0
	}
}

// broken returns lines of which none is wider than n columns.
func broken(lines []string, n int) (all []string) {
	for _, line := range lines {
		at, w := 0, 0
		for i, r := range line {
			if w += runeWidth(r); w > n && i > at {
				all, at, w = append(all, line[at:i]), i, runeWidth(r)
			}
		}
		all = append(all, line[at:])
	}
	return all
}

func (p *page) row(widths []int, row []cell) {
	last := len(row) - 1
	for last >= 0 && row[last].text == "" {
		last--
	}
	for i, c := range row[:last+1] {
		c.text = shorten(c.text, widths[i])
		pad := strings.Repeat(" ", widths[i]-width(c.text)+gap)
		if i == last {
			pad = "\n"
		}
		if c.colour != "" {
			c.text = c.colour + c.text + p.reset
		}
		p.buf.WriteString(c.text + pad)
	}
	if last < 0 {
		p.buf.WriteByte('\n')
	}
}

// plain is a row without colours.
func plain(fields ...string) []cell {
	row := make([]cell, len(fields))
	for i, f := range fields {
		row[i].text = f
	}
	return row
}
