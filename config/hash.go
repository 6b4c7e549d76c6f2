package config

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

const hashHint = `put the text in quotes, or behind |; a comment has two blanks before its # and one behind it`

// cutAtHash warns about a text that YAML ends at a blank and a #, where that is most likely a
// part of it, as in "prompt: Work on issue #12". Comments look otherwise: "# so" and, behind
// a prompt, with two blanks before.
func (l *loader) cutAtHash(p place) {
	n := p.node
	const marked = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if n.LineComment == "" || n.Style&marked != 0 {
		return
	}
	prompt := strings.HasSuffix(p.path, ".prompt") || strings.HasSuffix(p.path, ".kickoff")
	tag := !strings.HasPrefix(n.LineComment, "# ") && n.LineComment != "#" // as #12
	if tag && (prompt || strings.Contains(n.Value, " ")) || prompt && !p.standsApart(n.LineComment) {
		cutOff := "the #"
		if prompt { // other texts may be secret
			cutOff = fmt.Sprintf("%q", cut(n.LineComment))
		}
		l.warn(p, "ends before "+cutOff+": what follows a blank and # is a comment in YAML", hashHint)
	}
}

// standsApart reports whether the comment behind a text has two blanks before it.
func (p place) standsApart(comment string) bool {
	rest := strings.SplitN(string(p.from.text), "\n", p.node.Line)
	before, _, blank := strings.Cut(rest[len(rest)-1], " "+comment)
	return !blank || strings.HasSuffix(before, " ") || strings.HasSuffix(before, "\t")
}
