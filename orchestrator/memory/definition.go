package memory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
)

// Definition is what identifies a trigger from one run to the next.
type Definition struct {
	Kind Kind `json:"kind"`
	// Name is the trigger's name; Named is true if a person gave it.
	Name  string `json:"name"`
	Named bool   `json:"named,omitempty"`
	// Core is what it watches for: its schedule and time zone, its patterns, its command, or
	// its path. "": not known, because an earlier version did not record it.
	Core string `json:"core,omitempty"`
	// Sieve is how a poll with dedupe tells outputs apart; "": not at all.
	Sieve string `json:"sieve,omitempty"`
	// Prompt is a hash of the prompt.
	Prompt string `json:"prompt,omitempty"`
}

// Kind is the kind of a trigger.
type Kind string

// The kinds.
const (
	Cron  Kind = "cron"
	Watch Kind = "watch"
	Poll  Kind = "poll"

	Webhook Kind = "webhook"
)

// define returns the definition of a trigger.
func define(t *config.Trigger) Definition {
	d := Definition{Name: t.Name, Named: t.Named}
	switch {
	case t.Cron != nil:
		d.Kind, d.Core, d.Prompt = Cron, t.Cron.Schedule.String()+" "+zoneOf(t.Cron.Schedule.Location()), hashOf(t.Cron.Prompt)
	case t.Watch != nil:
		patterns := slices.Sorted(slices.Values(t.Watch.Patterns))
		d.Kind, d.Core, d.Prompt = Watch, strings.Join(patterns, " "), hashOf(t.Watch.Prompt)
	case t.Poll != nil:
		d.Kind, d.Core, d.Prompt = Poll, strings.Join(t.Poll.Command, " "), hashOf(t.Poll.Prompt)
		if t.Poll.Dedupe {
			d.Sieve = string(t.Poll.Split) + " " + t.Poll.Key
		}
	case t.Webhook != nil:
		d.Kind, d.Core, d.Prompt = Webhook, t.Webhook.Path, hashOf(t.Webhook.Prompt)
	}
	return d
}

// zoneOf names a time zone. The machine's own zone is called Local everywhere, so
// its offsets at some instants are added.
func zoneOf(loc *time.Location) string {
	if loc == nil {
		return ""
	}
	if loc != time.Local {
		return loc.String()
	}
	name := []any{loc.String()}
	for _, at := range []int64{946684800, 962409600, 1577836800, 1593561600, 1735689600, 1751328000} { // winters, summers
		_, offset := time.Unix(at, 0).In(loc).Zone()
		name = append(name, offset)
	}
	return fmt.Sprint(name...)
}

func hashOf(parts ...string) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(sum, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// hashOfAll returns a hash of the definitions of triggers.
func hashOfAll(triggers []config.Trigger) string {
	parts := make([]string, len(triggers))
	for i := range triggers {
		d := define(&triggers[i])
		parts[i] = hashOf(string(d.Kind), d.Name, fmt.Sprint(d.Named), d.Core, d.Sieve, d.Prompt)
	}
	return hashOf(parts...)
}

// likenesses are the ways in which a trigger can be recognised as an earlier one, the closest
// likeness first. A name that nobody gave is only a position in a list.
var likenesses = []func(before, now Definition) bool{
	func(b, n Definition) bool {
		return b.Name == n.Name && (b.Core == "" || b.Core == n.Core && b.Prompt == n.Prompt)
	},
	func(b, n Definition) bool { return b.Core == n.Core && sameGiven(b, n) },
	func(b, n Definition) bool { return b.Core == n.Core && b.Prompt == n.Prompt },
	func(b, n Definition) bool { return b.Core == n.Core && b.Name == n.Name },
	func(b, n Definition) bool { return b.Core == n.Core },
	sameGiven,
	func(b, n Definition) bool { return b.Prompt == n.Prompt && b.Prompt != "" },
}

// sameCore is how many of them require the same core.
const sameCore = 5

func sameGiven(b, n Definition) bool { return b.Name == n.Name && b.Named && n.Named }

// follow returns for each trigger which earlier one it is, or -1. A trigger that was removed
// earlier comes back only with the same core.
func follow(before []Definition, gone func(i int) bool, now []Definition) []int {
	f := following{before: before, now: now, was: slices.Repeat([]int{-1}, len(now)), taken: make([]bool, len(before))}
	there := func(i int) bool { return !gone(i) }
	for i, like := range likenesses {
		if i == sameCore {
			for _, like := range likenesses[:sameCore] {
				f.match(gone, like)
			}
		}
		f.match(there, like)
	}
	f.match(there, f.onlyOnes(gone))
	return f.was
}

type following struct {
	before, now []Definition
	was         []int
	taken       []bool
}

// match assigns to each unassigned trigger the first earlier one that is like it.
func (f *following) match(may func(i int) bool, like func(before, now Definition) bool) {
	for n, now := range f.now {
		for b, before := range f.before {
			if f.was[n] < 0 && !f.taken[b] && may(b) && before.Kind == now.Kind && like(before, now) {
				f.was[n], f.taken[b] = b, true
			}
		}
	}
}

// onlyOnes takes two triggers for the same one, entirely changed, if they are the only ones of
// their kind that are left. Polls with dedupe are left out, because with another command the
// same keys may mean other things.
func (f *following) onlyOnes(gone func(i int) bool) func(before, now Definition) bool {
	left := map[Kind]int{}
	come := map[Kind]int{}
	for b, d := range f.before {
		if !f.taken[b] && !gone(b) {
			left[d.Kind]++
		}
	}
	for n, d := range f.now {
		if f.was[n] < 0 {
			come[d.Kind]++
		}
	}
	return func(b, n Definition) bool {
		return left[n.Kind] == 1 && come[n.Kind] == 1 && cmp.Or(b.Sieve, n.Sieve) == ""
	}
}
