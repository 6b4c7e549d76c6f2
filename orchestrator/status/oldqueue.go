package status

import (
	"path/filepath"
	"time"

	"heartbeat/hook/settings"
)

// OldQueue is a queue that an agent of the fleet had, and that no agent of its file has now,
// with prompts in it: its agent was removed, or got another dir or inbox. Nobody works on them.
type OldQueue struct {
	Agent string `json:"agent"` // who had it
	Dir   string `json:"dir"`
	Home  string `json:"-"` // Dir/.heartbeat
	Inbox string `json:"inbox"`
	// Shared is true if an agent of the file has the directory, with another inbox.
	Shared bool `json:"shared,omitempty"`
	// Since is when that was noted first, or zero.
	Since time.Time `json:"since,omitzero"`
	// Prompts are at least those that are left: queued, in flight, set aside, or waiting
	// for their time.
	Prompts int `json:"prompts"`
	// Problem is why that cannot be told, or "".
	Problem string `json:"problem,omitempty"`
}

// Empty reports whether nothing is left.
func (q OldQueue) Empty() bool { return q.Prompts == 0 && q.Problem == "" }

// Text says what is left where.
func (q OldQueue) Text() string {
	if q.Inbox == "" {
		return q.Problem
	}
	if q.Problem != "" {
		return "agent " + q.Agent + " had the queue " + q.Inbox + ", which cannot be read: " + q.Problem
	}
	return "agent " + q.Agent + " has left " + plural(q.Prompts, "prompt") + " in " + q.Inbox + ", which no agent of the file has now"
}

// Do says what to do about it.
func (q OldQueue) Do() string {
	files := settings.Quote(q.Inbox) + " " + settings.Quote(filepath.Join(filepath.Dir(q.Inbox), "."+filepath.Base(q.Inbox))) + ".*"
	switch {
	case q.Inbox == "":
		return "heartbeat apply begins a new record, without the queues that agents had before"
	case q.Problem != "":
		return "correct that, or delete it"
	case q.Shared:
		return "write inbox: " + q.Inbox + " again until it is empty, or delete its queue: rm -f -- " + files
	case q.Inbox == filepath.Join(q.Home, "inbox.jsonl"):
		return "declare an agent with dir: " + q.Dir + " again, or delete its queue: rm -rf -- " + settings.Quote(q.Home)
	}
	return "declare an agent with dir: " + q.Dir + " and inbox: " + q.Inbox + " again, or delete its queue: rm -rf -- " + settings.Quote(q.Home) + " " + files
}

// sign is the trouble.
func (q OldQueue) sign() sign {
	return sign{what: OldQueues, part: q.Inbox, since: q.Since, text: q.Text(), do: step{words: q.Do()}}
}
