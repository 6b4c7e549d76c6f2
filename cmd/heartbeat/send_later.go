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
	zone := cmp.Or(agent.Zone, time.Local)
	now := time.Now().Round(0)
	at := now.Add(c.In).In(zone)
	if c.At != "" {
		var err error
		if at, err = moment(string(c.At), now, zone); err != nil {
			return nil, err
		}
	}
	if at.Sub(now) > longestWait {
		return nil, usagef("heartbeat send --at TIME AGENT TEXT", "%s is more than a year away", at.Format(time.DateOnly))
	}
	kept, err := send.At(ctx, a.known, agent, asked, at)
	kept.At = inZone(kept.At, zone)
	switch {
	case err != nil:
		return nil, err
	case kept.Differs:
		return sent{Sent: kept}, otherText(a, kept)
	case kept.Duplicate:
		return sent{Sent: kept}, nil
	}
	if dir, err := runtimeDir(a.known); err == nil {
		told, cancel := context.WithTimeout(ctx, askPatience)
		defer cancel()
		a.whileStopped(&kept, control.NewClient(dir).Later(told)) // one that only was busy finds the prompt within seconds
	}
	return sent{Sent: kept}, nil
}

func inZone(t time.Time, zone *time.Location) time.Time {
	if t.IsZero() {
		return t
	}
	return t.In(zone)
}

// longestWait bounds how far away a time may be: further is most likely a typo.
const longestWait = 366 * 24 * time.Hour

// moment reads a time: of today or tomorrow, of a day, or with its own zone. A local
// time that the clocks skip is the end of the gap, one that comes twice the first.
func moment(text string, now time.Time, zone *time.Location) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if local, wrong := time.Parse(layout, text); err != nil && wrong == nil {
			at, err = sources.FirstReach(zone, local), nil
		}
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		clock, wrong := time.Parse(layout, text)
		if err == nil || wrong != nil {
			continue
		}
		today := now.In(zone)
		for day := range 2 {
			local := time.Date(today.Year(), today.Month(), today.Day()+day, clock.Hour(), clock.Minute(), clock.Second(), 0, time.UTC)
			if at, err = sources.FirstReach(zone, local), nil; at.After(now) {
				break
			}
		}
	}
	switch {
	case err != nil:
		return at, usagef("heartbeat send --at 18:30 AGENT TEXT", "%q is not a time: write 15:04, 2006-01-02 15:04, or 2006-01-02T15:04:05Z", text)
	case !at.After(now):
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
		err = send.TakeBack(ctx, a.known, agent, id)
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
