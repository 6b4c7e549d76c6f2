// Package changes is what differs in a directory from the last commit of its git
// repository, for a person who decides about an agent's work.
//
// The repository is the agent's: nothing in it may run a program, make git wait, or pass
// for something else. So git never sees the repository's configuration, where programs
// are named (core.fsmonitor, filters, textconv, external diff, hooks, pager, remotes of
// missing objects), nor that of its submodules: it runs on a folder of our own, with the
// commit and a copy of the index, and reads the repository's objects only. It writes
// nothing into the repository or the directory. Names are listed without reading a
// file; of those that are files, and not large, the difference is shown. All is bounded:
// time, bytes, files, lines, how many look at once.
//
// Not promised: that it is what the person's own git shows. Filters (LFS, line ends) are
// not applied, and what an agent has committed is no difference.
package changes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/foreign"
)

const (
	within    = 10 * time.Second
	mostFile  = 512 << 10 // larger files are named only
	mostNames = 256 << 10 // of the lists of names
	mostPatch = 512 << 10
	mostFiles = 200
	mostOwn   = 50 // of heartbeat's and the client's
	mostLines = 5000
	// mostWide is how much of a line is shown.
	mostWide = 2000
	// atOnce bounds how many look at the same time.
	atOnce = 2
)

// Changes are what differs in a directory.
type Changes struct {
	// Branch is what is checked out, or "". Commit is what it is compared with; zero:
	// there is none yet.
	Branch foreign.Text
	Commit Commit
	// Files are the work, Own what heartbeat and the client keep here.
	Files, Own []File
	// More and OwnMore are how many further files differ, Cut why something is missing,
	// or "".
	More, OwnMore int
	Cut           string
}

// Whose says whose a file is, by its path in the directory.
type Whose func(name string) Share

// Share is how much of a file is of interest to who looks at the work.
type Share int

// The shares.
const (
	Work  Share = iota
	Named       // heartbeat's or the client's: that it differs is shown, not how
	Wired       // the agent's, into which heartbeat writes, too
)

// Commit is a commit, as its author tells it.
type Commit struct {
	Hash    foreign.Text
	At      time.Time
	Subject foreign.Text
}

// What became of a file.
const (
	Added   = "added"
	Changed = "changed"
	Deleted = "deleted"
	New     = "new, in no commit"
	Merging = "not merged"
)

// File is one that differs.
type File struct {
	Name   foreign.Text
	Status string
	// Note says why there are no lines, or "".
	Note           string
	Lines          []Line
	Added, Deleted int
}

// Line is one of a difference.
type Line struct {
	// Kind is '+', '-', ' ', or '@' for the place where others follow.
	Kind byte
	Text foreign.Text
}

// KindWord is the kind as a word of ours.
func (l Line) KindWord() string {
	switch l.Kind {
	case '+':
		return "added"
	case '-':
		return "deleted"
	case '@':
		return "place"
	}
	return "same"
}

// Sign is what stands before the line.
func (l Line) Sign() string {
	if l.Kind == '@' {
		return ""
	}
	return string(rune(l.Kind))
}

// places are taken by who looks.
var places = make(chan struct{}, atOnce)

// Of returns what differs in a directory. For a few seconds it keeps a folder below
// scratch, where no agent is.
func Of(ctx context.Context, scratch, dir string, whose Whose) (*Changes, error) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return nil, fmt.Errorf("cannot compare: %w", ctx.Err())
	}
	c, err := of(ctx, scratch, dir, whose)
	if err != nil {
		return nil, fmt.Errorf("cannot compare the directory with its last commit: %w", err)
	}
	return c, nil
}

func of(ctx context.Context, scratch, dir string, whose Whose) (c *Changes, err error) {
	path, err := program()
	if err != nil {
		return nil, err
	}
	r, err := find(dir)
	if err != nil {
		return nil, err
	}
	folder, err := r.scratch(scratch)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	below, err := filepath.Rel(r.top, filepath.Clean(dir))
	if err != nil {
		return nil, err
	}
	g := git{path, folder, r.top, time.Now().Add(within)}
	c = &Changes{}
	if name, ok := strings.CutPrefix(r.ref, "refs/heads/"); ok {
		c.Branch = foreign.Text(name)
	}
	if r.commit != "" {
		if c.Commit, err = g.last(ctx, r.commit); err != nil {
			return nil, err
		}
	}
	return c, g.fill(ctx, c, r.base(), below, whose)
}

