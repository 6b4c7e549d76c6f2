package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/orchestrator/session"
)

// Word names a kind of trouble.
type Word string

// The kinds. Words has the order in which they are shown.
const (
	NoAnswer        Word = "no-answer"        // a scheduler runs the fleet, and does not answer
	SchedulerEnded  Word = "scheduler-ended"  // nobody wanted it to, and nobody runs the fleet
	StoreFails      Word = "store-fails"      // what the fleet remembers cannot be kept, or read
	QueueAsks       Word = "queue-asks"       // the queue does not know where to continue
	DirectoryLost   Word = "directory-lost"   // it is not the one that the run has locked
	Unusable        Word = "unusable"         // its directory, its queue or what is kept of it cannot be used
	NeedsApproval   Word = "approval"         // a person has to say yes or no
	IsHeld          Word = "held"             // after failures, or until a person fixes the cause
	LostPrompts     Word = "queue-lost"       // accepted prompts went with their folder
	ServiceFails    Word = "stuck"            // for stuck-after
	TriggerFails    Word = "trigger-fails"    // and queues nothing
	RefusesRequests Word = "requests-refused" // by a webhook, for what is wrong with them
	NotSent         Word = "not-sent"         // prompts whose time has come (send --at)
	NotListening    Word = "not-listening"    // an address is not served
	IsParked        Word = "parked"           // its account's limit
	OverBudget      Word = "over-budget"      // what may be spent in the hour or the day is spent
	TargetFails     Word = "target-fails"     // somebody who is to be told of the fleet is not
	PingFails       Word = "ping-fails"       // whoever watches from outside gets no sign of life
	OldQueues       Word = "old-queue"        // prompts are left where no agent looks any more
	ClientDrifts    Word = "client-drift"     // its client does not do what heartbeat relies on
	LoginEnds       Word = "login-ends"       // within two days, if nobody logs in again
	CheckFails      Word = "check-trouble"    // what proves its work cannot be run
	BacksOff        Word = "backing-off"      // a session or its start failed
	CannotWork      Word = "cannot-work"      // what the next run would hold it for
	WasHeld         Word = "was-held"         // when its last run ended
	WasFailing      Word = "was-failing"      // when its last run ended
	QueueFull       Word = "queue-full"       // max-queue: more is refused
	HasDeadLetters  Word = "dead-letters"     // entries were given up
	ToolsRefused    Word = "tools-refused"    // no rule allows them
	ServerFails     Word = "mcp-server"       // it did not connect: its tools were not there
	StrayPrompts    Word = "stray-prompt"     // neither the queue nor a person has given it
	IsPaused        Word = "paused"           // by a person or by an agent's session
	TriggerPaused   Word = "trigger-paused"   // by a person or by an agent's session; the agent works
	// Reasons why a prompt waits that are not the agent's trouble.
	NobodyRuns Word = "not-running" // no scheduler runs the agent
	Behind     Word = "behind"      // a person, a slot, background tasks or other hooks come first
)

// Words are all of them, in their order.
func Words() []Word {
	return []Word{
		NoAnswer, SchedulerEnded, StoreFails, QueueAsks, DirectoryLost, Unusable, NeedsApproval, IsHeld, LostPrompts, ServiceFails, TriggerFails, RefusesRequests, NotSent, NotListening, TargetFails, PingFails, OldQueues, LoginEnds, IsParked, OverBudget, CheckFails, ClientDrifts, BacksOff,
		CannotWork, WasHeld, WasFailing,
		QueueFull, HasDeadLetters, StrayPrompts, ToolsRefused, ServerFails, IsPaused, TriggerPaused, NobodyRuns, Behind,
	}
}

// Alarming reports whether something is wrong. What somebody did on purpose, and
// what ends by itself, is not alarming.
func (w Word) Alarming() bool {
	switch w {
	case IsPaused, TriggerPaused, IsParked, OverBudget, BacksOff, WasFailing, HasDeadLetters, StrayPrompts, ToolsRefused, ServerFails, LoginEnds, NobodyRuns, Behind:
		return false
	}
	return true
}

