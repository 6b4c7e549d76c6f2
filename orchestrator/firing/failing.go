package firing

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/journal"
)

// Failing is a trigger that does not work: since when, how often in a row, and why
// the last time. It lasts until one run or fire succeeds; of a watch, until all that it
// watches can be read.
type Failing struct {
	Trigger string       `json:"trigger"`
	Since   time.Time    `json:"since"`
	Times   int          `json:"times"`
	Why     foreign.Text `json:"why"`
	// Retry is when it is tried again, or zero: with its next fire.
	Retry time.Time `json:"retry,omitzero"`
	// Stopped is true if the trigger could not start: it is not tried again by
	// itself.
	Stopped bool `json:"stopped,omitempty"`
	// Requested is true if the next request tries it again: it is a webhook.
	Requested bool `json:"requested,omitempty"`
	// idle is true if the trigger does not run: what is fired by hand does not change that.
	idle bool
}

// failed records a failure of a trigger, which is tried again after retry.
func (t trigger) failed(err error, retry time.Duration) {
	again := time.Now().Add(retry)
	t.note(err, again, func(f *Failing) { f.Retry, f.Stopped, f.idle = again, false, false })
}

// fails is failed for callers that also say when; retry is 0 for what is lost.
// That there is no room now is no failure: what was found waits, which is said once.
func (t trigger) fails(_ time.Time, err error, retry time.Duration) {
	if full, ok := errors.AsType[*fullError](err); ok && retry > 0 {
		t.waits(full)
		return
	}
	t.failed(err, retry)
}

// waits says, once, that a trigger's fires wait for room.
func (t trigger) waits(full *fullError) {
	if t.of.waits(t.Name, true) {
		if t.comesAgain() {
			t.of.refuse(t.Name, full.why, 1)
		}
		t.of.f.opt.Note(journal.Event{Agent: t.cfg.Name, Kind: journal.Skipped, Trigger: t.source(), Reason: foreign.Text(full.why), Detail: "it is tried again", Until: full.free})
		t.of.f.opt.Log.Info("trigger waits", "agent", t.cfg.Name, "trigger", t.Name, "why", full.why)
	}
}

// failedByHand records that a fire by hand failed. The trigger's own fires continue as
// before.
func (t trigger) failedByHand(err error) { t.note(err, time.Time{}, func(*Failing) {}) }

// failed records that the webhook could not take a request. Whoever sent it was
// told so, and may send it again.
func (w *Webhook) failed(err error) {
	change := func(f *Failing) { f.Requested = true }
	if w.repeats(err.Error()) {
		w.t.count(time.Now(), foreign.Text(err.Error()), change)
		return
	}
	w.t.note(err, time.Time{}, change)
}

// saidEvery is how often the journal and the log have the same failure of a webhook:
// whoever sends decides how often it happens.
const saidEvery = 10 * time.Second

// repeats reports whether a failure was said a moment ago.
func (w *Webhook) repeats(why string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if why == w.said && time.Since(w.saidAt) < saidEvery {
		return true
	}
	w.said, w.saidAt = why, time.Now()
	return false
}

// doesNotRun records that a trigger could not start.
func (t trigger) doesNotRun(err error) {
	t.note(fmt.Errorf("it does not run: %w", err), time.Time{}, func(f *Failing) { f.Retry, f.Stopped, f.idle = time.Time{}, true, true })
}

func (t trigger) note(err error, again time.Time, change func(*Failing)) {
	now, why := time.Now(), foreign.Text(err.Error())
	t.of.f.opt.Note(journal.Event{Agent: t.cfg.Name, Kind: journal.TriggerFailed, Trigger: t.Name, Reason: why, Until: again})
	about := []any{"agent", t.cfg.Name, "trigger", t.Name, "err", err}
	if !again.IsZero() {
		about = append(about, "retry", again.Sub(now).Round(time.Second))
	}
	t.of.f.opt.Log.Warn("trigger failed", about...)
	t.count(now, why, change)
}

// count adds a failure to those in a row.
func (t trigger) count(now time.Time, why foreign.Text, change func(*Failing)) {
	t.of.change(func(all []Failing) []Failing {
		i := slices.IndexFunc(all, func(f Failing) bool { return f.Trigger == t.Name })
		if i < 0 {
			all, i = append(all, Failing{Trigger: t.Name, Since: now}), len(all)
		}
		all[i].Times, all[i].Why = all[i].Times+1, why
		change(&all[i])
		return all
	})
}

// works undoes what failed recorded.
func (t trigger) works() {
	t.of.change(func(all []Failing) []Failing {
		return slices.DeleteFunc(all, func(f Failing) bool { return f.Trigger == t.Name && !(f.idle && t.byHand != "") })
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
