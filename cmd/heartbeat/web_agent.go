package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/hook/durable"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/explain"
	"heartbeat/orchestrator/firing"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	webpage "heartbeat/orchestrator/page"
	"heartbeat/orchestrator/page/changes"
	"heartbeat/orchestrator/page/window"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/series"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/store"
	"heartbeat/ptyrun/attach"
)

// What a page of an agent shows at most.
const (
	webEntries = 30
	webDead    = 30
	webReplies = 20
	webEnds    = 50
	webPrompt  = 8 << 10
)

// webAgents reads what the pages of one agent show, as the commands read it.
type webAgents struct {
	*web
	window *window.Window

	mu   sync.Mutex
	dead map[string]*webLetters // :: agent's folder → its dead letters
	past journalPast
}

var _ webpage.AgentRead = (*webAgents)(nil)

func newWebAgents(w *web) *webAgents {
	return &webAgents{web: w, dead: map[string]*webLetters{}, window: window.New(w.stateDir, func(ctx context.Context, agent string) (*attach.Viewer, error) {
		dir, err := runtimeDir(w.fleet.Load())
		if err != nil {
			return nil, err
		}
		return attach.Join(ctx, filepath.Join(dir, session.SocketName(agent)), attach.Guest{ReadOnly: true})
	})}
}

// Said implements webpage.AgentRead.
func (w *webAgents) Said(_ context.Context, agent string) ([]window.Line, error) {
	a, err := w.agent(agent)
	if err != nil {
		return nil, err
	}
	return w.window.Said(a)
}

// Screen implements webpage.AgentRead.
func (w *webAgents) Screen(ctx context.Context, agent string) (webpage.Screen, error) {
	picture, err := w.window.Screen(ctx, agent)
	switch {
	case errors.Is(err, attach.ErrNobody):
		return webpage.Screen{Note: "It has no session now."}, nil
	case err != nil:
		return webpage.Screen{Note: "It cannot be shown: " + err.Error()}, nil
	case len(picture.Spans) == 0:
		return webpage.Screen{Note: "It shows nothing yet."}, nil
	}
	return webpage.Screen{Rows: picture.Spans}, nil
}

// Queue implements webpage.AgentRead.
func (w *webAgents) Queue(ctx context.Context, agent string) (webpage.Queue, error) {
	a, err := w.agent(agent)
	if err != nil {
		return webpage.Queue{}, err
	}
	var all webpage.Queue
	list, err := readQueue(settling(ctx), a, webEntries)
	if err != nil {
		all.Note = err.Error()
		if asked, err := queue.Question(ctx, a); err == nil && asked != nil {
			all.Note = asked.Why
			for _, c := range asked.Answers {
				all.Choices = append(all.Choices, webpage.Choice{Name: c.Name, Where: where(c.Name), Means: meaning(c)})
			}
		}
	} else {
		all.More = list.More
		for _, e := range list.Entries {
			all.Entries = append(all.Entries, webpage.Entry{
				ID: e.DeliveryID, InFlight: e.State != "queued" && !e.aside, Aside: e.aside, Urgent: e.Urgent, State: e.State, Source: foreign.Text(e.Source), Attempt: e.Attempt, Since: e.Delivered,
				Prompt: shortened(e.Prompt),
			})
		}
	}
	letters := w.lettersOf(a)
	if err := letters.read(ctx, a); err != nil && all.Note == "" {
		all.Note = err.Error()
	}
	all.Dead, all.DeadMore = letters.newest, letters.more
	return all, nil
}

func shortened(t foreign.Text) foreign.Text {
	if len(t) > webPrompt {
		return t[:webPrompt] + "…"
	}
	return t
}

// webLetters are the newest dead letters of an agent: their file is read when it has
// changed.
type webLetters struct {
	mu     sync.Mutex
	stamp  durable.Stamp
	known  bool
	newest []webpage.Dead
	more   int
}

func (w *webAgents) lettersOf(a *config.Agent) *webLetters {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.dead) > 1000 {
		clear(w.dead)
	}
	if w.dead[a.Home] == nil {
		w.dead[a.Home] = &webLetters{}
	}
	return w.dead[a.Home]
}

func (l *webLetters) read(ctx context.Context, a *config.Agent) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	stamp := durable.StampOf(os.Lstat(inbox.DeadLetterFile(a.Inbox)))
	if l.known && l.stamp.Same(stamp) {
		return nil
	}
	return queue.Read(ctx, a, func(q *inbox.Queue) error {
		var all []webpage.Dead
		n := 0
		for d, err := range q.DeadLetters() {
			if err != nil {
				return err
			}
			n++
			if all = append(all, letterOf(d)); len(all) > 2*webDead {
				all = slices.Clone(all[len(all)-webDead:])
			}
		}
		all = all[max(0, len(all)-webDead):]
		slices.Reverse(all)
		l.newest, l.more, l.stamp, l.known = all, n-len(all), stamp, true
		return nil
	})
}

func letterOf(d inbox.DeadEntry) webpage.Dead {
	letter := webpage.Dead{
		ID: d.DeliveryID, Reason: foreign.Text(d.Reason), Cause: foreign.Text(d.Cause), Source: foreign.Text(d.Source), Attempts: d.Attempts, At: d.At,
		Prompt: shortened(foreign.Text(promptOf(string(d.Raw())))), Retryable: d.Retryable(),
	}
	if d.Reason == inbox.Lost && d.Raw() == nil {
		letter.Textless = foreign.Text(cmp.Or(d.ID, d.DeliveryID))
	}
	if letter.Prompt == "" {
		letter.Prompt = shortened(foreign.Text(d.Excerpt))
	}
	if w, ok := explain.Find(string(d.Reason)); ok {
		letter.Means = w.Means
	}
	return letter
}