// Person reports whether the trouble needs a person, because it does not end by
// itself.
func (w Word) Person() bool {
	return w != IsParked && w != OverBudget && w != BacksOff && w != QueueFull && w != NotSent && w != Behind
}

// Troubles returns the agent's troubles, most urgent first. ours is the beginning
// of a command line for this fleet: the program and its -f flag.
func (a Agent) Troubles(ours string, now time.Time) []Trouble {
	var all []Trouble
	for _, s := range slices.Concat(a.place(now), a.approvals(now), a.wish(now), a.work(now), a.drift(), a.proof(now), a.triggers(now), a.pausedTriggers(now), a.refuses(now), a.late(now), a.full(), a.leftover(now)) {
		all = append(all, s.of(a.Agent, ours))
	}
	return sorted(all)
}

// Obstacle returns why the agent does not work on its queue now, and what to type;
// false when a prompt only waits for the prompts before it.
func (a Agent) Obstacle(ours string, now time.Time) (Trouble, bool) {
	if a.State == Stopped {
		t := Trouble{Agent: a.Agent, What: NobodyRuns, Text: "no scheduler runs the agent", Do: ours + " run"}
		if !a.Paused.IsZero() {
			t.Text += ", and it is paused by " + a.WhoPaused()
			t.Do = ours + " resume " + a.Agent + ", then " + t.Do
		}
		return t, true
	}
	for _, t := range a.Troubles(ours, now) {
		if t.Stops() {
			return t, true
		}
	}
	if note := a.Note(now); note != "" {
		return Trouble{Agent: a.Agent, What: Behind, Since: a.Since, Text: note, Do: ours + " status " + a.Agent}, true
	}
	return Trouble{}, false
}

// Down reports whether the trouble keeps the agent from working for long: with
// while-down: refuse it takes no prompts then.
func (t Trouble) Down() bool {
	return t.What == NobodyRuns || t.Stops() && t.What != BacksOff
}

// Stops reports whether the trouble keeps the agent from getting prompts.
func (t Trouble) Stops() bool { return t.What.Stops() && !t.aside }

// Stops reports whether such a trouble keeps the agent from getting prompts, or one that is set
// aside from its end.
func (w Word) Stops() bool {
	switch w {
	case QueueAsks, DirectoryLost, Unusable, NeedsApproval, IsHeld, IsParked, OverBudget, BacksOff, IsPaused:
		return true
	}
	return false
}

// cause is the command that shows why sessions of the agent have failed.
func (a Agent) cause() step {
	if shown := a.Evidence(); strings.HasSuffix(shown, " --raw") {
		return step{command: shown}
	}
	return step{command: "doctor " + a.Agent}
}

// mend is what to do about a failure that Reason tells.
func (a Agent) mend() step {
	_, login := a.Refused()
	switch {
	case a.Fix != "":
		return step{words: a.Fix.String()}
	case login != "":
		return step{words: login}
	}
	if w, is := a.ofService(); is && w.Do != "nothing" && !strings.HasPrefix(w.Do, "heartbeat ") {
		return step{words: w.Do}
	}
	return a.cause()
}

// resume ends a hold.
func (a Agent) resume() step {
	if a.GoesOn {
		return byItself
	}
	return step{command: "resume " + a.Agent, remark: "when its cause is gone"}
}

