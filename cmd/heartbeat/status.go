package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/notify"
	"heartbeat/orchestrator/oldqueue"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/usage"
)

type statusCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents to show; all of them when none is named." complete:"agent"`
	Watch  bool     `short:"w" help:"Show it again every two seconds, until interrupted."`
}

// Help implements kong's HelpProvider.
func (statusCmd) Help() string {
	return `Shows what each agent does, what is queued and in flight, how its last session
ended and when its next scheduled fire is. The first line counts the agents by
state. Next comes what needs a person or keeps an agent from working: why, since
when, and what to type.

IN FLIGHT names the source of the prompt: a trigger, "send", or "a line" that
somebody wrote into the inbox. status reads the disk, so it works with and without a
running scheduler. It names the scheduler if one answers. Below the table stands
what each agent with a live session said or did last.

Examples:

    heartbeat status
    heartbeat status --watch
    heartbeat status triage -o json`
}

// statusPage is the state of the fleet.
type statusPage struct {
	status.Fleet
	// Summary is the first line, Troubles are what needs a person or prevents an
	// agent from working, the most pressing first.
	Summary  string           `json:"summary"`
	Troubles []status.Trouble `json:"troubles"`
	ours     string
	now      time.Time
	program  string // that the run is another version of heartbeat, or ""
	zone     string // what is to be said of the time zone, or ""
}

func newStatusPage(f status.Fleet, ours string, now time.Time) statusPage {
	return statusPage{Fleet: f, Summary: f.Headline(), Troubles: f.Troubles(ours, now), ours: ours, now: now}
}

func (c statusCmd) run(ctx context.Context, a *app) (result, error) {
	fleet, agents, err := a.knownAgents(c.Agents)
	if err != nil {
		return nil, err
	}
	if dir, err := owner.StateDir(fleet); err == nil {
		if err := settleStopped(ctx, fleet, dir); err != nil {
			a.warn(err.Error())
		}
	}
	a.warnOfElsewhere(fleet, agents[:min(len(agents), mostForeseen)], a.warn)
	shown := *fleet
	shown.Agents = agents
	if c.Watch {
		return nil, c.watch(ctx, a, &shown, fleet.Agents)
	}
	return c.look(ctx, a, &shown, fleet.Agents)
}

// watchEvery is how often --watch looks.
const watchEvery = 2 * time.Second

// watch shows the state again and again: on a terminal each time in place of the
// last, elsewhere one after the other.
func (c statusCmd) watch(ctx context.Context, a *app, fleet *config.Fleet, declared []*config.Agent) error {
	ctx, stop := interruptible(ctx)
	defer stop()
	live := newLivePage(a)
	defer live.leave(a)
	for {
		now, err := c.look(ctx, a, fleet, declared)
		if now == nil {
			return err
		}
		if err := live.show(a, now); gone(err) {
			return nil
		} else if err != nil {
			return err
		}
		if !pause(ctx, watchEvery) {
			return nil
		}
	}
}

func (statusCmd) look(ctx context.Context, a *app, fleet *config.Fleet, declared []*config.Agent) (result, error) {
	stateDir, err := owner.StateDir(fleet)
	if err != nil {
		return nil, err
	}
	runs := whoRuns(ctx, fleet, stateDir)
	if runs.err != nil {
		a.warn(runs.err.Error())
	}
	live, now := runs.live, time.Now()
	zone := zoneText(inZoneOfRun(fleet, now))
	all := status.Read(fleet, stateDir, live, now)
	all.Mute, all.LastRun, all.Begun = runs.mute, runs.ended, runs.begun
	beside(&all, stateDir, declared, now)
	addLines(fleet, stateDir, &all)
	if live == nil {
		foresee(fleet, &all, a.ours())
	}
	page := newStatusPage(all, a.ours(), now)
	page.zone = zone
	if live != nil {
		page.program = otherProgram(live.Run)
	}
	return page, runs.failure()
}