// Triggers implements webpage.AgentRead.
func (w *webAgents) Triggers(agent string) ([]webpage.Trigger, error) {
	a, err := w.agent(agent)
	if err != nil {
		return nil, err
	}
	next := map[string]time.Time{}
	paused := firing.Paused{}
	if s, err := w.reached(); err == nil {
		paused = triggersPaused(s.Snapshot())
	}
	for _, f := range firing.Next([]*config.Agent{a}, paused, time.Now()) {
		next[f.Trigger] = f.At
	}
	var all []webpage.Trigger
	for i := range a.Triggers {
		t := &a.Triggers[i]
		all = append(all, webpage.Trigger{Name: t.Name, When: whenOf(t, paused.Of(a.Name, t.Name)), Next: next[t.Name], Urgent: t.Urgent})
	}
	return all, nil
}

// Record implements webpage.AgentRead.
func (w *webAgents) Record(ctx context.Context, agent string) (webpage.Record, error) {
	a, err := w.agent(agent)
	if err != nil {
		return webpage.Record{}, err
	}
	var r webpage.Record
	prompts := map[string]foreign.Text{} // :: delivery → its prompt, or what else tells it
	replies, err := queue.Replies(ctx, []*config.Agent{a}, time.Time{}, webReplies, ledger.Doubtful(w.stateDir, *w.keys.Load(), false))
	if err != nil {
		r.Note = err.Error()
	}
	for _, d := range slices.Backward(replies) {
		text := shortened(foreign.Text(d.Reply))
		prompts[d.DeliveryID] = cmp.Or(foreign.Text(d.ID), text)
		r.Replies = append(r.Replies, webpage.Reply{
			At: d.AcknowledgedAt, Begun: d.DeliveredAt, ID: foreign.Text(d.ID), Source: foreign.Text(d.Source), Attempt: d.Attempt, Text: text, Cut: d.ReplyCut, NotProven: d.NotProven,
		})
	}
	r.Ends, err = w.past.of(ctx, w.stateDir, agent)
	if err != nil && r.Note == "" {
		r.Note = err.Error()
	}
	if !slices.ContainsFunc(r.Ends, func(e webpage.End) bool { return e.Check }) {
		return r, nil
	}
	now, err := w.Queue(ctx, agent)
	for _, e := range now.Entries {
		prompts[e.ID] = e.Prompt
	}
	for _, d := range now.Dead {
		prompts[d.ID] = d.Prompt
	}
	for i := range r.Ends {
		r.Ends[i].Of = prompts[r.Ends[i].Entry]
	}
	return r, err
}

// journalPast is how sessions and checks ended, by the journal: read once for all agents, and not
// again for a while, as it may be large.
type journalPast struct {
	mu   sync.Mutex
	at   time.Time
	ends map[string][]webpage.End // :: agent → newest last
	err  error
}

const pastLasts = 30 * time.Second

func (p *journalPast) of(ctx context.Context, stateDir, agent string) ([]webpage.End, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() || time.Since(p.at) > pastLasts {
		p.ends, p.err = map[string][]webpage.End{}, nil
		for e, err := range journal.Read(stateDir) {
			if err != nil || ctx.Err() != nil {
				p.err = cmp.Or(err, ctx.Err())
				break
			}
			var h happened
			switch e.Kind {
			case journal.Ended:
				h = sessionOf(e)
			case journal.Checked:
				h = checkOf(e)
			default:
				continue
			}
			all := append(p.ends[e.Agent], webpage.End{Check: h.Kind == "check", Entry: e.Entry, At: h.At, Took: time.Duration(h.DurationMS) * time.Millisecond, Done: h.Acknowledged, Why: h.Why})
			if len(all) > 2*webEnds {
				all = slices.Clone(all[len(all)-webEnds:])
			}
			p.ends[e.Agent] = all
		}
		if p.at = time.Now(); ctx.Err() != nil {
			p.at = time.Time{}
		}
	}
	all := slices.Clone(p.ends[agent][max(0, len(p.ends[agent])-webEnds):])
	slices.Reverse(all)
	return all, p.err
}

// Changes implements webpage.AgentRead.
func (w *webAgents) Changes(ctx context.Context, agent string) (*changes.Changes, error) {
	a, err := w.agent(agent)
	if err != nil {
		return nil, err
	}
	return changes.Of(ctx, w.stateDir, a.Dir, whoseIn(a))
}

// whoseIn tells an agent's work from what heartbeat and the client keep beside it.
func whoseIn(a *config.Agent) changes.Whose {
	known := client.Claude.Settings
	wired := map[string]bool{known.Folder + "/" + known.File: a.Settings == config.SettingsProject, known.Folder + "/" + known.Local: a.Settings == config.SettingsLocal}
	home := filepath.Base(a.Home)
	talk := "/" + known.Folder + "/" + client.Claude.Transcript.Folder + "/"
	return func(name string) changes.Share {
		first, _, _ := strings.Cut(name, "/")
		switch {
		case wired[name]:
			return changes.Wired
		case first == home || strings.Contains("/"+name, talk):
			return changes.Named
		}
		return changes.Work
	}
}

// Series implements webpage.AgentRead.
func (w *webAgents) Series(ctx context.Context, agent string, since, now time.Time, every series.Every) (series.Past, error) {
	var names []string
	if agent != "" {
		names = append(names, agent)
	}
	past, err := store.Get(ctx, w.store.Reader, func(v *store.View) (series.Past, error) { return series.Look(v, names, since, now, every) })
	if err != nil {
		return past, fmt.Errorf("cannot read the series: %w", err)
	}
	past.Saw(now)
	return past, nil
}
