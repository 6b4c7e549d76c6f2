// Package queue holds what an entry of a queue is and what may become of it: its states, the
// steps between them, and what happens to one whose session is gone (Recover).
//
// It is pure: facts and a time go in, an entry comes out. Who stores entries does each step in
// one transaction (orchestrator/entries); an entry that a step refuses is unchanged.
//
//	            Offer               Advance    Advance      Advance
//	queued ───────────▶ offered ───────▶ taken ───▶ started ───▶ background
//	 ▲ ▲ ▲                 │                │           │             │
//	 │ │ └── Withdraw ─────┘           Acknowledge ◀─────┴─────────────┘ ──▶ done
//	 │ │                                    │
//	 │ │              Judge               Claim
//	 │ │  unproven ◀──────────── checking ◀─┘
//	 │ │     │                   │     │ Suspend
//	 │ │     └── OfferAgain      │     ▼
//	 │ │         (offered)       │  suspended
//	 │ └── Judge: not passed ────┼─────┘
//	 │                           └─ Judge: done or dead
//	 │
//	 ├── Recover: queued again, or dead, dropped, kept in flight
//	 ├── Retry of one that is dead
//	 └── Wake of one that was later
package queue

import (
	"errors"
	"fmt"
	"time"
)

// State is how far an entry has come.
type State string

// The states.
const (
	Queued     State = "queued"     // nobody has it
	Later      State = "later"      // its time has not come
	Offered    State = "offered"    // recorded, then handed over; nothing shows that it arrived
	Taken      State = "taken"      // the session demonstrably got it
	Started    State = "started"    // a tool was called since: side effects are possible
	Background State = "background" // its turn ended while background tasks run
	Checking   State = "checking"   // its turn ended; whether its work is done is being checked
	Unproven   State = "unproven"   // the check did not pass: it is to be handed over again
	Suspended  State = "suspended"  // its check has passed, and it waits for a person while the queue goes on
	Done       State = "done"       // acknowledged; proven, where a check is declared
	Dead       State = "dead"       // given up, for a Reason; a person may retry it
	Dropped    State = "dropped"    // its session was interrupted, and the policy forgets it
)

// States are all states, in the order in which an entry passes them.
var States = []State{Later, Queued, Offered, Taken, Started, Background, Checking, Unproven, Suspended, Done, Dead, Dropped}

// rank orders the states of an entry in flight; 0: it is not in flight.
func (s State) rank() int {
	switch s {
	case Offered:
		return 1
	case Taken:
		return 2
	case Started:
		return 3
	case Background:
		return 4
	case Checking:
		return 5
	case Unproven:
		return 6
	}
	return 0
}

// IsInFlight reports whether the entry is the one that the queue is at: no other is handed over.
func (s State) IsInFlight() bool { return s.rank() > 0 }

// IsInSession reports whether a session has the entry, or had it and is gone.
func (s State) IsInSession() bool { return s.rank() >= Offered.rank() && s.rank() <= Background.rank() }

// HasEnded reports whether nothing becomes of the entry any more, unless a person retries it.
func (s State) HasEnded() bool { return s == Done || s == Dead || s == Dropped }

// Lane is the order among entries that are queued: a lower one is handed over first.
type Lane int

// The lanes.
const (
	Returning Lane = iota // answered by a person after it was suspended, in the order of the answers
	Urgent                // send --urgent
	Normal
)

// Via says how an entry was handed over; the proof of its arrival depends on that.
type Via string

// The ways to hand over an entry.
const (
	ViaKickoff Via = "kickoff" // in the prompt argument the session started with
	ViaStop    Via = "stop"    // by a Stop hook
	ViaResume  Via = "resume"  // by going on with its conversation: see Entry.Rebind
)

// Reason says why an entry is dead. The list is closed.
type Reason string

// The reasons.
const (
	Interrupted Reason = "interrupted" // its session ended after a tool had run, or may have, policy deadletter
	Poison      Reason = "poison"      // it used up max-attempts
	Torn        Reason = "torn"        // a fragment of a JSON line
	TooLarge    Reason = "too-large"   // over max-entry; its beginning is kept
	DropByHand  Reason = "dropped"     // a person dropped it from the queue
	Cancelled   Reason = "cancelled"   // a person had its turn ended
	OverBudget  Reason = "over-budget" // it has cost more than an entry may
	Unread      Reason = "unread"      // its session has not read the file in which it was handed over, and no command line carries it
	Lost        Reason = "lost"        // of an adopted queue in files: somebody took it out of the inbox
	IDTaken     Reason = "id-taken"    // another prompt was accepted with its id

	MaxIterations Reason = "max-iterations"     // its checks have not passed within max-iterations
	MaxTime       Reason = "max-time"           // nor within max-time of work
	NoProgress    Reason = "no-progress"        // nothing has changed from one check to the next
	TooFast       Reason = "iteration-too-fast" // its iterations end as soon as they begin
	Forged        Reason = "forged"             // of an adopted queue in files: they called it done, and no check had passed
	NoCheck       Reason = "no-check"           // its envelope says that it is checked, and nobody knows by what
)

