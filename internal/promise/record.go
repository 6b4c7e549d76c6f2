// Package promise says what "nothing is lost, nothing is doubled" means: a
// record of what witnesses saw of a fleet, and the judge of such a record. Soak,
// crash and the fleet simulation write this record and ask this judge; what is
// said of bytes and files of one harness stays with it.
//
// A witness knows without asking heartbeat: who sends prompts, the model that is
// given them, the tools that run, whoever kills and cuts the power. Only at the
// end heartbeat is asked for its dead letters, its replies and what is left, by the
// commands that a person types ([Ask], [Told]). Nothing here knows how a queue is kept:
// who replaces it does not touch who judges it.
//
// A record is JSON lines, one [Fact] each, in any order but this: a sender's
// prompts, and what a session is given, stand in the order in which it happened.
// A record in a file can be judged again:
//
//	go run ./internal/soak --judge FILE
//
// The judge takes facts and returns findings ([Wrong] lists them). It opens
// nothing, and knows no time but what the facts say.
package promise

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Kind says what a fact is.
type Kind string

// The kinds. A prompt's last word from its sender counts: Meant (or Unknown),
// Accepted or Refused.
const (
	Declared Kind = "declared" // an agent with its Policy
	Meant    Kind = "meant"    // a sender is about to send a Prompt with a Text
	Accepted Kind = "accepted" // the sender knows that it is queued, or may rely on it
	Refused  Kind = "refused"  // the sender knows that it is not
	Unknown  Kind = "unknown"  // the sender was killed, or failed: it may be queued or not

	Given   Kind = "given"    // the model of a Session was given a Text
	ToolRan Kind = "tool-ran" // a tool of a Session ran, and its hook could say so
	Filed   Kind = "filed"    // a dead letter stands in its file, with a Reason
	Replied Kind = "replied"  // a prompt was acknowledged; Text is the reply
	Left    Kind = "left"     // it is queued, or in flight, when all should be done

	Interrupted Kind = "interrupted" // a session can have been interrupted
	Requeued    Kind = "requeued"    // a person had prompts queued once more
	Acted       Kind = "acted"       // something else was done, which explains nothing
	Seen        Kind = "seen"        // the harness saw what no fault explains
)

// Fact is one line of a record. Which fields it has goes by its Kind; all texts
// are for people, unless a comment says what the judge does with them.
type Fact struct {
	At    time.Time `json:"at"`
	Until time.Time `json:"until,omitzero"` // of what takes a while, or has an effect as long
	Kind  Kind      `json:"kind"`
	// Agent is whom it is about; in what was done to the fleet "" is all of them.
	Agent string `json:"agent,omitempty"`
	// Prompt is a prompt's name, which no other prompt has; "" is none that
	// anybody could name.
	Prompt string `json:"prompt,omitempty"`
	// Sender sends its prompts one after the other, and so are they given; "" is
	// one who has no order.
	Sender string `json:"sender,omitempty"`
	What   string `json:"what,omitempty"` // how it was sent; what was done
	Note   string `json:"note,omitempty"`
	Text   string `json:"text,omitempty"` // see [Text]

	Session  string `json:"session,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`  // of Given: what the text says of itself; see [Unmark]
	Delivery string `json:"delivery,omitempty"` // of Filed and Replied: its id
	Reason   Reason `json:"reason,omitempty"`   // of Filed

	// Replies are what a model can say to a prompt, see [Text]; none: anything.
	Replies []string `json:"replies,omitempty"`
	// SelfInterrupting is a prompt that ends its own session, so that it may be
	// given at any time again.
	SelfInterrupting bool `json:"self_interrupting,omitempty"`
	// Lasting is an Interrupted that explains any number of repeats; others
	// explain one for each agent.
	Lasting bool `json:"lasting,omitempty"`
	// Unwitnessed is an Interrupted during which a tool can run without a note
	// of it.
	Unwitnessed bool `json:"unwitnessed,omitempty"`

	// Of Declared: Policy is its `on-orphan`. Attempts is how often a prompt that
	// is filed as poison was given at the least; 0 where an attempt may fail
	// before a model is asked. FilesUnproven is an agent whose hooks cannot prove
	// that a prompt arrived: it may be filed as interrupted without having been
	// given.
	Policy        Policy `json:"policy,omitempty"`
	Attempts      int    `json:"attempts,omitempty"`
	FilesUnproven bool   `json:"files_unproven,omitempty"`
	// Acknowledges is an agent whose replies are all in the record: what it was given
	// and neither answered nor filed is lost.
	Acknowledges bool `json:"acknowledges,omitempty"`
}

// Record is what the witnesses saw. Lines count from 1.
type Record []Fact

// longest is how much of a text stands in a record as it is, in bytes.
const longest = 300

// Text is a text as records have it: in quotes; a long one by its ends, length
// and hash. Two texts are equal when these are.
func Text(text string) string {
	if len(text) <= longest {
		return strconv.Quote(text)
	}
	return fmt.Sprintf("%q…%q (%d bytes, sha256 %x)", text[:longest/2], text[len(text)-longest/2:], len(text), sha256.Sum256([]byte(text)))
}

var mark = regexp.MustCompile(`(?s)^(.*)\n\n\[heartbeat: attempt ([0-9]+) of this entry;[^\]]*\]$`)

// Unmark takes the words off a prompt that say the how manieth attempt it is;
// without them it is the first.
func Unmark(text string) (prompt string, attempt int) {
	m := mark.FindStringSubmatch(text)
	if m == nil {
		return text, 1
	}
	attempt, _ = strconv.Atoi(m[2])
	return m[1], attempt
}

// Write adds a fact's line, with one write.
func (f Fact) Write(w io.Writer) error {
	line, err := json.Marshal(f)
	if err == nil {
		_, err = w.Write(append(line, '\n'))
	}
	return err
}

// Read reads a record. A last line without its end is passed over: its writer
// is at it, or was killed.
func Read(from io.Reader) (r Record, err error) {
	for in := json.NewDecoder(from); ; {
		var f Fact
		switch err := in.Decode(&f); {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return r, nil
		case err != nil:
			return nil, fmt.Errorf("cannot read line %d: %w", len(r)+1, err)
		}
		r = append(r, f)
	}
}

// Prove is a finding with the beginnings of the lines that prove it.
func (r Record) Prove(f Finding) string {
	var proof strings.Builder
	proof.WriteString(f.String())
	for _, n := range f.Lines {
		line, _ := json.Marshal(r[n-1]) // strings and times are always encoded
		proof.WriteString(fmt.Sprintf("\n\t%d: %.*s", n, longest, line))
	}
	return proof.String()
}
