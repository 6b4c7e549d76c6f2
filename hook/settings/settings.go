// Package settings renders, merges and removes our entries in Claude Code's
// settings.json. It works on bytes and touches no disk; everything that is
// not ours keeps its bytes, order and indentation, and what is inserted looks
// like the rest of the file.
//
// It is as strict as the client (measured in 2.1.329): a comment, a trailing
// comma or an array where an object belongs is refused with its place, because
// the client refuses the file too and waits for a person. A byte order mark,
// CRLF, an empty file and duplicate keys are fine; of duplicates the last counts.
//
// No marker file is needed: a hook entry is known as ours by its command (see
// Ours), and the rules that were added are found again with the Want that added
// them (see Missing).
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"heartbeat/hook/client"
)

// DefaultTimeout is the time-out of an entry that Want.Timeouts does not name, in
// seconds.
const DefaultTimeout = 60

// Want is what a settings file must contain. The zero value of each field except
// Command asks for nothing.
type Want struct {
	// Command is the hooks' command line, quoted for /bin/sh; see Command.
	Command string
	// Timeouts are seconds by event, at least 1 (the client refuses 0).
	Timeouts map[string]int
	// Allow and Deny are permission rules to add. Rules that the user wrote are
	// never removed or reordered.
	Allow, Deny []string
	// DefaultMode is written only if the user has set none.
	DefaultMode string
	// Env are variables for the session; a variable that the user has set
	// keeps its value.
	Env map[string]string
}

// Guards returns the deny rules that prevent an agent from editing its own hooks
// and queue by accident. Edit rules cover all of the client's tools that write
// files; a path in a Write rule is accepted but has no effect. The paths are
// relative to the directory in which the session started. files are more paths in
// it.
func Guards(files ...string) []string {
	guards := []string{"Edit(.claude/**)", "Edit(.heartbeat/**)"}
	for _, file := range files {
		guards = append(guards, "Edit("+file+")")
	}
	return guards
}

// personal are the acts of a person on a fleet that sessions are denied.
var personal = []string{
	"approval approve", "approval reject", "resume", "restart", "cancel", "stop", "reload", "dead-letter retry", "dead-letter purge", "inbox drop",
}

// Denials returns the deny rules for acts of a person, which sessions are refused also
// where a rule allows the whole of Bash. A command line may be written in other ways:
// whoever carries the act out refuses it as well.
func Denials() []string {
	rules := make([]string, len(personal))
	for i, act := range personal {
		rules[i] = "Bash(heartbeat " + act + " *)"
	}
	return rules
}

// Grants returns the allow rules that sessions get for commands of ours: a sign of
// life and the question to a person, which otherwise dontAsk refuses. Behind the
// command anything is text: the client (2.1.329) allows it no other command,
// substitution or redirection to a file.
func Grants() []string {
	return []string{"Bash(heartbeat alive *)", "Bash(heartbeat approval ask *)"}
}

func (w Want) timeout(event string) int {
	if t, ok := w.Timeouts[event]; ok {
		return t
	}
	return DefaultTimeout
}

func (w Want) check() error {
	if w.Command == "" {
		return errors.New("cannot render hooks: the command is empty")
	}
	for _, s := range slices.Concat([]string{w.Command, w.DefaultMode}, w.Allow, w.Deny, slices.Collect(maps.Keys(w.Env)), slices.Collect(maps.Values(w.Env))) {
		if !utf8.ValidString(s) {
			return fmt.Errorf("cannot render settings: %q is not valid UTF-8", s)
		}
	}
	for _, event := range slices.Sorted(maps.Keys(w.Timeouts)) {
		if !slices.Contains(client.Claude.Hooks.Installed, event) {
			return fmt.Errorf("cannot render hooks: no hook is installed for event %q", event)
		}
		if t := w.Timeouts[event]; t < 1 {
			return fmt.Errorf("cannot render hooks: the time-out of %s is %d, the client needs at least 1 second", event, t)
		}
	}
	return nil
}

func (w Want) owns(command string) bool {
	return command != "" && (command == w.Command || Ours(command))
}

// Merge returns old with everything that w asks for. It corrects one of our entries
// with another command or time-out in place and removes further ones; an empty or
// missing file (nil) becomes a new one. Merging again changes nothing. An *Error
// says where old cannot be understood.
func Merge(old []byte, w Want) (merged []byte, changed bool, err error) {
	if err := w.check(); err != nil {
		return nil, false, err
	}
	d, err := read(old)
	if err != nil {
		return nil, false, err
	}
	m := merger{document: d, want: w}
	if err := m.merge(); err != nil {
		return nil, false, err
	}
	merged = d.apply(m.splices)
	return merged, !bytes.Equal(merged, old), nil
}

