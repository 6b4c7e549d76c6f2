package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

type manCmd struct{}

// Help implements kong's HelpProvider.
func (manCmd) Help() string {
	return `Prints the manual page heartbeat(1), with all commands and flags, for man(1).

Examples:

    heartbeat man | man -l -
    mkdir -p ~/.local/share/man/man1
    heartbeat man > ~/.local/share/man/man1/heartbeat.1`
}

// manual is a page in roff (man(7)).
type manual string

func (m manual) text(p *page) { p.document([]byte(m)) }

func (manCmd) run(_ context.Context, a *app) (result, error) {
	parser, err := newParser(&cli{}, a.stdio, func() {})
	if err != nil {
		return nil, err
	}
	all, err := readTopics()
	if err != nil {
		return nil, err
	}
	var r roff
	v := thisVersion()
	day := cmp.Or(v.Time, time.Now().UTC().Format(time.DateOnly))[:len(time.DateOnly)]
	r.b.WriteString(fmt.Sprintf(".TH HEARTBEAT 1 %s %q\n", day, "heartbeat "+v.Version)) // a date has no escapes
	r.macro("SH", "NAME")
	r.text("heartbeat \u2013 run a fleet of Claude Code agents unattended, from one file")
	r.macro("SH", "SYNOPSIS")
	r.macro("B", "heartbeat")
	r.text("COMMAND [FLAGS]")
	r.macro("SH", "DESCRIPTION")
	r.paragraphs(strings.TrimSpace(description))
	r.macro("SH", "FLAGS OF EVERY COMMAND")
	r.flags(parser.Model.Node)
	for _, g := range groups {
		r.group(parser.Model.Node, g)
	}
	r.macro("SH", "TOPICS")
	r.text("heartbeat help TOPIC explains one.")
	for _, t := range all {
		r.macro("TP")
		r.macro("B", t.Name)
		r.text(t.Summary)
	}
	r.macro("SH", "ENVIRONMENT")
	for _, v := range environment {
		r.macro("TP")
		r.macro("B", v[0])
		r.text(v[1])
	}
	r.macro("SH", "FILES")
	for _, v := range [][2]string{
		{"heartbeat.yaml", "the fleet: agents, triggers, policies; heartbeat schema lists its keys"},
		{"AGENT_DIR/.heartbeat/", "an agent's queue, replies, dead letters and logs"},
		{"~/.local/state/heartbeat/FLEET/", "the fleet's state: journal, last fires, what apply has written"},
	} {
		r.macro("TP")
		r.macro("I", v[0])
		r.text(v[1])
	}
	return manual(r.b.String()), nil
}

// environment are the variables that commands read.
var environment = [][2]string{
	{"HEARTBEAT_FILE", "the fleet's file, as with -f"},
	{"HEARTBEAT_STATE_DIR", "where the state of fleets is kept, instead of $XDG_STATE_HOME/heartbeat"},
	{"HEARTBEAT_REMOTE", "with --host: the path of heartbeat on the other machine"},
	{"NO_COLOR", "if it is not empty, nothing is coloured"},
}

// roff is a manual page in the making.
type roff struct{ b strings.Builder }

// macro adds a request with its arguments.
func (r *roff) macro(name string, args ...string) {
	if at := r.b.String(); name == "PP" && strings.HasPrefix(at[strings.LastIndexByte(strings.TrimSuffix(at, "\n"), '\n')+1:], ".SH") {
		return // a section begins a paragraph
	}
	r.b.WriteString("." + name)
	for _, a := range args {
		r.b.WriteString(` "` + strings.ReplaceAll(escaped(a), `"`, `\(dq`) + `"`)
	}
	r.b.WriteByte('\n')
}

// text adds text that is filled.
func (r *roff) text(text string) {
	for line := range strings.Lines(text) {
		r.b.WriteString(guarded(escaped(strings.TrimSpace(line))) + "\n")
	}
}

// escaped is text in which nothing has a meaning for roff (groff_char(7)).
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
}

// guarded is a line that is no request.
func guarded(line string) string {
	if strings.HasPrefix(line, ".") {
		return `\&` + line
	}
	return line
}

// paragraphs adds a command's help: paragraphs, and indented lines as they are.
func (r *roff) paragraphs(text string) {
	literal, begun := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		indented := strings.HasPrefix(line, "  ")
		switch {
		case line == "":
			begun = false
			continue
		case indented && !literal:
			r.macro("PP")
			r.macro("RS", "4")
			r.macro("nf")
		case !indented && literal:
			r.macro("fi")
			r.macro("RE")
			r.macro("PP")
		case !begun && !indented:
			r.macro("PP")
		case !begun && indented:
			r.b.WriteString("\n")
		}
		literal, begun = indented, true
		if indented {
			r.b.WriteString(guarded(escaped(strings.TrimPrefix(strings.TrimPrefix(line, "  "), "  "))) + "\n")
		} else {
			r.text(line)
		}
	}
	if literal {
		r.macro("fi")
		r.macro("RE")
	}
}

// group adds the commands of a group.
func (r *roff) group(root *kong.Node, g kong.Group) {
	first := true
	for _, c := range root.Children {
		if c.Hidden || c.Group == nil || c.Group.Key != g.Key {
			continue
		}
		if first {
			r.macro("SH", "COMMANDS: "+strings.ToUpper(strings.TrimSuffix(g.Title, ":")))
		}
		first = false
		r.macro("SS", strings.TrimSuffix(c.Summary(), " [flags]"))
		r.text(c.Help)
		r.arguments(c)
		r.flags(c)
		if c.Detail != "" {
			r.paragraphs(c.Detail)
		}
	}
}

func (r *roff) arguments(c *kong.Node) {
	for _, p := range c.Positional {
		if p.Help != "" {
			r.macro("TP")
			r.macro("I", p.Summary())
			r.text(p.Help)
		}
	}
}

// flags adds the flags of a command alone.
func (r *roff) flags(n *kong.Node) {
	for _, f := range n.Flags {
		if f.Hidden {
			continue
		}
		name := "--" + f.Name
		if f.Short != 0 {
			name = fmt.Sprintf("-%c, %s", f.Short, name)
		}
		if !f.IsBool() {
			name += "=" + f.FormatPlaceHolder()
		}
		r.macro("TP")
		r.macro("B", name)
		r.text(f.Help)
	}
}