// place returns what is wrong with the agent's directory and queue.
func (a Agent) place(now time.Time) (all []sign) {
	doctor := step{command: "doctor " + a.Agent}
	switch {
	case a.Asks:
		all = append(all, sign{what: QueueAsks, since: a.Since, why: a.Problem, do: step{command: "answer " + a.Agent}})
	case a.absent:
		all = append(all, sign{what: Unusable, why: a.Problem, do: step{command: "apply " + a.Agent, remark: "makes it"}})
	case a.Problem != "":
		all = append(all, sign{what: Unusable, why: a.Problem, do: doctor})
	}
	if a.Lost != "" && a.Lost != a.Problem && !a.absent {
		all = append(all, sign{what: DirectoryLost, since: a.Since, why: a.Lost, do: doctor})
	}
	if u := a.Untended; u != nil && a.Problem == "" && a.Lost == "" {
		all = append(all, sign{
			what: Unusable, part: "approvals", since: u.Since, text: "approvals have been stuck for " + Age(now.Sub(u.Since)), why: u.Why.String(),
			do: doctor, aside: true,
		})
	}
	if l := a.QueueLost; l != nil {
		all = append(all, sign{
			what: LostPrompts, since: l.At, text: fmt.Sprintf("its queue was lost %s ago", Age(now.Sub(l.At))), why: l.String(),
			do: step{command: "resume " + a.Agent, remark: "when you have seen it"},
		})
	}
	if t := a.TakenOut; t != nil {
		all = append(all, t.sign(a.Agent, a.Asks, now))
	}
	return all
}

// wish returns why the agent is stopped: paused by somebody, or held.
func (a Agent) wish(now time.Time) []sign {
	lasts, why := Age(now.Sub(a.Since)), a.Why()
	switch {
	case !a.Paused.IsZero():
		text := fmt.Sprintf("paused by %s for %s", a.WhoPaused(), Age(now.Sub(a.Paused)))
		if end := a.PauseEnd(now); end != "" {
			text += ", " + end
		}
		return []sign{{what: IsPaused, since: a.Paused, text: text, cause: a.WhoPaused(), do: step{command: "resume " + a.Agent}}}
	case a.Asks, a.awaitsApproval():
	case a.State == Held:
		return []sign{{what: IsHeld, since: a.Since, text: "held for " + lasts, why: why, do: a.mend(), then: a.resume()}}
	case a.State == Stopped && a.Blocked != nil && !a.Lasts:
		return []sign{{what: CannotWork, since: a.Since, text: "no session could start", why: a.Blocked.Why, do: step{words: a.Blocked.Fix}}}
	case a.State == Stopped && a.Was == Held && a.Lasts:
		return []sign{{what: WasHeld, since: a.Since, text: "held for " + lasts + ", and by the next run", why: why, do: a.mend(), then: a.resume()}}
	case a.State == Stopped && a.Was == Held && strings.HasPrefix(a.Reason.Raw(), ForApproval):
	case a.State == Stopped && a.Was == Held:
		return []sign{{what: WasHeld, since: a.Since, text: "held when its last run ended", why: why, do: a.mend()}}
	}
	return nil
}

// work returns why the agent's sessions do not succeed.
func (a Agent) work(now time.Time) []sign {
	left, why := Span(max(0, a.Until.Sub(now))), a.Why()
	refused, _ := a.Refused()
	switch {
	case a.Stuck != nil && a.Stuck.Told:
		return []sign{{
			what: ServiceFails, since: a.Stuck.Since, text: "the service has failed for " + Age(now.Sub(a.Stuck.Since)), why: a.Stuck.Why,
			do: step{command: "logs " + a.Agent},
		}}
	case !a.Paused.IsZero():
	case a.Budget != nil:
		return a.overspent(now)
	case a.State == Parked && a.OverBudget:
		return []sign{{
			what: OverBudget, since: a.Since, text: "parked for another " + left, why: why,
			do:   step{command: "usage " + a.Agent + " --by entry", remark: "what it was spent on"},
			then: step{command: "reload", remark: "after a larger budget in the file; otherwise it continues by itself"},
		}}
	case a.State == Parked && a.LeavesRoom:
		return []sign{{
			what: IsParked, since: a.Since, text: "parked for another " + left, why: why,
			do: step{command: "reload", remark: "after a change of limits: in the file; otherwise it continues by itself"},
		}}
	case a.State == Parked && refused != "":
		return []sign{{what: IsParked, since: a.Since, text: "parked for another " + left, why: why, do: a.mend(), then: a.resume()}}
	case a.State == Parked:
		return []sign{{
			what: IsParked, since: a.Since, text: "parked for another " + left, why: why,
			do: step{command: "resume " + a.Agent, remark: "tries at once; otherwise it continues by itself"},
		}}
	case a.State == Stopped && a.Was == BackingOff:
		return []sign{{what: WasFailing, since: a.Since, text: "its sessions failed when its last run ended", why: why, do: a.mend()}}
	case a.State == BackingOff:
		return []sign{{what: BacksOff, since: a.Since, text: "backing off for another " + left, why: why, do: a.mend(), then: byItself}}
	}
	return nil
}

