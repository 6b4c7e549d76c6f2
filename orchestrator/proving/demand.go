package proving

import (
	"errors"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/later"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
)

var errNoDemand = errors.New("it has to be proven, and the state directory does not name its check: cancel it, or declare until: for its agent")

// demandOf returns what the state directory demands of an entry: by its id, or, as the
// agent can write another one into its inbox, by its text, if no entry with that id is
// there any more. What is demanded of another text is not demanded of this entry.
func (d *Desk) demandOf(a *config.Agent, f *inbox.InFlight) (*ledger.Demand, error) {
	demand, err := ledger.DemandOf(d.opt.StateDir, a.Inbox, f.ID)
	if err != nil || demand != nil && (demand.Text == "" || queue.SameText(demand.Text, f.Prompt())) {
		return demand, err
	}
	all, err := ledger.Demands(d.opt.StateDir, a.Inbox)
	for i := range all {
		if err == nil && !all[i].GivenUp && !toCome(a, &all[i]) && all[i].Text != "" && queue.SameText(all[i].Text, f.Prompt()) {
			stands, err := queue.Stands(a, all[i].ID)
			if !stands || err != nil {
				return &all[i], err
			}
		}
	}
	return nil, err
}

// toCome reports whether an entry with a demand is not queued yet, because its time has
// not come or there was no room: whatever has its text until then is another one.
func toCome(a *config.Agent, demand *ledger.Demand) bool {
	if demand.Due.IsZero() || demand.Queued {
		return false
	}
	p, err := later.Find(a, demand.ID)
	return p != nil || err != nil
}

// demanded returns what the entry in flight has to pass, and records who demands it.
func (r *run) demanded(a *config.Agent, f *inbox.InFlight, book *ledger.Book) (*config.Until, ledger.Course, error) {
	course := book.Course(f.DeliveryID)
	until, from, err := r.nearest(a, f, book, course)
	if err == nil && course.From != from {
		course.From = from
		err = book.Keep(course)
	}
	return until, course, err
}

// nearest returns what an entry has to pass, by the nearest of three: the entry itself,
// its trigger, its agent. The queue's files are not asked.
func (d *Desk) nearest(a *config.Agent, f *inbox.InFlight, book *ledger.Book, c ledger.Course) (*config.Until, ledger.From, error) {
	demand, err := d.demandOf(a, f)
	switch {
	case err != nil:
		return nil, "", err
	case demand != nil:
		return inForce(a, demand), ledger.FromEntry, nil
	case c.From == ledger.FromEntry, a.Until == nil && c.From == "" && !book.Demands():
		return nil, "", errNoDemand
	}
	return a.Until, ledger.FromAgent, nil
}

// Begins records whether an agent's session that is about to begin has all of its
// entries checked: should until: be removed from the file meanwhile, nothing has to be
// passed any more.
func (d *Desk) Begins(a *config.Agent, key string) error {
	book, err := d.Book(key)
	if err != nil {
		return err
	}
	return book.Begins(a.Until != nil)
}

// Demand records what an entry has to pass, before it is queued: one of a trigger or,
// with "", another one; nil: nothing, whatever its agent's until: says. end is called
// with whether it is queued.
func (d *Desk) Demand(a *config.Agent, trigger string, l inbox.Letter, u *config.Until) (end func(queued bool), err error) {
	ends, err := ledger.Asks(d.opt.StateDir, ledger.Demand{ID: l.ID, Inbox: a.Inbox, Text: l.Prompt, Trigger: trigger, Until: u, Nothing: u == nil, At: time.Now()})
	if err != nil {
		return nil, err
	}
	return func(queued bool) {
		if err := ends(queued); err != nil {
			d.opt.Log.Warn(err.Error(), "agent", a.Name)
		}
	}, nil
}

// Due reports whether a prompt whose time has come has something to pass, as its sender has
// recorded it. end is called with whether it is queued.
func (d *Desk) Due(a *config.Agent, id string) (checked bool, end func(queued bool), err error) {
	demand, err := ledger.DemandOf(d.opt.StateDir, a.Inbox, id)
	if err != nil {
		return false, nil, err
	}
	return demand != nil && !demand.Nothing, func(queued bool) {
		if demand == nil || !queued {
			return
		}
		if err := ledger.Stands(d.opt.StateDir, a.Inbox, id); err != nil {
			d.opt.Log.Warn(err.Error(), "agent", a.Name)
		}
	}, nil
}

// Demands reports whether an entry in flight of an agent has something to pass, as the
// state directory and the configuration say. Where that cannot be told, it has.
func (d *Desk) Demands(a *config.Agent, f *inbox.InFlight) bool {
	demand, err := d.demandOf(a, f)
	if demand != nil {
		return !demand.Nothing
	}
	return a.Until != nil || err != nil
}

// inForce returns what a demand means now: a trigger's until: may have changed since.
func inForce(a *config.Agent, d *ledger.Demand) *config.Until {
	for i := range a.Triggers {
		if t := &a.Triggers[i]; d.Trigger != "" && t.Name == d.Trigger && t.Until != nil {
			return t.Until
		}
	}
	return d.Until
}
