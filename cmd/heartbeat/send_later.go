package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"heartbeat/config"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/later"
	"heartbeat/orchestrator/send"
	"heartbeat/orchestrator/status"
	"heartbeat/sources"
)

// timed reports whether the prompt is for a later time.
func (c sendCmd) timed() bool { return c.At != "" || c.In != 0 }

// later keeps the prompt until its time.
func (c sendCmd) later(ctx context.Context, a *app, agent *config.Agent, asked send.Asked) (result, error) {
	asked.In = c.In
	at, err := c.due(agent, time.Now())
	if err != nil {
		return nil, err
	}
	kept, err := c.accept(a, &asked, agent.Name,
		func() (send.Sent, error) { return send.At(ctx, a.known, agent, asked, at) },
		func(s *send.Sent) { a.wakeLater(ctx, s) })
	kept.At = inZone(kept.At, at.Location())
	switch {
	case err != nil:
		return nil, err
	case kept.Differs:
		return sent{Sent: kept}, otherText(a, kept)
	}
	return sent{Sent: kept}, nil
}

// tellPatience is how long send waits for a scheduler to hear of its prompt, and to say whether
// it is stopping: the prompt is queued anyway.
const tellPatience = 2 * time.Second

// wakeLater has the scheduler look at what waits for its time.
func (a *app) wakeLater(ctx context.Context, s *send.Sent) {
	dir, err := runtimeDir(a.known)
	if s.Duplicate || err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tellPatience)
	defer cancel()
	a.whileStopped(s, control.NewClient(dir).Later(ctx)) // one that only was busy finds the prompt within seconds
}

// due returns the time for which the prompt is, in its agent's time zone.
func (c sendCmd) due(agent *config.Agent, now time.Time) (time.Time, error) {
	zone := cmp.Or(agent.Zone, time.Local)
	now = now.Round(0)
	at := now.Add(c.In).In(zone)
	if c.At != "" {
		var err error
		if at, err = moment(string(c.At), now, zone); err != nil {
			return at, err
		}
	}
	if at.Sub(now) > longestWait {
		return at, usagef("heartbeat send --at TIME AGENT TEXT", "%s is more than a year away", at.Format(time.DateOnly))
	}
	return at, nil
}

func inZone(t time.Time, zone *time.Location) time.Time {
	if t.IsZero() {
		return t
	}
	return t.In(zone)
}

// longestWait bounds how far away a time may be: further is most likely a typo.
const longestWait = 366 * 24 * time.Hour

// moment reads a time that is not over.
func moment(text string, now time.Time, zone *time.Location) (time.Time, error) {
	m, err := sources.ParseMoment(text)
	if err != nil {
		hint := "heartbeat send --at 18:30 AGENT TEXT"
		if _, length := sources.ParseLength(text); length == nil {
			hint = "heartbeat send --in " + text + " AGENT TEXT"
		}
		return time.Time{}, usagef(hint, "%q %v: write 18:30, 2026-12-01, \"2026-12-01 18:30\" or 2026-12-01T18:30Z", text, err)
	}
	at := m.Next(now, zone)
	if !at.After(now) {
		return at, usagef("heartbeat send AGENT TEXT queues it now", "%s is over", at.Format(whenForm))
	}
	return at, nil
}

// whenForm is how a time is shown that somebody has chosen.
const whenForm = "Mon 2006-01-02 15:04:05 MST"

func (s sent) laterText(p *page) {
	p.saidf("to be sent to %s at %s (in %s): %s", s.Agent, s.At.Format(whenForm), status.Span(time.Until(s.At).Round(time.Second)), s.ID)
	p.saidf("%s send %s --cancel %s takes it back", p.ours, settings.Quote(s.Agent), settings.Quote(s.ID))
	if s.ReplyTo != "" {
		p.printf("the reply goes to %s\n", s.ReplyTo)
	}
	if !s.Running {
		p.saidf("No scheduler runs the agent now; one that is started after that time sends it at once.")
	}
	if o := s.Obstacle; o != nil {
		waitsText(p, *o)
	}
}

// takenBack is a prompt that is not sent.
type takenBack struct {
	Agent string `json:"agent"`
	ID    string `json:"id"`
}

func (t takenBack) text(p *page) { p.printf("taken back from %s: %s\n", t.Agent, t.ID) }

// cancel takes back a prompt that waits for its time.
func (c sendCmd) cancel(ctx context.Context, a *app) (result, error) {
	id := string(c.Cancel)
	agent, err := c.waitsFor(a, id)
	if err == nil {
		err = send.TakeBack(ctx, a.known, agent, id, a.await)
	}
	if errors.Is(err, later.ErrNone) {
		drop := "inbox drop " + settings.Quote(id)
		if c.Agent != "" {
			drop = "inbox " + c.Agent + " drop " + settings.Quote(id)
		}
		return nil, &failure{
			status: exitError, hint: fmt.Sprintf("%s next lists those that wait; if it was sent, %[1]s %s takes it out of the queue", a.ours(), drop),
			err: fmt.Errorf("cannot take back %q: %w", id, err),
		}
	}
	if err != nil {
		return nil, err
	}
	return takenBack{agent.Name, id}, nil
}

// waitsFor returns the agent that is named or, without a name, the one for which a prompt
// with an id waits. With later.ErrNone there is none.
func (c sendCmd) waitsFor(a *app, id string) (*config.Agent, error) {
	if c.Agent != "" {
		return a.agent(c.Agent)
	}
	f, err := a.knownFleet()
	if err != nil {
		return nil, err
	}
	var owners []*config.Agent
	for _, agent := range f.Agents {
		p, err := later.Find(agent, id)
		if err != nil {
			return nil, fmt.Errorf("cannot tell for which agent %q waits: %w", id, err)
		}
		if p != nil {
			owners = append(owners, agent)
		}
	}
	switch len(owners) {
	case 0:
		return nil, later.ErrNone
	case 1:
		return owners[0], nil
	}
	return nil, ambiguous(id, owners, a.ours()+" send AGENT --cancel "+settings.Quote(id))
}
