package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/store"
)

// letters follows the outcome of prompts: replies and dead letters. What an agent can write
// decides only the words of a message. Who gets it is decided by the fleet's file and by the
// state directory.
type letters struct {
	store    *store.Store
	began    time.Time
	unproven unproven
	awaited  []awaited.Reply
	read     map[string]durable.Stamp // :: file → its stamp when it was last read
	anew     map[string]bool          // :: agent → somebody new waits, and the reply may have come before
}

// unproven reports whether the entry of an outbox record has to be proven and is not: new
// for prompts that were queued when their reply was asked for, any for all prompts.
type unproven struct {
	new, any func(*config.Agent, inbox.Delivery) (bool, error)
}

// of reports it for a reply that somebody waits for.
func (u unproven) of(a *config.Agent, d inbox.Delivery, r awaited.Reply) (bool, error) {
	if r.Before {
		return u.any(a, d)
	}
	return u.new(a, d)
}

func unprovenOf(stateDir string, agents []*config.Agent) unproven {
	keyOf := memory.Keys(stateDir, agents)
	return unproven{ledger.Doubts(stateDir, keyOf, true), ledger.Doubts(stateDir, keyOf, false)}
}

// news is what has become of prompts since the last look.
type news struct {
	// happened are dead letters; addressed are notices for one target.
	happened  []notice.Fact
	addressed []notice.Notice
	// done are the replies that are no longer awaited once addressed is saved.
	done []awaited.Reply
}

// mostAwaited is how long a reply is awaited.
const mostAwaited = 30 * 24 * time.Hour

// refresh reads the list of awaited replies again.
func (l *letters) refresh(ctx context.Context, now time.Time) error {
	all, err := store.Get(ctx, l.store.Reader, awaited.All)
	if err != nil {
		return err
	}
	late := func(r awaited.Reply) bool { return now.Sub(r.From()) > mostAwaited }
	if slices.ContainsFunc(all, late) {
		all = slices.DeleteFunc(all, late)
		err = l.store.Write(ctx, func(c *store.Change) error { return awaited.RemoveBefore(c, now.Add(-mostAwaited)) })
	}
	known := make(map[awaited.Reply]bool, len(l.awaited))
	for _, r := range l.awaited {
		known[r] = true
	}
	for _, r := range all {
		if !known[r] {
			if l.anew == nil {
				l.anew = map[string]bool{}
			}
			l.anew[r.Agent] = true
		}
	}
	l.awaited = all
	return err
}

// changed reports whether a file has changed since the last call for it.
func (l *letters) changed(path string) bool {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		delete(l.read, path)
		return false
	}
	stamp := durable.StampOf(info, err)
	if before, known := l.read[path]; known && before.Same(stamp) {
		return false
	}
	if l.read == nil {
		l.read = map[string]durable.Stamp{}
	}
	l.read[path] = stamp
	return true
}

// look returns what has become of an agent's prompts.
func (l *letters) look(ctx context.Context, a *config.Agent, k *memo.State, ours string) (n news, err error) {
	m := k.Marks[a.Name]
	if m == nil {
		before := l.began.Add(-1)
		m = &memo.Mark{Dead: before, Reply: before}
		k.Marks[a.Name] = m
	}
	waits := map[string][]awaited.Reply{} // :: id → who waits for its reply
	for _, r := range l.awaited {
		if r.Agent == a.Name {
			waits[r.ID] = append(waits[r.ID], r)
		}
	}
	deadLetters, outbox := inbox.DeadLetterFile(a.Inbox), filepath.Join(a.Home, "outbox.jsonl")
	if l.anew[a.Name] {
		delete(l.anew, a.Name)
		delete(l.read, deadLetters)
		delete(l.read, outbox)
	}
	dead := l.changed(deadLetters)
	replied := (len(waits) > 0 || answers(a)) && l.changed(outbox)
	if !dead && !replied {
		return n, nil
	}
	err = queue.Read(ctx, a, func(q *inbox.Queue) (err error) {
		if replied {
			err = n.replies(q, a, k, m, waits, l.unproven)
		}
		if dead {
			err = errors.Join(err, n.dead(q, a, k, m, waits, ours))
		}
		return err
	})
	if err != nil { // so that both are read again, even unchanged
		delete(l.read, deadLetters)
		delete(l.read, outbox)
	}
	return n, err
}

// answers reports whether anybody gets the replies to an agent's triggers.
func answers(a *config.Agent) bool {
	return slices.ContainsFunc(a.Triggers, func(t config.Trigger) bool { return t.ReplyTo != "" })
}

// replyTo returns the target that gets the replies to a trigger's prompts, given their
// source; "": nobody.
func replyTo(a *config.Agent, source string) string {
	for _, t := range a.Triggers {
		if t.ReplyTo != "" && strings.HasPrefix(source, a.Name+"/"+t.Name+"@") {
			return t.ReplyTo
		}
	}
	return ""
}

