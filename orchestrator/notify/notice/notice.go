// Package notice decides what is told about a fleet, and when. It is pure: facts
// (what is true now, what has happened) and what was told before go in, notices come
// out, and the memory of what was told changes with them.
//
// A fact that lasts is told once when it has held for a moment, again in growing
// intervals while it lasts, and once more when it has been over for a while. One that
// comes and goes is one fact: the more often it returns, the longer its end has to
// last to be believed. What happens again and again is told in growing intervals,
// with how often it was.
package notice

import "time"

// Kind names what a notice is about: one of status's words for troubles, or one of
// these.
type Kind string

// The kinds that are not about an agent's state.
const (
	Login       Kind = "login"             // the service refuses an agent's account, and only a person can help
	QueueStuck  Kind = "queue-stuck"       // the same prompt has been the first of a queue for stuck-after
	GivenUp     Kind = "given-up"          // prompts became dead letters
	Crashed     Kind = "scheduler-crashed" // the scheduler was started after one that did not end in order
	TargetFails Kind = "target-fails"      // what was to be told does not arrive
	PingFails   Kind = "ping-fails"        // a watch outside of this machine gets no sign of life
	DiskFull    Kind = "disk-full"         // nothing can be queued or acknowledged on it
	Finding     Kind = "finding"           // doctor has found something new
	Reply       Kind = "reply"             // what an agent said to a prompt
	Waits       Kind = "waits"             // a prompt whose sender waits for the reply is not worked on
	Test        Kind = "test"
)

// Fact is something that is true now.
type Fact struct {
	// Key tells the fact from all others, also after a restart.
	Key   string
	Agent string // "": it is about the fleet
	Kind  Kind
	// Urgent is true where it needs a person.
	Urgent bool
	Since  time.Time
	// Text is what it is, on one line, Do what to type.
	Text, Do string
	// Link is the address of the page that shows it, or "".
	Link string
	// Slow is true where it takes a new run up to half an hour to see that it is still
	// true. Once is true where it is not told again while it lasts.
	Slow, Once bool
	// To and Not are those of its notices.
	To, Not string
	// Of is what it is about, where that may change while the key stays the same.
	Of string
	// Quiet is true where it is neither told now nor over.
	Quiet bool
}

// Event is what a notice says of its fact.
type Event string

// The events.
const (
	Began    Event = "began"
	Lasts    Event = "lasts"
	Ended    Event = "ended"
	Happened Event = "happened"
)

// Notice is something to be told.
type Notice struct {
	// Key is the same each time that this notice is sent, and no other notice's.
	Key    string    `json:"key"`
	Event  Event     `json:"event"`
	Kind   Kind      `json:"kind"`
	Agent  string    `json:"agent,omitempty"`
	Urgent bool      `json:"urgent"`
	At     time.Time `json:"at"`
	Since  time.Time `json:"since,omitzero"`
	// Over is when it was over, where Event is Ended: At is later.
	Over time.Time `json:"over,omitzero"`
	Text string    `json:"text"`
	Do   string    `json:"do,omitempty"`
	// Link is the address of the page that shows it, or "".
	Link string `json:"link,omitempty"`
	// Times is how often it has happened, or has come and gone, if more than once.
	Times int `json:"times,omitempty"`
	// Entry is the id of the prompt that a reply belongs to, Reply what was said.
	Entry string `json:"entry,omitempty"`
	Reply string `json:"reply,omitempty"`
	// To is the one target that it is for; "": all that want it. Not is one that it is
	// not for.
	To  string `json:"to,omitempty"`
	Not string `json:"not,omitempty"`
	// Of is what it is about that may have gone since: dead letters.
	Of []string `json:"of,omitempty"`
}
