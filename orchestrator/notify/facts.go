package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/notify/outbox"
	"heartbeat/orchestrator/status"
)

// urgent lists the troubles that people are told about, and whether they need a person.
// Troubles that end by themselves within minutes are not in it.
var urgent = map[status.Word]bool{
	status.QueueAsks: true, status.DirectoryLost: true, status.Unusable: true, status.IsHeld: true, status.LostPrompts: true,
	status.NeedsApproval: true, status.ServiceFails: true, status.TriggerFails: true, status.RefusesRequests: true, status.ClientDrifts: true,
	status.CheckFails: true,
	status.NotSent:    false, status.StrayPrompts: false, status.IsParked: false, status.OverBudget: false, status.IsPaused: false,
}

// troubles returns an agent's present troubles as facts.
func troubles(a status.Agent, ours string, now time.Time) (facts []notice.Fact) {
	for _, t := range a.Troubles(ours, now) {
		is, told := urgent[t.What]
		if !told || t.What == status.IsPaused && a.PausedBy == "" {
			continue
		}
		f := notice.Fact{
			Key: a.Agent + "/" + string(t.What), Agent: a.Agent, Kind: notice.Kind(t.What), Urgent: is && !t.ByStranger(), Since: t.Since, Text: t.Text, Do: doing(t),
			Slow: t.What == status.ServiceFails || t.What == status.TriggerFails || t.What == status.ClientDrifts,
		}
		if t.Part != "" {
			f.Key += "/" + t.Part
		}
		switch t.What {
		case status.NeedsApproval: // each question is a notice of its own, however soon it follows the last one
			asks := a.Approval
			if !t.Stops() {
				asks = a.AwaitsAside
			}
			f.Key += "/" + asks.ID
		case status.IsHeld:
			f.Text = a.Reason.String()
		case status.IsParked, status.OverBudget:
			f.Text = a.Reason.String()
			if !a.Until.IsZero() {
				f.Text += "; until " + a.Until.Local().Format("Mon 15:04")
			}
		}
		if why, _ := a.Refused(); (t.What == status.IsHeld || t.What == status.IsParked) && why != "" {
			f.Kind, f.Key, f.Urgent = notice.Login, a.Agent+"/"+string(notice.Login), true
		}
		facts = append(facts, f)
	}
	return facts
}

// linked adds to facts the addresses of the pages that show them, if the file gives the
// page's address.
func (w *Watch) linked(facts []notice.Fact, asks *status.Approval) []notice.Fact {
	for i := range facts {
		f := &facts[i]
		switch {
		case f.Kind == notice.Kind(status.NeedsApproval) && asks != nil && asks.More == 0 && strings.HasSuffix(f.Key, "/"+asks.ID):
			f.Link = w.fleet.PageLink("approvals", asks.ID)
		case f.Kind == notice.Kind(status.NeedsApproval):
			f.Link = w.fleet.PageLink("approvals")
		case f.Agent != "":
			f.Link = w.fleet.PageLink("agents", f.Agent)
		default:
			f.Link = w.fleet.PageLink()
		}
	}
	return facts
}

// doing returns what to do about a trouble, on one line.
func doing(t status.Trouble) string {
	if t.Then == "" {
		return t.Do
	}
	return t.Do + "; then " + t.Then
}

// stuck returns the fact that a queue does not move, or nil. known is when its first prompt
// was first seen there.
func stuck(a status.Agent, first string, known time.Time, after time.Duration, ours string, now time.Time) *notice.Fact {
	switch {
	case first == "" || after <= 0 || now.Sub(known) < after:
		return nil
	case a.Phase == hook.Turn || a.Phase == hook.Background || a.Phase == hook.Settling:
		return nil // the prompt before it is in progress, with limits of its own
	}
	for _, t := range a.Troubles(ours, now) {
		if t.Stops() || t.What == status.ServiceFails {
			return nil // which has a notice of its own
		}
	}
	text := fmt.Sprintf("%d queued, and the first of them has not moved for %s", a.Depth.Entries, status.Span(now.Sub(known)))
	if note := a.Note(now); note != "" {
		text += ": " + note
	}
	return &notice.Fact{
		Key: a.Agent + "/" + string(notice.QueueStuck), Agent: a.Agent, Kind: notice.QueueStuck, Urgent: true, Since: known,
		Text: text, Do: ours + " status " + a.Agent, Of: first,
	}
}

