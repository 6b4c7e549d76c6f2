package orchestrator

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/clients"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/probe"
	"heartbeat/orchestrator/status"
)

// machine is what clients are installed, by the agents that use them, and what is known
// of them.
type machine struct {
	mu        sync.Mutex
	installed map[string]string // agent → ID
	bad       map[string]bool
	cannot    bool // no probe can be carried out
	known     map[string]*probe.Result
	probes    []string
}

func (m *machine) install(agent, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.installed[agent] = id
}

func (m *machine) Look(a *config.Agent) clients.Known {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.installed[a.Name]
	return clients.Known{Program: clients.Program{ID: id, File: "/bin/" + id, Agents: []string{a.Name}}, Result: m.known[id]}
}

func (m *machine) Probe(ctx context.Context, k clients.Known) (clients.Known, error) {
	select {
	case <-time.After(20 * time.Second):
	case <-ctx.Done():
		return k, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.probes = append(m.probes, k.ID)
	r := &probe.Result{Version: k.ID, Measured: "2.1.329", Kept: []probe.Promise{probe.Starts}, DurationMS: 20_000}
	switch {
	case m.cannot:
		r.Kept, r.Failure = nil, "it took too long"
	case m.bad[k.ID]:
		r.Broken = []probe.Breach{{Promise: probe.HandOver, Seen: "it came twice"}, {Promise: probe.BlockCap, Seen: "after 8"}}
	}
	m.known[k.ID] = r
	k.Result, k.Anew = r, true
	return k, nil
}

// withClients has the agents of a rig use clients; "old" is known to be good.
func (r *rig) withClients() *machine {
	m := &machine{
		installed: map[string]string{}, bad: map[string]bool{"bad": true},
		known: map[string]*probe.Result{"old": {Version: "old", Kept: []probe.Promise{probe.Starts}}},
	}
	for _, a := range r.fleet.Agents {
		m.installed[a.Name] = "old"
	}
	r.opt.Clients = m
	return m
}

// TestAClientThatIsNew is tried before the next session, and no agent with a client that
// is known waits for that. What follows is what client-drift says; a probe that cannot be
// carried out says nothing.
func TestAClientThatIsNew(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		id     string
		cannot bool
		rule   config.DriftRule
		held   bool
		said   string // in the journal
	}{
		"good":              {"new", false, config.DriftHolds, false, "Claude Code new (/bin/new): good"},
		"bad, warn":         {"bad", false, config.DriftWarns, false, "Claude Code bad (/bin/bad): bad"},
		"bad, hold":         {"bad", false, config.DriftHolds, true, "Claude Code bad (/bin/bad): bad"},
		"nobody knows":      {"odd", true, config.DriftHolds, false, "Claude Code odd (/bin/odd): unknown"},
		"known to be good":  {"old", false, config.DriftHolds, false, ""},
		"bad, but known so": {"worse", false, config.DriftHolds, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a b", func(t *testing.T, r *rig) {
				m := r.withClients()
				m.cannot = tt.cannot
				m.known["worse"] = &probe.Result{Version: "worse", Broken: []probe.Breach{{Promise: probe.HandOver, Seen: "it came twice"}}}
				r.fleet.Agents[0].ClientDrift = tt.rule
				m.install("a", tt.id)
				r.send("a", 1)
				r.send("b", 1)
				stop := r.run()
				defer stop()
				r.sleep(10 * time.Second)
				if r.state("b").State != Running {
					t.Errorf("another agent waits: %+v", r.state("b"))
				}
				if probed := tt.said != ""; probed && (r.state("a").Acknowledged != 0 || !strings.Contains(r.state("a").Reason.String(), "is new here: it is tried") || r.backlog("a").Queued != 1) {
					t.Errorf("while it is probed: %+v, %+v", r.state("a"), r.backlog("a")) // its queue counted as empty
				}
				r.sleep(time.Minute)
				a := r.state("a")
				if held := a.State == Held; held != tt.held || (a.Acknowledged == 1) == tt.held {
					t.Errorf("%+v", a)
				}
				if breaks := strings.Contains(tt.id, "bad") || tt.id == "worse"; (a.Client != nil) != breaks {
					t.Errorf("what readers are told of the client: %+v", a.Client)
				}
				if tt.held && (!strings.Contains(a.Reason.String(), "does not do what heartbeat relies on: hand-over: it came twice") || !a.GoesOn || !strings.Contains(a.Fix.String(), "heartbeat resume a")) {
					t.Errorf("held: %+v", a)
				}
				var said []string
				for _, e := range r.journal(journal.Probed) {
					said = append(said, e.Reason.String())
				}
				if got := strings.Join(said, "; "); got != tt.said {
					t.Errorf("the journal says %q, want %q", got, tt.said)
				}
			})
		})
	}
}

// TestABadClientThatGoes: an agent that is held for its client continues by itself when
// another one is installed, which is tried first where it is new, also a downgrade; or
// with a person's resume, until the client is another one. What is known is not tried
// again.
func TestABadClientThatGoes(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		m := r.withClients()
		r.fleet.Agents[0].ClientDrift = config.DriftHolds
		stop := r.run()
		defer stop()
		m.bad["worse"] = true
		done := 0
		step := func(what, id string, does status.State, then int) {
			t.Helper()
			m.install("a", id)
			r.send("a", 1)
			r.sleep(2 * time.Minute)
			done += then
			if a := r.state("a"); a.Acknowledged != done || a.State != does {
				t.Errorf("%s: %d done, want %d: %+v", what, a.Acknowledged, done, a)
			}
		}
		step("the one that is known", "old", Idle, 1)
		step("it updates itself", "bad", Held, 0)
		step("the old one is back", "old", Idle, 2)
		step("the bad one again", "bad", Held, 0)
		step("a new one", "new", Idle, 2)
		step("another bad one", "worse", Held, 0)
		if _, err := r.s.Resume("a"); err != nil {
			t.Error(err)
		}
		step("a person has resumed", "worse", Idle, 2)
		step("the other bad one", "bad", Held, 0)
		if got := strings.Join(m.probes, " "); got != "bad new worse" {
			t.Errorf("probed: %s", got)
		}
	})
}
