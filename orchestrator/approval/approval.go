// Package approval keeps the requests that agents make to people, and the answers, in the
// fleet's store.
//
// Only an explicit yes is a yes. A request that is not known, was withdrawn or was not
// answered in time is not approved. The package does not check who asks or
// answers: its callers do (orchestrator.CheckPerson). It does not tell agents the answer or
// keep them from working; the scheduler does.
package approval

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/queue"
)

// State is what has become of a request.
type State string

// The states. A request is Asked until it has its answer. An answer never changes.
const (
	Asked     State = "asked"
	Approved  State = "approved"
	Rejected  State = "rejected"
	Expired   State = "expired"   // not answered in time: a no
	Withdrawn State = "withdrawn" // no longer needed
)

// Lasts is how long a request waits for its answer.
const Lasts = 7 * 24 * time.Hour

// The longest texts of a request that are kept, in bytes.
const (
	MaxQuestion = 1000
	MaxNote     = 4000
	MaxPayload  = 64 << 10
	maxName     = 100
)

// Request is a request to a person, made by an agent or by until: for the agent's work. All
// texts except Note come from the agent.
type Request struct {
	ID    string `json:"id"`
	Agent string `json:"agent"`
	// Key names the agent permanently; see memory.Identities.
	Key string    `json:"key,omitempty"`
	At  time.Time `json:"at"`
	// Until is when it expires.
	Until time.Time `json:"until"`
	// Aside is true if the agent's queue continues while it waits.
	Aside bool `json:"aside,omitempty"`
	// Name is a name of until.approve; "": the agent itself asks. Category is one of
	// config.ApprovalCategories, or "".
	Name     string       `json:"name,omitempty"`
	Category string       `json:"category,omitempty"`
	Question foreign.Text `json:"question"`
	// Payload shows the person what the question is about. Cut is true if it is only the
	// beginning.
	Payload foreign.Text `json:"payload,omitempty"`
	Cut     bool         `json:"cut,omitempty"`
	// Session is the session that asked. Entry is the delivery id of the entry that the
	// request is about, or that was worked on then; Iteration is the entry's iteration.
	Session   string `json:"session,omitempty"`
	Entry     string `json:"entry,omitempty"`
	Iteration int    `json:"iteration,omitempty"`
	// About, for a request with a Name, is a hash of what the person is shown: which check of
	// which claim, by which definition. The answer counts only for that.
	About string `json:"about,omitempty"`

	State State `json:"state"`
	// AnsweredAt, By and Note describe the answer: when, who or which rule, and why.
	AnsweredAt time.Time    `json:"answered_at,omitzero"`
	By         string       `json:"by,omitempty"`
	Note       foreign.Text `json:"note,omitempty"`
	// Person is true if a person answered.
	Person bool `json:"person,omitempty"`
	// Told is true once the agent has its answer, or needs none.
	Told bool `json:"told,omitempty"`
	// Needless is why the agent is not told an answer that it was owed.
	Needless foreign.Text `json:"needless,omitempty"`
}

// Answer is an answer to a request.
type Answer struct {
	State State
	By    string
	Note  string
	// Person is true if it comes from a person.
	Person bool
}

// ByPerson returns a person's answer.
func ByPerson(s State, note string) Answer {
	return Answer{State: s, By: "a person", Note: note, Person: true}
}

// Named returns a person's answer with what their token is called; "": they have none.
func (a Answer) Named(token string) Answer {
	if token != "" {
		a.By += " (" + token + ")"
	}
	return a
}

// Errors that callers act on.
var (
	// ErrNone means that there is no such request.
	ErrNone = errors.New("there is no such request")
	// ErrAnswered means that a request has its answer already.
	ErrAnswered = errors.New("it is answered already")
	// ErrTooLong means that a person's note is longer than MaxNote: its end would be lost.
	ErrTooLong error = &tooLongError{}
	// ErrTooMany means that an agent has made too many requests.
	ErrTooMany = errors.New("too many requests")
)

type tooLongError struct{}

func (*tooLongError) Error() string { return "the note is too long" }

