package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/claim"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
)

// getReady takes the directories and repairs what earlier runs left.
func (s *Scheduler) getReady(ctx context.Context) error {
	if err := claim.EnoughDescriptors(len(s.fleet.members), s.fleet.declared.MaxSessions); err != nil {
		return err
	}
	if err := s.directories.take(); err != nil {
		return err
	}
	if err := s.identify(ctx); err != nil {
		return err
	}
	if err := s.inherit(); err != nil {
		return err
	}
	if err := s.orphans.cleanUp(ctx); err != nil {
		return err
	}
	if err := s.recallSpending(); err != nil {
		return err
	}
	s.consent.Look(ctx)
	s.consent.Wait(startPatience, petitioners{s}.Agents()...) // a run with Once would find nothing to do
	s.consent.Recall()
	return nil
}

// identify determines which agents these are, by what an earlier run knows.
func (s *Scheduler) identify(ctx context.Context) error {
	f := &s.fleet
	before, err := store.Get(ctx, s.opt.Store.Reader, memory.Read)
	if err != nil {
		return fmt.Errorf("cannot tell which agents these are: %w", err)
	}
	s.takeAlong(ctx, before, f.declared.Agents)
	known, err := s.keepIdentities(f.declared)
	if err != nil {
		return err
	}
	declared := known.Declared()
	for _, m := range f.members {
		s.is(m, declared[m.Name])
	}
	return nil
}

// keepIdentities keeps who the agents of a version of the file are.
func (s *Scheduler) keepIdentities(file *config.Fleet) (known memory.Identities, err error) {
	err = s.opt.Store.Write(context.Background(), func(c *store.Change) error {
		known, err = memory.Note(c, s.opt.StateDir, file.Agents, chosen(file, s.opt.Only), s.opt.Now())
		return err
	})
	return known, err
}

// takeAlong has what is remembered of entries follow the agents that the file has moved to
// other directories. It comes before their identities are kept: a run that is killed in
// between does it again.
func (s *Scheduler) takeAlong(ctx context.Context, before memory.Identities, agents []*config.Agent) {
	for _, m := range before.Moves(agents) {
		if err := s.desk.Moved(ctx, m.From, before.Owns, m.Agent); err != nil {
			s.log.Warn(err.Error(), "agent", m.Agent.Name)
		}
	}
}

// is says who a member is, before its triggers are set.
func (s *Scheduler) is(m *member, who memory.Identity) {
	m.key = who.Key
	m.triggers = s.firing.Of(m.Name, who, fired{s, m})
}

// inherit takes over what an earlier run left: which agents are paused and, for
// `status`, how each one's last session ended. What the agents did then is no
// longer true.
func (s *Scheduler) inherit() error {
	pauses, err := store.Get(context.Background(), s.opt.Store.Reader, memory.ReadPauses)
	if err != nil {
		return err
	}
	if err := s.firing.Recall(context.Background()); err != nil {
		return err
	}
	held, err := store.Get(context.Background(), s.opt.Store.Reader, memory.ReadHolds)
	if err != nil {
		return err
	}
	parked, err := store.Get(context.Background(), s.opt.Store.Reader, account.Read)
	if err != nil {
		return fmt.Errorf("cannot read until when accounts are parked: %w", err)
	}
	s.happened(nil, func(now time.Time) { s.fleet.accounts.Restore(parked, now) })
	for _, m := range s.fleet.members {
		kept, err := status.Published(s.opt.StateDir, m.Name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("cannot read how the last session ended", "agent", m.Name, "err", err)
		}
		s.happened(m, func(now time.Time) {
			if err == nil {
				m.Inherit(kept)
				m.told = status.AgentState{} // what the file says is no longer true
			}
			m.WasPaused(pauses.Of(m.key, now))
		})
	}
	s.holds.goOn(held)
	return nil
}
