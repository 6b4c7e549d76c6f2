package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/control"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// leaving is what a scheduler that ends waits for, as it has said last, and which agents
// have worked on a prompt meanwhile.
type leaving struct {
	of    *config.Fleet
	works map[string]status.AgentState // :: agent → as it was when it worked last
	last  string
}

// look asks the scheduler, and returns what its end waits for.
func (l *leaving) look(ctx context.Context, client *control.Client) string {
	live, err := client.Status(ctx)
	mute := control.MuteOf(err, time.Time{})
	switch {
	case err != nil && ctx.Err() != nil:
		return l.last
	case mute != nil:
		l.last = mute.Text(time.Now()) + "; " + mute.Do("heartbeat")
		return l.last
	case err != nil:
		l.last = "its sessions have ended"
		return l.last
	}
	for _, a := range live.Agents {
		if a.Work != nil {
			l.works[a.Agent] = a
		}
	}
	l.last = waitsFor(live, time.Now())
	return l.last
}

// waitsFor says which sessions are left, and for how long turns may go on.
func waitsFor(live *status.Live, now time.Time) string {
	var turns, others []string
	for _, a := range live.Agents {
		switch doing := a.Doing(now); {
		case doing == "":
		case a.InTurn():
			turns = append(turns, a.Agent+" ("+doing+")")
		default:
			others = append(others, a.Agent+" ("+doing+")")
		}
	}
	all := append(turns, others...)
	text := count(len(all), "session") + " left"
	if len(all) > 0 {
		text += ": " + strings.Join(all, ", ")
	}
	if s := live.Stopping; s != nil && s.Until.After(now) && len(turns) > 0 {
		text += "; turns are ended in " + status.Span(s.Until.Sub(now))
	}
	return text
}

// foreseen is what becomes of the prompts whose turns are cut off, by agent.
func (l *leaving) foreseen() map[string]string {
	all := map[string]string{}
	for name, a := range l.works {
		if of := l.of.Agent(name); of != nil {
			all[name] = "its turn is cut off; " + fate(of, a)
		}
	}
	return all
}

// became says what has become of the prompts that sessions worked on, by agent. One that
// was done is worth a word to who did not want its turn to finish.
func (l *leaving) became(ctx context.Context, ours string, now bool) map[string]string {
	all := map[string]string{}
	for name, a := range l.works {
		of := l.of.Agent(name)
		if of == nil {
			continue
		}
		b, err := queue.WhatBecame(ctx, of, a.Work.DeliveryID, a.Work.ID)
		switch {
		case err != nil:
			all[name] = fmt.Sprintf("what has become of its prompt %s is not known: %v", handle(a.Work.ID, a.Work.DeliveryID), err)
		case !b.Done || now:
			all[name] = ended(ours, name, handle(a.Work.ID, a.Work.DeliveryID), b)
		}
	}
	return all
}

// ended says what has become of a prompt that an agent worked on when the scheduler ended.
func ended(ours, agent, id string, b queue.Became) string {
	switch {
	case b.Done:
		return "its prompt " + id + " is done"
	case b.State == inbox.Checking:
		return "its prompt " + id + " stays in flight until its check is done, which the next run makes"
	case b.State != "":
		return "its prompt " + id + " stays in flight (" + string(b.State) + "), and the next run goes on with it"
	case b.Queued:
		return "its turn was cut off; its prompt " + id + " is given again by the next run"
	case b.Dead == inbox.Cancelled:
		return "its turn was cancelled; its prompt " + id + " is a dead letter, and " + ours + " dead-letter " + agent + " retry " + id + " queues it again"
	case b.Dead != "":
		return "its turn was cut off; its prompt " + id + " is a dead letter (" + string(b.Dead) + "), and " + ours + " dead-letter " + agent + " retry " + id + " queues it again"
	}
	return "its turn was cut off; its prompt " + id + " was dropped"
}
