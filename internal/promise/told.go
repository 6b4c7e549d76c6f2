package promise

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Policy is what an agent's `on-orphan` says.
type Policy string

// The policies.
const (
	Retry      Policy = "retry"
	DeadLetter Policy = "deadletter"
	Drop       Policy = "drop"
)

// Reason is why a prompt was given up, as its dead letter says it.
type Reason string

// The reasons that a judge, or a test, asks about.
const (
	ByInterruption Reason = "interrupted"
	ByPoison       Reason = "poison"
	ByTorn         Reason = "torn"
	ByDrop         Reason = "dropped"
	ByCancel       Reason = "cancelled"
)

// MaxReply is how many bytes of a reply heartbeat keeps.
const MaxReply = 64 << 10

// Reply is a line of an agent's outbox.jsonl, or one that `replies -o json` prints.
type Reply struct {
	Agent          string    `json:"agent"` // "" in the file
	DeliveryID     string    `json:"delivery_id"`
	ID             string    `json:"id"`
	Source         string    `json:"source"`
	Session        string    `json:"session"`
	Attempt        int       `json:"attempt"`
	AcknowledgedAt time.Time `json:"acknowledged_at"`
	Reply          string    `json:"reply"`
	Abandoned      []string  `json:"abandoned"`
	Verdict        *struct {
		Iteration int `json:"iteration"`
	} `json:"verdict"` // nil where no check had to pass
}

// Dead is a line of an agent's .dead-letter.jsonl, or one of the entries that
// `dead-letter -o json` lists.
type Dead struct {
	DeliveryID string    `json:"delivery_id"`
	ID         string    `json:"id"`
	RawLine    string    `json:"raw_line"`
	RawBase64  string    `json:"raw_b64"` // of a line that is no valid UTF-8
	Prompt     string    `json:"prompt"`  // "" in the file
	Reason     Reason    `json:"reason"`
	Attempts   int       `json:"attempts"`
	At         time.Time `json:"at"`
}

// Raw returns the line that was given up; "" where it is not kept.
func (d Dead) Raw() string {
	if raw, err := base64.StdEncoding.DecodeString(d.RawBase64); err == nil && len(raw) > 0 {
		return string(raw)
	}
	return d.RawLine
}

// Queued is one of the entries that `inbox -o json` lists. State is "queued", or how far
// its hand-over has come.
type Queued struct {
	State      string `json:"state"`
	ID         string `json:"id"`
	DeliveryID string `json:"delivery_id"`
	Source     string `json:"source"`
	Attempt    int    `json:"attempt"`
	Prompt     string `json:"prompt"`
}

// InFlight reports whether it is handed over, or about to be.
func (q Queued) InFlight() bool { return q.State != "queued" }

// Told is what heartbeat tells a person of one agent's queue.
type Told struct {
	Dead    []Dead
	Replies []Reply
	Queued  []Queued
	// Tail is true if a line without its end stands in the inbox.
	Tail bool
}

// Lines reads JSON lines, such as those of outbox.jsonl ([Reply]) and of
// .dead-letter.jsonl ([Dead]). A line that is no JSON, as a crash leaves one, is
// passed over.
func Lines[T any](from io.Reader) (all []T, err error) {
	for in := bufio.NewReader(from); ; {
		line, err := in.ReadBytes('\n')
		var v T
		if err == nil && json.Unmarshal(line, &v) == nil {
			all = append(all, v)
		}
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		}
	}
}

// Ask runs `heartbeat ARGS…` and returns what it prints on stdout. An exit status that is
// not 0 is an error.
type Ask func(args ...string) ([]byte, error)

// mostTold is how many entries, and replies, of an agent are asked for.
const mostTold = "1000000"

