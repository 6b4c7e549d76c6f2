// Package outbox has what is to be told to each target and has not arrived: it waits
// for its time, is put together to messages, and each message is tried until its
// target has taken it. It is pure: the caller saves it before a message is sent, and
// after each answer, so that nothing is lost with the process, and a message is sent
// twice only if no answer was seen.
package outbox

import (
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/notify/notice"
)

// Item is a notice that waits to become part of a message.
type Item struct {
	notice.Notice
	Due time.Time
}

// Message is what is sent to a target at once. It stays the same until it has
// arrived or is given up.
type Message struct {
	// Key is the same at each attempt, and no other message's.
	Key      string
	Made     time.Time
	Notices  []notice.Notice
	Attempts int
}

// Box is what is on its way to one target.
type Box struct {
	Waiting []Item
	Sending *Message
	// Next is when the message is tried again; Failing since when attempts fail, zero:
	// the last one did not. Why is why.
	Next    time.Time
	Failing time.Time
	Why     string
	// Arrived is when a message arrived last; Dropped counts notices that were too many.
	Arrived time.Time
	Dropped int
	// Unnamed is true while the file does not name the target; see Unname.
	Unnamed bool
}

const (
	// gather is how long an urgent notice waits for others of the same moment.
	gather     = 2 * time.Second
	gatherInfo = 30 * time.Second
	// most notices are one message, mostWaiting wait.
	most        = 20
	mostWaiting = 2000
	// patience is after how long a message is given up; refusals is how often its
	// target may refuse the message itself.
	patience = 7 * 24 * time.Hour
	refusals = 5
	longest  = 30 * time.Minute
)

// Wants reports whether a target is sent a notice about an agent whose own word on who
// is told is told; nil: everybody.
func Wants(to *config.Target, n notice.Notice, told []string) bool {
	switch {
	case n.To != "":
		return n.To == to.Name
	case n.Not == to.Name, to.Tier == config.TierReplies, !n.Urgent && to.Tier == config.TierUrgent:
		return false
	}
	return n.Agent == "" || told == nil || slices.Contains(told, to.Name)
}

// Unname keeps, of what is on its way to a target that the file does not name, what is for
// it alone, as replies are: until the file names it again, at most for a week. It returns
// how many others were dropped, and those that have waited for too long.
func (b *Box) Unname(now time.Time) (dropped int, late []notice.Notice) {
	gone := func(n notice.Notice) bool {
		switch {
		case n.To == "":
			dropped++
		case now.Sub(n.At) >= patience:
			late = append(late, n)
		default:
			return false
		}
		return true
	}
	b.Waiting = slices.DeleteFunc(b.Waiting, func(i Item) bool { return gone(i.Notice) })
	if m := b.Sending; m != nil {
		if m.Notices = slices.DeleteFunc(m.Notices, gone); len(m.Notices) == 0 {
			b.Sending = nil
		}
	}
	if !b.Unnamed {
		b.Unnamed, b.Failing = true, now
	}
	b.Why = fmt.Sprintf("notify: does not name it; what is for it alone waits until it does (%d)", b.Pending())
	return dropped, late
}

// Named has a target get what was kept for it: the file names it again.
func (b *Box) Named() {
	b.Unnamed, b.Next, b.Failing, b.Why = false, time.Time{}, time.Time{}, ""
}

// Put takes in a notice for a target.
func (b *Box) Put(to *config.Target, n notice.Notice, now time.Time) {
	if b.has(n.Key) || b.unsaid(n) {
		return
	}
	if len(b.Waiting) >= mostWaiting {
		b.dropOne()
	}
	b.Waiting = append(b.Waiting, Item{n, due(to, n, now)})
}

// has reports whether a notice is on its way already.
func (b *Box) has(key string) bool {
	is := func(n notice.Notice) bool { return n.Key == key }
	return slices.ContainsFunc(b.Waiting, func(i Item) bool { return is(i.Notice) }) ||
		b.Sending != nil && slices.ContainsFunc(b.Sending.Notices, is)
}

// unsaid takes back what was to be told of a fact that is over before anybody was.
func (b *Box) unsaid(n notice.Notice) bool {
	if n.Event != notice.Ended || n.Urgent {
		return false
	}
	of := func(i Item) bool { return i.Agent == n.Agent && i.Kind == n.Kind && i.Since.Equal(n.Since) }
	began := slices.ContainsFunc(b.Waiting, func(i Item) bool { return of(i) && i.Event == notice.Began })
	if began {
		b.Waiting = slices.DeleteFunc(b.Waiting, of)
	}
	return began
}

// dropOne makes room: for what is not urgent and no reply first, then for the oldest.
func (b *Box) dropOne() {
	at := max(0, slices.IndexFunc(b.Waiting, func(i Item) bool { return !i.Urgent && i.To == "" }))
	b.Waiting = slices.Delete(b.Waiting, at, at+1)
	b.Dropped++
}

// due is when a notice may be sent.
func due(to *config.Target, n notice.Notice, now time.Time) time.Time {
	if n.Urgent || n.To != "" {
		return now.Add(gather)
	}
	at := now.Add(max(gatherInfo, to.Digest))
	if to.Quiet == nil {
		return at
	}
	zone := to.Zone
	if zone == nil {
		zone = at.Location()
	}
	// Hours that follow each other, as those of a whole weekend, are one time.
	for range 8 {
		is, until := to.Quiet.At(at.In(zone))
		if !is || until.IsZero() {
			break
		}
		at = until
	}
	return deadline.On(at, now, furthest)
}

