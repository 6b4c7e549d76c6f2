package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// chosen are agents by name, or all of them.
type chosen struct {
	Agents []string `arg:"" optional:"" help:"The agents." complete:"agent"`
	All    bool     `help:"All agents."`
}

// of returns the fleet, its scheduler's socket and the agents that a command is about;
// none means all.
func (c chosen) of(a *app, command string) (*config.Fleet, *control.Client, []string, error) {
	f, client, err := a.running()
	if err != nil {
		return nil, nil, nil, err
	}
	if (len(c.Agents) == 0) != c.All {
		return nil, nil, nil, usagef("heartbeat "+command+" AGENT, or heartbeat "+command+" --all", "name agents or --all, one of the two")
	}
	_, err = chooseAgents(f, c.Agents)
	return f, client, c.Agents, err
}

type pauseCmd struct {
	chosen
	For     *time.Duration `placeholder:"DURATION" help:"End the pause after this time. Default: only resume ends it."`
	Trigger string         `placeholder:"NAME" help:"Only this trigger of the agent: it does not fire by itself, and the agent works on." complete:"trigger"`
}

// Help implements kong's HelpProvider.
func (pauseCmd) Help() string {
	return `Holds agents: nothing new is started for them until "heartbeat resume", even after a
restart of the scheduler. With --for the pause ends by itself, also while no scheduler
runs. To pause again replaces the pause, but a session cannot shorten one. A running
turn finishes first, and its entry is done; the entries behind it stay queued.
Triggers and "heartbeat send" still queue prompts. With --trigger only that trigger of
the agent is paused: it does not fire by itself, and the agent works on (heartbeat help
triggers). If no scheduler runs, the next one begins with the pause. If one runs and does
not answer within 10 seconds, the command fails, and nothing is paused later.

Examples:

    heartbeat pause triage
    heartbeat pause triage --for 10m
    heartbeat pause triage --trigger nightly
    heartbeat pause --all`
}

// held is what agents do after a pause or its end.
type held struct {
	Done   string              `json:"done"` // paused, resumed
	Agents []status.AgentState `json:"agents"`
	ours   string
	// trigger, if not "", is the only one that was paused or resumed.
	trigger string
	// lifted are the agents whose pause a resume has ended: that has succeeded, whatever
	// else keeps them.
	lifted map[string]bool
}

func (c pauseCmd) run(ctx context.Context, a *app) (result, error) {
	f, client, names, err := c.of(a, "pause")
	if err != nil {
		return nil, err
	}
	var length time.Duration
	if c.For != nil {
		if length = *c.For; length <= 0 {
			return nil, usagef("heartbeat pause AGENT --for 10m", "--for must be more than 0")
		}
	}
	if err := c.one("pause", c.Trigger); err != nil {
		return nil, err
	}
	ask := func(ctx context.Context) ([]status.AgentState, error) {
		if c.Trigger != "" {
			return client.PauseTrigger(ctx, length, names[0], c.Trigger)
		}
		return client.Pause(ctx, length, names...)
	}
	states, err := toRunOrNext(ctx, a, ask, a.knowing(f, names, func() ([]status.AgentState, error) {
		stateDir, err := owner.Claim(f)
		if err != nil {
			return nil, err
		}
		if c.Trigger != "" {
			return orchestrator.PauseTriggerStopped(f, stateDir, length, names[0], c.Trigger)
		}
		return orchestrator.PauseStopped(f, stateDir, length, names...)
	}))
	if err != nil {
		return nil, err
	}
	return held{Done: "paused", Agents: states, ours: a.ours(), trigger: c.Trigger}, nil
}

// one returns an error if a trigger is named, and not one agent whose it is.
func (c chosen) one(command, trigger string) error {
	if trigger != "" && len(c.Agents) != 1 {
		return usagef("heartbeat "+command+" AGENT --trigger NAME", "--trigger is about one agent's trigger: name that agent")
	}
	return nil
}

// beginsWithin is how long a run may take from locking its directories to opening
// its socket.
const beginsWithin = 10 * time.Second

// toRunOrNext asks the fleet's running scheduler or, where none runs, has the next
// one begin so. One that begins or ends just now is waited for.
func toRunOrNext[T any](ctx context.Context, a *app, ask func(context.Context) (T, error), next func() (T, error)) (done T, err error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	for begin := time.Now(); ; {
		done, err = ask(ctx)
		if errors.Is(err, control.ErrNotRunning) {
			done, err = next()
		}
		if _, held := errors.AsType[*store.HeldError](err); !held && !errors.Is(err, memory.ErrRuns) {
			return done, controlFailure(err)
		}
		if time.Since(begin) > beginsWithin || !pause(ctx, stopLook) {
			return done, &failure{exitNotRunning, a.ours() + " status shows who has it", fmt.Errorf("cannot reach the scheduler: %w", err)}
		}
	}
}

// knowing is next, for who knows better than this fleet's store: of agents that another store
// knows it warns, and if a run with that one has them, it says so at once.
func (a *app) knowing(f *config.Fleet, names []string, next func() ([]status.AgentState, error)) func() ([]status.AgentState, error) {
	agents := slices.DeleteFunc(slices.Clone(f.Agents), func(one *config.Agent) bool {
		return len(names) > 0 && !slices.Contains(names, one.Name)
	})
	return func() ([]status.AgentState, error) {
		states, err := next()
		elsewhere := a.elsewhere(f, agents)
		switch {
		case len(elsewhere) == 0:
		case errors.Is(err, memory.ErrRuns) && !begins(f):
			return nil, &failure{exitNotRunning, elsewhere[0].Advice(), fmt.Errorf("cannot reach the scheduler: %s", elsewhere[0])}
		case err == nil:
			for _, e := range elsewhere {
				a.warn(e.String() + ": " + e.Advice())
			}
		}
		return states, err
	}
}

