package firing

import (
	"slices"
	"time"
)

// RefusedFires is how often fires of a trigger have found no room: because of max-queue or
// rate, as SkipCode names them. A fire that waits for room is counted once.
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

// refuse counts a fire that finds no room.
func (t *Triggers) refuse(trigger string, full *fullError) {
	t.refusing.Lock()
	defer t.refusing.Unlock()
	why := full.code()
	i := slices.IndexFunc(t.refused, func(r RefusedFires) bool { return r.Trigger == trigger && r.Why == why })
	if i < 0 {
		t.refused, i = append(t.refused, RefusedFires{Trigger: trigger, Why: why}), len(t.refused)
	}
	t.refused[i].Times++
	t.refused[i].At = time.Now()
}

// forgetRefused starts counting again.
func (t *Triggers) forgetRefused() {
	t.refusing.Lock()
	defer t.refusing.Unlock()
	t.refused = nil
}
