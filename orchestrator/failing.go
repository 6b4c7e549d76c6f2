package orchestrator

import (
	"slices"
	"time"

	"heartbeat/orchestrator/journal"
)

// Failing is a trigger that cannot do what it is for: since when, how often in
// a row, and why the last time. It is that until one run or fire succeeds.
type Failing struct {
	Trigger string    `json:"trigger"`
	Since   time.Time `json:"since"`
	Times   int       `json:"times"`
	Why     string    `json:"why"`
	// Retry is when it is tried again, or zero.
	Retry time.Time `json:"retry,omitzero"`
}

// triggerFailed notes failures of a trigger, which is tried again after retry.
func (s *Scheduler) triggerFailed(t trigger) func(time.Time, error, time.Duration) {
	return func(_ time.Time, err error, retry time.Duration) {
		now := time.Now()
		s.note(journal.Event{Agent: t.cfg.Name, Kind: journal.TriggerFailed, Trigger: t.Name, Reason: err.Error(), Until: now.Add(retry)})
		s.log.Warn("trigger failed", "agent", t.cfg.Name, "trigger", t.Name, "err", err, "retry", retry)
		s.changeFailing(t.a, func(all []Failing) []Failing {
			i := slices.IndexFunc(all, func(f Failing) bool { return f.Trigger == t.Name })
			if i < 0 {
				all, i = append(all, Failing{Trigger: t.Name, Since: now}), len(all)
			}
			f := &all[i]
			f.Times, f.Why, f.Retry = f.Times+1, err.Error(), time.Time{}
			if retry > 0 {
				f.Retry = now.Add(retry)
			}
			return all
		})
	}
}

// triggerWorks takes back what triggerFailed noted.
func (s *Scheduler) triggerWorks(t trigger) {
	s.changeFailing(t.a, func(all []Failing) []Failing {
		return slices.DeleteFunc(all, func(f Failing) bool { return f.Trigger == t.Name })
	})
}

// forgetFailing is for triggers that start anew.
func (s *Scheduler) forgetFailing(a *agent) {
	s.changeFailing(a, func([]Failing) []Failing { return nil })
}

func (s *Scheduler) changeFailing(a *agent, change func([]Failing) []Failing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(a.failing)
	a.failing = change(a.failing)
	if before+len(a.failing) > 0 && s.findLocked(a.name) == a {
		s.publishLocked(a)
	}
}