// Remove returns old without our hook entries, whatever their command's path, and
// without the rules, mode and variables of w; pass Missing of the original file to
// keep what the user had before. Containers that become empty are removed too, but
// the root remains.
func Remove(old []byte, w Want) (rest []byte, changed bool, err error) {
	d, err := read(old)
	if err != nil {
		return nil, false, err
	}
	if d.missing {
		return old, false, nil
	}
	dead, err := d.marked(w, true)
	if err != nil {
		return nil, false, err
	}
	rest = d.apply(d.sweep(dead))
	return rest, !bytes.Equal(rest, old), nil
}

// Missing returns the part of w that old does not have yet: what Merge would add,
// and so what Remove may take away again.
func Missing(old []byte, w Want) (Want, error) {
	d, err := read(old)
	if err != nil {
		return Want{}, err
	}
	p, err := d.permissions()
	if err != nil {
		return Want{}, err
	}
	w.Allow = without(w.Allow, texts(p.allow))
	w.Deny = without(w.Deny, texts(p.deny))
	if p.mode != nil {
		w.DefaultMode = ""
	}
	env, err := d.env()
	if err != nil {
		return Want{}, err
	}
	w.Env = maps.Clone(w.Env)
	for name := range w.Env {
		if env != nil && env.find(name) != nil {
			delete(w.Env, name)
		}
	}
	return w, nil
}

// Restore undoes Merge. backup is the file as it was before the first Merge, nil if
// there was none; merged are all Wants that may be in the file, the last one at the
// end. If nobody else changed the file, the result is the backup to the byte;
// otherwise only what is ours is removed. A nil result means that the file is to be
// removed.
func Restore(current, backup []byte, merged ...Want) ([]byte, error) {
	if untouched(current, backup, merged) {
		return backup, nil
	}
	rest := current
	for _, w := range merged {
		added, err := Missing(backup, w)
		if err != nil {
			added = Want{Command: w.Command} // the user repaired what we could not read
		}
		if rest, _, err = Remove(rest, added); err != nil {
			return nil, err
		}
	}
	if backup == nil && blank(rest) {
		return nil, nil
	}
	return rest, nil
}

// untouched reports whether a file is the backup with one of the wants merged.
func untouched(current, backup []byte, merged []Want) bool {
	return slices.ContainsFunc(merged, func(w Want) bool {
		made, _, err := Merge(backup, w)
		return err == nil && bytes.Equal(made, current)
	})
}

// Update is Merge for a file into which other Wants may have been merged before:
// what only they asked for is removed. backup and merged are as for Restore.
func Update(current, backup []byte, to Want, merged ...Want) (updated []byte, changed bool, err error) {
	if untouched(current, backup, merged) {
		updated, _, err = Merge(backup, to)
		return updated, !bytes.Equal(updated, current), err
	}
	updated = current
	for _, from := range merged {
		if updated, err = withoutStale(updated, backup, from, to); err != nil {
			return nil, false, err
		}
	}
	updated, _, err = Merge(updated, to)
	return updated, !bytes.Equal(updated, current), err
}

// withoutStale returns a file without what from asked for and to does not.
func withoutStale(current, backup []byte, from, to Want) ([]byte, error) {
	if current == nil {
		return nil, nil
	}
	stale, err := Missing(backup, from)
	if err != nil {
		stale = Want{}
	}
	stale.Allow, stale.Deny = without(stale.Allow, to.Allow), without(stale.Deny, to.Deny)
	if stale.DefaultMode == to.DefaultMode {
		stale.DefaultMode = ""
	}
	for name, value := range stale.Env {
		if v, ok := to.Env[name]; ok && v == value {
			delete(stale.Env, name)
		}
	}
	d, err := read(current)
	if err != nil {
		return nil, err
	}
	dead, err := d.marked(stale, false)
	if err != nil {
		return nil, err
	}
	return d.apply(d.sweep(dead)), nil
}

func without(list, known []string) []string {
	var rest []string
	for _, s := range list {
		if !slices.Contains(known, s) && !slices.Contains(rest, s) {
			rest = append(rest, s)
		}
	}
	return rest
}

// blank reports whether nothing but an empty object is left.
func blank(b []byte) bool {
	d, err := read(b)
	return err == nil && len(d.root.items) == 0
}
