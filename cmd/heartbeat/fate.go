package main

import (
	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/status"
)

// fate is what becomes of the prompt that an agent's session works on when it is ended at
// once; "" if it works on none.
func fate(of *config.Agent, s status.AgentState) string {
	if s.Work == nil {
		return ""
	}
	prompt := "its prompt " + handle(s.Work.ID, s.Work.DeliveryID)
	if s.Cancelling {
		return prompt + " is cancelled, as somebody has asked before"
	}
	switch of.OnOrphan {
	case inbox.Retry:
		return prompt + " is given again (on-orphan: retry)"
	case inbox.Drop:
		return prompt + " is dropped if a tool has run for it, otherwise given again (on-orphan: drop)"
	}
	return prompt + " becomes a dead letter if a tool has run for it, otherwise it is given again (on-orphan: deadletter)"
}

// fates are those of the agents of a fleet that work on a prompt, by their names.
func fates(f *config.Fleet, states []status.AgentState) map[string]string {
	all := map[string]string{}
	for _, s := range states {
		if of := f.Agent(s.Agent); of != nil {
			if text := fate(of, s); text != "" {
				all[s.Agent] = text
			}
		}
	}
	return all
}
