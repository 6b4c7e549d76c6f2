package firing

import (
	"slices"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
	"heartbeat/sources"
)

// RefusedFires is how often a trigger's fires have become no prompt: for max-queue, rate or
// missed, as SkipCode names them. A fire that waits for room is counted once.
type RefusedFires struct {
	Trigger string    `json:"trigger"`
	Why     string    `json:"why"`
	Times   int       `json:"times"`
	At      time.Time `json:"at"` // the last time
}

// Refused returns what was refused since the triggers were set.
func (t *Triggers) Refused() []RefusedFires {
	t.refusing.Lock()
	defer t.refusing.Unlock()
	return slices.Clone(t.refused)
}

// refuse counts fires that become no prompt, for a reason that SkipCode knows.
func (t *Triggers) refuse(trigger, reason string, times int) {
	t.refusing.Lock()
	defer t.refusing.Unlock()
	why := SkipCode(journal.Event{Reason: foreign.Text(reason)})
	i := slices.IndexFunc(t.refused, func(r RefusedFires) bool { return r.Trigger == trigger && r.Why == why })
	if i < 0 {
		t.refused, i = append(t.refused, RefusedFires{Trigger: trigger, Why: why}), len(t.refused)
	}
	t.refused[i].Times += times
	t.refused[i].At = time.Now()
}

// passedOver says that fires of a schedule are not made up for.
func (t trigger) passedOver(p sources.Passed) {
	t.of.refuse(t.Name, skippedMissed, p.Times)
	detail := "the first was due " + p.First.Format(time.DateTime)
	t.of.f.opt.Note(journal.Event{Agent: t.cfg.Name, Kind: journal.Skipped, Trigger: t.source(), Reason: skippedMissed, Detail: foreign.Text(detail), Due: p.Last, Times: p.Times})
	t.of.f.opt.Log.Warn("fires are passed over", "agent", t.cfg.Name, "trigger", t.Name, "times", p.Times, "first", p.First, "last", p.Last, "why", skippedMissed)
}

// forgetRefused starts counting again; what the memory has of requests is told by the webhooks
// that are set after that.
func (t *Triggers) forgetRefused() {
	t.refusing.Lock()
	defer t.refusing.Unlock()
	t.refused, t.requests = nil, nil
}
