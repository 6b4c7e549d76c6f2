package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/status"
)

type statusCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents to show; all of them when none is named." complete:"agent"`
}

// Help implements kong's HelpProvider.
func (statusCmd) Help() string {
	return `Shows what each agent does, what is queued and in flight, how its last session
ended and when its next scheduled fire is. IN FLIGHT names the trigger, or "send",
or "a line" that somebody wrote into the inbox. Triggers that fail are named below
the table, with the reason. It reads the disk, so it works with
and without a running scheduler; one that answers is named.

Examples:

    heartbeat status
    heartbeat status triage -o json`
}

// statusPage is the state of the fleet.
type statusPage struct {
	status.Fleet
	now time.Time
}

func (c statusCmd) run(ctx context.Context, a *app) (result, error) {
	fleet, err := a.knownFleet()
	if err != nil {
		return nil, err
	}
	shown := *fleet
	if len(c.Agents) > 0 {
		shown.Agents = nil
		for _, name := range c.Agents {
			agent, err := findAgent(fleet, name)
			if err != nil {
				return nil, err
			}
			shown.Agents = append(shown.Agents, agent)
		}
	}
	return c.look(ctx, a, &shown)
}

func (statusCmd) look(ctx context.Context, a *app, fleet *config.Fleet) (result, error) {
	stateDir, err := owner.StateDir(fleet)
	if err != nil {
		return nil, err
	}
	live, err := askStatus(ctx, fleet)
	if err != nil && !errors.Is(err, control.ErrNotRunning) {
		a.warn(err.Error())
	}
	now := time.Now()
	return statusPage{status.Read(fleet, stateDir, live, now), now}, nil
}

// askPatience is how long a running scheduler may take to answer.
const askPatience = 2 * time.Second

func askStatus(ctx context.Context, fleet *config.Fleet) (*status.Live, error) {
	dir, err := runtimeDir(fleet)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	return control.NewClient(dir).Status(ctx)
}

func (s statusPage) text(p *page) {
	var rows [][]cell
	for _, a := range s.Agents {
		state := stateCell(p, a.State)
		state.text = stateText(a, s.now)
		dead := cell{text: strconv.Itoa(a.Dead)}
		if a.DeadMore {
			dead.text += "+"
		}
		if a.Dead > 0 || a.Unread {
			dead.colour = p.red
		}
		if a.Unread {
			dead.text = unknown
		}
		rows = append(rows, []cell{
			{text: a.Agent},
			state,
			{text: queuedText(a)},
			{text: inFlightText(a, s.now)},
			dead,
			{text: nextText(a, s.now)},
			{text: lastText(a)},
		})
	}
	if s.Scheduler != nil {
		p.printf("run by process %s for %s\n", strconv.Itoa(s.Scheduler.PID), ago(s.now.Sub(s.Scheduler.Started)))
	}
	p.table([]string{"AGENT", "STATE", "QUEUED", "IN FLIGHT", "DEAD", "NEXT", "LAST SESSION"}, rows)
	for _, a := range s.Agents {
		if a.Problem != "" {
			p.coloured(p.red, "! ")
			p.printf("%s: %s\n", a.Agent, a.Problem)
		}
		if a.Lost != "" && a.Lost != a.Problem {
			p.coloured(p.red, "! ")
			p.printf("%s: %s\n", a.Agent, a.Lost)
		}
		if l := a.QueueLost; l != nil {
			p.coloured(p.red, "! ")
			p.printf("%s: its queue was lost %s ago: %s; `heartbeat resume %s` when you have seen it\n", a.Agent, roughly(s.now.Sub(l.At)), l.String(), a.Agent)
		}
		if k := a.Stuck; k != nil && k.Told {
			p.coloured(p.red, "! ")
			p.printf("%s: the service has failed for %s: %s\n", a.Agent, roughly(s.now.Sub(k.Since)), k.Why)
		}
		for _, f := range a.Failing {
			p.coloured(p.red, "! ")
			p.printf("%s: %s\n", a.Agent, failingText(f, s.now))
		}
		if why := whyText(a, s.now); why != "" {
			p.printf("%s: %s\n", a.Agent, why)
		}
	}
}

// stateText is a state and since when it lasts.
func stateText(a status.Agent, now time.Time) string {
	if a.State == status.Stopped || a.Since.IsZero() {
		return string(a.State)
	}
	return string(a.State) + " " + roughly(now.Sub(a.Since))
}

// unknown stands for what cannot be read.
const unknown = "?"

