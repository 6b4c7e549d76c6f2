package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"heartbeat/config"
	"heartbeat/hook/ask"
	"heartbeat/hook/handwired"
	"heartbeat/orchestrator/adopt"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/oldqueue"
	"heartbeat/orchestrator/owner"
	"heartbeat/orchestrator/remote"
	"heartbeat/orchestrator/resources"
	"heartbeat/orchestrator/service"
	"heartbeat/orchestrator/store"
)

// stdio is what the program reads and writes.
type stdio struct{ in, out, err *os.File }

// command is what each command implements. The result is printed also when
// there is an error; nil means that there is nothing to print.
type command interface {
	run(ctx context.Context, a *app) (result, error)
}

// app is what commands get from their environment.
type app struct {
	stdio
	globals
	log *slog.Logger
	// bottom is stderr: what is logged, and below it how far the command is.
	bottom *bottomLine
	out    *output
	// found is true if the fleet's file was not named, but found; unfound is why it
	// was not.
	found   bool
	unfound error
	// known is what knownFleet returned; broken is why that is not the present
	// file, or nil.
	known  *config.Fleet
	broken error
	// tellsOfRun is true for a command that says itself who runs the fleet.
	tellsOfRun bool
	// people is true for a run that tells people what it does (narrator), and logs little.
	people bool
	// manager is told what a run does.
	manager service.Manager
}

// run is the program: it returns the exit status.
func run(args []string, std stdio) int {
	if len(args) > 0 && args[0] == "hook" {
		return runHook(args, std)
	}
	// A caught SIGPIPE makes a closed stdout an error that is looked at, and
	// children start with the default, which an ignored one would not give them.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	args = asText(args)
	out := newOutput(std, wantsJSON(args), time.Now())
	p, err := parse(args, std)
	if err != nil {
		return out.finish(nil, err)
	}
	if p.done {
		return exitOK
	}
	if len(p.cli.Host) > 0 {
		return remotely(args, p, std, out)
	}
	_, isRun := p.command.(*runCmd)
	if isRun && service.FirstProcess() {
		status, err := service.Init(os.Args)
		if err != nil {
			return out.finish(nil, err)
		}
		return status // the child has printed
	}
	a := &app{stdio: std, globals: p.cli.globals, out: out, tellsOfRun: tellsOfRun(p.command)}
	out.ours = beginning(a.File)
	flushLog, finish := func() {}, out.finish
	if isRun {
		a.people = a.forPeople(std.err)
		a.log, a.bottom, flushLog = newRunLog(std.err, a.level(), a.logFormat())
		printed, said := &outlet{w: std.out}, &outlet{w: std.err}
		out.w, out.err = stdout{printed}, said
		finish = func(r result, err error) int { return out.finishUnheld(r, err, printed, said) }
	} else {
		a.bottom = &bottomLine{w: std.err}
		a.log = newLog(a.bottom, paletteFor(std.err), a.level(), a.LogFormat)
	}
	a.manager = service.Manager{Log: a.log}
	stop := out.beat(a.beatEvery())
	var res result
	err = checkPerson(p.command)
	if err == nil {
		res, err = p.command.run(context.Background(), a)
	}
	stop()
	flushLog()
	if done, is := res.(ran); is && done.hasFinished() {
		finish = out.finish // as of any command: who reads it in a pager gets all of it
	}
	return finish(res, err)
}

// logFormat is how a run logs.
func (a *app) logFormat() string {
	if a.people {
		return peopleFormat
	}
	return a.LogFormat
}

// runHook goes straight to the hook: it starts at every tool call.
func runHook(args []string, std stdio) int {
	call := ask.Call{Args: args, Stdin: std.in, Stdout: std.out, Stderr: std.err, Getenv: os.Getenv}
	if ask.Is(args) {
		return ask.Main(call)
	}
	return handwired.Main(handwired.Call(call))
}

// step says what the command is doing, for the lines of --heartbeat-ms.
func (a *app) step(text string) { a.out.setStep(text) }

// warn records something that the person should know although the command succeeds.
func (a *app) warn(text string) { a.out.warn(text) }

// file is the fleet's file: the one that was named, or the one found from the
// working directory. If there is none, it is the one that would be here, and
// loading it says where it was searched for.
func (a *app) file() string {
	if a.File == "" {
		if a.File, a.unfound = owner.Find("."); a.unfound != nil {
			a.File = owner.FileName
		}
		a.found = true
	}
	return a.File
}

// fleet loads the configuration file.
func (a *app) fleet() (*config.Fleet, error) {
	f, _, err := a.load()
	if err == nil {
		a.warnOfEnd(f)
		a.warnOfEarlier(f)
	}
	return f, err
}

// load loads the configuration file, and returns what it looked at, also with an
// error; of a file with problems the fleet has only its warnings.
func (a *app) load() (*config.Fleet, *config.Inputs, error) {
	path := a.file()
	known := sync.OnceValue(func() config.Folders { return owner.RecallFolders(path) })
	f, inputs, err := config.LoadInputs(path, known)
	if a.unfound != nil && errors.Is(err, fs.ErrNotExist) {
		return nil, inputs, &failure{status: exitConfig, err: a.unfound, hint: hintOf(a.unfound)}
	}
	if err != nil {
		return f, inputs, configFailure(path, err)
	}
	owner.Identify(f)
	return f, inputs, nil
}