// beside says of a fleet what its agents do not: whom it cannot tell, what was left in
// queues that none of the declared agents has, and which of their logins end soon.
func beside(all *status.Fleet, stateDir string, declared []*config.Agent, now time.Time) {
	all.Untold, all.Unpinged = notify.Untold(stateDir, now)
	if all.Scheduler == nil {
		all.Store = store.Examine(context.Background(), stateDir, now)
	}
	all.OldQueues, all.Logins = oldqueue.Waiting(stateDir, declared), preflight.EndingLogins(declared, os.Environ(), now)
}

// mostForeseen is of how many stopped agents status asks what would keep their
// sessions from working: doctor asks all of them.
const mostForeseen = 200

// foresee says of agents that nobody runs what the next run would hold them for.
func foresee(fleet *config.Fleet, all *status.Fleet, ours string) {
	for i, agent := range fleet.Agents[:min(len(fleet.Agents), mostForeseen)] {
		c := preflight.ClientOf(agent, os.Environ())
		c.Ours = ours
		a := &all.Agents[i]
		blocked, ok := errors.AsType[*preflight.BlockedError](c.Blocked(c.Obstacles(c.Settings())))
		switch {
		case a.State != status.Stopped:
		case ok:
			a.Blocked = &status.Blocked{Why: blocked.Error(), Fix: blocked.Hint()}
		case a.Was == status.Held && a.GoesOn && (a.Last == nil || a.Last.Asks == nil):
			a.Was = status.Idle // what its last run held it for is gone; of a question on the screen nobody knows
		}
	}
}

func askStatus(ctx context.Context, fleet *config.Fleet) (*status.Live, error) {
	dir, err := runtimeDir(fleet)
	if err != nil {
		return nil, err
	}
	return control.NewClient(dir).Status(ctx)
}

func (s statusPage) text(p *page) {
	p.saidf("%s", s.Summary)
	if s.Scheduler != nil {
		p.saidf("scheduler: running for %s (process %s)", status.Span(s.now.Sub(s.Scheduler.Started)), strconv.Itoa(s.Scheduler.PID))
		if text := s.StoppingText(s.now); text != "" {
			p.saidf("%s; %s stop --now ends them at once", text, s.ours)
		}
		if u := s.Scheduler.Unloaded; u != nil {
			p.saidf("%s", unloadedText(u, s.ours))
		}
		if s.program != "" {
			p.linesf("%s: %s", s.program, newProgram(s.ours))
		}
		if s.zone != "" {
			p.linesf("%s", s.zone)
		}
	}
	if text := s.NotRunText(s.now); text != "" {
		p.saidf("%s", text)
	}
	if n := s.Unrun(); n > 0 {
		p.saidf("%s: %s run", unrun(n), s.ours)
	}
	room := 0
	if p.rows > 0 { // the table gets what it needs, at most the other half
		room = max(1, p.rows/2-p.height(0), p.rows-p.height(0)-len(s.Agents)-2)
	}
	troublesText(p, s.Troubles, room)
	p.printf("\n")
	var rows [][]cell
	for _, a := range s.byTrouble() {
		rows = append(rows, s.row(p, a))
	}
	header := []string{"AGENT", "STATE", "QUEUED", "IN FLIGHT", "DEAD", "NEXT", "TODAY", "LAST SESSION"}
	if !slices.ContainsFunc(s.Agents, func(a status.Agent) bool { return a.Today != usage.Sum{} }) {
		at := slices.Index(header, "TODAY")
		for i := range rows {
			rows[i] = slices.Delete(rows[i], at, at+1)
		}
		header = slices.Delete(header, at, at+1)
	}
	rowsThatFit(p, header, rows)
	s.notes(p)
	if len(s.Troubles) > 0 && p.rows == 0 { // not where status shows itself again and again
		p.printf("\n")
		p.saidf("%s explain %s says more", program(), string(s.Troubles[0].What))
	}
}

// unloadedText says that what runs is not what the fleet's file says.
func unloadedText(u *status.Unloaded, ours string) string {
	const changed = "the file has changed since it was loaded"
	if u.Problem != "" {
		return changed + " (" + u.Problem + "): " + ours + " validate"
	}
	return changed + " (" + u.Changes + "): " + ours + " reload"
}