// Queues asks about the queues of all agents. Agents with nothing to tell are left out.
func (ask Ask) Queues() (map[string]Told, error) {
	all := map[string]Told{}
	var queues struct{ Agents []list[Queued] }
	var dead struct{ Agents []list[Dead] }
	var status struct {
		Agents []struct {
			Agent string
			Depth struct{ Tail bool }
		}
	}
	_, err := ask.data(&queues, "inbox", "--limit", mostTold)
	_, deadErr := ask.data(&dead, "dead-letter")
	_, statusErr := ask.data(&status, "status")
	replies, repliesErr := ask.data(new(any), "replies", "-n", mostTold)
	for _, l := range queues.Agents {
		t := all[l.Agent]
		t.Queued = l.Entries
		all[l.Agent] = t
	}
	for _, l := range dead.Agents {
		t := all[l.Agent]
		t.Dead = l.Entries
		all[l.Agent] = t
	}
	for _, a := range status.Agents {
		if a.Depth.Tail {
			t := all[a.Agent]
			t.Tail = true
			all[a.Agent] = t
		}
	}
	done, linesErr := Lines[Reply](bytes.NewReader(replies))
	for _, r := range done {
		t := all[r.Agent]
		t.Replies = append(t.Replies, r)
		all[r.Agent] = t
	}
	return all, errors.Join(err, deadErr, statusErr, repliesErr, linesErr)
}

// Inbox asks what is in flight and queued for one agent.
func (ask Ask) Inbox(agent string) ([]Queued, error) {
	var l list[Queued]
	_, err := ask.data(&l, "inbox", agent, "--limit", mostTold)
	return l.Entries, err
}

// DeadLetters asks for those of one agent.
func (ask Ask) DeadLetters(agent string) ([]Dead, error) {
	var l list[Dead]
	_, err := ask.data(&l, "dead-letter", agent)
	return l.Entries, err
}

// list is what one agent has of a kind.
type list[T any] struct {
	Agent   string
	Entries []T
}

// data runs a command with -o json, reads the data of its envelope, the last line, and
// returns the lines before. What the command could not read is an error.
func (ask Ask) data(into any, args ...string) (before []byte, err error) {
	out, err := ask(append(args, "-o", "json", "--heartbeat-ms", "0")...)
	if err != nil {
		return nil, err
	}
	out = bytes.TrimSuffix(out, []byte("\n"))
	at := bytes.LastIndexByte(out, '\n') + 1
	var unread struct{ Unread []string }
	envelope := struct {
		Data     json.RawMessage
		Warnings []string
	}{}
	err = json.Unmarshal(out[at:], &envelope)
	if err == nil {
		err = errors.Join(json.Unmarshal(envelope.Data, into), json.Unmarshal(envelope.Data, &unread))
	}
	if err == nil && (len(unread.Unread) > 0 || args[0] == "replies" && len(envelope.Warnings) > 0) {
		err = fmt.Errorf("not everything could be read: %q", envelope.Warnings)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what heartbeat %s says: %w", args[0], err)
	}
	return out[:at], nil
}

// Teller makes facts of what heartbeat tells about an agent's queue.
type Teller struct {
	Agent string
	// Named returns the name of the prompt that a text is, or has in it.
	Named func(text string) string
	// Text is how texts are compared; nil: [Text].
	Text func(text string) string
}

// Facts are the dead letters, the replies and what is left.
func (s Teller) Facts(told Told) (r Record) {
	if s.Text == nil {
		s.Text = Text
	}
	for _, d := range told.Dead {
		r = append(r, Fact{At: d.At, Kind: Filed, Agent: s.Agent, Prompt: s.Named(d.Raw()), Delivery: d.DeliveryID, Reason: d.Reason, Text: s.Text(d.Raw())})
	}
	for _, d := range told.Replies {
		name := cmp.Or(s.Named(d.ID), s.Named(d.Source), s.Named(d.Reply))
		r = append(r, Fact{At: d.AcknowledgedAt, Kind: Replied, Agent: s.Agent, Prompt: name, Delivery: d.DeliveryID, Session: d.Session, Text: s.Text(d.Reply)})
	}
	left := Fact{At: time.Now(), Kind: Left, Agent: s.Agent}
	for _, e := range told.Queued {
		left.Prompt, left.Note = cmp.Or(s.Named(e.Prompt), s.Named(e.ID), s.Named(e.Source)), "queued"
		if e.InFlight() {
			left.Note = "in flight: " + e.State
		}
		r = append(r, left)
	}
	if told.Tail {
		left.Prompt, left.Note = "", "a line without its end"
		r = append(r, left)
	}
	return r
}
