package main

import (
	"context"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/send"
	"heartbeat/orchestrator/status"
)

type repliesCmd struct {
	Agents []string `arg:"" optional:"" help:"The agents; all of them when none is named." complete:"agent"`
	Follow bool     `help:"Go on with the replies that come, until interrupted; -f for short."`
	Since  since    `placeholder:"TIME" help:"Begin at this time: 2h, 1w, 09:30, 2026-03-01."`
	Count  *int     `short:"n" placeholder:"N" help:"How many replies to begin with, the newest (20; all with --since)."`
}

// Help implements kong's HelpProvider.
func (repliesCmd) Help() string {
	return `Prints the agents' final reply to each prompt that is done: when, which agent, what
queued the prompt, and how long it took. "not proven" marks a prompt that the outbox calls
done although no check has passed (heartbeat explain forged). With -o json each reply is
one line, before the envelope.

Examples:

    heartbeat replies
    heartbeat replies triage -n 1
    heartbeat replies --since 24h
    heartbeat replies -f triage builder`
}

func (c repliesCmd) run(ctx context.Context, a *app) (result, error) {
	if c.Count != nil && *c.Count < 0 {
		return nil, usagef("heartbeat replies --help", "-n is below 0")
	}
	known, agents, err := a.knownAgents(c.Agents)
	if err != nil {
		return nil, err
	}
	unproven, err := send.Doubtful(known)
	if err != nil {
		return nil, err
	}
	ctx, stop := a.whileRead(ctx)
	defer stop()
	return c.show(ctx, a, agents, unproven)
}

// show prints the replies, with -f also those that come. If there is none, and some
// cannot be read, it is not known whether there is.
func (c repliesCmd) show(ctx context.Context, a *app, agents []*config.Agent, unproven queue.Doubtful) (result, error) {
	begin := time.Now()
	past, err := queue.Replies(ctx, agents, c.Since.Time, c.Since.most(c.Count, 20), unproven)
	if err != nil && !c.Follow && len(past) > 0 {
		a.warn(err.Error())
	}
	var failed error
	shown := map[string]bool{}
	for _, r := range past {
		if failed = c.print(a, r); failed != nil {
			break
		}
		shown[r.Agent+" "+r.DeliveryID] = true
	}
	if c.Follow && failed == nil {
		queue.FollowReplies(ctx, agents, begin, unproven, func(r queue.Reply, unread error) bool {
			switch {
			case unread != nil:
				a.warn(unread.Error())
			case !shown[r.Agent+" "+r.DeliveryID]:
				failed = c.print(a, r)
			}
			return failed == nil
		})
	}
	if gone(failed) {
		failed = nil
	}
	switch {
	case failed != nil || c.Follow || len(past) > 0:
		return nil, failed
	case err != nil:
		return nil, err
	}
	return nothing("no replies"), nil
}

// nothing is what a command says if it found nothing to print.
type nothing string

func (n nothing) text(p *page) { p.saidf("%s", string(n)) }

// MarshalJSON is null: nothing came before it.
func (nothing) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

func (repliesCmd) print(a *app, r queue.Reply) error {
	return a.out.emit(r, func(p *page) {
		p.coloured(p.dim, r.AcknowledgedAt.Local().Format(time.DateTime)+" ")
		p.coloured(p.cyan, r.Agent)
		p.printf(" %s", origin(r.Agent, r.Source))
		if !r.DeliveredAt.IsZero() {
			p.printf(", %s", status.Span(r.AcknowledgedAt.Sub(r.DeliveredAt)))
		}
		if r.Attempt > 1 {
			p.printf(", attempt %d", r.Attempt)
		}
		switch v := r.Verdict; {
		case r.NotProven:
			p.coloured(p.yellow, ", not proven")
		case v != nil:
			p.printf(", proven in iteration %d", v.Iteration)
		}
		p.printf("\n")
		switch {
		case foreign.Line(r.Reply) == "":
			p.coloured(p.dim, "    (it said nothing)")
			p.printf("\n")
		default:
			p.whole("    ", r.Reply)
		}
		if r.ReplyCut {
			p.coloured(p.dim, "    (the rest was not kept)")
			p.printf("\n")
		}
	})
}