// rowsThatFit prints a table, and on a page with a limit as many of its rows as there
// is room for.
func rowsThatFit(p *page, header []string, rows [][]cell) {
	before := p.end()
	room := p.rows - p.height(0)
	for n := len(rows); n > 0; n-- {
		p.table(header, rows[:n])
		if left := len(rows) - n; left > 0 {
			p.printf("and %s\n", count(left, "other agent"))
		}
		if p.rows == 0 || p.height(before) <= room || n == 1 {
			return
		}
		n = min(n, max(n*room/p.height(before), 1)+1)
		p.undo(before)
	}
}

// byTrouble returns the agents, those that need a person first.
func (s statusPage) byTrouble() []status.Agent {
	pressing := map[string]int{}
	for i, t := range s.Troubles {
		if _, known := pressing[t.Agent]; !known && t.What.Alarming() {
			pressing[t.Agent] = i - len(s.Troubles)
		}
	}
	all := slices.Clone(s.Agents)
	slices.SortStableFunc(all, func(x, y status.Agent) int { return cmp.Compare(pressing[x.Agent], pressing[y.Agent]) })
	return all
}

func (s statusPage) row(p *page, a status.Agent) []cell {
	state := stateCell(p, a.Shown())
	state.text = stateText(a, s.now)
	dead := cell{text: strconv.Itoa(a.Dead)}
	if a.DeadMore {
		dead.text += "+"
	}
	if a.Dead > 0 || a.DeadUnread {
		dead.colour = p.red
	}
	if a.DeadUnread {
		dead.text = unknown
	}
	return []cell{
		{text: a.Agent},
		state,
		{text: a.QueuedText()},
		{text: inFlightText(a, s.now)},
		dead,
		{text: s.nextText(a)},
		{text: todayText(a.Today)},
		{text: lastText(a)},
	}
}

// todayText is what was spent since midnight.
func todayText(s usage.Sum) string {
	if s == (usage.Sum{}) {
		return "-"
	}
	return s.Price()
}

// unrun says that prompts wait that nobody will work on.
func unrun(prompts int) string {
	if prompts == 1 {
		return "1 prompt waits, and nobody runs its agent"
	}
	return strconv.Itoa(prompts) + " prompts wait, and nobody runs their agents"
}

// stateText returns a state and how long it has lasted.
func stateText(a status.Agent, now time.Time) string {
	since := a.ShownSince()
	if since.IsZero() {
		return string(a.Shown())
	}
	return string(a.Shown()) + " " + status.Age(now.Sub(since))
}

// unknown stands for what cannot be read.
const unknown = "?"

// inFlightText says where the entry in flight comes from, for how long it has been
// worked on, and which attempt this is; or what the session does without one.
func inFlightText(a status.Agent, now time.Time) string {
	if a.Unread {
		return unknown
	}
	if f := a.InFlight; f != nil {
		text := origin(a.Agent, f.Source) + " " + status.Age(now.Sub(f.DeliveredAt))
		if f.Attempt > 1 {
			text += ", try " + strconv.Itoa(f.Attempt)
		}
		if f.Iteration > 1 {
			text += ", iteration " + status.Of(f.Iteration, f.Most)
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

// origin is status.Origin, as wide as a table has room for.
func origin(agent, source string) string { return shorten(status.Origin(agent, source), 16) }

// lastText returns what the last session did, and how it ended unless that was
// because nothing was left to do.
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

// inItsZone is a time of day in its own zone, where that is not the reader's: a zone
// that is not the one that was meant shows nowhere else.
func inItsZone(at time.Time) string {
	_, there := at.Zone()
	if _, here := at.Local().Zone(); there == here {
		return ""
	}
	return at.Format(" (15:04 MST)")
}

func (s statusPage) nextText(a status.Agent) string {
	if s.LastRun != nil && s.LastRun.Died() {
		return "-" // nothing fires
	}
	if !a.Next.IsZero() {
		return "in " + status.Age(a.Next.Sub(s.now)) + inItsZone(a.Next)
	}
	return cmp.Or(a.Unscheduled(), "-")
}
