package firing

import (
	"errors"
	"os"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/state"
)

// recollection is what an agent's triggers remember, in their order.
type recollection struct {
	memory *memory.Agent
	all    []*memory.Trigger
	anew   []memory.Anew
}

// remember binds what is remembered to an agent's triggers as cfg declares them. It
// reports those that start over. The caller holds Firing.changing.
func (t *Triggers) remember(cfg *config.Agent) (r recollection, err error) {
	if r.memory, err = t.memory(); err != nil {
		return r, err
	}
	var changed bool
	r.all, r.anew, changed = r.memory.Follow(cfg, t.comes, time.Now())
	for _, n := range r.anew {
		t.f.opt.Note(journal.Event{Agent: t.name, Kind: journal.TriggerAnew, Trigger: n.Trigger, Reason: foreign.Text(n.Why), Detail: foreign.Text("it fires for " + n.Fires)})
		t.f.opt.Log.Warn("a trigger starts over", "agent", t.name, "trigger", n.Trigger, "why", n.Why, "fires-for", n.Fires)
	}
	t.comes = false
	t.mu.Lock()
	t.keys, t.paces = map[string]string{}, map[string]*pace{}
	for i, one := range r.all {
		c := &cfg.Triggers[i]
		t.keys[c.Name] = t.who + "/" + one.Key()
		t.paces[c.Name] = &pace{rate: c.Rate, kept: one, save: func() { t.f.saveSoon(t.name, r.memory) }}
	}
	t.mu.Unlock()
	t.recallPaused(cfg, r)
	if changed {
		t.f.saveSoon(t.name, r.memory)
	}
	return r, nil
}

// memory returns what an agent's triggers remember. If it cannot be read, they must
// not run: they would fire again what they have fired. A damaged memory is put
// aside, because trying again does not repair it; the inboxes also remember the
// last fires. The caller holds Firing.changing.
func (t *Triggers) memory() (*memory.Agent, error) {
	if m := t.f.memories[t.who]; m != nil {
		return m, nil
	}
	m, err := memory.Open(t.f.opt.StateDir, t.who)
	if errors.Is(err, state.ErrDamaged) {
		t.f.opt.Note(journal.Event{Agent: t.name, Kind: journal.TriggerFailed, Reason: foreign.Text("its triggers start over: " + err.Error())})
		t.f.opt.Log.Error("the agent's triggers start over", "agent", t.name, "err", err)
		err = os.Rename(m.Path(), m.Path()+".damaged")
	}
	if err != nil {
		return nil, err
	}
	t.f.memories[t.who] = m
	return m, nil
}

// saveSoon lets what an agent's triggers remember be written.
func (f *Firing) saveSoon(agent string, m *memory.Agent) {
	f.records.Put(m.Path(), func() {
		if err := m.Save(); err != nil {
			f.opt.Log.Warn("cannot keep what triggers remember", "agent", agent, "err", err)
		}
	})
}
