package session

import (
	"slices"
	"strconv"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
)

// Stray is a prompt for which a session began a turn, and that neither its queue nor a person
// has given. The agent can forge it.
type Stray struct {
	Number int       `json:"number"` // in the session, from 1
	At     time.Time `json:"at"`
	// By is one of client.Giver, From what that is called, or "".
	By   client.Giver `json:"by"`
	From string       `json:"from,omitempty"`
	// Prompt is how it begins.
	Prompt string `json:"prompt"`
}

// keptStrays is how many are kept, the newest; mostStray bounds how much of a prompt is.
const (
	keptStrays = 8
	mostStray  = 200
)

// stray notes a prompt, at the end of those that there are.
func (c *course) stray(s *client.Stray, now time.Time) {
	number := 1
	if n := len(c.strays); n > 0 {
		number = c.strays[n-1].Number + 1
	}
	noted := Stray{number, now, client.Giver(foreign.Short(string(s.By), maxName)), foreign.Short(s.From, maxName), foreign.Short(s.Prompt, mostStray)}
	c.strays = append(slices.Clone(c.strays[max(0, len(c.strays)+1-keptStrays):]), noted) // a report may have them
}

// Who says who has given the prompt.
func (s Stray) Who() string {
	from := ""
	if s.From != "" {
		from = " (" + s.From + ")"
	}
	switch s.By {
	case client.Timetable:
		return "the client's own timetable"
	case client.OtherSession:
		return "another session" + from
	case client.Monitor:
		return "a Monitor that it runs"
	}
	return "what the client calls " + strconv.Quote(string(s.By)) + from
}

// StraysText says who has given a session prompts past its queue, as "1 prompt came past the
// queue, from another session (b): \"do it\"".
func StraysText(all []Stray) string {
	last := all[len(all)-1]
	said := "from " + last.Who() + ": " + strconv.Quote(last.Prompt)
	if last.Number == 1 {
		return "1 prompt came past the queue, " + said
	}
	return strconv.Itoa(last.Number) + " prompts came past the queue, the last " + said
}
