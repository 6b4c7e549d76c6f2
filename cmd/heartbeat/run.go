package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/clients"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/notify"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/probe"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/workspace"
	"heartbeat/ptyrun"
	"heartbeat/sources/watch"
)

type runCmd struct {
	Agents      []string      `arg:"" optional:"" help:"The agents to run; all of them when none is named." complete:"agent"`
	Once        bool          `help:"End when nothing is queued, in flight or backing off. No trigger fires."`
	Fire        bool          `help:"With --once: fire each trigger one time first."`
	OnceTimeout time.Duration `placeholder:"DURATION" default:"1h" help:"With --once: stop after this time whatever is left, as after SIGTERM (${default})."`
	Metrics     string        `placeholder:"ADDR" help:"Serve Prometheus metrics, /healthz and /readyz on HOST:PORT, or with :PORT for this machine alone."`
	WatchConfig bool          `help:"Load the fleet's file again whenever it, a file that it includes or a prompt-file changes, as SIGHUP does."`
}

// Help implements kong's HelpProvider.
func (runCmd) Help() string {
	return `Runs the fleet in the foreground: reapplies settings that have changed, recovers
interrupted prompts, fires triggers, starts a session where work is queued, and
ends it. On a terminal it prints a line for each prompt that an agent gets and answers,
and problems as they begin and end; elsewhere, and with --log-level or --log-format, it
logs. After Ctrl-C or SIGTERM it starts nothing new, lets turns finish within
the fleet's shutdown-grace (30s) and ends; a second one ends the sessions at once.

SIGHUP loads the fleet's files again; with --watch-config a change of them does too.
Unchanged agents are not touched; removed agents end after their turn; changed
agents get their new triggers at once and the rest with their next session. A file
with problems changes nothing. "heartbeat reload" does the same from another
terminal; pause, resume and trigger work from there too.

With --once it ends when no work is left, and the exit status says how it went: 0
everything is done, 1 something was dead-lettered or lost, is held or left, or a reply
has not arrived (reply-to), 75 an agent is parked (usage limit). Meanwhile a bar on a terminal, and a line each
--heartbeat-interval elsewhere, says how many of the prompts are finished; a start
that has much to recover says how far it is in the same way.

Examples:

    heartbeat run
    heartbeat run triage builder
    heartbeat run --watch-config
    heartbeat run --metrics :9464         # curl localhost:9464/metrics
    heartbeat run --once                  # drain what is queued, then end
    heartbeat run --once --fire -o json   # fire each trigger once, for scripts`
}

// ran is how a run ended.
type ran struct {
	*status.Summary
	Verdict status.Verdict `json:"verdict,omitempty"` // with --once
	// Troubles are what is left for a person, with --once.
	Troubles []status.Trouble `json:"troubles,omitempty"`
	people   bool             // print what to type next
}

// hasFinished reports whether the run ended by itself: nobody waits for its process.
func (r ran) hasFinished() bool { return r.Summary != nil && r.Finished }