// drift returns what the agent's client does otherwise than heartbeat relies on, where it
// is not held for that.
func (a Agent) drift() []sign {
	c := a.Client
	if c == nil || a.State == Held && a.Fix == c.Fix {
		return nil
	}
	return []sign{{
		what: ClientDrifts, text: c.Client.String() + " does not do what heartbeat relies on", why: c.Breaks.String(), do: step{words: c.Fix.String()},
	}}
}

// pausedTriggers returns the triggers that somebody has paused.
func (a Agent) pausedTriggers(now time.Time) (all []sign) {
	for _, t := range a.PausedTriggers {
		text := fmt.Sprintf("trigger %s is paused by %s for %s", t.Trigger, WhoPaused(t.By), Age(max(0, now.Sub(t.Since))))
		if end := pauseEnd(t.Until, now); end != "" {
			text += ", " + end
		}
		all = append(all, sign{what: TriggerPaused, part: t.Trigger, since: t.Since, text: text, do: step{command: "resume " + a.Agent + " --trigger " + t.Trigger}})
	}
	return all
}

// triggers returns the triggers that fail, each for a reason of its own.
func (a Agent) triggers(now time.Time) (all []sign) {
	for _, f := range a.Failing {
		if a.Problem != "" && strings.Contains(f.Why.String(), a.Problem) {
			continue // it cannot queue anything because of what place says
		}
		text := fmt.Sprintf("trigger %s has failed for %s", f.Trigger, Age(now.Sub(f.Since)))
		if f.Times > 1 {
			text += fmt.Sprintf(", %d times", f.Times)
		}
		if !f.Retry.IsZero() {
			text += fmt.Sprintf(", next try in %s", Age(max(0, f.Retry.Sub(now))))
		}
		s := sign{what: TriggerFails, part: f.Trigger, since: f.Since, text: text, why: short(f.Why.String(), longestWhy), do: step{command: "doctor " + a.Agent}}
		if !f.Requested { // otherwise doctor knows more, and the next request tries it again
			s.do = step{command: "trigger " + a.Agent + " " + f.Trigger, remark: "when you have mended that"}
		}
		all = append(all, s)
	}
	return all
}

// refuses returns the requests that the agent's webhooks have refused.
func (a Agent) refuses(now time.Time) (all []sign) {
	for _, r := range a.RefusedRequests {
		text := fmt.Sprintf("%s (since %s ago, the last %s ago)", r.Text(), Age(max(0, now.Sub(r.Since))), Age(max(0, now.Sub(r.Last))))
		part := r.Trigger + "/" + string(r.Sender) + "/" + string(r.Fault)
		all = append(all, sign{
			what: RefusesRequests, part: part, cause: part, since: r.Since, text: text,
			stranger: r.Fault.ByStranger(r.Sender), do: step{words: r.Fault.Check()},
		})
	}
	return all
}