// headSaved is how long a prompt must be the first of its queue before that is saved: most
// are first for moments only.
const headSaved = time.Minute

// agentOf returns what the scheduler and the queue say about an agent.
func agentOf(s status.AgentState, b status.Backlog) status.Agent {
	a := status.Agent{AgentState: s, Depth: inbox.Depth{Entries: b.Queued}, Dead: b.Dead, Problem: b.Problem, Asks: b.Asks}
	if w := s.AwaitsAside; w != nil {
		a.Depth.Aside, a.Depth.AsideSince = 1+w.More, w.Since
	}
	if s.Lost != "" { // says more than what failed in it
		a.Problem = ""
	}
	return a
}

// look returns the facts about the fleet now.
func (w *Watch) look(from Scheduler, now time.Time) []notice.Fact {
	backlogs := map[string]status.Backlog{}
	for _, b := range from.Backlog() {
		backlogs[b.Agent] = b
	}
	var facts []notice.Fact
	seen := map[string]bool{}
	waiting := w.waiting(now)
	for _, s := range from.Snapshot() {
		seen[s.Agent] = true
		b := backlogs[s.Agent]
		a := agentOf(s, b)
		facts = append(facts, w.linked(troubles(a, w.opt.Ours, now), a.Approval)...)
		cfg := w.fleet.Agent(s.Agent)
		if cfg == nil {
			continue
		}
		if f := w.stuckOrQuiet(a, b, cfg.StuckAfter, now); f != nil {
			facts = append(facts, w.linked([]notice.Fact{*f}, nil)...)
		}
		facts = append(facts, w.keptWaiting(a, cfg, waiting[s.Agent], now)...)
	}
	w.sees.seen = seen
	maps.DeleteFunc(w.kept.Heads, func(agent string, _ *memo.Head) bool { return w.fleet.Agent(agent) == nil })
	w.kept.Forget(func(agent string) bool { return w.fleet.Agent(agent) == nil })
	for _, t := range from.StoreTroubles() {
		facts = append(facts, notice.Fact{
			Key: "/" + string(status.StoreFails) + "/" + string(t.Kind), Kind: notice.Kind(status.StoreFails), Urgent: true, Since: t.Since, Text: t.Text, Do: t.Do,
		})
	}
	for _, d := range from.Doors() {
		if d.Problem != "" {
			facts = append(facts, notice.Fact{
				Key: "/" + string(status.NotListening) + "/" + d.Address, Kind: notice.Kind(status.NotListening), Urgent: true, Since: d.Since,
				Text: d.Problem, Do: w.opt.Ours + " doctor",
			})
		}
	}
	return slices.Concat(facts, w.linked(slices.Concat(w.silent(now), w.unpinged(now), w.sees.findings, w.sees.disks), nil))
}

// stuckOrQuiet returns the fact that a queue does not move, or nil. Once people were told,
// it stays true until another prompt is the first, even if the agent is then kept from the
// prompt by something else.
func (w *Watch) stuckOrQuiet(a status.Agent, b status.Backlog, after time.Duration, now time.Time) *notice.Fact {
	if f := stuck(a, b.First, w.headOf(a.Agent, b, after, now), after, w.opt.Ours, now); f != nil {
		return f
	}
	key := a.Agent + "/" + string(notice.QueueStuck)
	if told := w.kept.Told[key]; told == nil || told.Of != b.First && b.Problem == "" {
		return nil
	}
	return &notice.Fact{Key: key, Agent: a.Agent, Kind: notice.QueueStuck, Quiet: true}
}

