package orchestrator

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/agent"
	"heartbeat/orchestrator/clients"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/probe"
)

// Clients says what is known of agents' clients: *clients.Clients.
type Clients interface {
	Look(a *config.Agent) clients.Known
	Probe(ctx context.Context, k clients.Known) (clients.Known, error)
}

// known is what an agent is told of its client.
func (o Options) known(k clients.Known) agent.Client {
	c := agent.Client{ID: k.ID, Name: k.Name(), Breaks: k.Breaks()}
	if c.Breaks != "" {
		ours := cmp.Or(o.Ours, "heartbeat")
		c.Fix = fmt.Sprintf("install another version, for example npm install -g @anthropic-ai/claude-code@%s; %s doctor --probe %s says more, %s resume %s continues with this one",
			k.Result.Measured, ours, k.Agents[0], ours, k.Agents[0])
	}
	return c
}

// meets checks the client that a session of the member would start. It returns false
// where it is not to start: the client is tried first, or the agent is held.
func (c course) meets() (pass bool) {
	if c.opt.Clients == nil {
		return true
	}
	k := c.opt.Clients.Look(c.def)
	c.happened(c.m, func(now time.Time) {
		if k.New() {
			c.m.Probes(c.opt.known(k))
		} else {
			pass = c.m.Meets(c.opt.known(k), now)
		}
		if !pass {
			c.fleet.declines(c.m, now)
		}
	})
	if k.New() {
		c.wg.Go(func() { c.foresight.probe(c.m, k) })
	}
	return pass
}

// probe tries a client for a member.
func (f *foresight) probe(m *member, k clients.Known) {
	if _, told := f.tries.LoadOrStore(k.ID, true); !told {
		f.log.Info("the client is new here: trying it offline for up to a minute; nothing is paid", "client", k.Name())
	}
	k, err := f.opt.Clients.Probe(f.work, k)
	if err != nil {
		f.log.Warn("cannot keep what a probe has found", "err", err)
	}
	if k.Anew {
		f.tellProbed(m, k)
	}
	f.happened(m, func(now time.Time) { m.Probed(f.opt.known(k), now) })
}

// tellProbed tells people what a probe has found.
func (f *foresight) tellProbed(m *member, k clients.Known) {
	verdict := k.Result.Verdict()
	e := journal.Event{Agent: m.Name, Kind: journal.Probed, Reason: foreign.Text(k.Name() + ": " + string(verdict)), Started: k.Result.At}
	log := f.log.With("client", k.Name(), "took", (time.Duration(k.Result.DurationMS) * time.Millisecond).Round(time.Second))
	switch verdict {
	case probe.Good:
		log.Info("the client passed the probe")
	case probe.Bad:
		e.Detail = foreign.Text(k.Breaks())
		log.Warn("the client failed the probe", "broken", k.Breaks())
	case probe.Unknown:
		e.Detail = k.Result.Failure
		log.Warn("the client could not be probed, and is used all the same", "why", k.Result.Failure)
	}
	f.records.note(e)
}

// ForeseeClients has clients that are new tried before they are needed, and holds agents
// whose client is known not to do what they rely on. It returns when all are tried,
// which may take minutes.
func (s *Scheduler) ForeseeClients() {
	if s.opt.Clients == nil {
		return
	}
	s.mu.Lock()
	all := slices.Clone(s.fleet.members)
	s.mu.Unlock()
	for _, m := range all {
		s.mu.Lock()
		def := m.Def()
		s.mu.Unlock()
		if s.work.Err() != nil {
			return
		}
		k := s.opt.Clients.Look(def)
		if k.New() {
			s.foresight.probe(m, k)
			k = s.opt.Clients.Look(def)
		}
		s.happened(m, func(now time.Time) {
			if m.Def() == def && m.Wants(now) {
				m.Meets(s.opt.known(k), now)
			}
		})
	}
}
