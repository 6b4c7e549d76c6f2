package orchestrator

import (
	"context"
	"fmt"
	"time"

	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/store"
)

// holds is what is saved of agents' holds for the next run.
type holds struct {
	*Scheduler
}

// follow brings what is saved of an agent's hold in line with what it is, so that
// the next run does not spend its restarts again. It returns what waits until it is written
// down, or nil.
func (h *holds) follow(m *member, now time.Time) (effect func()) {
	is := m.Hold()
	if is.Why == m.hold.Why && is.Answers == m.hold.Answers || m.Expected() {
		return nil
	}
	m.hold = memory.Hold{}
	if is.Why != "" {
		m.hold = memory.Hold{Since: now, Held: is, Definition: memory.DefinitionOf(m.Def())}
	}
	name, key, hold := fmt.Sprintf("whether agent %q is held", m.Name), m.key, m.hold
	h.opt.Store.Owe(name, func() error {
		return h.opt.Store.Write(context.Background(), func(c *store.Change) error { return memory.KeepHold(c, key, hold) })
	})
	return func() { h.opt.Store.Pay(name) }
}

// goOn holds the members that an earlier run held, if they are declared as they
// were then.
func (h *holds) goOn(kept map[string]memory.Hold) {
	for _, m := range h.fleet.members {
		was, held := kept[m.key]
		if !held {
			continue
		}
		h.happened(m, func(now time.Time) {
			if m.hold = was; was.Definition == memory.DefinitionOf(m.Def()) {
				m.WasHeld(was.Held, deadline.Since(was.Since, now), now)
			}
		})
	}
}
