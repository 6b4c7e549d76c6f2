package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	webpage "heartbeat/orchestrator/page"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/page/changes"
	"heartbeat/orchestrator/page/once"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/send"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// web is the page of a running fleet: what it shows is what the commands show, what it
// does is what they do.
type web struct {
	*webpage.Page
	app      *app
	stateDir string
	store    *store.Store
	guard    *access.Guard
	run      status.Run
	lines    webLines
	allows   sync.Mutex // held while the fleet's file is changed
	// now is the run, once it is ready; fleet the version of its file that runs.
	now   atomic.Pointer[reloading]
	fleet atomic.Pointer[config.Fleet]
	keys  atomic.Pointer[keyOf] // of the agents of fleet
}

// keyOf returns an agent's key (memory.Keys).
type keyOf func(*config.Agent) (string, error)

var (
	_ webpage.Read = (*web)(nil)
	_ webpage.Act  = (*web)(nil)
)

// web makes the page of a run. note writes to the journal.
func (a *app) web(f *config.Fleet, stateDir string, kept *store.Store, tokens *access.Keeper, run status.Run, person func(pid int) error, note func(journal.Event)) *web {
	w := &web{app: a, stateDir: stateDir, store: kept, run: run}
	w.guard = access.NewGuard(access.Options{Tokens: tokens, Person: person, Fleet: stateDir, Log: a.log})
	w.Page = webpage.New(webpage.Options{
		Fleet: f.Name, Read: w, Act: w, Agents: newWebAgents(w), Approvals: &webApprovals{web: w}, Guard: w.guard, Book: once.Open(kept, nil), Note: note, Log: a.log,
	})
	w.use(f)
	if err := changes.Sweep(stateDir, time.Now()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.log.Warn("what is left of comparisons stays", "err", err)
	}
	return w
}

// use has the page show another version of the fleet's file.
func (w *web) use(f *config.Fleet) {
	w.fleet.Store(f)
	w.keys.Store(new(keyOf(memory.Keys(w.stateDir, f.Agents))))
	w.guard.Use(rulesOf(f))
}

// rulesOf are what the fleet's file says of who may look.
func rulesOf(f *config.Fleet) access.Rules {
	r := access.Rules{Address: f.Page.Address, Proxies: f.Page.Proxies}
	if f.Page.Socket {
		r.Proxies = append(r.Proxies[:len(r.Proxies):len(r.Proxies)], access.OverSocket)
	}
	for _, l := range f.Listen {
		if l.Open {
			r.Open = append(r.Open, l.Address)
		}
	}
	return r
}

// live is what the scheduler says, as it tells commands.
func (w *web) live() *status.Live {
	s := w.now.Load()
	if s == nil {
		return nil
	}
	run := w.run
	run.Stopping, run.Unloaded = s.Stopping(), s.Unloaded()
	return &status.Live{Run: run, Doors: s.Doors(), Store: w.store.Troubles(), Agents: s.Snapshot()}
}

// Fleet implements webpage.Read: what `heartbeat status -o json` says.
func (w *web) Fleet(context.Context) (webpage.Fleet, error) {
	f, now := w.fleet.Load(), time.Now()
	all := status.Read(f, w.stateDir, w.live(), now)
	beside(&all, w.stateDir, f.Agents, now)
	w.lines.add(f, w.stateDir, &all, now)
	shown := newStatusPage(all, w.app.ours(), now.Truncate(10*time.Second))
	page := webpage.Fleet{Fleet: shown.Fleet, Summary: shown.Summary, Troubles: shown.Troubles, Group: map[string]string{}}
	for _, a := range f.Agents {
		if a.Group != "" {
			page.Group[a.Name] = a.Group
		}
	}
	page.Budgets, page.Limits = budgetsOf(f, w.spending(f, all, now)), w.limits(now)
	return page, nil
}

// Agent implements webpage.Read: of one agent alone.
func (w *web) Agent(_ context.Context, name string) (status.Agent, []status.Trouble, error) {
	f, now := w.fleet.Load(), time.Now()
	agent := f.Agent(name)
	if agent == nil {
		return status.Agent{}, nil, webpage.ErrNotFound
	}
	one := *f
	one.Agents = []*config.Agent{agent}
	all := status.Read(&one, w.stateDir, w.live(), now)
	w.lines.add(&one, w.stateDir, &all, now)
	return all.Agents[0], all.Agents[0].Troubles(w.app.ours(), now.Truncate(10*time.Second)), nil
}

// agent returns an agent of the file that runs.
func (w *web) agent(name string) (*config.Agent, error) { return findAgent(w.fleet.Load(), name) }

// reached returns the run.
func (w *web) reached() (*reloading, error) {
	if s := w.now.Load(); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("the fleet is not running yet")
}

// Pause implements webpage.Act.
func (w *web) Pause(length time.Duration, agent string) error {
	s, err := w.reached()
	if err == nil {
		_, err = s.PauseBy("", length, agent)
	}
	return err
}

// Resume implements webpage.Act.
func (w *web) Resume(agent string) error {
	s, err := w.reached()
	if err == nil {
		var states []status.AgentState
		before := pausedIn(&status.Live{Agents: s.Snapshot()})
		if states, err = s.Resume(agent); err == nil {
			err = held{Done: "resumed", Agents: states, ours: w.app.ours(), lifted: before}.failure()
		}
	}
	return err
}

