package firing

import (
	"slices"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
)

// Failing is a trigger that cannot do what it is for: since when, how often in
// a row, and why the last time. It is that until one run or fire succeeds.
type Failing struct {
	Trigger string       `json:"trigger"`
	Since   time.Time    `json:"since"`
	Times   int          `json:"times"`
	Why     foreign.Text `json:"why"`
	// Retry is when it is tried again, or zero.
	Retry time.Time `json:"retry,omitzero"`
}

// failed notes a failure of a trigger, which is tried again after retry, or not
// when that is 0.
func (t trigger) failed(err error, retry time.Duration) {
	now := time.Now()
	t.of.f.opt.Note(journal.Event{Agent: t.cfg.Name, Kind: journal.TriggerFailed, Trigger: t.Name, Reason: foreign.Text(err.Error()), Until: now.Add(retry)})
	t.of.f.opt.Log.Warn("trigger failed", "agent", t.cfg.Name, "trigger", t.Name, "err", err, "retry", retry)
	t.of.change(func(all []Failing) []Failing {
		i := slices.IndexFunc(all, func(f Failing) bool { return f.Trigger == t.Name })
		if i < 0 {
			all, i = append(all, Failing{Trigger: t.Name, Since: now}), len(all)
		}
		f := &all[i]
		f.Times, f.Why, f.Retry = f.Times+1, foreign.Text(err.Error()), time.Time{}
		if retry > 0 {
			f.Retry = now.Add(retry)
		}
		return all
	})
}

// fails is failed for those who tell when, too.
func (t trigger) fails(_ time.Time, err error, retry time.Duration) { t.failed(err, retry) }

// works takes back what failed noted.
func (t trigger) works() {
	t.of.change(func(all []Failing) []Failing {
		return slices.DeleteFunc(all, func(f Failing) bool { return f.Trigger == t.Name })
	})
}

func (t *Triggers) change(change func([]Failing) []Failing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := len(t.failing)
	t.failing = change(t.failing)
	if before+len(t.failing) > 0 {
		t.agent.TriggersFail(slices.Clone(t.failing))
	}
}
