package status

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Word names a kind of trouble.
type Word string

// The kinds, in the order in which they are shown: most urgent first.
const (
	QueueAsks      Word = "queue-asks"     // the queue does not know where to continue
	DirectoryLost  Word = "directory-lost" // it is not the one that the run has locked
	Unusable       Word = "unusable"       // its directory, its queue or what is kept of it cannot be used
	IsHeld         Word = "held"           // after failures, or until a person fixes the cause
	LostPrompts    Word = "queue-lost"     // accepted prompts went with their folder
	ServiceFails   Word = "stuck"          // for stuck-after
	TriggerFails   Word = "trigger-fails"  // and queues nothing
	IsParked       Word = "parked"         // its account's limit
	OverBudget     Word = "over-budget"    // what may be spent in the hour or the day is spent
	BacksOff       Word = "backing-off"    // a session or its start failed
	CannotWork     Word = "cannot-work"    // what the next run would hold it for
	WasHeld        Word = "was-held"       // when its last run ended
	WasFailing     Word = "was-failing"    // when its last run ended
	HasDeadLetters Word = "dead-letters"   // entries were given up
	IsPaused       Word = "paused"         // by a person or by an agent's session
	// Reasons why a prompt waits that are not the agent's trouble.
	NobodyRuns Word = "not-running" // no scheduler runs the agent
	Behind     Word = "behind"      // a person, a slot, background tasks or other hooks come first
)

// Words are all of them, in their order.
func Words() []Word {
	return []Word{
		QueueAsks, DirectoryLost, Unusable, IsHeld, LostPrompts, ServiceFails, TriggerFails, IsParked, OverBudget, BacksOff,
		CannotWork, WasHeld, WasFailing,
		HasDeadLetters, IsPaused, NobodyRuns, Behind,
	}
}

// Alarming reports whether something is wrong. What somebody did on purpose, and
// what ends by itself, is not alarming.
func (w Word) Alarming() bool {
	switch w {
	case IsPaused, IsParked, OverBudget, BacksOff, WasFailing, HasDeadLetters, NobodyRuns, Behind:
		return false
	}
	return true
}

// Person reports whether the trouble needs a person, because it does not end by
// itself.
func (w Word) Person() bool { return w != IsParked && w != OverBudget && w != BacksOff && w != Behind }

// Trouble is something that keeps an agent from working, or that a person has to
// know about.
type Trouble struct {
	Agent string    `json:"agent"`
	What  Word      `json:"what"`
	Since time.Time `json:"since,omitzero"`
	// Text says what it is, for how long and why; Do what to type.
	Text string `json:"text"`
	Do   string `json:"do"`
}

// sign is one trouble, before it gets the agent's name and the command's prefix.
type sign struct {
	what  Word
	since time.Time
	text  string
	do    string // the command without its prefix (ours)
}

// Troubles returns the agent's troubles, most urgent first. ours is the beginning
// of a command line for this fleet: the program and its -f flag.
func (a Agent) Troubles(ours string, now time.Time) []Trouble {
	var all []Trouble
	for _, s := range slices.Concat(a.place(now), a.wish(now), a.work(now), a.triggers(now), a.leftover()) {
		do := s.do
		switch {
		case s.what == IsHeld && a.Fix != "":
			do = a.Fix.String()
		case s.what == CannotWork:
		case s.what.refused() && a.Login() != "":
			do = fmt.Sprintf("%s; then %s resume %s", a.Login(), ours, a.Agent)
		case do != "":
			do = ours + " " + s.do
		}
		all = append(all, Trouble{Agent: a.Agent, What: s.what, Since: s.since, Text: s.text, Do: do})
	}
	order := Words()
	slices.SortStableFunc(all, func(x, y Trouble) int {
		return cmp.Compare(slices.Index(order, x.What), slices.Index(order, y.What))
	})
	return all
}

// Obstacle returns why the agent does not work on its queue now, and what to type;
// false when a prompt only waits for the prompts before it.
func (a Agent) Obstacle(ours string, now time.Time) (Trouble, bool) {
	if a.State == Stopped {
		return Trouble{Agent: a.Agent, What: NobodyRuns, Text: "no scheduler runs the agent", Do: ours + " run"}, true
	}
	for _, t := range a.Troubles(ours, now) {
		if t.What.stops() {
			return t, true
		}
	}
	if note := a.Note(now); note != "" {
		return Trouble{Agent: a.Agent, What: Behind, Since: a.Since, Text: note, Do: ours + " status " + a.Agent}, true
	}
	return Trouble{}, false
}

