package workspace

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// Diff shows what applying would change, as a unified diff of all files; "" means
// nothing. A file that does not exist is called /dev/null, as patch(1) expects.
func (p *Plan) Diff() string {
	var b strings.Builder
	for _, i := range p.Items {
		if i.file == "" || i.Change == Unchanged {
			continue
		}
		before, after := i.file, i.file
		if i.before == nil {
			before = "/dev/null"
		}
		if i.after == nil {
			after = "/dev/null"
		}
		b.WriteString(udiff.Unified(before, after, string(i.before), string(i.after)))
	}
	return b.String()
}
