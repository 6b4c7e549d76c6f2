package status

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/explain"
)

// Shown is the state in the word that people read: what somebody has paused is
// paused, whether a scheduler runs it or not.
func (a AgentState) Shown() State {
	if !a.Paused.IsZero() && (a.State == Held || a.State == Stopped) {
		return State(IsPaused)
	}
	return a.State
}

// Shown is AgentState.Shown; what the last run held, and the next one holds, is held, too.
func (a Agent) Shown() State {
	if shown := a.AgentState.Shown(); shown != Stopped || a.Was != Held || !a.Lasts {
		return shown
	}
	return Held
}

// ShownSince is since when an agent is in the state that is shown; zero: that is not said.
func (a Agent) ShownSince() time.Time {
	switch a.Shown() {
	case State(IsPaused):
		return a.Paused
	case Stopped:
		return time.Time{}
	}
	return a.Since
}

// Empty reports whether the agent is idle because nothing is queued. One whose client is tried
// first, or that recovers, is idle too.
func (a AgentState) Empty() bool { return a.State == Idle && !a.GoesOn }

// QueuedText is how much is queued, as far as that was counted, and how much of it is urgent.
func (a Agent) QueuedText() string {
	if a.Unread {
		return "?"
	}
	n := strconv.Itoa(a.Depth.Entries)
	if a.Depth.More {
		n += "+"
	}
	if a.Depth.Urgent > 0 {
		n += fmt.Sprintf(" (%d urgent)", a.Depth.Urgent)
	}
	return n
}

// NeedsPerson reports whether a person has to act or to know: the agent is held
// and nobody paused it, its directory is lost, accepted prompts are lost, or its
// work has been stuck for stuck-after.
func (a AgentState) NeedsPerson() bool {
	return a.Lost != "" || a.QueueLost != nil || a.Stuck != nil && a.Stuck.Told || a.State == Held && a.Paused.IsZero()
}

// WhoPaused says who paused the agent: a person, or an agent's session.
func (a AgentState) WhoPaused() string { return WhoPaused(a.PausedBy) }

// WhoPaused says who paused an agent: the session of the named agent, or a person
// if the name is "".
func WhoPaused(agent string) string {
	if agent == "" {
		return "a person"
	}
	return fmt.Sprintf("a session of agent %q", agent)
}

// PauseEnd says until when the agent is paused, as "until 14:30:05 (another 8m0s)"; "" if
// the pause does not end by itself.
func (a AgentState) PauseEnd(now time.Time) string { return pauseEnd(a.PausedUntil, now) }

func pauseEnd(end, now time.Time) string {
	if end.IsZero() {
		return ""
	}
	layout := "15:04:05"
	if end.Sub(now) >= 12*time.Hour {
		layout = "2006-01-02 15:04"
	}
	return fmt.Sprintf("until %s (another %s)", end.Local().Format(layout), Span(max(0, end.Sub(now)).Round(time.Second)))
}

// Refused says in words why the service refuses the agent's account, where only a
// person can help, and what to do about it; "" where Reason tells no such failure.
func (a AgentState) Refused() (why, do string) {
	for _, w := range explain.Within(a.Reason.String()) {
		do, mends := strings.CutSuffix(w.Do, resumes)
		if mends && slices.Contains(w.Of, "API failure") {
			return strings.ToLower(w.Means[:1]) + strings.TrimSuffix(w.Means[1:], "."), strings.TrimRight(do, ",;")
		}
	}
	return "", ""
}

// serviceFailed is how a session's end by a failure of the service begins.
const serviceFailed = string(hook.EndAPIFailure) + " ("

// ofService is the word of the service's failure that Reason tells, if it tells one.
func (a AgentState) ofService() (w explain.Word, is bool) {
	_, code, _ := strings.Cut(a.Reason.String(), serviceFailed)
	code, _, _ = strings.Cut(code, ")")
	w, is = explain.Find(code)
	return w, is && slices.Contains(w.Of, "API failure")
}

// Why is Reason, after plain words where it is a code of the service.
func (a AgentState) Why() string {
	w, is := a.ofService()
	if !is {
		return a.Reason.String()
	}
	reason := strings.Replace(a.Reason.String(), serviceFailed+w.Word+")", w.Word, 1)
	return strings.ToLower(w.Means[:1]) + strings.TrimSuffix(w.Means[1:], ".") + " (" + reason + ")"
}

// resumes ends the advice about what an agent is held for until it is resumed.
const resumes = " then heartbeat resume AGENT"

// OfLast reports whether the end of the agent's last session is what Reason tells; otherwise
// that is something else, such as a session that could not be started.
func (a AgentState) OfLast() bool {
	return a.Last != nil && strings.Contains(a.Reason.String(), string(a.Last.Why))
}

// Evidence is the command, without its program, that shows why the agent's last
// session has failed: its screen where the client ended by itself or did not get as
// far as a turn, otherwise what was said.
func (a AgentState) Evidence() string {
	if !a.OfLast() {
		return "logs " + a.Agent
	}
	switch a.Last.Why {
	case hook.EndExited, hook.EndCrashed, hook.EndStartTimeout, hook.EndDialog:
		return "logs " + a.Agent + " --raw"
	}
	return "logs " + a.Agent
}
