package status

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/foreign"
)

// Note says what the turn of an agent without trouble is at that takes a while, or
// why it does not work on what is queued, or "".
func (a Agent) Note(now time.Time) string {
	if a.Proof != nil && a.Proof.State != CheckTrouble {
		return a.Proof.Text(now)
	}
	switch a.State {
	case Waiting:
		return "waiting: " + a.Reason.String()
	case Ending:
		return "its session ends: " + a.Reason.String()
	case Idle, Starting, Running, BackingOff, Parked, Checking, Held, Stopped:
	}
	if f := a.InFlight; f != nil && f.Iteration > 1 && (a.Phase == hook.Turn || a.Phase == hook.Background) {
		return iterates(f)
	}
	if doing := strings.TrimPrefix(a.doing(now)+a.saying(now), "; "); doing != "" {
		return doing
	}
	if a.Depth.Entries == 0 || a.InFlight != nil {
		return ""
	}
	switch {
	case a.State == Idle && a.GoesOn:
		return "waiting: " + a.Reason.String()
	case a.Phase == hook.Unattended && a.Attached > 0:
		return "a person uses its session; prompts continue when they have left"
	case a.Phase == hook.Unattended:
		return "its turn was interrupted: its session cannot take a prompt and ends soon"
	case a.Phase == hook.Waiting && now.Before(a.Hush):
		return "a person has typed in its session; prompts continue in " + Span(a.Hush.Sub(now))
	case a.Phase == hook.Turn:
		return "a turn is running that did not come from the queue; a person may have started it"
	case a.Phase == hook.Settling:
		return "Stop hooks other than heartbeat's run at the end of its turn; prompts come after them"
	case a.Phase == hook.Background:
		return "background tasks of its last turn still run; prompts come after them"
	}
	return ""
}

// doing is what a turn is at that takes a while, or "".
func (a Agent) doing(now time.Time) string {
	switch {
	case a.Phase != hook.Turn:
	case a.Tool != nil && now.Sub(a.Tool.Since) >= longTool:
		return fmt.Sprintf("the tool %s has run for %s", foreign.Text(a.Tool.Name).String(), Span(now.Sub(a.Tool.Since)))
	case a.Tool == nil && !a.Silent.IsZero():
		return "no sign of life for " + Span(now.Sub(a.Silent)) + ": the client waits for the service, or repeats its request"
	}
	return ""
}

// saying is what the session says of itself.
func (a Agent) saying(now time.Time) string {
	switch {
	case a.Said == nil || a.Phase != hook.Turn && a.Phase != hook.Background:
		return ""
	case a.Said.Text == "":
		return "; it said " + Span(now.Sub(a.Said.At)) + " ago that it lives"
	}
	return fmt.Sprintf("; it said %s ago: %q", Span(now.Sub(a.Said.At)), a.Said.Text.String())
}

// refusedFor is how long it is shown that a trigger's fires were refused, missedFor that they
// were passed over: nobody may have looked since.
const (
	refusedFor = time.Hour
	missedFor  = 24 * time.Hour
)

// Refusals say how often fires of the agent's triggers have become no prompt, where that
// was lately.
func (a Agent) Refusals(now time.Time) (all []string) {
	for _, r := range a.RefusedFires {
		switch past := now.Sub(r.At); {
		case a.State == Stopped:
		case r.Why == "missed" && past < missedFor:
			all = append(all, fmt.Sprintf("trigger %s was due %s while nothing ran, and that is not made up for (found %s ago)",
				r.Trigger, plural(r.Times, "time"), Age(max(0, past))))
		case r.Why != "missed" && past < refusedFor:
			all = append(all, fmt.Sprintf("trigger %s was refused %s by %s, the last time %s ago",
				r.Trigger, plural(r.Times, "time"), limitOf[r.Why], Age(max(0, now.Sub(r.At)))))
		}
	}
	return all
}

// limitOf is the key of the file that refuses for a reason.
var limitOf = map[string]string{"queue-full": "max-queue", "rate": "its rate"}

// longestLine limits, in bytes, how much is kept of what an agent said, and of the
// name of a tool.
const (
	longestLine = 400
	longestTool = 80
)

// LineOf returns what an agent said at a time, or called a tool with: the first line
// of it that is not blank.
func LineOf(at time.Time, tool, text string) *Line {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return &Line{at, foreign.Text(foreign.Short(tool, longestTool)), foreign.Text(foreign.Short(text, longestLine))}
}

// Words says it to people, after the agent's name.
func (l *Line) Words(now time.Time) string {
	ago := ""
	if !l.At.IsZero() {
		ago = " " + Age(max(0, now.Sub(l.At))) + " ago"
	}
	if l.Tool != "" {
		return "called " + l.Tool.String() + ago + ": " + l.Text.String()
	}
	return "said" + ago + ": " + l.Text.String()
}

// InTurn reports whether the agent's session is in a turn.
func (a AgentState) InTurn() bool { return a.lives() && a.Phase == hook.Turn }

// lives reports whether the agent has a session.
func (a AgentState) lives() bool {
	return a.State == Starting || a.State == Running || a.State == Ending
}

// Doing says in a word or two what the agent's session does, for who waits for its end; ""
// without one.
func (a AgentState) Doing(now time.Time) string {
	switch {
	case !a.lives():
		return ""
	case a.Phase == hook.Turn && a.Work != nil:
		return "in a turn for " + Span(now.Sub(a.Work.Since))
	case a.Phase == hook.Turn:
		return "in a turn"
	case a.Phase == hook.Background:
		return "background tasks run"
	case a.Phase == hook.Checking:
		return "its work is checked"
	case a.State == Starting:
		return "starting"
	}
	return "ending"
}

// longTool is how long a tool may run until that is told.
const longTool = 5 * time.Second

// Age formats a duration in its largest unit.
func Age(d time.Duration) string {
	switch d = d.Abs(); {
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	}
	return strconv.Itoa(int(d.Hours())/24) + "d"
}

// Span formats a duration in its one or two largest units.
func Span(d time.Duration) string {
	switch d = d.Abs(); {
	case d < time.Second:
		return "0s"
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}

// Origin names what queued an entry of an agent: a trigger, send, or a line that somebody
// wrote into the inbox. It is as long as whoever wrote the source has made it.
func Origin(agent, source string) string {
	if source == "" {
		return "a line"
	}
	trigger, _, _ := strings.Cut(strings.TrimPrefix(source, agent+"/"), "@")
	return trigger
}
