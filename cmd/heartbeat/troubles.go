package main

import (
	"cmp"
	"fmt"
	"strconv"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/status"
)

// mostTroubles is how many causes are printed.
const mostTroubles = 50

// troublesText prints what is wrong and what to do about it, once for each cause. It
// takes no more than room rows of the terminal, but for the first; 0: as many as it
// needs.
func troublesText(p *page, all []status.Trouble, room int) {
	together := status.Together(all)
	start := p.end()
	for i, t := range together {
		before, left := p.end(), len(together)-i
		alikeText(p, t)
		used := p.height(start)
		if i == 0 || i < mostTroubles && (room == 0 || used < room || left == 1 && used == room) {
			continue
		}
		p.undo(before)
		p.printf("and %s: name agents, or -o json\n", count(left, "other trouble"))
		return
	}
}

// alikeText prints one trouble, and who else has it.
func alikeText(p *page, t status.Alike) {
	colour := p.yellow
	if t.What.Alarming() {
		colour = p.red
	}
	p.coloured(colour, "! ")
	who := cmp.Or(t.Agent, "this fleet")
	if n := len(t.Others); n > 0 {
		who += " and " + strconv.Itoa(n) + " more"
	}
	troubleText(p, len("! "), who+": ", t.ForAll())
	if len(t.Others) > 0 {
		p.printf("    also  %s\n", names(t.Others, cmp.Or(p.columns, pageColumns)-len("    also  ")))
	}
}

// names is a list of names that fits into so many columns, or a little of it and how
// many are left.
func names(all []string, columns int) string {
	text := ""
	for i, name := range all {
		more := ""
		if left := len(all) - i - 1; left > 0 {
			more = fmt.Sprintf(" and %d more", left)
		}
		if i > 0 && width(text+", "+name+more) > columns {
			return fmt.Sprintf("%s and %d more", text, len(all)-i)
		}
		if i > 0 {
			text += ", "
		}
		text += name
	}
	return text
}

// troubleText prints who has which trouble and, after it or below if the line would
// be too long, what to do: it is there to be copied. The text follows lead; used is how
// much of the line is printed already.
func troubleText(p *page, used int, lead string, t status.Trouble) {
	if t.Then == "" && used+width(foreign.Line(lead+t.Text+t.Do))+len("; ") <= cmp.Or(p.columns, pageColumns) {
		p.printf("%s%s; %s\n", lead, t.Text, t.Do)
		return
	}
	p.rest(used, "  ", lead+t.Text)
	p.printf("    do    ")
	p.advice(doctorIndent, t.Do)
	if t.Then != "" {
		p.printf("    then  ")
		p.rest(len("    then  "), "          ", t.Then)
	}
}