func (c runCmd) run(ctx context.Context, a *app) (result, error) {
	if c.WatchConfig && c.Once {
		return nil, usagef("heartbeat run --watch-config", "--watch-config does not go with --once")
	}
	if c.Fire && !c.Once {
		return nil, usagef("heartbeat run --once --fire", "--fire goes with --once")
	}
	if err := ptyrun.Bind(); err != nil { // before anything is started
		a.log.Warn("what this run starts may pass for a person", "err", err)
	}
	fleet, inputs, err := a.load()
	if err != nil {
		return nil, err
	}
	orchestrator.CollectGarbage(len(fleet.Agents))
	agents, err := chooseAgents(fleet, c.Agents)
	if err == nil {
		err = owner.CheckYours(fleet, agents)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range fleet.Warnings { // now: the run may take weeks
		a.log.Warn(w.String())
	}
	warnOfLeft(fleet, func(text string) { a.log.Warn(text) })
	begin := time.Now()
	asked, sum, err := c.supervised(ctx, a, fleet, inputs)
	if err != nil {
		return nil, err
	}
	res := ran{Summary: sum, people: a.people}
	if !c.Once {
		return res, nil
	}
	if asked {
		return res, &failure{status: exitError, err: errors.New("cannot finish: asked to stop")}
	}
	res.Troubles = a.troubles(fleet, c.chosen(fleet), nil)
	sum.Vanish(res.Troubles, begin)
	if stateDir, err := owner.StateDir(fleet); err == nil { // it has run there
		sum.Undelivered = notify.Undelivered(stateDir, begin)
	}
	res.Verdict = sum.Verdict()
	return res, onceFailure(sum, a.ours())
}

// chosen returns the agents that this run has.
func (c runCmd) chosen(f *config.Fleet) []*config.Agent {
	agents, err := chooseAgents(f, c.Agents)
	if err != nil {
		return nil // a reload has removed one
	}
	return agents
}

// troubles returns what prevents agents of a fleet from working, or waits for a
// person, as far as a scheduler, if there is one, and the disk say.
func (a *app) troubles(f *config.Fleet, agents []*config.Agent, live *status.Live) []status.Trouble {
	stateDir, err := owner.StateDir(f)
	if err != nil {
		return nil // the caller that needs it reports it
	}
	now, those := time.Now(), *f
	those.Agents = agents
	all := status.Read(&those, stateDir, live, now)
	beside(&all, stateDir, f.Agents, now)
	return all.Troubles(a.ours(), now)
}

// mostLogged is how many troubles the log of a starting run names.
const mostLogged = 10

// logTroubles logs what waits for a person when a run begins, except holds that began
// since, whatever they are for: the log has them already.
func (a *app) logTroubles(f *config.Fleet, agents []*config.Agent, says []status.AgentState, begin time.Time) {
	waits := slices.DeleteFunc(a.troubles(f, agents, &status.Live{Agents: says}), func(t status.Trouble) bool {
		return !t.What.Person() || (t.What == status.IsHeld || t.What == status.QueueAsks) && !t.Since.Before(begin)
	})
	for i, t := range waits {
		if i == mostLogged {
			a.log.Warn("more waits for a person", "count", len(waits)-i, "do", a.ours()+" status")
			return
		}
		about := []any{"agent", t.Agent, "what", t.Text, "do", t.Do}
		if t.Then != "" {
			about = append(about, "then", t.Then)
		}
		a.log.Warn("this waits for a person", about...)
	}
}

// logStop writes the last line of a run: why it ended, and what it did.
func (a *app) logStop(sum *status.Summary, asked bool, failed error, took time.Duration) {
	why := "--once-timeout is over"
	switch {
	case failed != nil:
		why = "it cannot continue"
	case asked:
		why = "asked to stop"
	case sum.Finished:
		why = "nothing is left to do"
	}
	done, dead, queued := sum.Totals()
	a.log.Info("heartbeat stopped", "why", why, "done", done, "dead-lettered", dead, "queued", queued, "after", took.Round(time.Second))
	if a.people {
		a.tellStop(sum, why, took)
	}
}

// serveControl answers `heartbeat pause` and similar commands. The fleet also runs
// without it; a socket that is removed is made again as soon as that is possible.
func (a *app) serveControl(ctx context.Context, f *config.Fleet, s reloading) {
	run := runOf(f, time.Now())
	for told := false; ; {
		dir, err := owner.RuntimeDir(f)
		if err == nil {
			err = control.Serve(ctx, dir, run, s, a.log)
		}
		if err != nil && !told && !errors.Is(err, control.ErrGone) {
			a.log.Warn("this run cannot be paused or triggered from outside for now", "err", err)
		}
		told = err != nil && !errors.Is(err, control.ErrGone)
		select {
		case <-ctx.Done():
			return
		case <-time.After(controlAgain):
		}
	}
}

// runOf is what a run says of itself.
func runOf(f *config.Fleet, began time.Time) status.Run {
	return status.Run{PID: os.Getpid(), Fleet: f.Name, File: f.Path, Started: began, Program: thisVersion().words()}
}

// controlAgain is how often to retry making a control socket.
const controlAgain = time.Second

func (r *surroundings) scheduler(ready func()) (*orchestrator.Scheduler, error) {
	a, c, fleet, stateDir := r.app, r.c, r.fleet, r.stateDir
	runtimeDir, err := owner.RuntimeDir(fleet)
	if err != nil {
		return nil, err
	}
	self := session.Self()
	p, err := workspace.NewPreparer(stateDir, self, a.ours())
	if err != nil {
		return nil, err
	}
	return orchestrator.New(orchestrator.Options{
		Fleet: fleet, Only: slices.Clone(c.Agents), Once: c.Once, Fire: c.Fire, OnceTimeout: c.OnceTimeout,
		Ours: a.ours(), StateDir: stateDir, Store: r.store, RuntimeDir: runtimeDir, Runner: session.Processes{Self: self, Log: a.log}, Prepare: p.Prepare, Blocked: p.Blocked,
		Clients: clients.New(probe.Prober{Self: self}, stateDir),
		Inboxes: watch.Folders, Ready: ready, Observe: r.observe, Grant: r.grant, HandedOver: r.tale.handedOver, Done: r.tale.done, Log: a.log, Step: a.step,
		Recovering: func(done, of int) {
			r.line.gauge(fmt.Sprintf("recovering what was in flight: %d of %d agents", done, of), done, of)
		},
	}), nil
}

// onceFailure returns the exit status of a run with --once, with the first reasons
// for it. ours is how a command line for the fleet begins.
func onceFailure(sum *status.Summary, ours string) error {
	switch sum.Verdict() {
	case status.AllDone:
		return nil
	case status.SomeParked:
		return parkedFailure(sum)
	}
	why, fix, more := "", "", 0
	for _, s := range sum.Agents {
		switch {
		case s.Verdict() == status.AllDone:
		case why == "":
			why, fix = s.Agent+": "+cmp.Or(s.Why(), string(s.State)), s.Fix.String()
		default:
			more++
		}
	}
	if why == "" && sum.Undelivered != "" {
		why, fix = sum.Undelivered, ours+" notify log"
	}
	if more > 0 {
		why += fmt.Sprintf(" (and %s more)", count(more, "agent"))
	}
	if !sum.Finished {
		why = strings.TrimSuffix("--once-timeout is over; "+why, "; ")
	}
	hint := ours + " status shows what is left; " + ours + " dead-letter AGENT shows what was given up"
	if more == 0 && fix != "" {
		hint = fix
	}
	return &failure{status: exitError, hint: hint, err: errors.New("cannot finish: " + why)}
}

// parkedFailure is that agents are parked: the hint is about what the first one waits for.
func parkedFailure(sum *status.Summary) error {
	i := slices.IndexFunc(sum.Agents, func(s status.AgentSummary) bool { return s.State == status.Parked })
	first := sum.Agents[i]
	hint := "run it again when the usage limit is over, or log in with `claude`"
	again := "run it again after " + first.Until.Local().Format(time.DateTime)
	switch {
	case first.OverBudget:
		hint = again + ", or set a larger budget in the file"
	case first.LeavesRoom:
		hint = again + ", or raise limits: in the file"
	}
	return &failure{status: exitLater, hint: hint, err: fmt.Errorf("cannot finish: agent %q is parked: %s", first.Agent, first.Reason)}
}

func (r ran) text(p *page) {
	var rows [][]cell
	for _, s := range r.Agents {
		queued := strconv.Itoa(s.Queued)
		if s.Unread != "" {
			queued = unknown
		}
		rows = append(rows, []cell{
			{text: s.Agent},
			stateCell(p, s.Shown()),
			{text: strconv.Itoa(s.Acknowledged)},
			{text: strconv.Itoa(s.DeadLettered)},
			{text: queued},
			{text: s.Why()},
		})
	}
	p.telling([]string{"AGENT", "STATE", "DONE", "GIVEN UP", "QUEUED", "WHY"}, rows)
	troublesText(p, r.Troubles, 0)
	if r.people && r.Summary != nil {
		r.next(p)
	}
}

// stateCell returns a state in the colour of its urgency.
func stateCell(p *page, s status.State) cell {
	colour := ""
	switch s {
	case status.Running, status.Starting, status.Ending:
		colour = p.green
	case status.BackingOff, status.Parked, status.Waiting, status.State(status.IsPaused):
		colour = p.yellow
	case status.Held:
		colour = p.red
	}
	return cell{text: string(s), colour: colour}
}