// headOf returns since when the first prompt of a queue has been the first, across restarts;
// zero if the queue is empty.
func (w *Watch) headOf(agent string, b status.Backlog, after time.Duration, now time.Time) time.Time {
	h := w.kept.Heads[agent]
	switch {
	case b.Problem != "": // it is not known whether it is another one
		return time.Time{}
	case b.First == "":
		delete(w.kept.Heads, agent)
		return time.Time{}
	case h == nil || h.ID != b.First || h.Since.After(now): // saved by a clock that was ahead
		h = &memo.Head{ID: b.First, Since: now}
		w.kept.Heads[agent] = h
	}
	if !h.Saved && after > 0 && now.Sub(h.Since) >= min(after, headSaved) {
		h.Saved, w.unsaved = true, true
	}
	return h.Since
}

// waiting returns, by agent and target, the ids of the due prompts whose replies are
// awaited. A target that was told about the wait is included until it is told that it is
// over.
func (w *Watch) waiting(now time.Time) map[string]map[string][]string {
	all := map[string]map[string][]string{}
	of := func(agent string) map[string][]string {
		if all[agent] == nil {
			all[agent] = map[string][]string{}
		}
		return all[agent]
	}
	for _, t := range w.kept.Told {
		if t.Kind == notice.Waits && !t.At.IsZero() && !t.Over {
			of(t.Agent)[t.To] = nil
		}
	}
	for _, r := range w.letters.awaited {
		if r.Due.After(now) {
			continue
		}
		of(r.Agent)[r.Target] = append(of(r.Agent)[r.Target], r.ID)
	}
	return all
}

// keptWaiting returns, for each target that waits for an agent's reply, the fact that the
// agent cannot work. Targets that get the agent's own notices are left out.
func (w *Watch) keptWaiting(a status.Agent, cfg *config.Agent, waiting map[string][]string, now time.Time) (facts []notice.Fact) {
	for name, ids := range waiting {
		to := w.fleet.Targets[name]
		if to == nil {
			continue
		}
		for _, t := range a.Troubles(w.opt.Ours, now) {
			if !t.Stops() || t.What == status.BacksOff || w.isTold(to, t, cfg) {
				continue
			}
			text := strings.TrimPrefix(strings.Join(ids[:min(len(ids), mostNamed)], ", ")+": "+t.Text, ": ")
			if cfg.DownText != "" {
				text += "; " + cfg.DownText
			}
			facts = append(facts, notice.Fact{
				Key: a.Agent + "/" + string(notice.Waits) + "/" + name, Agent: a.Agent, Kind: notice.Waits, Urgent: true,
				Since: t.Since, Text: text, To: name, Once: true,
			})
			break
		}
	}
	return facts
}

// mostNamed is how many prompts are named in a line.
const mostNamed = 5

// isTold reports whether a target gets the notice of a trouble itself.
func (w *Watch) isTold(to *config.Target, t status.Trouble, cfg *config.Agent) bool {
	is, told := urgent[t.What]
	return told && t.What != status.IsPaused && outbox.Wants(to, notice.Notice{Agent: cfg.Name, Urgent: is}, cfg.Notify)
}

// silent returns the targets that do not get their messages, as facts.
func (w *Watch) silent(now time.Time) (facts []notice.Fact) {
	for name, b := range w.kept.Boxes {
		if b.Fails(now) {
			u := untold(name, b)
			facts = append(facts, notice.Fact{
				Key: "/" + string(notice.TargetFails) + "/" + name, Kind: notice.TargetFails, Urgent: true, Since: u.Since,
				Text: "no notices arrive there: " + u.Why, Do: w.opt.Ours + " " + u.Do(), Not: name,
			})
		}
	}
	return facts
}
