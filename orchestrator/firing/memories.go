package firing

import (
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/memory"
)

// recollection is what an agent's triggers remember, in their order.
type recollection struct {
	memory *memory.Agent
	all    []*memory.Trigger
	anew   []memory.Anew
}

// remember binds what is remembered to an agent's triggers as cfg declares them. It
// reports those that start over. The caller holds Firing.changing.
func (t *Triggers) remember(cfg *config.Agent) (r recollection) {
	r.memory = t.f.memories.Of(t.who)
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
		t.paces[c.Name] = &pace{rate: c.Rate, kept: one, save: r.memory.SaveSoon}
	}
	t.mu.Unlock()
	t.recallPaused(cfg, r)
	if changed {
		r.memory.SaveSoon()
	}
	return r
}