// stops reports whether the trouble keeps the agent from getting prompts.
func (w Word) stops() bool {
	switch w {
	case QueueAsks, DirectoryLost, Unusable, IsHeld, IsParked, OverBudget, BacksOff, IsPaused:
		return true
	}
	return false
}

// refused reports whether the trouble can be that the service refuses the login.
func (w Word) refused() bool { return w == IsHeld || w == IsParked || w == WasHeld || w == WasFailing }

// cause is the command that shows why sessions of the agent have failed.
func (a Agent) cause() string {
	if shown := a.Evidence(); strings.HasSuffix(shown, " --raw") {
		return shown
	}
	return "doctor " + a.Agent
}

// place returns what is wrong with the agent's directory and queue.
func (a Agent) place(now time.Time) (all []sign) {
	switch {
	case a.Asks:
		all = append(all, sign{QueueAsks, a.Since, a.Problem, "answer " + a.Agent})
	case a.Problem != "":
		all = append(all, sign{what: Unusable, text: a.Problem, do: "doctor " + a.Agent})
	}
	if a.Lost != "" && a.Lost != a.Problem {
		all = append(all, sign{DirectoryLost, a.Since, a.Lost, "doctor " + a.Agent})
	}
	if l := a.QueueLost; l != nil {
		all = append(all, sign{
			LostPrompts, l.At, fmt.Sprintf("its queue was lost %s ago: %s", Age(now.Sub(l.At)), l.String()),
			"resume " + a.Agent + "   # when you have seen it",
		})
	}
	return all
}

// wish returns why the agent is stopped: paused by somebody, or held.
func (a Agent) wish(now time.Time) []sign {
	lasts := func(what string, since time.Time) string {
		return fmt.Sprintf("%s for %s: %s", what, Age(now.Sub(since)), a.Reason)
	}
	switch {
	case !a.Paused.IsZero():
		text := fmt.Sprintf("paused by %s for %s", a.WhoPaused(), Age(now.Sub(a.Paused)))
		if end := a.PauseEnd(now); end != "" {
			text += ", " + end
		}
		return []sign{{IsPaused, a.Paused, text, "resume " + a.Agent}}
	case a.Asks:
	case a.State == Held:
		return []sign{{IsHeld, a.Since, lasts("held", a.Since), a.cause() + "   # then, when its cause is gone: resume " + a.Agent}}
	case a.State == Stopped && a.Blocked != nil && !a.Lasts:
		return []sign{{CannotWork, a.Since, "the next run holds it: " + a.Blocked.Why, a.Blocked.Fix}}
	case a.State == Stopped && a.Was == Held:
		text, do := "held when its last run ended: "+a.Reason.String(), a.cause()
		if a.Lasts {
			text, do = lasts("held, also by the next run,", a.Since), a.cause()+"   # then, when its cause is gone: resume "+a.Agent
		}
		return []sign{{WasHeld, a.Since, text, do}}
	}
	return nil
}

// work returns why the agent's sessions do not succeed.
func (a Agent) work(now time.Time) []sign {
	left := Span(max(0, a.Until.Sub(now)))
	switch {
	case a.Stuck != nil && a.Stuck.Told:
		return []sign{{ServiceFails, a.Stuck.Since, fmt.Sprintf("the service has failed for %s: %s", Age(now.Sub(a.Stuck.Since)), a.Stuck.Why), "logs " + a.Agent}}
	case !a.Paused.IsZero():
	case a.State == Parked && a.OverBudget:
		return []sign{{
			OverBudget, a.Since, fmt.Sprintf("parked for another %s: %s", left, a.Reason),
			"usage " + a.Agent + " --by entry   # to go on sooner: a larger budget in the file, then heartbeat reload",
		}}
	case a.State == Parked:
		return []sign{{
			IsParked, a.Since, fmt.Sprintf("parked for another %s: %s", left, a.Reason),
			"resume " + a.Agent + "   # tries at once; otherwise it waits",
		}}
	case a.State == Stopped && a.Was == BackingOff:
		return []sign{{WasFailing, a.Since, "its sessions failed when its last run ended: " + a.Reason.String(), a.cause()}}
	case a.State == BackingOff:
		return []sign{{
			BacksOff, a.Since, fmt.Sprintf("backing off for another %s: %s", left, a.Reason),
			"logs " + a.Agent + " --raw   # what its last session has shown",
		}}
	}
	return nil
}

