package status

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
)

// ProofState says how far the check of an entry is.
type ProofState string

// The states of a check.
const (
	CheckQueued  ProofState = "check-queued"  // other checks run: max-checks
	CheckRuns    ProofState = "checking"      // it runs
	CheckAgain   ProofState = "check-again"   // it wants to be asked again later
	CheckTrouble ProofState = "check-trouble" // it could not be run, and is asked again
	CheckPaces   ProofState = "too-fast"      // it has not passed, and the agent has to wait
	CheckAwaits  ProofState = "approval"      // it has passed, and waits for a person
	CheckAsked   ProofState = "asked"         // the agent has asked people, and is to be told before it runs
)

// ProofStates returns all of them.
func ProofStates() []ProofState {
	return []ProofState{CheckQueued, CheckRuns, CheckAgain, CheckTrouble, CheckPaces, CheckAwaits, CheckAsked}
}

// Proof is how far the check of the entry in flight is.
type Proof struct {
	Delivery string     `json:"delivery"`
	State    ProofState `json:"state"`
	Since    time.Time  `json:"since"`
	// Until is when the check is asked again, or the entry handed over.
	Until time.Time `json:"until,omitzero"`
	// Iteration counts from 1. Most is how many there may be; 0: any number.
	Iteration int `json:"iteration"`
	Most      int `json:"most,omitempty"`
	// Why says more: why a check could not run, what the last one has said.
	Why foreign.Text `json:"why,omitempty"`
	// Vain is set where the check gave no answer, also while it is tried again.
	Vain *Vain `json:"vain,omitempty"`
}

// Vain is a check that gives no answer, again and again: its prompt is neither done nor
// given up.
type Vain struct {
	// As is check-again or check-trouble, as it was the last time, and Why says why.
	As    ProofState   `json:"as"`
	Since time.Time    `json:"since"`
	Times int          `json:"times"`
	Why   foreign.Text `json:"why,omitempty"`
	// Late is from when on a person is told of one that asks for later (stuck-after);
	// zero: never.
	Late time.Time `json:"late,omitzero"`
}

// NeedsPerson reports whether it does not look as if it will end by itself.
func (v *Vain) NeedsPerson(now time.Time) bool {
	return v != nil && (v.As == CheckTrouble || !v.Late.IsZero() && !now.Before(v.Late))
}

// Tries says how often and for how long.
func (v *Vain) Tries(now time.Time) string {
	text := "for " + Age(max(0, now.Sub(v.Since)))
	if v.Times > 1 {
		text += fmt.Sprintf(", %d times", v.Times)
	}
	return text
}

// String says how far it is, without a time.
func (p Proof) String() string {
	what := "iteration " + Of(p.Iteration, p.Most)
	switch p.State {
	case CheckQueued:
		what += ": its check waits for others (max-checks)"
	case CheckRuns:
		what += ": its check runs"
	case CheckAgain, CheckTrouble:
		return what + ": " + p.Why.String()
	case CheckPaces:
		what += " did not pass its check"
		if p.Why != "" {
			what += ": " + p.Why.String()
		}
		return what + "; the agent claims to be done within seconds, so the next iteration waits"
	case CheckAwaits:
		return what + " passed its check, and waits for approval"
	case CheckAsked:
		return what + ": its check waits for answers to what the agent has asked"
	}
	if p.Why != "" {
		what += ", last check: " + p.Why.String()
	}
	return what
}

// Of is a number out of as many as there may be: 3 of 10; without a limit 3.
func Of(n, most int) string {
	if most <= 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d of %d", n, most)
}

// Text is String with for how long, or until when.
func (p Proof) Text(now time.Time) string {
	switch again := p.Until.After(now) && p.State != CheckAwaits && p.State != CheckAsked; {
	case again && p.State == CheckPaces:
		return fmt.Sprintf("%s %s", p, Span(p.Until.Sub(now)))
	case again && p.Vain != nil && p.Vain.Times > 1:
		return fmt.Sprintf("%s, %s; again in %s", p, p.Vain.Tries(now), Span(p.Until.Sub(now)))
	case again:
		return fmt.Sprintf("%s; again in %s", p, Span(p.Until.Sub(now)))
	case p.Since.IsZero():
		return p.String()
	}
	return fmt.Sprintf("%s (%s)", p, Age(max(0, now.Sub(p.Since))))
}

// iterates says that an entry is worked on once more, and why.
func iterates(f *inbox.InFlight) string {
	text := "iteration " + Of(f.Iteration, f.Most)
	if gist := Gist(f.Output); gist != "" {
		text += ", last check: " + gist
	}
	return text
}

// Gist is the line of a check's output that says most, for one line: the last one that
// is not blank and that make has not added ("make: *** [Makefile:2: test] Error 1"), if
// there is one; "" where there is none at all.
func Gist(output string) string {
	last := ""
	for _, line := range slices.Backward(strings.Split(output, "\n")) {
		line = strings.TrimSpace(line)
		if line != "" && !ofMake.MatchString(line) {
			last = line
			break
		}
		last = cmp.Or(last, line)
	}
	return foreign.Short(last, 120)
}

// ofMake is a line that make says itself, below what its programs have said: what it
// gives up, and which directory it leaves.
var ofMake = regexp.MustCompile(`^g?make(\[\d+\])?: (\*\*\*|Leaving directory) `)

// proof is what keeps the agent's work from being proven.
func (a Agent) proof(now time.Time) []sign {
	p := a.Proof
	if p == nil || !p.Vain.NeedsPerson(now) {
		return nil
	}
	which := p.Delivery
	if f := a.InFlight; f != nil && f.ID != "" && f.DeliveryID == p.Delivery {
		which = f.ID // what send has printed
	}
	return []sign{{
		what: CheckFails, since: p.Vain.Since, text: "prompt " + which + ": its check has given no answer " + p.Vain.Tries(now), why: p.Vain.Why.String(),
		do: step{command: "doctor " + a.Agent}, then: step{command: "resume " + a.Agent, remark: "tries at once"},
	}}
}