// Hint says what to do.
func (*tooLongError) Hint() string {
	return "put what is longer into a file that the agent can read, and name it"
}

// Yes reports whether the request was approved.
func (r Request) Yes() bool { return r.State == Approved }

// Waits reports whether it waits for its answer.
func (r Request) Waits() bool { return r.State == Asked }

// HoldsUp reports whether a request keeps its agent from working until it is answered: one
// about an entry that is set aside does not. aside are the deliveries of those.
func (r Request) HoldsUp(aside []string) bool {
	return !r.Aside && (r.Entry == "" || !slices.Contains(aside, r.Entry))
}

// Owes reports whether the agent still has to be told the answer.
func (r Request) Owes() bool {
	return !r.Told && r.Name == "" && (r.State == Approved || r.State == Rejected || r.State == Expired)
}

// Words returns the words by which rules can name it: its Name and its Category.
func (r Request) Words() []string {
	return slices.DeleteFunc([]string{r.Name, r.Category}, func(w string) bool { return w == "" })
}

// Answered describes the answer on one line: what, and by whom.
func (r Request) Answered() string {
	switch r.State {
	case Approved, Rejected:
		text := string(r.State) + " by " + r.By
		if r.Note != "" {
			text += ": " + r.Note.String()
		}
		return text + r.untold()
	case Expired:
		return "not answered within " + days(r.Until.Sub(r.At)) + ", which is a no" + r.untold()
	case Withdrawn:
		return "withdrawn: " + r.Note.String()
	case Asked:
	}
	return "not answered yet"
}

// untold returns why the agent is not told the answer; "": it is told.
func (r Request) untold() string {
	if r.Needless == "" {
		return ""
	}
	return "; the agent is not told: " + r.Needless.String()
}

func days(d time.Duration) string {
	if n := int(d.Round(24*time.Hour) / (24 * time.Hour)); n > 1 {
		return fmt.Sprintf("%d days", n)
	}
	return d.Round(time.Minute).String()
}

// HandOver returns the prompt that tells the agent the answer.
func (r Request) HandOver() string {
	var b strings.Builder
	fmt.Fprintf(&b, "You have asked for an approval (%s): %s\n\n", r.ID, r.Question)
	switch r.State {
	case Approved:
		fmt.Fprintf(&b, "It was approved by %s. This is for what you have asked, and for nothing else.\n", r.By)
	case Rejected:
		fmt.Fprintf(&b, "It was rejected by %s. Do not do it.\n", r.By)
	case Asked, Expired, Withdrawn:
		fmt.Fprintf(&b, "It was %s. Do not do it.\n", r.Answered())
	}
	if r.Note != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(r.Note.Raw()))
	}
	return b.String()
}

// cleaned returns the request as it is kept: valid text of limited length.
func (r Request) cleaned() (Request, error) {
	r.Question = foreign.Text(clean(r.Question.Raw(), MaxQuestion))
	r.Name = clean(r.Name, maxName)
	r.Note = foreign.Text(clean(r.Note.Raw(), MaxNote))
	payload := strings.ToValidUTF8(r.Payload.Raw(), "\uFFFD")
	if len(payload) > MaxPayload {
		payload, r.Cut = cut(payload, MaxPayload), true
	}
	r.Payload = foreign.Text(payload)
	switch {
	case r.Question == "":
		return r, errors.New("cannot ask: the question is empty")
	case r.Category != "" && !slices.Contains(config.ApprovalCategories, r.Category):
		return r, fmt.Errorf("cannot ask: %q is not a category; the categories are %s", r.Category, strings.Join(config.ApprovalCategories, ", "))
	}
	return r, nil
}

// clean returns a text without surrounding space, as valid UTF-8 of at most most bytes.
func clean(text string, most int) string {
	return cut(strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")), most)
}

// Length is how many bytes of a text the register would keep if it had no limits.
func Length(text string) int { return len(clean(text, math.MaxInt)) }

// cut shortens a text to at most so many bytes without cutting a character.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const mark = "…"
	s, _ = queue.Cut(s, most-len(mark))
	return s + mark
}

func clipped(note string) foreign.Text { return foreign.Text(clean(note, MaxNote)) }
