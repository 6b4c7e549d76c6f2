package logs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/transcript"
)

// past is a session that has ended: its conversation is read before the one of the last.
type past struct {
	Session
	began, ended time.Time
	spoke        bool
}

// Since adds to conversations what their agents' sessions before the shown ones have said
// since a time, by the journal in the state directory.
func Since(all []*Conversation, stateDir string, since time.Time) error {
	of := map[string]*Conversation{}
	for _, c := range all {
		of[c.Agent.Name], c.earlier = c, nil
	}
	for e, err := range journal.Read(stateDir) {
		if err != nil {
			return err
		}
		c := of[e.Agent]
		if c == nil || e.Kind != journal.Ended || e.Session == c.shown.ID {
			continue
		}
		if err := c.ended(e, since); err != nil {
			return err
		}
	}
	return nil
}

// ended adds a session, if it ended after a time or its conversation went on after it: a
// session that continues one writes into the file of the first.
func (c *Conversation) ended(e journal.Event, since time.Time) error {
	beside := ""
	if c.shown.Transcript != "" {
		beside = filepath.Join(filepath.Dir(c.shown.Transcript), e.Session+".jsonl")
	}
	if e.At.Before(since) {
		if info, err := os.Lstat(beside); err == nil && !info.ModTime().Before(since) {
			c.earlier = append(c.earlier, &past{Session: Session{e.Session, beside}, spoke: true})
		}
		return nil
	}
	s, err := found(c.Agent, e.Session, beside)
	if err != nil {
		return err
	}
	c.earlier = append(c.earlier, &past{Session: *s, began: e.Started, ended: e.At, spoke: e.Acknowledged > 0})
	return nil
}

// all calls do with what was said in the sessions before, then Each.
func (c *Conversation) all(do func(transcript.Line) bool) error {
	seen := func(l transcript.Line) bool {
		for _, p := range c.earlier {
			p.spoke = p.spoke || !l.At.Before(p.began) && !l.At.After(p.ended)
		}
		return do(l)
	}
	read := map[string]bool{"": true, c.of.Transcript: true}
	var errs []error
	for _, p := range c.earlier {
		if !read[p.Transcript] {
			read[p.Transcript] = true
			errs = append(errs, eachOf(p.Transcript, seen))
		}
	}
	last := c.Each(seen)
	if earlier := errors.Join(errs...); earlier != nil {
		return earlier // this says more than that the last session has said nothing
	}
	return last
}

// eachOf calls do with what stands in a transcript, if it is there.
func eachOf(path string, do func(transcript.Line) bool) error {
	r, err := transcript.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }() // it was only read
	return r.Each(do)
}

// Silent returns the ids of the sessions that have said nothing, or whose transcripts are
// gone, oldest first, once Newest has read them.
func (c *Conversation) Silent() (ids []string) {
	for _, p := range c.earlier {
		if !p.spoke {
			ids = append(ids, p.ID)
		}
	}
	if c.shown.ID != "" && !c.Known(&c.shown) {
		ids = append(ids, c.shown.ID)
	}
	return ids
}