// fill finds out what differs.
func (g git) fill(ctx context.Context, c *Changes, base, below string, whose Whose) error {
	all, cut, err := g.differ(ctx, base, below)
	if err != nil {
		return err
	}
	fresh, more, err := g.fresh(ctx, below)
	if err != nil {
		return err
	}
	c.because(cut, more)
	work, own := apart(append(all, fresh...), below, whose)
	work, c.More = first(work, mostFiles)
	own, c.OwnMore = first(own, mostOwn)
	root, err := durable.OpenBelow(g.top, g.top)
	if err != nil {
		return err
	}
	defer root.Close()
	var shown, unknown []string
	for _, l := range slices.Concat(work, own) {
		f := File{Name: foreign.Text(l.name), Status: l.word(), Note: "not shown"}
		if l.share != Named {
			f.Note = l.note(root)
		}
		if f.Note == "" {
			if shown = append(shown, l.name); l.status == 'N' {
				unknown = append(unknown, l.name)
			}
		}
		if l.share == Work {
			c.Files = append(c.Files, f)
		} else {
			c.Own = append(c.Own, f)
		}
	}
	if len(shown) == 0 {
		return nil
	}
	return g.show(ctx, c, base, shown, unknown)
}

// apart tells the work from what heartbeat and the client keep below a folder.
func apart(all []listed, below string, whose Whose) (work, own []listed) {
	for _, l := range all {
		if name, err := filepath.Rel(below, l.name); err == nil {
			l.share = whose(filepath.ToSlash(name))
		}
		if l.share == Work {
			work = append(work, l)
		} else {
			own = append(own, l)
		}
	}
	return work, own
}

// first returns the first of some, and how many more there are.
func first(all []listed, most int) ([]listed, int) {
	n := min(len(all), most)
	return all[:n], len(all) - n
}

// show reads the differences of some files.
func (g git) show(ctx context.Context, c *Changes, base string, names, unknown []string) error {
	if len(unknown) > 0 {
		if err := g.note(ctx, unknown); err != nil {
			return err
		}
	}
	patch, cut, err := g.patch(ctx, base, names)
	if err != nil {
		return err
	}
	c.because(cut)
	found := parse(patch)
	if found.cut {
		c.because(fmt.Errorf("there are over %d lines", mostLines))
	}
	c.Files, c.Own = found.filled(c.Files, c.Cut), found.filled(c.Own, c.Cut)
	return nil
}

// filled are files with what a patch says of them.
func (p parsed) filled(all []File, cut string) []File {
	all = slices.DeleteFunc(all, func(f File) bool {
		// Only its times differ.
		return f.Note == "" && p.files[f.Name.Raw()] == nil && f.Status == Changed && cut == ""
	})
	for i, f := range all {
		switch got := p.files[f.Name.Raw()]; {
		case f.Note != "":
		case got != nil:
			got.Name, got.Status = f.Name, f.Status
			all[i] = *got
		default:
			all[i].Note = "not read: " + cut
		}
	}
	return all
}

// because notes why something is missing.
func (c *Changes) because(why ...error) {
	for _, err := range why {
		if err != nil && c.Cut == "" {
			c.Cut = err.Error()
		}
	}
}

func (l listed) word() string {
	switch l.status {
	case 'A':
		return Added
	case 'D':
		return Deleted
	case 'N':
		return New
	case 'U':
		return Merging
	}
	return Changed
}

// note says why a file's difference is not read, or "".
func (l listed) note(root *durable.Folder) string {
	if l.module {
		return "a submodule, which stands at another commit"
	}
	if l.status == 'U' {
		return "its versions are not merged"
	}
	name := filepath.Clean(l.name)
	if !filepath.IsLocal(name) {
		return "it is outside"
	}
	if name != l.name {
		return "a repository of its own"
	}
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return "it cannot be looked at"
	case info.Mode().IsRegular() && info.Size() > mostFile:
		return fmt.Sprintf("too large to show: %d bytes", info.Size())
	case info.Mode().IsRegular(), info.Mode()&fs.ModeSymlink != 0:
		return ""
	case info.IsDir():
		return "a folder stands in its place"
	}
	return "it is not a file: " + info.Mode().Type().String()
}
