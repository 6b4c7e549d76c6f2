// Package window is what agents say and show as it goes on, for as long as somebody asks
// again and again: a conversation is read from its end and then only what is new of it, a
// session's terminal is joined once for all who look, and left soon after the last one. Who
// looks changes nothing for the session, and types nothing.
package window

import (
	"context"
	"errors"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/logs"
	"heartbeat/orchestrator/transcript"
	"heartbeat/ptyrun/attach"
)

const (
	// mostPanes and mostTalks bound how many agents are looked at at once: a screen takes
	// some 7 MB.
	mostPanes = 8
	mostTalks = 64
	// mostLines is how many lines of a conversation are kept, mostText how much of each.
	mostLines = 60
	mostText  = 4 << 10
	// mostTail is how much of a conversation is read at first.
	mostTail = 512 << 10
	// unasked is when nobody looks any more.
	unasked = 15 * time.Second
	// firstWithin is how long the first picture may take.
	firstWithin = 2500 * time.Millisecond
)

// Line is one of a conversation. ID tells it from the others.
type Line struct {
	ID int
	transcript.Line
	// Cut is true if it is longer.
	Cut bool
}

// Window keeps what is looked at. It is safe for concurrent use.
type Window struct {
	join     func(ctx context.Context, agent string) (*attach.Viewer, error)
	stateDir string

	mu    sync.Mutex
	talks map[string]*talk // :: agent → its conversation
	panes map[string]*pane // :: agent → its screen
	next  int
}

// New returns one that joins sessions, only to look, by join, and finds their conversations by the
// state directory.
func New(stateDir string, join func(ctx context.Context, agent string) (*attach.Viewer, error)) *Window {
	return &Window{join: join, stateDir: stateDir, talks: map[string]*talk{}, panes: map[string]*pane{}}
}

// talk is a conversation that somebody reads.
type talk struct {
	asked time.Time // Window.mu guards it

	mu    sync.Mutex
	of    logs.Conversation
	lines []Line
}

// Said returns the newest lines of an agent's conversation, oldest first.
func (w *Window) Said(a *config.Agent) ([]Line, error) {
	t := w.talk(a)
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.of.Follow(func(l transcript.Line) bool {
		line := Line{ID: w.id(), Line: l}
		if len(l.Text) > mostText {
			line.Text, line.Cut = foreign.Text(l.Text[:mostText]), true
		}
		if t.lines = append(t.lines, line); len(t.lines) > 2*mostLines {
			t.lines = append([]Line(nil), t.lines[len(t.lines)-mostLines:]...)
		}
		return true
	})
	return append([]Line(nil), t.lines[max(0, len(t.lines)-mostLines):]...), err
}

func (w *Window) id() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	return w.next
}

// talk returns an agent's, and closes those that nobody has asked for.
func (w *Window) talk(a *config.Agent) *talk {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	key := a.Name + "\x00" + a.Home
	t := w.talks[key]
	if t == nil {
		t = &talk{of: logs.Conversation{Agent: a, StateDir: w.stateDir, Tail: mostTail}}
		w.talks[key] = t
	}
	t.asked = now
	for len(w.talks) > 1 {
		oldest, last := "", now
		for of, other := range w.talks {
			if other != t && !other.asked.After(last) {
				oldest, last = of, other.asked
			}
		}
		if oldest == "" || now.Sub(last) < unasked && len(w.talks) <= mostTalks {
			break
		}
		gone := w.talks[oldest]
		delete(w.talks, oldest)
		go gone.close() // it may be read just now
	}
	return t
}

func (t *talk) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of.Close()
}

// pane is a screen that somebody looks at.
type pane struct {
	end   *time.Timer
	first chan struct{} // closed when there is a picture or an error

	mu      sync.Mutex
	picture attach.Picture
	err     error
}

// errMany means that too many look at others.
var errMany = errors.New("too many screens are looked at now")

// Screen returns what the terminal of an agent's session shows. The error is
// attach.ErrNobody if it has none.
func (w *Window) Screen(ctx context.Context, agent string) (attach.Picture, error) {
	p, err := w.pane(agent)
	if err != nil {
		return attach.Picture{}, err
	}
	wait := time.NewTimer(firstWithin)
	defer wait.Stop()
	select {
	case <-p.first:
	case <-wait.C:
	case <-ctx.Done():
		return attach.Picture{}, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.picture, p.err
}

// pane returns the one of an agent, which lives until nobody has asked for a while.
func (w *Window) pane(agent string) (*pane, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.panes[agent]; p != nil {
		p.end.Reset(unasked)
		return p, nil
	}
	if len(w.panes) >= mostPanes {
		return nil, errMany
	}
	ctx, end := context.WithCancel(context.Background())
	p := &pane{end: time.AfterFunc(unasked, end), first: make(chan struct{})}
	w.panes[agent] = p
	go func() {
		defer end()
		p.watch(ctx, w.join, agent)
		w.mu.Lock()
		defer w.mu.Unlock()
		p.end.Stop()
		delete(w.panes, agent)
	}()
	return p, nil
}

// watch keeps the picture of a session until it ends or nobody looks any more.
func (p *pane) watch(ctx context.Context, join func(context.Context, string) (*attach.Viewer, error), agent string) {
	var once sync.Once
	seen := func() { once.Do(func() { close(p.first) }) }
	defer seen()
	v, err := join(ctx, agent)
	if err == nil {
		err = errors.Join(v.Watch(ctx, func(picture attach.Picture) error {
			p.mu.Lock()
			p.picture = picture
			p.mu.Unlock()
			seen()
			return nil
		}), v.Close())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}
