// Package wire is how a session asks its scheduler about its queue. The scheduler alone moves
// entries; the session's shim sends requests, and has in memory what their answers say.
//
// A request is a list of steps, which are one transaction: they are carried out in their order,
// and what the answer counts as carried out is durable before it is sent. Requests of a session
// are answered in the order in which they were sent. Who has given up on an answer takes back what
// it hands over.
package wire

import (
	"errors"
	"fmt"
	"slices"
	"syscall"

	"heartbeat/queue"
)

// Do is what a step does.
type Do string

// The steps. Each but look, count and offer is about the hand-over that it names (Step.At), and
// refused with queue.ErrStale if that is not the present one.
const (
	Look        Do = "look"        // says what is in flight, and what became of At if that is not
	Count       Do = "count"       // says how much is queued
	Offer       Do = "offer"       // hands over the first entry that is queued; if there is none, nothing
	Again       Do = "again"       // hands over the entry in flight again
	Place       Do = "place"       // says in which file, and from which offset of the transcript, it was handed over
	Withdraw    Do = "withdraw"    // takes back a hand-over that reached nobody
	Advance     Do = "advance"     // it has come to State
	GoOn        Do = "go-on"       // a session continues what a failure has interrupted
	Fail        Do = "fail"        // a failure of the API has ended its turn
	Unread      Do = "unread"      // its session has not read the file with it
	Void        Do = "void"        // its session works on it while it is checked
	Claim       Do = "claim"       // its turn is over, and its work is to be checked
	Acknowledge Do = "acknowledge" // its turn is over, and it is done
	Rebind      Do = "rebind"      // another session goes on with it
	Cancel      Do = "cancel"      // a person does not want it worked on
)

// Ref names a hand-over.
type Ref struct {
	Delivery string `json:"delivery,omitempty"`
	Handover int64  `json:"handover,omitempty"` // queue.Handover.N
}

// RefOf names the present hand-over of an entry; nil: none.
func RefOf(e *queue.Entry) Ref {
	if e == nil {
		return Ref{}
	}
	return Ref{e.Delivery, e.Handover.N}
}

// Step is one step of a request.
type Step struct {
	Do Do  `json:"do"`
	At Ref `json:"at,omitzero"`
	// To is the hand-over, of Offer, Again and Rebind; Place takes its File and Offset.
	To queue.Handover `json:"to,omitzero"`
	// Checked is true if the session's terms say that its entries are checked.
	Checked  bool         `json:"checked,omitempty"`
	State    queue.State  `json:"state,omitempty"`
	PromptID string       `json:"prompt_id,omitempty"` // of Advance and GoOn
	Failure  string       `json:"failure,omitempty"`
	Reply    queue.Reply  `json:"reply,omitzero"` // of Claim and Acknowledge
	As       queue.Cancel `json:"as,omitempty"`   // of Cancel
	// Next has Look say whether anything is queued.
	Next bool `json:"next,omitempty"`
}

// On is what a step makes of the entry in flight; it is for the steps that need no more than that
// entry.
func (s Step) On(e queue.Entry) (queue.Entry, error) {
	switch s.Do {
	case Place:
		return e.PlaceIn(s.To.File, s.To.Offset)
	case Withdraw:
		return e.Withdraw()
	case Advance:
		return e.Advance(s.State, s.PromptID)
	case GoOn:
		return e.GoOn(s.PromptID)
	case Fail:
		return e.Fail(s.Failure)
	case Unread:
		return e.MarkUnread()
	case Void:
		return e.VoidCheck(), nil
	case Claim:
		return e.Claim(s.Reply.At)
	case Acknowledge:
		return e.Acknowledge(s.Reply.At)
	case Rebind:
		return e.Rebind(s.To)
	case Cancel:
		return e.MarkCancelled(s.As)
	case Look, Count, Offer, Again:
	}
	return e, fmt.Errorf("cannot %s entry %s: %w", s.Do, e.Delivery, errors.ErrUnsupported)
}