// triggers returns the triggers that fail.
func (a Agent) triggers(now time.Time) (all []sign) {
	for _, f := range a.Failing {
		text := fmt.Sprintf("trigger %s has failed for %s", f.Trigger, Age(now.Sub(f.Since)))
		if f.Times > 1 {
			text += fmt.Sprintf(", %d times", f.Times)
		}
		if !f.Retry.IsZero() {
			text += fmt.Sprintf(", next try in %s", Age(max(0, f.Retry.Sub(now))))
		}
		all = append(all, sign{TriggerFails, f.Since, text + ": " + short(f.Why.String(), longestWhy), "doctor " + a.Agent + "   # then, when its cause is gone: trigger " + a.Agent + " " + f.Trigger})
	}
	return all
}

// leftover returns the dead letters.
func (a Agent) leftover() []sign {
	if a.Dead == 0 {
		return nil
	}
	text := plural(a.Dead, "dead letter")
	if a.DeadMore {
		text = "at least " + text
	}
	return []sign{{what: HasDeadLetters, text: text, do: "dead-letter " + a.Agent}}
}

// Troubles returns the troubles of all agents, most urgent first.
func (f Fleet) Troubles(ours string, now time.Time) []Trouble {
	all := []Trouble{}
	for _, a := range f.Agents {
		all = append(all, a.Troubles(ours, now)...)
	}
	order := Words()
	slices.SortStableFunc(all, func(x, y Trouble) int {
		return cmp.Compare(slices.Index(order, x.What), slices.Index(order, y.What))
	})
	return all
}

// StoppingText says since when the scheduler stops, what it waits for and until
// when; "" while it does not.
func (f Fleet) StoppingText(now time.Time) string {
	if f.Scheduler == nil || f.Scheduler.Stopping == nil {
		return ""
	}
	var waits []string
	for _, a := range f.Agents {
		switch a.State {
		case Starting, Running, Ending:
			waits = append(waits, a.Agent)
		}
	}
	stop := f.Scheduler.Stopping
	text := fmt.Sprintf("stopping for %s: it waits for the sessions of %s", Span(now.Sub(stop.Since)), plural(len(waits), "agent"))
	if len(waits) > 0 && len(waits) <= mostNamed {
		text += " (" + strings.Join(waits, ", ") + ")"
	}
	if left := stop.Until.Sub(now); left > 0 {
		text += ", at most another " + Span(left)
	}
	return text
}

// mostNamed is how many agents are named in a line.
const mostNamed = 5

// Unrun counts the prompts of agents that no scheduler runs.
func (f Fleet) Unrun() (prompts int) {
	for _, a := range f.Agents {
		if a.State == Stopped {
			prompts += a.Depth.Entries
			if a.InFlight != nil {
				prompts++
			}
		}
	}
	return prompts
}

// Headline sums up the fleet in one line: how many agents are in each state, how
// many prompts are queued, how many were given up.
func (f Fleet) Headline() string {
	counts := map[string]int{}
	dead, more, waits := 0, false, 0
	for _, a := range f.Agents {
		state := string(a.State)
		if !a.Paused.IsZero() && (a.State == Held || a.State == Stopped) {
			state = string(IsPaused)
		}
		counts[state]++
		dead, more, waits = dead+a.Dead, more || a.DeadMore, waits+a.Depth.Entries
	}
	var states []string
	for _, s := range append(States(), Stopped, State(IsPaused)) {
		if n := counts[string(s)]; n > 0 {
			states = append(states, strconv.Itoa(n)+" "+string(s))
		}
	}
	text := plural(len(f.Agents), "agent")
	if len(states) > 0 {
		text += ": " + strings.Join(states, ", ")
	}
	if waits > 0 {
		text += " · " + strconv.Itoa(waits) + " queued"
	}
	switch {
	case more:
		text += " · at least " + plural(dead, "dead letter")
	case dead > 0:
		text += " · " + plural(dead, "dead letter")
	}
	return text
}

// longestWhy limits, in characters, how much of a failing trigger's message is shown.
const longestWhy = 200

func short(text string, runes int) string {
	if all := []rune(text); len(all) > runes {
		return string(all[:runes-1]) + "…"
	}
	return text
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return strconv.Itoa(n) + " " + thing + "s"
}
