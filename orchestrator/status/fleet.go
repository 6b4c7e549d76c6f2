package status

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"heartbeat/orchestrator/lastrun"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/store"
)

// Fleet is everything that is known about a fleet.
type Fleet struct {
	Fleet string `json:"fleet"`
	// Scheduler is the run that answered, or null.
	Scheduler *Run `json:"scheduler"`
	// Mute is a run that does not answer, or is null.
	Mute *Mute `json:"mute,omitempty"`
	// LastRun is how the last run ended; nil: one has the fleet, or none is known.
	LastRun *lastrun.Past `json:"last_run,omitempty"`
	// Begun is since when a run begins that does not take commands yet; zero: none does.
	Begun time.Time `json:"begun,omitzero"`
	// Untold are the targets that do not get their notices.
	Untold []Untold `json:"untold,omitempty"`
	// Unpinged says that the ping of the run does not arrive, or is null.
	Unpinged *Unpinged `json:"unpinged,omitempty"`
	// OldQueues are queues that no agent has any more, with prompts in them.
	OldQueues []OldQueue `json:"old_queues,omitempty"`
	// Logins are those of agents' clients that end within two days.
	Logins []preflight.Ending `json:"ending_logins,omitempty"`
	// Doors are the addresses that the run serves, or is to serve.
	Doors []Door `json:"doors,omitempty"`
	// Store is what is wrong with the fleet's store.
	Store  []store.Trouble `json:"store,omitempty"`
	Agents []Agent         `json:"agents"`
}

// Untold is a target of the fleet's notify that does not get its notices: since when,
// and why.
type Untold struct {
	Target string    `json:"target"`
	Since  time.Time `json:"since"`
	Why    string    `json:"why"`
	// Unnamed is true if the file does not name it any more, and replies wait for it.
	Unnamed bool `json:"unnamed,omitempty"`
}

// Do is what to type, after how a command line of ours begins.
func (u Untold) Do() string {
	if u.Unnamed {
		return "validate"
	}
	return "notify test " + u.Target
}

// Unpinged is since when the ping, a sign of life for a watch outside of this machine, does
// not arrive, and why.
type Unpinged struct {
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// MendPing is what to do about that.
const MendPing = "correct the ping in the file, or the file that it names"

// Troubles returns the troubles of the fleet, whose Agent is "", and of all agents,
// most urgent first.
func (f Fleet) Troubles(ours string, now time.Time) []Trouble {
	all := []Trouble{}
	if m := f.Mute; m != nil {
		s := sign{what: NoAnswer, since: m.Seen, text: m.Text(now), do: step{words: m.Do(ours)}, then: step{words: m.Then()}}
		all = append(all, s.of("", ours))
	}
	if p := f.LastRun; p != nil && p.Died() && !p.Once {
		all = append(all, sign{what: SchedulerEnded, since: p.Ended, text: EndText(*p), do: step{command: "run"}}.of("", ours))
	}
	for _, t := range f.Store {
		all = append(all, sign{what: StoreFails, part: string(t.Kind), since: t.Since, text: t.Text, do: step{words: t.Do}}.of("", ours))
	}
	for _, d := range f.Doors {
		if d.Problem != "" {
			s := sign{what: NotListening, part: d.Address, since: d.Since, text: d.down() + " for " + Age(now.Sub(d.Since)), why: d.Problem, do: step{words: d.Mend(ours)}}
			all = append(all, s.of("", ours))
		}
	}
	for _, u := range f.Untold {
		s := sign{what: TargetFails, part: u.Target, since: u.Since, text: "notices to " + u.Target + " have failed for " + Age(now.Sub(u.Since)), why: u.Why, do: step{command: u.Do()}}
		all = append(all, s.of("", ours))
	}
	if u := f.Unpinged; u != nil {
		s := sign{what: PingFails, since: u.Since, text: "the ping has not arrived for " + Age(now.Sub(u.Since)), why: u.Why, do: step{words: MendPing}}
		all = append(all, s.of("", ours))
	}
	for _, q := range f.OldQueues {
		all = append(all, q.sign().of("", ours))
	}
	for _, l := range f.Logins {
		all = append(all, sign{what: LoginEnds, part: l.File, text: l.Text(), do: step{words: l.Fix}}.of("", ours))
	}
	for _, a := range f.Agents {
		all = append(all, a.Troubles(ours, now)...)
	}
	return sorted(all)
}

// EndText says of a run that has ended how, and what follows.
func EndText(p lastrun.Past) string {
	if p.Once {
		return p.Text()
	}
	return p.Text() + "; since then nothing fires and no prompt is worked on"
}

// NotRunText says why no scheduler answers, where that is no trouble: one begins, or the last
// one ended on purpose; "" otherwise.
func (f Fleet) NotRunText(now time.Time) string {
	p := f.LastRun
	switch {
	case f.Scheduler != nil:
		return ""
	case !f.Begun.IsZero():
		return "a scheduler begins, for " + Span(now.Sub(f.Begun)) + ": it takes no commands yet"
	case p == nil || p.Died() && !p.Once:
		return ""
	}
	return "not running: " + p.Text() + ", " + Age(max(0, now.Sub(p.Ended))) + " ago"
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
	counts := map[State]int{}
	dead, more, waits := 0, false, 0
	for _, a := range f.Agents {
		counts[a.Shown()]++
		dead, more, waits = dead+a.Dead, more || a.DeadMore, waits+a.Depth.Entries
	}
	text := plural(len(f.Agents), "agent")
	if states := statesText(counts); states != "" {
		text += ": " + states
	}
	if waits > 0 {
		text += " · " + strconv.Itoa(waits) + " queued"
	}
	if dead > 0 || more {
		text += " · " + letters(dead, more)
	}
	return text
}
