package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/clients"
	"heartbeat/orchestrator/probe"
	"heartbeat/orchestrator/session"
)

// serveProbeCmd plays the scenes of a probe; see probe.Prober.
type serveProbeCmd struct{}

func (serveProbeCmd) run(ctx context.Context, a *app) (result, error) {
	ctx, stop := interruptible(ctx)
	defer stop()
	return nil, probe.Serve(ctx, a.in, a.stdio.out)
}

// probed is what was found of clients.
type probed struct {
	Clients []probedClient `json:"clients"`
}

// probedClient is one of them, and who uses it.
type probedClient struct {
	probe.Result
	Verdict probe.Verdict   `json:"verdict"`
	Agents  []string        `json:"agents"`
	Untried []probe.Promise `json:"untried"`
}

// probe is doctor --probe.
func (c doctorCmd) probe(ctx context.Context, a *app) (result, error) {
	programs, err := c.programs(a)
	if err != nil {
		return nil, err
	}
	line := newProgressLine(a)
	defer line.end()
	var res probed
	for _, p := range programs {
		r := probe.Result{Client: p.File, Failure: foreign.Text(p.Untried), Kept: []probe.Promise{}, Broken: []probe.Breach{}, Once: []foreign.Text{}}
		if p.Untried == "" {
			r = probe.Prober{Self: session.Self(), Step: func(played, of int, now string) {
				line.bar("probing "+p.File+":", played, of, now)
			}}.Probe(ctx, p.Argv, p.Path)
			if err := clients.Keep(p, r); err != nil {
				a.warn(err.Error())
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("cannot finish the probe: %w", context.Cause(ctx))
		}
		res.Clients = append(res.Clients, probedClient{Result: r, Verdict: r.Verdict(), Agents: p.Agents, Untried: r.Untried()})
	}
	return res, res.failure()
}

// programs are the clients to probe.
func (c doctorCmd) programs(a *app) ([]clients.Program, error) {
	if c.Client != "" {
		return []clients.Program{clients.At(c.Client, os.Environ())}, nil
	}
	_, agents, err := a.knownAgents(c.Agents)
	if err != nil {
		return nil, err
	}
	return clients.Distinct(agents, os.Environ(), session.Self()), nil
}

func (r probed) failure() error {
	bad, unknown := 0, 0
	for _, c := range r.Clients {
		switch c.Verdict {
		case probe.Bad:
			bad++
		case probe.Unknown:
			unknown++
		case probe.Good:
		}
	}
	switch {
	case bad > 0:
		return &failure{
			status: exitError, hint: "go back to a version that keeps the promises, for example npm install -g @anthropic-ai/claude-code@" + r.Clients[0].Measured,
			err: fmt.Errorf("cannot rely on %s of %s", count(bad, "client"), count(len(r.Clients), "client")),
		}
	case unknown > 0:
		return &failure{status: exitError, err: fmt.Errorf("cannot tell about %s of %s", count(unknown, "client"), count(len(r.Clients), "client"))}
	}
	return nil
}

func (r probed) text(p *page) {
	for _, c := range r.Clients {
		p.printf("%s", c.Name())
		if c.Version != "" {
			p.coloured(p.dim, "  "+c.Client)
		}
		if len(c.Agents) > 0 {
			p.coloured(p.dim, "  ("+strings.Join(c.Agents, ", ")+")")
		}
		p.printf("\n")
		c.text(p)
		p.printf("\n")
	}
}

func (c probedClient) text(p *page) {
	if c.Verdict == probe.Unknown {
		p.printf("  ")
		p.coloured(p.yellow, "not known")
		p.printf(" %s\n", c.Failure)
		return
	}
	p.printf("  ")
	if len(c.Broken) == 0 {
		p.coloured(p.green, "good")
	} else {
		p.coloured(p.red, "bad")
	}
	p.printf(": %d of %s kept, %d broken", len(c.Kept), count(len(probe.Promises()), "promise"), len(c.Broken))
	if len(c.Untried) > 0 {
		p.printf(", %d not tried", len(c.Untried))
	}
	p.printf("; they were made for %s. It took %s.\n", c.Measured, (time.Duration(c.DurationMS) * time.Millisecond).Round(time.Second))
	if !c.Isolated {
		p.saidf("  The client had the network of this machine: %s", c.Open)
	}
	for _, b := range c.Broken {
		p.printf("\n  ")
		p.coloured(p.red, "broken")
		p.printf(" %s\n", b.Promise)
		labelled(p, "want", b.Does)
		labelled(p, "seen", b.Seen.String())
		labelled(p, "so", b.Otherwise)
	}
	for _, seen := range c.Once {
		labelled(p, "once", seen.String())
	}
	if c.Failure != "" {
		p.saidf("  Not all of it could be tried: %s", c.Failure)
	}
}

// labelled adds a text of some lines below a label.
func labelled(p *page, label, text string) {
	for _, line := range wrap(foreign.Line(text), max(p.prose()-doctorIndent, leastColumns/2)) {
		p.coloured(p.dim, fmt.Sprintf("    %-6s", label))
		p.printf("%s\n", line)
		label = ""
	}
}