// begins reports whether a run of a fleet has its store, or a command.
func begins(f *config.Fleet) bool {
	dir, err := owner.Path(f)
	return err == nil && store.Held(dir)
}

func (h held) text(p *page) {
	for _, a := range h.Agents {
		if h.trigger != "" {
			h.triggerText(p, a)
			continue
		}
		paused, before := "paused", "until"
		if end := a.PauseEnd(time.Now()); end != "" {
			paused, before = "paused "+end, "until then, or until"
		}
		switch {
		case h.Done == "paused" && (a.State == status.Running || a.State == status.Starting || a.State == status.Ending):
			p.saidf("%s: %s; its session ends after its turn", a.Agent, paused)
		case h.Done == "paused" && a.State == status.Stopped:
			p.saidf("%s: %s; heartbeat run starts nothing for it %s heartbeat resume %s", a.Agent, paused, before, a.Agent)
		case h.Done == "paused":
			p.saidf("%s: %s", a.Agent, paused)
		default:
			h.resumed(p, a)
		}
	}
}

// triggerText says what has become of a trigger.
func (h held) triggerText(p *page, a status.AgentState) {
	if h.Done != "paused" {
		p.saidf("%s: trigger %s fires by itself", a.Agent, h.trigger)
		return
	}
	for _, t := range a.PausedTriggers {
		if t.Trigger == h.trigger {
			end := ""
			if !t.Until.IsZero() {
				end = ", until " + t.Until.Local().Format(time.DateTime)
			}
			p.saidf("%s: trigger %s is paused%s; %s resume %s --trigger %s ends that", a.Agent, h.trigger, end, h.ours, settings.Quote(a.Agent), settings.Quote(h.trigger))
		}
	}
}

// resumed says what has become of an agent after a resume.
func (h held) resumed(p *page, a status.AgentState) {
	_, stays := a.Stays(h.ours)
	does := string(a.Shown())
	if stays && a.State == status.Stopped {
		does = "the next run does not start it"
	}
	switch {
	case !stays && a.State == status.Stopped:
		does = "resumed; the next run starts it"
	case stays && h.lifted[a.Agent]:
		does = "no longer paused; " + does
	}
	p.saidf("%s: %s%s", a.Agent, does, stayed(a, h.ours))
}

// stayed says what a resume has not lifted, and what does; "" if it has.
func stayed(a status.AgentState, ours string) string {
	do, stays := a.Stays(ours)
	if !stays {
		return ""
	}
	until := ""
	if !a.Until.IsZero() {
		until = " until " + a.Until.Local().Format(time.DateTime)
	}
	return fmt.Sprintf("%s: %s; resume does not lift that: %s", until, a.Reason, do)
}

// failure names the agents that go on waiting: 75 if each of them does so for a time only.
func (h held) failure() error {
	f := failure{status: exitLater}
	var all []error
	for _, a := range h.Agents {
		do, stays := a.Stays(h.ours)
		if !stays || h.lifted[a.Agent] {
			continue
		}
		f.hint = do
		that := "it is " + string(a.State)
		if a.State == status.Stopped {
			that = "the next run does not start it: " + a.Reason.String()
		}
		if !a.OverBudget && !a.LeavesRoom {
			f.status = exitError
		}
		all = append(all, fmt.Errorf("cannot resume agent %q: resume does not lift that %s", a.Agent, that))
	}
	if len(all) == 0 {
		return nil
	}
	f.err = errors.Join(all...)
	return &f
}

// running loads the fleet and returns the way into its running scheduler.
func (a *app) running() (*config.Fleet, *control.Client, error) {
	f, err := a.knownFleet()
	if err != nil {
		return nil, nil, err
	}
	client, err := a.clientOf(f)
	return f, client, err
}

// clientOf returns the way into the scheduler that runs a fleet.
func (a *app) clientOf(f *config.Fleet) (*control.Client, error) {
	dir, err := runtimeDir(f)
	if err != nil {
		return nil, err
	}
	return a.clientIn(dir), nil
}

// clientIn returns the way into the scheduler whose sockets are in a directory.
func (a *app) clientIn(runtimeDir string) *control.Client {
	client := control.NewClient(runtimeDir)
	client.Slow = func() {
		a.log.Warn("the running scheduler does not answer yet; it may be busy, or stopped")
	}
	return client
}

// controlFailure gives a missing scheduler its exit status.
func controlFailure(err error) error {
	if errors.Is(err, control.ErrNotRunning) {
		return &failure{
			status: exitNotRunning, err: errors.New("cannot reach the scheduler: heartbeat does not run this fleet"),
			hint: "heartbeat run starts it; heartbeat status shows what is known without it",
		}
	}
	return err
}

// warnOfUnloaded says that the running scheduler does not know the file as it is now:
// who has mended it may think so.
func (a *app) warnOfUnloaded(ctx context.Context, f *config.Fleet) {
	if a.broken != nil {
		return // it is said already
	}
	if live, err := askStatus(ctx, f); err == nil && live.Unloaded != nil {
		a.warn(unloadedText(live.Unloaded, a.ours()))
	}
}

// runtimeDir returns where the sockets of a fleet's run are; the run has the name
// that it began with.
func runtimeDir(f *config.Fleet) (string, error) {
	dir, err := owner.RuntimeDir(f)
	if err != nil || control.Answers(dir) {
		return dir, err
	}
	for _, former := range owner.FormerRuntimeDirs(f) {
		if control.Answers(former) {
			return former, nil
		}
	}
	return dir, nil
}
