package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// Pending returns what is still to be delivered to each target, as saved by the present or
// the last run.
func Pending(stateDir string) (map[string]*outbox.Box, error) {
	all, err := ask(stateDir)
	return all.Boxes, err
}

// ask reads what is kept in a state directory.
func ask(stateDir string) (*memo.State, error) {
	all, err := store.Ask(context.Background(), stateDir, memo.Read)
	if all == nil {
		all = memo.New()
	}
	return all, err
}

// Untold returns the targets that do not get their messages, and since when the pings of the
// present run fail, and why; nil: they arrive, or no run sends any.
func Untold(stateDir string, now time.Time) (all []status.Untold, ping *status.Unpinged) {
	k, err := ask(stateDir)
	if err != nil {
		return nil, nil // `notify log` reports it
	}
	for _, name := range slices.Sorted(maps.Keys(k.Boxes)) {
		if b := k.Boxes[name]; b.Fails(now) {
			all = append(all, untold(name, b))
		}
	}
	if last := lastrun.Of(stateDir); pingFails(k.Ping, now) && last != nil && last.Lives {
		ping = &status.Unpinged{Since: k.Ping.Since, Why: k.Ping.Why}
	}
	return all, ping
}

// untold describes a target that does not get what is in its box.
func untold(name string, b *outbox.Box) status.Untold {
	return status.Untold{Target: name, Since: b.Failing, Why: b.Why, Unnamed: b.Unnamed}
}

// Owed are replies, awaited or arrived, that cannot be sent because the file does not name
// their target.
type Owed struct {
	Target  string
	Replies int
}

// String describes them on one line.
func (o Owed) String() string {
	return fmt.Sprintf("%s waited for at %s, which notify: does not name; what comes is kept for a week, until it does", replies(o.Replies, "is", "are"), o.Target)
}

// replies counts replies, with a verb.
func replies(n int, one, more string) string {
	if n == 1 {
		return "1 reply " + one
	}
	return fmt.Sprintf("%d replies %s", n, more)
}

// Undelivered says which replies have not arrived at targets that the file names: those on
// their way still, and those that were given up since a time; "": all have.
func Undelivered(stateDir string, since time.Time) string {
	var failures []memo.Failure
	boxes, err := store.Ask(context.Background(), stateDir, func(v *store.View) (map[string]*outbox.Box, error) {
		all, err := memo.Read(v)
		if err == nil {
			failures, err = memo.GivenUp(v, since)
		}
		return all.Boxes, err
	})
	if err != nil {
		return "cannot tell whether all replies have arrived: " + err.Error()
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(boxes)) {
		if b := boxes[name]; b.Replies() > 0 && !b.Unnamed {
			all = append(all, fmt.Sprintf("%s not arrived at %s, and the next run tries again: %s", replies(b.Replies(), "has", "have"), name, cmp.Or(b.Why, "no answer yet")))
		}
	}
	for _, f := range failures {
		all = append(all, fmt.Sprintf("%s not arrived at %s, and is given up: %s", replies(f.Replies, "has", "have"), f.Target, f.Why))
	}
	return strings.Join(all, "; ")
}

// Unnamed returns the targets that wait for replies and that the file does not name.
func Unnamed(stateDir string, f *config.Fleet, now time.Time) ([]Owed, error) {
	waits, err := store.Ask(context.Background(), stateDir, awaited.All)
	boxes, unread := Pending(stateDir)
	count := map[string]int{}
	for _, r := range waits {
		if now.Sub(r.From()) <= mostAwaited {
			count[r.Target]++
		}
	}
	for name, b := range boxes {
		count[name] += b.Replies()
	}
	var all []Owed
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if f.Targets[name] == nil && count[name] > 0 {
			all = append(all, Owed{name, count[name]})
		}
	}
	return all, errors.Join(err, unread)
}

// warnOfUnnamed logs the targets that wait for replies and that the file does not name.
func (w *Watch) warnOfUnnamed(now time.Time) {
	all, err := Unnamed(w.opt.StateDir, w.fleet, now)
	if err != nil {
		w.opt.Log.Warn("cannot tell who waits for replies", "err", err)
	}
	for _, o := range all {
		w.opt.Log.Warn(o.String())
	}
}

// log adds a record.
func (w *Watch) log(r memo.Record) {
	w.opt.Store.Keep(fmt.Sprintf("what became of message %s to %s after %d attempts", r.Key, r.Target, r.Attempts), func() error {
		return w.opt.Store.Write(context.Background(), func(c *store.Change) error { return memo.Log(c, r) })
	})
}

// Records returns the newest records, at most most of them, oldest first: those of the
// named targets, or of all targets there ever were if none is named.
func Records(stateDir string, most int, targets []string) ([]memo.Record, error) {
	return store.Ask(context.Background(), stateDir, func(v *store.View) ([]memo.Record, error) { return memo.Records(v, most, targets) })
}
