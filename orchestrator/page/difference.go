package page

import (
	"context"
	"errors"
	"fmt"

	"heartbeat/orchestrator/page/changes"
)

// changed is the page of the differences between an agent's directory and its last commit.
func (p *Page) changed(ctx context.Context, q ask) (Sheet, error) {
	s, v, err := p.head(ctx, q, "changes")
	if err != nil {
		return s, err
	}
	part, err := p.difference(ctx, v.Agent.Agent)
	s.Parts = append(s.Parts, part)
	return s, err
}

// difference is what differs in an agent's directory.
func (p *Page) difference(ctx context.Context, name string) (Part, error) {
	const id, title = "agent-changes", "Changes"
	return p.diffs.get(ctx, name, func() (Part, error) {
		c, err := p.opt.Agents.Changes(ctx, name)
		if errors.Is(err, changes.ErrNone) {
			//lint:ignore ST1005 it is a sentence of the page
			err = errors.New("Nothing can be compared: the agent's directory is in no git repository.")
		}
		if err != nil {
			return p.note(id, title, err)
		}
		d := drawer{page: p}
		return d.part(Part{ID: id}, "agent-changes", differenceOf(c)), d.err
	})
}

// differing is what differs, as it is shown.
type differing struct {
	*changes.Changes
	Shown          []folded
	Many           int // files
	Added, Deleted int // lines
}

// mostUnfolded is the number of lines up to which all files are unfolded.
const mostUnfolded = 300

func differenceOf(c *changes.Changes) differing {
	d := differing{Changes: c, Many: len(c.Files) + c.More}
	lines := 0
	for _, f := range c.Files {
		lines += len(f.Lines)
		d.Added, d.Deleted = d.Added+f.Added, d.Deleted+f.Deleted
		d.Shown = append(d.Shown, folded{f, lines <= mostUnfolded})
	}
	if lines > mostUnfolded && len(c.Files) > 1 {
		for i := range d.Shown {
			d.Shown[i].Open = false
		}
	}
	return d
}

// folded is a file, and whether its lines are shown at once.
type folded struct {
	changes.File
	Open bool
}

// sizeOf says how large a difference is.
func sizeOf(f changes.File) string { return fmt.Sprintf("+%d −%d", f.Added, f.Deleted) }