// replies handles the replies that came after the last one that was handled.
func (n *news) replies(q *inbox.Queue, a *config.Agent, k *memo.State, m *memo.Mark, waits map[string][]awaited.Reply, unproven unproven) error {
	var after, later []inbox.Delivery // behind the last one that was handled; newer than it, if its record is gone
	met, last := false, inbox.Delivery{}
	for d, err := range q.Deliveries() {
		if err != nil {
			return err
		}
		for _, r := range waits[d.ID] {
			doubt, err := unproven.of(a, d, r)
			if err != nil {
				return err
			}
			if !doubt && !d.AcknowledgedAt.Before(r.Due) {
				n.address(k, r.Target, replyOf(a, d))
				n.done = append(n.done, r)
			}
		}
		last = d
		switch {
		case d.DeliveryID == m.ReplyID:
			met, after = true, nil
		case replyTo(a, d.Source) != "":
			if after = append(after, d); d.AcknowledgedAt.After(m.Reply) {
				later = append(later, d)
			}
		}
	}
	if !met {
		after = later
	}
	for _, d := range after {
		doubt, err := unproven.any(a, d)
		if err != nil {
			return err // the mark stays, so that it is tried again
		}
		if !doubt {
			n.address(k, replyTo(a, d.Source), replyOf(a, d))
		}
	}
	if last.DeliveryID != "" {
		m.Reply, m.ReplyID = last.AcknowledgedAt, last.DeliveryID
	}
	return nil
}

// dead handles the dead letters that came after the last one that was handled. For what a
// person has done, only those who wait for the reply get a notice.
func (n *news) dead(q *inbox.Queue, a *config.Agent, k *memo.State, m *memo.Mark, waits map[string][]awaited.Reply, ours string) error {
	newest, now := m.Dead, time.Now()
	for d, err := range q.DeadLetters() {
		if err != nil {
			return err
		}
		for _, r := range waits[d.ID] {
			if d.At.Before(r.Due) {
				continue
			}
			n.address(k, r.Target, givenUp(a, d, ours))
			n.done = append(n.done, r)
		}
		if !d.At.After(m.Dead) {
			continue
		}
		if to := replyTo(a, d.Source); to != "" {
			n.address(k, to, givenUp(a, d, ours))
		}
		if newest = later(newest, d.At); d.Reason != inbox.Dropped && d.Reason != inbox.Cancelled {
			n.happened = append(n.happened, notice.Fact{
				Key: a.Name + "/" + string(notice.GivenUp), Agent: a.Name, Kind: notice.GivenUp, Urgent: true, Since: d.At,
				Text: fmt.Sprintf("%s: %s", named(d), d.Reason), Do: ours + " dead-letter " + a.Name, Of: keyOf(d),
			})
		}
	}
	if m.Dead = newest; newest.After(now) { // an agent could write such a time, and hide all later ones
		m.Dead = now
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// notTwice drops the notice that an agent works again for targets that learn it from what
// has come: a reply, or the notice that their last prompt was given up. They do not get it
// later, either.
func (w *Watch) notTwice(all []notice.Notice, got news, now time.Time) []notice.Notice {
	for _, n := range got.addressed {
		if n.Kind != notice.Reply && w.letters.waits(n.Agent, n.To, got.done) {
			continue
		}
		key := n.Agent + "/" + string(notice.Waits) + "/" + n.To
		if w.kept.Told.KnownOver(key, now) {
			w.unsaved = true
		}
		all = slices.DeleteFunc(all, func(o notice.Notice) bool {
			return o.Kind == notice.Waits && o.Event == notice.Ended && o.Agent == n.Agent && o.To == n.To
		})
	}
	return all
}

// waits reports whether a target waits for a reply of an agent, not counting done ones.
func (l *letters) waits(agent, target string, done []awaited.Reply) bool {
	return slices.ContainsFunc(l.awaited, func(r awaited.Reply) bool {
		return r.Agent == agent && r.Target == target && !slices.Contains(done, r)
	})
}

// address adds a notice for one target, unless it was added before.
func (n *news) address(k *memo.State, target string, what notice.Notice) {
	what.To, what.Event, what.At = target, notice.Happened, time.Now()
	if what.Key += "/" + target; k.IsReplied(what.Key) {
		return
	}
	k.Reply(what.Key)
	n.addressed = append(n.addressed, what)
}

func replyOf(a *config.Agent, d inbox.Delivery) notice.Notice {
	text := d.Reply
	if d.ReplyCut {
		text += "\n… (cut)"
	}
	id := d.ID
	if id == "" {
		id = d.DeliveryID
	}
	return notice.Notice{
		Key: a.Name + "/reply/" + d.DeliveryID, Kind: notice.Reply, Agent: a.Name, Since: d.AcknowledgedAt, Entry: id, Text: "to " + id, Reply: text,
	}
}

func givenUp(a *config.Agent, d inbox.DeadEntry, ours string) notice.Notice {
	return notice.Notice{
		Key: a.Name + "/given-up/" + d.DeliveryID, Kind: notice.GivenUp, Agent: a.Name, Since: d.At, Entry: named(d),
		Text: fmt.Sprintf("%s: %s", named(d), d.Reason), Do: fmt.Sprintf("%s dead-letter %s show %s", ours, a.Name, cmp.Or(inbox.Handle(d.ID, d.DeliveryID, d.EntryID), "ID")), Of: []string{keyOf(d)},
	}
}

// keyOf tells a dead letter from all others of its agent: one that is queued again and given
// up again is another one.
func keyOf(d inbox.DeadEntry) string { return cmp.Or(d.DeliveryID, d.EntryID) }

// named is the name by which people know a dead letter.
func named(d inbox.DeadEntry) string {
	for _, id := range []string{d.ID, d.DeliveryID} {
		if id != "" {
			return id
		}
	}
	return d.EntryID
}