// Retract takes out what is due and gone, before a new message is made, and reports whether
// anything was.
func (b *Box) Retract(now time.Time, gone func(notice.Notice) bool) bool {
	if b.Sending != nil || !deadline.Over(b.Next, now) {
		return false
	}
	before := len(b.Waiting)
	b.Waiting = slices.DeleteFunc(b.Waiting, func(i Item) bool { return deadline.Over(i.Due, now) && gone(i.Notice) })
	return len(b.Waiting) < before
}

// Compose returns the message that a target is to be sent now, or nil. A message that
// was tried before comes first, as it was.
func (b *Box) Compose(now time.Time) *Message {
	if !deadline.Over(b.Next, now) {
		return nil
	}
	if b.Sending != nil {
		return b.Sending
	}
	// What waits longer, as for the end of a digest, goes along only with its like: at
	// night an urgent notice does not bring the others.
	isDue := func(i Item) bool { return deadline.Over(i.Due, now) }
	first := slices.IndexFunc(b.Waiting, isDue)
	if first < 0 {
		return nil
	}
	m := &Message{Made: now}
	b.Waiting = slices.DeleteFunc(b.Waiting, func(i Item) bool {
		if len(m.Notices) == most || !isDue(i) || m.Notices != nil && !alike(i.Notice, m.Notices[0]) {
			return false
		}
		m.Notices = append(m.Notices, i.Notice)
		return true
	})
	m.Key = m.Notices[0].Key
	if more := len(m.Notices) - 1; more > 0 {
		m.Key += fmt.Sprintf("+%d", more)
	}
	b.Sending = m
	return m
}

// furthest is further ahead than any time that is waited for: the end of a digest, then
// of quiet hours.
const furthest = 9 * 24 * time.Hour

// Recall has a box that was read from a file wait no longer for anything than it was to,
// also if another clock has written it.
func (b *Box) Recall(now time.Time) {
	b.Next, b.Failing = deadline.On(b.Next, now, longest), deadline.Since(b.Failing, now)
	recall := func(n *notice.Notice) { n.At = deadline.Since(n.At, now) }
	if m := b.Sending; m != nil {
		m.Made = deadline.Since(m.Made, now)
		for i := range m.Notices {
			recall(&m.Notices[i])
		}
	}
	for i := range b.Waiting {
		w := &b.Waiting[i]
		w.Due = deadline.On(w.Due, now, min(furthest, w.Due.Sub(w.At)))
		recall(&w.Notice)
	}
}

// alike reports whether two notices go into one message: a reply has one of its own.
func alike(a, b notice.Notice) bool { return a.Reply == "" && b.Reply == "" && a.Urgent == b.Urgent }

// Verdict is what came of an attempt.
type Verdict struct {
	// Why is why it has not arrived; "": it has.
	Why string
	// Refused is true where the target does not take this message, and might take
	// another one.
	Refused bool
	// After is how long the target wants to be left alone.
	After time.Duration
}

// Outcome says what became of a message.
type Outcome string

// The outcomes of an attempt.
const (
	Sent    Outcome = "sent"
	Failed  Outcome = "failed"   // it is tried again
	GivenUp Outcome = "given-up" // it is not
)

// Answered takes in what came of an attempt to send the message.
func (b *Box) Answered(v Verdict, now time.Time) Outcome {
	m := b.Sending
	if m == nil {
		return Failed
	}
	m.Attempts++
	if v.Why == "" {
		b.Sending, b.Next, b.Failing, b.Why, b.Arrived = nil, time.Time{}, time.Time{}, "", now
		return Sent
	}
	if b.Why = v.Why; b.Failing.IsZero() || b.Failing.After(now) {
		b.Failing = now
	}
	b.Next = now.Add(max(backOff(m.Attempts), min(v.After, longest)))
	if v.Refused && m.Attempts >= refusals || now.Sub(m.Made) >= patience {
		b.Sending = nil
		return GivenUp
	}
	return Failed
}

// backOff is how long to wait after so many attempts: 5s, doubled each time.
func backOff(attempts int) time.Duration {
	return min(longest, 5*time.Second<<min(attempts-1, 12))
}

// Fails reports whether a target does not get what it should: for some minutes, not
// only once.
func (b *Box) Fails(now time.Time) bool {
	return !b.Failing.IsZero() && now.Sub(b.Failing) >= failsAfter
}

const failsAfter = 2 * time.Minute

// Pending counts the notices on their way.
func (b *Box) Pending() int {
	n := len(b.Waiting)
	if b.Sending != nil {
		n += len(b.Sending.Notices)
	}
	return n
}

// Replies counts the replies among them, and the news of prompts that were given up.
func (b *Box) Replies() int {
	var all []notice.Notice
	for _, i := range b.Waiting {
		all = append(all, i.Notice)
	}
	if b.Sending != nil {
		all = append(all, b.Sending.Notices...)
	}
	return Replies(all)
}

// Replies is Box.Replies among notices.
func Replies(all []notice.Notice) (n int) {
	for _, one := range all {
		if one.To != "" && one.Entry != "" {
			n++
		}
	}
	return n
}

// NextDue is when something is to be sent; zero: nothing is.
func (b *Box) NextDue() (at time.Time) {
	if b.Sending != nil {
		return b.Next
	}
	for _, i := range b.Waiting {
		if at.IsZero() || i.Due.Before(at) {
			at = i.Due
		}
	}
	if !at.IsZero() && at.Before(b.Next) {
		return b.Next
	}
	return at
}
