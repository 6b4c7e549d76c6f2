package hook

import (
	"slices"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
)

// Answer is what a Stop hook of ours has decided. The list is closed.
type Answer string

// The answers.
const (
	Gave      Answer = "gave"           // an entry was handed over
	GaveAgain Answer = "gave-again"     // the one in flight, which had not arrived
	GaveOn    Answer = "gave-iteration" // the one in flight, whose check has not passed
	Checks    Answer = "checks"         // the entry is being checked, and the hook waits for the verdict
	Waits     Answer = "waits"          // the hook waits for work
	IdleTurn  Answer = "idle-turn"      // a paid turn without an entry (on-idle: tick)
	LetGo     Answer = "let-go"         // the turn ends
	HeldBack  Answer = "held-back"      // nothing can be handed over, for the reason that is given
	WentOn    Answer = "went-on"        // another Stop hook made the client continue after ours let it end
)

// AllAnswers are all of them.
func AllAnswers() []Answer {
	return []Answer{Gave, GaveAgain, GaveOn, Checks, Waits, IdleTurn, LetGo, HeldBack, WentOn}
}

// Answered is one answer.
type Answered struct {
	At     time.Time `json:"at"`
	Answer Answer    `json:"answer"`
	// Done is the delivery id of the entry that was acknowledged at this Stop, Entry
	// that of the one that was handed over; "" for none.
	Done  string `json:"done,omitempty"`
	Entry string `json:"entry,omitempty"`
	Why   string `json:"why,omitempty"`
}

// KeptAnswers is how many answers a record has, the newest; MaxWhy bounds why.
const (
	KeptAnswers = 8
	MaxWhy      = 200
)

// answers notes what this Stop hook has decided. A call for anything else notes
// nothing.
func (t *tick) answers(a Answer, why string) {
	if t.event.Name != client.Stop || t.event.AgentID != "" {
		return
	}
	n := Answered{At: time.Now(), Answer: a, Done: t.done, Why: foreign.Short(why, MaxWhy)}
	if w := t.Record.Work; w != nil && (a == Gave || a == GaveAgain || a == GaveOn || a == Checks) {
		n.Entry = w.DeliveryID
	}
	t.done = ""
	t.Record.note(n)
}

func (r *Record) note(a Answered) {
	r.Answers = append(slices.Clone(r.Answers[max(0, len(r.Answers)+1-KeptAnswers):]), a)
}

// whyLetGo is why a turn ends, by the record as the decision has left it.
func (r *Record) whyLetGo() string {
	switch {
	case r.Ruling != nil && r.Ruling.Detail != "":
		return string(r.Ruling.Why) + ": " + r.Ruling.Detail
	case r.Ruling != nil:
		return string(r.Ruling.Why)
	}
	switch r.Phase {
	case Background:
		return "background tasks run"
	case Settling:
		return "other Stop hooks may make the client continue"
	case Turn:
		return "a person has submitted something"
	case Unattended:
		return "nothing more can be handed over"
	case Checking:
		return "its work is still being checked"
	case Starting, Waiting, Ending, Ended:
	}
	return ""
}
