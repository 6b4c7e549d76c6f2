package orchestrator

import (
	"context"
	"errors"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/later"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// sendLater sends prompts when their time has come, but not in a run with Once.
func (s *Scheduler) sendLater(ctx context.Context) {
	if !s.opt.Once {
		s.wg.Go(func() { later.Run(ctx, laterFleet{s, map[string]complaint{}}, s.later) })
	}
}

// LookLater says that a prompt was put where those wait that are to be sent later.
func (s *Scheduler) LookLater() {
	select {
	case s.later <- struct{}{}:
	default: // it will look anyway
	}
}

// laterFleet is the fleet as prompts that wait for their time know it.
type laterFleet struct {
	s *Scheduler
	// said has, by agents, what was last said that cannot be sent.
	said map[string]complaint
}

type complaint struct {
	text string
	at   time.Time
}

// saidAgain is how often the same is said of an agent: prompts are tried again every few
// seconds.
const saidAgain = time.Hour

var _ later.Fleet = laterFleet{}

// LaterAgents implements later.Fleet. It does not wait for the Scheduler, which may be
// locking directories for a reload.
func (f laterFleet) LaterAgents() (all []*config.Agent, ok bool) {
	if !f.s.mu.TryLock() {
		return nil, false
	}
	defer f.s.mu.Unlock()
	all = make([]*config.Agent, 0, len(f.s.fleet.members))
	for m := range f.s.fleet.shown() {
		if !m.Removed() {
			all = append(all, m.Declared())
		}
	}
	return all, true
}

// lateAfter is how late a prompt is before that is said.
const lateAfter = time.Minute

// SendLater implements later.Fleet.
func (f laterFleet) SendLater(ctx context.Context, cfg *config.Agent, p later.Prompt) error {
	s := f.s
	s.mu.Lock()
	m := s.fleet.find(cfg.Name)
	s.mu.Unlock()
	if m == nil {
		return errStopping // the next run sends it
	}
	checked, ends, err := s.desk.Due(cfg, p.ID)
	if err != nil {
		return err
	}
	letter := inbox.Letter{ID: p.ID, Source: sentBy, Prompt: p.Text, Checked: checked, Idempotent: true, Urgent: p.Urgent}
	begin, err := fired{s, m}.Append(ctx, cfg, nil, letter)
	ends(err == nil)
	switch {
	case errors.Is(err, inbox.ErrTooLarge): // it is a dead letter
		return nil
	case errors.Is(err, inbox.ErrDuplicate):
		return f.accepted(ctx, m, cfg, letter, p.At)
	case err != nil:
		return err
	}
	defer begin()
	e := journal.Event{Agent: cfg.Name, Kind: journal.Fired, Trigger: sentBy + "@" + p.ID, Due: p.At}
	if late := time.Since(p.At); late > lateAfter {
		e.Detail = foreign.Text(status.Age(late) + " late: nothing ran, or there was no room, when it was due")
		s.log.Warn("a prompt is sent late", "agent", cfg.Name, "id", p.ID, "due", p.At, "late", late.Round(time.Second))
	}
	s.records.note(e)
	s.log.Info("a prompt's time has come", "agent", cfg.Name, "id", p.ID)
	return nil
}

// sentBy is the source of prompts that a person has sent.
const sentBy = "send"

// accepted deals with a prompt whose id was accepted before: it was sent by a run that was
// killed then, or the id is another prompt's. Then it becomes a dead letter.
func (f laterFleet) accepted(ctx context.Context, m *member, cfg *config.Agent, l inbox.Letter, due time.Time) error {
	same, err := queue.WasSent(ctx, cfg, l, due)
	if same || err != nil {
		return err
	}
	if err := queue.FileTaken(ctx, cfg, l); err != nil {
		return err
	}
	s := f.s
	s.records.note(journal.Event{
		Agent: cfg.Name, Kind: journal.Skipped, Trigger: sentBy + "@" + l.ID, Due: due,
		Reason: "another prompt was accepted with its id before its time came", Detail: "it is a dead letter",
	})
	s.log.Error("a prompt that waited for its time is a dead letter: another one was accepted with its id", "agent", cfg.Name, "id", l.ID)
	s.happened(m, func(time.Time) { m.DeadLettered() })
	return nil
}

// shows has readers know why prompts of an agent cannot be sent. It does not wait for the
// Scheduler: a failure is told again, and that it is over is shown beside.
func (f laterFleet) shows(cfg *config.Agent, err error) {
	if err == nil {
		f.s.wg.Go(func() {
			f.s.mu.Lock()
			defer f.s.mu.Unlock()
			f.show(cfg, nil)
		})
		return
	}
	if f.s.mu.TryLock() {
		defer f.s.mu.Unlock()
		f.show(cfg, err)
	}
}

// show is shows for the holder of the lock.
func (f laterFleet) show(cfg *config.Agent, err error) {
	m := f.s.fleet.find(cfg.Name)
	switch {
	case m == nil:
	case err == nil:
		m.unsent = nil
	default:
		m.unsent = unable(m.unsent, err, f.s.opt.Now())
	}
}

// CannotSend implements later.Fleet.
func (f laterFleet) CannotSend(cfg *config.Agent, err error) {
	f.shows(cfg, err)
	if err == nil {
		delete(f.said, cfg.Name)
		return
	}
	if last := f.said[cfg.Name]; last.text == err.Error() && time.Since(last.at) < saidAgain {
		return
	}
	f.said[cfg.Name] = complaint{err.Error(), time.Now()}
	f.s.records.note(journal.Event{Agent: cfg.Name, Kind: journal.TriggerFailed, Trigger: "send", Reason: foreign.Text(err.Error()), Detail: "it is tried again"})
	f.s.log.Warn("a prompt cannot be sent at its time; it is tried again", "agent", cfg.Name, "err", err)
}