// Foresee returns what an entry will be after a step for which nobody waits.
func (s Step) Foresee(e queue.Entry) queue.Entry {
	switch s.Do {
	case Advance, GoOn, Fail, Unread, Void:
		if s.At.Delivery == e.Delivery {
			e, _ = s.On(e) // what is refused stays as it is
		}
	case Look, Count, Offer, Again, Place, Withdraw, Claim, Acknowledge, Rebind, Cancel:
	}
	return e
}

// Request is what a session asks.
type Request struct {
	N     int64  `json:"n"` // of the session, from 1
	Steps []Step `json:"steps"`
}

// HandsOver reports whether the answer may hand an entry over.
func (r Request) HandsOver() bool {
	for _, s := range r.Steps {
		if s.Do == Offer || s.Do == Again {
			return true
		}
	}
	return false
}

// Answer is what the scheduler says to the request N.
type Answer struct {
	N int64 `json:"n"`
	// Steps is how many of the steps were carried out. If not all were, Code and Why say why the
	// next one was not.
	Steps int    `json:"steps"`
	Code  Code   `json:"code,omitempty"`
	Why   string `json:"why,omitempty"`
	// Known is true if Entry is what is in flight now; nil: nothing is.
	Known bool         `json:"known,omitempty"`
	Entry *queue.Entry `json:"entry,omitempty"`
	// Text and Shown are those of Entry, after steps by which the session learns of it.
	Text  *queue.Text  `json:"text,omitempty"`
	Shown *queue.Shown `json:"shown,omitempty"`
	// Queued is true if an entry is queued that Look has asked for.
	Queued bool `json:"queued,omitempty"`
	// Fate is what became of the entry that Look has named.
	Fate  Fate   `json:"fate,omitempty"`
	Depth *Depth `json:"depth,omitempty"` // of Count
	// Notes say what was repaired in the queue meanwhile, for a log.
	Notes []string `json:"notes,omitempty"`
}

// Fate is what became of an entry that is not in flight any more.
type Fate string

// The fates; "": it is in flight.
const (
	Done      Fate = "done"
	Suspended Fate = "suspended" // it waits for a person
	Undone    Fate = "undone"    // anything else
)

// Depth is how much is queued.
type Depth struct {
	Queued int      `json:"queued"`
	More   bool     `json:"more,omitempty"`  // at least so many
	Names  []string `json:"names,omitempty"` // of the first ones
}

// Code is why a step was not carried out.
type Code string

// The codes.
const (
	Stale    Code = "stale"     // queue.ErrStale
	State    Code = "state"     // queue.ErrState
	Unproven Code = "unproven"  // queue.ErrUnproven
	InFlight Code = "in-flight" // the entry in flight is another session's
	DiskFull Code = "disk-full" // also of what the user may use of it
	NoRoom   Code = "no-room"   // the machine has run out of something else
	Failed   Code = "failed"    // anything else
)

// codes are the errors that codes stand for: who hears one gets the first of its errors.
var codes = []struct {
	code Code
	are  []error
}{
	{Stale, []error{queue.ErrStale}},
	{State, []error{queue.ErrState}},
	{Unproven, []error{queue.ErrUnproven}},
	{DiskFull, []error{syscall.ENOSPC, syscall.EDQUOT}},
	{NoRoom, []error{syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN}},
}

// Refuse says in the answer why a step was not carried out.
func (a *Answer) Refuse(err error) {
	a.Code, a.Why = Failed, err.Error()
	for _, c := range codes {
		if slices.ContainsFunc(c.are, func(is error) bool { return errors.Is(err, is) }) {
			a.Code = c.code
			return
		}
	}
}

// Err is why not all steps were carried out; nil: they were. It matches the error that the code
// stands for.
func (a *Answer) Err() error {
	if a.Code == "" {
		return nil
	}
	r := &refusal{why: a.Why}
	for _, c := range codes {
		if c.code == a.Code {
			r.is = c.are[0]
		}
	}
	return r
}

type refusal struct {
	why string
	is  error
}

func (r *refusal) Error() string { return r.why }
func (r *refusal) Unwrap() error { return r.is }