func queuedText(a status.Agent) string {
	if a.Unread {
		return unknown
	}
	n := strconv.Itoa(a.Depth.Entries)
	if a.Depth.More {
		n += "+"
	}
	return n
}

// inFlightText says where the entry that is worked on comes from, for how long
// it is, and which attempt this is; or what the session does without one.
func inFlightText(a status.Agent, now time.Time) string {
	if a.Unread {
		return unknown
	}
	if f := a.InFlight; f != nil {
		text := origin(a.Agent, f.Source) + " " + roughly(now.Sub(f.DeliveredAt))
		if f.Attempt > 1 {
			text += ", try " + strconv.Itoa(f.Attempt)
		}
		return text
	}
	switch a.Phase {
	case hook.Waiting:
		return "none, it waits"
	case hook.Background:
		return "background tasks"
	case hook.Settling:
		return "other Stop hooks"
	case hook.Unattended:
		return "none, unattended"
	case hook.Starting, hook.Turn, hook.Ending, hook.Ended:
	}
	return "-"
}

// origin names what queued an entry: a trigger, send, or a line that somebody
// wrote into the inbox.
func origin(agent, source string) string {
	if source == "" {
		return "a line"
	}
	trigger, _, _ := strings.Cut(strings.TrimPrefix(source, agent+"/"), "@")
	return shorten(trigger, 16)
}

// lastText is what the last session got done, and how it ended where that was
// not because nothing was left to do.
func lastText(a status.Agent) string {
	if a.Last == nil {
		return "-"
	}
	done := strconv.Itoa(a.Last.Acknowledged) + " done"
	switch a.Last.Why {
	case hook.EndDrained, hook.EndReleased, hook.EndFinished:
		return done
	}
	return fmt.Sprintf("%s, %s", a.Last.Why, done)
}

func nextText(a status.Agent, now time.Time) string {
	switch {
	case !a.Next.IsZero():
		return "in " + roughly(a.Next.Sub(now))
	case a.Watches > 0 && a.Polls > 0:
		return "any time"
	case a.Watches > 0:
		return "files"
	case a.Polls > 0:
		return "poll"
	}
	return "-"
}

// roughly is a duration in its largest unit.
func roughly(d time.Duration) string {
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

// whyText explains states that a person may want to end.
func whyText(a status.Agent, now time.Time) string {
	switch a.State {
	case status.Held:
		return "held: " + a.Reason.String()
	case status.Waiting:
		return "waiting: " + a.Reason.String()
	case status.BackingOff, status.Parked:
		return fmt.Sprintf("%s for %s: %s", a.State, ago(a.Until.Sub(now)), a.Reason)
	case status.Ending:
		return "its session ends: " + a.Reason.String()
	case status.Idle, status.Starting, status.Running, status.Stopped:
	}
	if !a.Paused.IsZero() {
		return "paused by " + a.WhoPaused() + "; heartbeat resume lets it go on"
	}
	return heldBackText(a, now)
}

// heldBackText says why a live session is not handed what is queued.
func heldBackText(a status.Agent, now time.Time) string {
	if a.Depth.Entries == 0 || a.InFlight != nil {
		return ""
	}
	switch {
	case a.Phase == hook.Unattended && a.Attached > 0:
		return "a person has its session for themselves; prompts go on when they have left"
	case a.Phase == hook.Unattended:
		return "its turn was broken off: its session can be handed nothing and ends soon"
	case a.Phase == hook.Waiting && now.Before(a.Hush):
		return "a person has typed in its session; prompts go on in " + ago(a.Hush.Sub(now))
	case a.Phase == hook.Turn:
		return "a turn goes on that is not the queue's, but a person's say"
	case a.Phase == hook.Settling:
		return "other Stop hooks than heartbeat's have a say at the end of its turn; prompts come after it"
	case a.Phase == hook.Background:
		return "background tasks of its last turn run; prompts come after them"
	}
	return ""
}

// failingText says what is wrong with a trigger, and for how long.
func failingText(f firing.Failing, now time.Time) string {
	text := fmt.Sprintf("trigger %s has failed for %s", f.Trigger, roughly(now.Sub(f.Since)))
	if f.Times > 1 {
		text += fmt.Sprintf(", %d times", f.Times)
	}
	if !f.Retry.IsZero() {
		text += fmt.Sprintf(", next try in %s", roughly(max(0, f.Retry.Sub(now))))
	}
	return text + ": " + shorten(f.Why.String(), 200)
}

// ago is a duration in its one or two largest units.
func ago(d time.Duration) string {
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
