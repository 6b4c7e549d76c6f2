// Package usage counts what sessions cost, by entry: turns, tokens by class, and the
// client's own figure in dollars. The sums are pure; the records are the table usage of the
// fleet's store.
//
// A record is what was spent since the record before it: records add up. A session's
// shim makes them, and the scheduler writes them. If the shim was killed, the rest is counted
// from the client's transcripts (Rest): everything there is counted once. What cannot
// be seen is counted as unseen: a turn that was cut off before its answer was written,
// one that a killed client had no time to write down, and a turn whose cost was not
// told. What the client asks for itself is in no transcript, but in its own count at its
// end. A figure in dollars may be of several entries, as where turns take less than half a
// second: they share it by their tokens.
//
// It is not an invoice: dollars are at list price, even on a subscription, and an agent
// can write its own transcripts.
package usage

import (
	"strings"
	"time"

	"heartbeat/hook/client"
)

// Sum is what something has cost. Sums add up.
type Sum struct {
	// Turns begin with a prompt and end with a Stop; only those that the model has
	// answered count. Calls are its answers: one more for each round of tools.
	Turns int64 `json:"turns,omitempty"`
	Calls int64 `json:"calls,omitempty"`
	client.Tokens
	// Cost is in US dollars at list price, as the client calculates it.
	Cost float64 `json:"cost,omitempty"`
	// Unseen are turns, and ends of turns, without known figures; they are not in
	// Turns. Unpriced are those of Turns whose cost was not told.
	Unseen   int64 `json:"unseen,omitempty"`
	Unpriced int64 `json:"unpriced,omitempty"`
	// Guessed are those of Turns whose model has no price that the client knows: it has
	// used another model's.
	Guessed int64 `json:"guessed,omitempty"`
}

// Plus returns the sum of two.
func (s Sum) Plus(t Sum) Sum {
	return Sum{
		s.Turns + t.Turns, s.Calls + t.Calls, s.Tokens.Plus(t.Tokens), s.Cost + t.Cost, s.Unseen + t.Unseen, s.Unpriced + t.Unpriced,
		s.Guessed + t.Guessed,
	}
}

// Minus returns what was spent beyond what was counted before.
func (s Sum) Minus(t Sum) Sum {
	return Sum{
		s.Turns - t.Turns, s.Calls - t.Calls, s.Tokens.Minus(t.Tokens), s.Cost - t.Cost, s.Unseen - t.Unseen, s.Unpriced - t.Unpriced,
		s.Guessed - t.Guessed,
	}
}

// Of says what something was spent on.
type Of struct {
	// Delivery is the delivery id of the entry, which all its attempts share; "":
	// no entry was in flight.
	Delivery string `json:"delivery,omitempty"`
	Entry    string `json:"entry,omitempty"`  // the id that its sender gave it
	Source   string `json:"source,omitempty"` // AGENT/TRIGGER@LABEL, or the word of who sent it
	Attempt  int    `json:"attempt,omitempty"`
}

// Trigger names what put the entry into the queue: AGENT/TRIGGER, or the word of who
// sent it; "": nothing is known of it.
func (o Of) Trigger() string {
	trigger, _, _ := strings.Cut(o.Source, "@")
	return trigger
}

// Record is what was spent on an entry since the record before it.
type Record struct {
	At      time.Time `json:"at"`
	Agent   string    `json:"agent"`
	Session string    `json:"session"`
	Number  int64     `json:"number"` // counts the session's records, from 1
	Account string    `json:"account,omitempty"`
	Group   string    `json:"group,omitempty"` // the agent's, then
	Of
	Sum
	// Kept is where the next count continues.
	Kept Kept `json:"kept,omitzero"`
	// Key is that of the agent, which it keeps under another name; set where records are read.
	Key string `json:"-"`
}

// Kept is what it takes to continue counting a session whose shim was killed: that of its
// last record, with the transcripts of all of them.
type Kept struct {
	// Began is when a session began that continues a conversation; zero: it has
	// begun its own.
	Began time.Time `json:"began,omitzero"`
	// Transcript is the client's file, and From the size that it had before. Only the
	// first record of a file has them; it has spent nothing.
	Transcript string `json:"transcript,omitempty"`
	From       int64  `json:"from,omitempty"`
	// Total is what the client said last that the conversation has cost.
	Total float64 `json:"total,omitempty"`
	// Unknown is true where it has not said so, and the conversation is an older one.
	Unknown bool `json:"unknown,omitempty"`
}