// Restart implements webpage.Act.
func (w *web) Restart(now bool, agent string) error {
	s, err := w.reached()
	if err == nil {
		_, err = s.Restart(now, agent)
	}
	return err
}

// Cancel implements webpage.Act.
func (w *web) Cancel(ctx context.Context, entry string, again bool, agent string) (string, error) {
	s, err := w.reached()
	if err != nil {
		return "", err
	}
	all, err := s.Cancel(ctx, entry, again, agent)
	if err != nil {
		return "", err
	}
	res := cancelled{all, w.app.ours()}
	if err := res.failure(); err != nil {
		return "", err
	}
	return agent + ": cancelled", nil
}

// Trigger implements webpage.Act.
func (w *web) Trigger(ctx context.Context, agent, trigger string) (string, error) {
	s, err := w.reached()
	if err != nil {
		return "", err
	}
	fired, err := s.Trigger(ctx, agent, trigger)
	if err != nil {
		return "", err
	}
	n := 0
	for _, f := range fired {
		if f.Problem != "" {
			return "", fmt.Errorf("cannot fire %s of agent %q: %s", f.Trigger, agent, f.Problem)
		}
		n += f.Queued
	}
	return fmt.Sprintf("%s: fired %s, %s queued", agent, trigger, count(n, "prompt")), nil
}

// Send implements webpage.Act.
func (w *web) Send(ctx context.Context, agent, prompt, id string) (string, error) {
	a, err := w.agent(agent)
	if err != nil {
		return "", err
	}
	s, err := send.Prompt(ctx, w.fleet.Load(), a, send.Asked{Letter: inbox.Letter{ID: id, Source: "page", Prompt: prompt}}, w.app.ours())
	said := agent + ": queued"
	if s.Unrecorded != "" {
		said = agent + ": " + unnoticed(s)
	}
	return said, err
}

// Drop implements webpage.Act.
func (w *web) Drop(ctx context.Context, agent, id string) error {
	a, err := w.agent(agent)
	if err == nil {
		_, err = queue.Drop(ctx, a, []string{id})
	}
	if err == nil {
		err = forgetEnded(ctx, w.fleet.Load(), a)
	}
	return err
}

// Retry implements webpage.Act.
func (w *web) Retry(ctx context.Context, agent, id string) error {
	a, err := w.agent(agent)
	if err == nil {
		_, err = retry(ctx, w.fleet.Load(), a, []string{id}, false)
	}
	return err
}

// RetryAll implements webpage.Act.
func (w *web) RetryAll(ctx context.Context, agent string) (n int, err error) {
	a, err := w.agent(agent)
	if err == nil {
		n, err = retry(ctx, w.fleet.Load(), a, nil, true)
	}
	return n, err
}

// Purge implements webpage.Act.
func (w *web) Purge(ctx context.Context, agent, id string) error {
	a, err := w.agent(agent)
	if err == nil {
		err = forgetEnded(ctx, w.fleet.Load(), a)
	}
	if err == nil {
		_, err = queue.Purge(ctx, a, []string{id}, false)
	}
	return err
}

// Continue implements webpage.Act.
func (w *web) Continue(ctx context.Context, agent, answer string) (string, error) {
	a, err := w.agent(agent)
	if err != nil {
		return "", err
	}
	given, err := queue.Answer(ctx, a, answer)
	if err != nil {
		return "", err
	}
	if err := movedOn(ctx, w.fleet.Load(), a); err != nil {
		w.app.log.Warn(err.Error(), "agent", agent)
	}
	said := agent + ": its queue continues, and " + strings.Join(meaning(given), ", ")
	s, err := w.reached()
	if err != nil {
		return said, err
	}
	s.NoteAnswered(agent, foreign.Text(toldQueue(given, "a person on the page")))
	if !slices.ContainsFunc(s.Snapshot(), func(a status.AgentState) bool { return a.Agent == agent && !a.Paused.IsZero() }) {
		_, err = s.Resume(agent)
		return said, err
	}
	return said + "; it is paused", nil
}

// Reload implements webpage.Act.
func (w *web) Reload() (string, error) {
	s, err := w.reached()
	if err != nil {
		return "", err
	}
	plan, err := s.Reload()
	if err != nil {
		return "", err
	}
	if plan.Empty() {
		return "nothing changed", nil
	}
	return fmt.Sprintf("loaded: %s", count(len(plan.Added)+len(plan.Removed)+len(plan.Changed), "agent")+" added, removed or changed"), nil
}

// runPage has the page follow a run until ctx ends.
func (w *web) runPage(ctx context.Context, s reloading, around *sync.WaitGroup) {
	w.now.Store(&s)
	around.Go(func() { w.Run(ctx) })
}

// acting writes to the journal who acts by the page.
type acting struct {
	store *store.Store
}

// note returns when it is written down, so that the journal says who asked even if this
// process dies.
func (a acting) note(e journal.Event) {
	a.store.Keep("who acted by the page at "+e.At.Format(time.RFC3339Nano), func() error {
		return a.store.Write(context.Background(), func(c *store.Change) error { return journal.Write(c, e) })
	})
}