// knownFleet loads the configuration file or, while that cannot be used, the one
// that was last run or applied. It is for what has to work while somebody edits the
// file: looking, sending, holding.
func (a *app) knownFleet() (*config.Fleet, error) {
	if a.known != nil {
		return a.known, nil
	}
	f, bad := a.fleet()
	if bad == nil {
		a.known = f
		return f, nil
	}
	f, at, err := owner.Recall(a.file())
	if err != nil {
		return nil, bad
	}
	if errors.Is(bad, fs.ErrNotExist) {
		// Without a file there is a fleet only as long as it runs.
		if _, err := askStatus(context.Background(), f); errors.Is(err, control.ErrNotRunning) {
			return nil, bad
		}
	}
	a.known, a.broken = f, bad
	a.warnOfEnd(f)
	a.out.warnNow(fmt.Sprintf("%s; going on with the configuration of %s (%s validate shows what is wrong)",
		inShort(bad), at.Format(time.DateTime), a.ours()))
	return f, nil
}

// knownAgents returns the known fleet, and those of its agents that are named, or
// all.
func (a *app) knownAgents(names []string) (*config.Fleet, []*config.Agent, error) {
	f, err := a.knownFleet()
	if err != nil {
		return nil, nil, err
	}
	agents, err := chooseAgents(f, names)
	return f, agents, err
}

// originOf returns what marks agents as this fleet's.
func originOf(f *config.Fleet) (owner.Origin, error) {
	dir, err := owner.StateDir(f)
	return owner.Origin{File: f.Path, StateDir: dir}, err
}

// warnOfLeft warns about state that agents had before the fleet was moved.
func warnOfLeft(f *config.Fleet, warn func(string)) {
	now, err := originOf(f)
	if err != nil {
		return // it is told where the directory is needed
	}
	for _, l := range owner.LeftBehind(f.Agents, now) {
		warn(l.String() + ": " + l.Advice())
	}
}

// makeRoom prepares for sessions with limits, and warns about what cannot be
// enforced.
func (a *app) makeRoom(agents []*config.Agent) {
	for _, lack := range resources.MakeRoom(agents) {
		a.log.Warn(lack.String(), "hint", lack.Why.Hint())
	}
}

// mark marks the agents as this fleet's. Only what tells people of other fleets' states and
// stores depends on it.
func (a *app) mark(f *config.Fleet, agents []*config.Agent) {
	now, known, err := a.whose(f)
	if err == nil {
		err = owner.Mark(agents, now, known)
	}
	if err != nil {
		a.log.Warn("cannot note which fleet runs the agents", "err", err)
	}
}

// take marks the agents that a run has locked, and warns about those that were another store's.
func (a *app) take(f *config.Fleet, agents []*config.Agent) {
	a.warnOfElsewhere(f, agents, func(text string) { a.log.Warn(text) })
	a.mark(f, agents)
}

// whose returns what a fleet marks its agents with, and who they are; a fleet without a store
// knows that of nobody. It creates nothing.
func (a *app) whose(f *config.Fleet) (now owner.Origin, known memory.Identities, err error) {
	now.File = f.Path
	if now.StateDir, err = owner.Path(f); err != nil {
		return now, nil, err
	}
	r, err := store.OpenReader(context.Background(), now.StateDir)
	if errors.Is(err, store.ErrNone) {
		return now, nil, nil
	}
	if err != nil {
		return now, nil, err
	}
	now.Store = r.ID()
	known, err = store.Get(context.Background(), r, memory.Read)
	return now, known, errors.Join(err, r.Close())
}

// elsewhere are the agents whose directories are those of another store, or agent.
func (a *app) elsewhere(f *config.Fleet, agents []*config.Agent) []owner.Elsewhere {
	now, known, err := a.whose(f)
	if err != nil || adopt.Waits(now.StateDir) {
		return nil // it is told where the store is needed, and warnOfEarlier tells of what waits
	}
	return owner.Compare(agents, now, known)
}

// warnOfElsewhere warns about them.
func (a *app) warnOfElsewhere(f *config.Fleet, agents []*config.Agent, warn func(string)) {
	for _, e := range a.elsewhere(f, agents) {
		warn(e.String() + ": " + e.Advice())
	}
}

// remember keeps a configuration for knownFleet, and which queues its agents have.
func (a *app) remember(f *config.Fleet) {
	err := owner.Remember(f)
	dir, noDir := owner.StateDir(f)
	if noDir == nil {
		noDir = oldqueue.Note(dir, f.Agents, time.Now())
	}
	for _, err := range []error{err, noDir} {
		if err != nil {
			a.log.Warn(err.Error())
		}
	}
}

// warnOfOldQueues warns about prompts in queues that no agent of a fleet has any more.
func warnOfOldQueues(f *config.Fleet, warn func(string)) {
	dir, err := owner.StateDir(f)
	if err != nil {
		return // it is told where the directory is needed
	}
	for _, q := range oldqueue.Waiting(dir, f.Agents) {
		warn(q.Text() + ": " + q.Do())
	}
}

// inShort returns the first line of what is wrong with a configuration file.
func inShort(err error) string {
	if problems, ok := errors.AsType[config.Problems](err); ok && len(problems) > 0 {
		return problems[0].String()
	}
	return err.Error()
}

// agent finds an agent in the known fleet.
func (a *app) agent(name string) (*config.Agent, error) {
	f, err := a.knownFleet()
	if err != nil {
		return nil, err
	}
	return findAgent(f, name)
}

// readerEvery is how often whileRead looks.
const readerEvery = time.Second

// whileRead is interruptible for commands that follow something: it also ends once
// nobody reads stdout any more, which who has nothing to write would not notice.
func (a *app) whileRead(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := interruptible(ctx)
	go func() {
		for pause(ctx, readerEvery) {
			if remote.ReaderGone(a.stdio.out) {
				stop()
			}
		}
	}()
	return ctx, stop
}

// interruptible returns a context that ends at the signals that ask a program
// to stop.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}