// What a step of an entry may be refused for.
var (
	// ErrState means that the entry is in a state in which the step cannot be.
	ErrState = errors.New("its state does not allow that")
	// ErrUnproven means that an entry is done only when its check has passed.
	ErrUnproven = errors.New("its check has not passed")
	// ErrStale means that the step is about another hand-over, or another check, than the
	// present one.
	ErrStale = errors.New("another hand-over or check is the present one")
	// ErrCancelled means that a person has cancelled the entry. It matches ErrState.
	ErrCancelled = fmt.Errorf("a person has cancelled it: %w", ErrState)
)

// Key names an entry in a store.
type Key struct {
	Agent string // the agent's permanent key
	Seq   int64  // among the agent's entries, in the order in which they were accepted
}

// Entry is a prompt with all that is known of it but its texts (Text, Reply, Shown).
type Entry struct {
	Key
	// Delivery is 12 hex digits, the same for each attempt; EntryID the SHA-256 of its line, the
	// same for equal lines (heartbeat-rs's). ID is what its sender named it, or "".
	Delivery, EntryID, ID string
	// Source is who sent it: "send", "AGENT/TRIGGER@LABEL", or "" where its line does not say.
	Source string

	State State
	Lane  Lane
	// Place is its order within the lane.
	Place int64
	// NotBefore is when it is to be queued; zero: at once.
	NotBefore, Accepted time.Time

	Tries
	Proving
	Handover Handover // the present one, or the last

	// Failure is the client's word for the API failure that ended its turn, or "". It is removed
	// when a session demonstrably goes on with the entry.
	Failure string
	Cancel  Cancel // what a person wants of it once its session is gone
	// Suspended is since when it waits for a person beside the queue; zero: it does not.
	Suspended time.Time
	// Conversation is the client's in which a suspended entry was worked on, and in which its next
	// iteration continues; "": it was not suspended, or that is not known.
	Conversation string

	// Ended is when it ended, Reason why it is dead, Cause what happened, in a line.
	Ended  time.Time
	Reason Reason
	Cause  string
}

// Tries counts how often an entry was handed over.
type Tries struct {
	Attempt int // hand-overs, from 1; iterations are none
	Repeats int // the interruptions that used up an attempt
	// Untouched is true while no session can have worked on an earlier attempt: none got it, or
	// the service refused it before any tool ran. On a first attempt it means nothing.
	Untouched bool
	// Unread is true once a session was handed over the name of a file with it, and has not read
	// that: it is to be the first prompt of another session.
	Unread bool
}

// IsRepeat reports whether a session may have worked on an earlier attempt: then this one's text
// must warn of it.
func (e Entry) IsRepeat() bool { return e.Attempt > 1 && !e.Untouched }

// Proving is what is known of the checks of an entry.
type Proving struct {
	// Checked is true if the entry is done only when a check of its work has passed.
	Checked bool
	// Iteration counts the hand-overs that a check has followed, and the present one: from 1; 0:
	// nothing is checked. Most is how many there may be, as the last verdict told; 0: any number.
	Iteration, Most int
	// Check is the number of the last check that was asked for, from 1. A verdict names it; one
	// that is void has used its number up.
	Check int
	// Claimed is when the session claimed to be done, while that is checked.
	Claimed time.Time
	// Interrupted is the state in which its session was interrupted, if the check is made for
	// that reason: if it does not pass, Recover decides by this state.
	Interrupted State
}

// Handover is one hand-over of an entry to a session.
type Handover struct {
	// N counts the hand-overs of the entry, from 1, those that were withdrawn included: who says
	// something about one names it.
	N       int64
	Session string
	Via     Via
	At      time.Time
	// PromptID is the client's, as far as it is known.
	PromptID string
	// Transcript and Offset say where the client's transcript would show it.
	Transcript string
	Offset     int64
	// File is the file whose name is handed over in place of a prompt that the client would cut,
	// or "".
	File string
	// Unmarked is true where a repeat is handed over without a word that it is one.
	Unmarked bool
}

// Text is what an entry says.
type Text struct {
	Prompt string // valid UTF-8, not blank
	// Line is the line of the inbox that it came in, without its newline; nil: the envelope that
	// Encode makes of it.
	Line []byte
	// Length is how long its line was, in bytes at least, where that is not here whole; 0: it is.
	Length int64
}

// Given is an entry that was handed over, with what its text is made of.
type Given struct {
	Entry
	Text
	Shown
}

// Reply is what a session said of an entry when its turn was over.
type Reply struct {
	Session   string
	Text      string   // the agent's last message, of MaxReply bytes at most
	Cut       bool     // it was longer
	Abandoned []string // background tasks that were still running, as "kind: description"
	At        time.Time
}

// Shown is what the next hand-over of an entry shows of its last check.
type Shown struct {
	Output string // what it said, as CleanOutput leaves it
	// Answers, if not "", is shown instead: what people have answered to the agent.
	Answers string
}
