package inbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heartbeat/hook/durable"
)

// disk is what a power cut leaves of a folder: what was synced, and any first
// part of the changes of names since (a journal keeps their order), each with
// its content or without.
type disk struct {
	dir   string            // the folder as the kernel sees it
	kept  map[string]string // :: name → content that is certainly on disk
	names []change          // changes of names that no folder sync has followed
	temp  map[string]string // :: name → content of the file that will replace it
	whole map[string]bool   // :: name → temp is synced
	dirty map[string]bool   // :: name of an extended file → not synced
}

// change is a name that got a file, or lost it.
type change struct {
	name, content string
	synced, gone  bool
}

func extended(name string) bool {
	return slices.Contains([]string{"inbox.jsonl", outboxFile, deadFile, idsFile}, name)
}

// observe follows the steps of a folder.
func (d *disk) observe(s durable.Step) {
	switch {
	case s.Verb == durable.SyncFolder:
		d.apply(d.kept, len(d.names), false)
		d.names = nil
	case s.Verb == durable.Remove:
		d.names = append(d.names, change{name: s.Name, gone: true})
	case s.Verb == durable.Create && s.Name == respondedFile:
		d.names = append(d.names, change{name: s.Name, synced: true})
	case extended(s.Name):
		d.extend(s)
	case s.Verb == durable.Create:
		d.temp[s.Name], d.whole[s.Name] = "", false
	case s.Verb == durable.Write:
		d.temp[s.Name] += string(s.Data)
	case s.Verb == durable.Sync:
		d.whole[s.Name] = true
	case s.Verb == durable.Rename:
		d.names = append(d.names, change{name: s.Name, content: d.temp[s.Name], synced: d.whole[s.Name]})
	}
}

func (d *disk) extend(s durable.Step) {
	switch s.Verb {
	case durable.Create:
		d.names = append(d.names, change{name: s.Name, synced: true})
	case durable.Write:
		d.dirty[s.Name] = true
	case durable.Sync:
		delete(d.dirty, s.Name)
		data, _ := os.ReadFile(filepath.Join(d.dir, s.Name))
		if _, ok := d.kept[s.Name]; ok {
			d.kept[s.Name] = string(data)
		}
		for i := range d.names {
			if d.names[i].name == s.Name {
				d.names[i].content = string(data)
			}
		}
	}
}

// apply brings the first n changes to a folder; with hollow, content that was
// not synced is missing.
func (d *disk) apply(to map[string]string, n int, hollow bool) {
	for _, c := range d.names[:n] {
		switch {
		case c.gone:
			delete(to, c.name)
		case hollow && !c.synced:
			to[c.name] = ""
		default:
			to[c.name] = c.content
		}
	}
}

// cuts returns the folders that a power cut may leave now.
func (d *disk) cuts() []map[string]string {
	var all []map[string]string
	for n := range len(d.names) + 1 {
		for _, hollow := range []bool{false, true} {
			left := maps.Clone(d.kept)
			d.apply(left, n, hollow)
			all = append(all, left)
			for name := range d.dirty { // or its last bytes came through, or some
				data, _ := os.ReadFile(filepath.Join(d.dir, name))
				for _, size := range []int{len(data), (len(left[name]) + len(data)) / 2} {
					more := maps.Clone(left)
					more[name] = string(data[:size])
					all = append(all, more)
				}
			}
		}
	}
	return all
}

// story is what has been promised when the power goes.
type story struct {
	synced       bool // an offer has synced the inbox
	started, ack []string
}

// The power goes at any step of a tick, and any of the states that the disk
// may be in then comes back: nothing that was promised is lost, nothing done
// is done again, and under deadletter nothing that was started.
func TestAPowerCutAtAnyStep(t *testing.T) {
	t.Parallel()
	points := 0
	for _, policy := range []OrphanPolicy{DeadLetter, Retry} {
		r := newRig(t)
		r.echo("one\ntwo\nthree\n")
		d := &disk{
			dir: r.dir, kept: map[string]string{"inbox.jsonl": ""}, dirty: map[string]bool{"inbox.jsonl": true},
			temp: map[string]string{}, whole: map[string]bool{},
		}
		var now story
		r.Queue.dir.Guard = func(s durable.Step, run func() error) error {
			for _, left := range d.cuts() {
				points++
				check(t, policy, now, left, fmt.Sprintf("before %s %s", s.Verb, s.Name))
			}
			err := run()
			d.observe(s)
			return err
		}
		for _, p := range []string{"one", "two"} {
			r.offer()
			now.synced = true
			r.advance(Taken)
			r.advance(Started)
			now.started = append(now.started, p)
			r.ack()
			now.ack = append(now.ack, p)
		}
		r.offer()
	}
	t.Logf("%d states after a power cut", points)
	if points < 200 {
		t.Errorf("only %d states were looked at", points)
	}
}

// check starts a queue on what the power cut left.
func check(t *testing.T, policy OrphanPolicy, now story, left map[string]string, at string) {
	t.Helper()
	r := (&rig{t: t, dir: scratch(t)}).unsyncedLater()
	for name, content := range left {
		r.put(name, content)
	}
	r.reopen()
	defer r.Queue.Close()
	if m := parseMeta([]byte(left[metaFile])); m != nil { // the inode is the same after a power cut
		s, err := r.openSource(os.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		s.close()
		m.Dev, m.Ino = s.dev, s.ino
		if err := r.writeMeta(*m); err != nil {
			t.Fatal(err)
		}
	}
	r.recover(Interruption{Policy: policy, Counts: true})
	r.append(Letter{Prompt: "new"})
	given := r.drain()
	var dead []string
	for _, d := range r.dead() {
		dead = append(dead, d.RawLine)
	}
	state := fmt.Sprintf("%s, %s: left %q, drained %q, dead letters %q", policy, at, left, given, dead)
	if !slices.Contains(given, "new") {
		t.Errorf("swallowed: %s", state)
	}
	for _, p := range []string{"one", "two", "three"} {
		done := slices.Contains(now.ack, p)
		if now.synced && !done && !slices.Contains(given, p) && !slices.Contains(dead, p) && !strings.Contains(left[outboxFile], entryID([]byte(p))) {
			t.Errorf("lost %q: %s", p, state)
		}
		if done && (slices.Contains(given, p) || slices.Contains(dead, p)) {
			t.Errorf("done again %q: %s", p, state)
		}
		if policy == DeadLetter && slices.Contains(now.started, p) && slices.Contains(given, p) {
			t.Errorf("given again %q: %s", p, state)
		}
	}
	for _, p := range given {
		if !slices.Contains([]string{"one", "two", "three", "new"}, p) && now.synced {
			t.Errorf("garbled %q: %s", p, state)
		}
	}
}