// late returns that prompts cannot be queued whose time has come.
func (a Agent) late(now time.Time) []sign {
	u := a.Unsent
	if u == nil || a.Problem != "" && strings.Contains(u.Why.String(), a.Problem) {
		return nil
	}
	return []sign{{
		what: NotSent, since: u.Since, text: "prompts whose time has come cannot be queued for " + Span(max(0, now.Sub(u.Since))), why: u.Why.String(),
		do: step{command: "next " + a.Agent, remark: "which prompts; it is tried again"},
	}}
}

// full returns that nothing more is taken into the queue.
func (a Agent) full() []sign {
	if a.MaxQueue == 0 || a.Depth.Entries < a.MaxQueue {
		return nil
	}
	text := fmt.Sprintf("its queue is full: %d of %d prompts; more is refused", a.Depth.Entries, a.MaxQueue)
	if a.Depth.Entries > a.MaxQueue {
		text = fmt.Sprintf("its queue is over max-queue: %d of %d prompts, appended to the inbox itself; more is refused", a.Depth.Entries, a.MaxQueue)
	}
	return []sign{{what: QueueFull, text: text, do: step{command: "inbox " + a.Agent}}}
}

// leftover returns what was given up, and what was refused.
func (a Agent) leftover(now time.Time) []sign {
	return slices.Concat(a.deadLetters(now), a.strayed(), a.refusals(), a.unconnected())
}

// strayed returns the prompts that came past the queue.
func (a Agent) strayed() []sign {
	if len(a.Strays) == 0 {
		return nil
	}
	last := a.Strays[len(a.Strays)-1]
	return []sign{{
		what: StrayPrompts, since: last.At, text: "in its last session " + session.StraysText(a.Strays), cause: last.Prompt, do: step{command: "doctor " + a.Agent},
	}}
}

// unconnected returns the servers of MCP whose tools the agent did without.
func (a Agent) unconnected() []sign {
	if len(a.Servers) == 0 {
		return nil
	}
	return []sign{{
		what: ServerFails, text: "in its last session " + session.ServersText(a.Servers), cause: a.Servers[0].Name + a.Servers[0].Why, do: step{command: "doctor " + a.Agent},
	}}
}

// refusals returns the tools that the agent's rules do not allow.
func (a Agent) refusals() []sign {
	if len(a.Denied) == 0 {
		return nil
	}
	var rules []string
	for _, d := range a.Denied {
		rules = append(rules, d.Rule)
	}
	slices.Sort(rules)
	return []sign{{
		what: ToolsRefused, text: "in its last session " + session.DeniedText(a.Denied), cause: strings.Join(rules, ", "),
		do: step{words: "add " + strings.Join(rules, ", ") + " to permissions: allow: of the agent in the file, then heartbeat reload"},
	}}
}

func (a Agent) deadLetters(now time.Time) []sign {
	dead := a.Dead
	if t := a.TakenOut; t != nil {
		dead -= t.Dead // they are told of there
	}
	if dead == 0 {
		return nil
	}
	d := given{dead, a.DeadMore, a.DeadSince, now}
	return []sign{{what: HasDeadLetters, since: a.DeadSince, text: d.text(), do: step{command: "dead-letter " + a.Agent}, dead: d}}
}

// given is what was given up: how many dead letters at least, if there are more, and when
// the oldest one was, as it is now.
type given struct {
	letters    int
	more       bool
	since, now time.Time
}

// and is given of two agents.
func (g given) and(other given) given {
	if g.since.IsZero() || !other.since.IsZero() && other.since.Before(g.since) {
		g.since = other.since
	}
	g.letters, g.more = g.letters+other.letters, g.more || other.more
	return g
}

func (g given) text() string {
	text := letters(g.letters, g.more)
	if g.since.IsZero() {
		return text
	}
	if g.letters > 1 || g.more {
		text += ", the oldest"
	} else {
		text += ","
	}
	return text + " " + Age(max(0, g.now.Sub(g.since))) + " old"
}

// letters is a number of dead letters; more means that there are others.
func letters(n int, more bool) string {
	if more {
		return "at least " + plural(n, "dead letter")
	}
	return plural(n, "dead letter")
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
