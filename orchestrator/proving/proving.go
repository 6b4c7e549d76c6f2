// Package proving has the work of agents checked: it finds out what the entry in
// flight has to pass, has the check run, records the verdict and applies it to the
// queue. What follows a check that did not pass is room guard's to decide; when an
// agent is to be looked at is the scheduler's.
//
// One path decides a verdict, whatever it was that asked for it: a session whose
// turn is over, a recovery, a restart. Each of its steps is recorded before the next
// one, so that it can be interrupted anywhere: a verdict that stands in the ledger is
// applied and not decided again.
//
// What was queued is remembered, so that a verdict is about that, whatever the agent writes
// into its inbox and its records (ledger.Text):
//
//	who                                  remembers, compares or forgets
//	a sender: send, a trigger, a         remembers what it has queued, if that has an id and may
//	webhook, a prompt whose time has     have to be proven (ledger.Queued, the only way)
//	come, a retry of dead letters
//	a hand-over, a check, a request      compares the record in flight with what was queued with
//	of the agent's                       its id (originOf); what nobody knows is as it stands
//	a verdict that ends the entry        forgets it, once the queue has it (textEnds)
//	the end of a session, the start      files as lost what is nowhere and has not ended, with its
//	of a scheduler after a kill          text, and forgets that, and what has ended (Settle)
//	a drop, a retry, a purge             forget what has ended (Ended)
//	an answer to the queue's question    forgets what does not stand (MovedOn)
//	a run, a reload whose file has an    has what neither stands nor has ended in the former one
//	agent in another directory           follow it there (Moved)
//
// Not remembered are the lines that others write, and the entries without an id.
//
// A check goes on for as long as the queue and the file ask for it: it is ended once the
// entry is not there any more (cancelled, dropped, given up, worked on again), has to pass
// something else, or the agent or its directory is gone. A pause, a hold, a limit or the
// end of its session do not end it: they start nothing new, and its verdict stands.
package proving

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// Approvals answers for what has passed its check and waits for people. Asking again
// is no second request.
type Approvals interface {
	Of(Ask) (Say, error)
	// Asked is what the agent itself has asked while it worked on an entry and has not
	// been told; Told notes that it is told.
	Asked(key, delivery string) (Asked, error)
	Told(ids []string) error
}

// Asked is what an agent has asked people for.
type Asked struct {
	// Waits is true while not all of it is answered.
	Waits bool
	// Answers is what the agent is told, of the requests with these ids.
	Answers string
	IDs     []string
}

// Ask is the request for a yes.
type Ask struct {
	Agent, Key, Delivery string
	Iteration            int
	// Until says who has to agree, Aside that the queue goes on meanwhile.
	Until *config.Until
	Aside bool
	// Prompt is what the agent was given at first, Reply its last message, Output what
	// its check has said.
	Prompt, Reply, Output string
	// About is a hash of what is shown: a yes to something else is none.
	About string
}

// Say is what people have answered.
type Say struct {
	Answer Answer
	Note   string
	By     string // who, in words
}

// Answer is one of four.
type Answer string

// The answers.
const (
	NotAsked Answer = ""         // nobody has to say yes
	Waits    Answer = "waits"    // nobody has answered
	Approved Answer = "approved" // an explicit yes
	Rejected Answer = "rejected"
)

// Options are what a Desk needs.
type Options struct {
	StateDir string
	// Check runs a check, and Files looks at an agent's files; nil: as room proof
	// does.
	Check func(context.Context, proof.Check) (proof.Result, error)
	Files func(ctx context.Context, dir string) string
	// Approvals, if not nil, has to say yes, too.
	Approvals Approvals
	Note      func(journal.Event)
	Log       *slog.Logger
}

// Desk has checks run for all agents of a fleet.
type Desk struct {
	opt      Options
	attempts *attempts.Book // which checks run
	room     proof.Room
	mu       sync.Mutex
	book     map[string]*ledger.Book // by key
	seen     sync.Map                // of type seen, by inbox
	asides
}

// New returns a Desk at which as many checks run at once as Limit says.
func New(opt Options) *Desk {
	if opt.Check == nil {
		opt.Check = proof.Run
	}
	if opt.Files == nil {
		opt.Files = proof.Files
	}
	d := &Desk{opt: opt, attempts: attempts.Of(opt.StateDir), book: map[string]*ledger.Book{}}
	d.Limit(0)
	return d
}

// Limit sets how many checks run at once; 0: as many as there are processors.
func (d *Desk) Limit(most int) { d.room.Limit(most) }

// Case is an agent whose entry in flight is to be checked.
type Case struct {
	Key string
	// Agent is its definition in force at the time.
	Agent func() *config.Agent
	// Tell is called with how far it is, each time that changes.
	Tell func(status.Proof)
	// Worked returns how long the agent has worked since the last verdict, as far as
	// this run has seen it, and Judged is called once there is the next one; nil:
	// nobody has seen it.
	Worked func() time.Duration
	Judged func()
	// HasMoved is called each time that the entry in flight was moved, for its session; nil: it has none.
	HasMoved func()
	// Conversation returns the client's in which an entry in flight was worked on, or "",
	// and Aside is called once it is set aside; nil: nobody knows, or has to.
	Conversation func(*inbox.InFlight) string
	Aside        func(delivery string)
	// Wake cuts a wait short: somebody has answered, or wants it tried again.
	Wake <-chan struct{}
	// Look says that the queue may ask for another check by now, or for none; nil: that is
	// found out within a second.
	Look <-chan struct{}
}

// Prove checks the entry in flight of an agent, if it is to be checked, and applies
// the verdict. It returns when nothing is to be checked any more, or ctx is done;
// what prevents it from a verdict is told (Case.Tell), and tried again. One agent has
// one Prove at a time.
func (d *Desk) Prove(ctx context.Context, c Case) (applied []inbox.Verdict) {
	r := run{Desk: d, Case: c}
	for ctx.Err() == nil {
		v, next, err := r.step(ctx)
		if v != nil {
			applied = append(applied, *v)
		}
		switch {
		case ctx.Err() != nil:
		case err != nil:
			r.trouble(ctx, err)
		case next == over:
			return applied
		}
	}
	return applied
}

// Sweep ends what is left of checks of a scheduler that was killed.
func (d *Desk) Sweep(ctx context.Context) (agents []string, err error) {
	return proof.Sweep(ctx, d.opt.StateDir)
}

// Book returns the ledger of an agent.
func (d *Desk) Book(key string) (*ledger.Book, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := d.book[key]; b != nil {
		return b, nil
	}
	b, err := ledger.Open(d.opt.StateDir, key)
	if b == nil {
		return nil, err
	}
	if err != nil {
		d.opt.Log.Warn("the record of checks is damaged; a check whose verdict was not applied runs again", "err", err)
	}
	d.book[key] = b
	return b, nil
}

// next is what a step leads to.
type next int

const (
	on next = iota
	over
)

// run is one Prove.
type run struct {
	*Desk
	Case
	// again counts how often in a row there was no answer, in this run; vain says so of
	// the entry.
	again int
	vain  *status.Vain
	told  status.Proof
	apart bool // it is about an entry that is set aside
	lied  lie  // what was told last of somebody's changes to a record
	stale int  // how often in a row the queue awaited another verdict
}

// step does what is next for the entry in flight, and waits where that is it.
func (r *run) step(ctx context.Context) (*inbox.Verdict, next, error) {
	a := r.Agent()
	flight, err := queue.InFlight(a)
	if err != nil {
		return nil, on, err
	}
	if flight == nil || flight.State != inbox.Checking {
		return nil, over, nil
	}
	r.about(flight)
	book, err := r.Book(r.Key)
	if err != nil {
		return nil, on, err
	}
	known, err := r.originOf(a, r.Key, flight, book.Course(flight.DeliveryID))
	if err != nil {
		return nil, on, err
	}
	if known.is != genuine {
		s := subject{agent: a, flight: flight, book: book, origin: known}
		return r.apply(ctx, s, s.forgery(book.Course(flight.DeliveryID)))
	}
	r.tellChanged(a, flight, known)
	if err := r.remember(book, flight); err != nil {
		return nil, on, err
	}
	until, course, err := r.demanded(a, flight, book)
	if err != nil {
		return nil, on, err
	}
	s := subject{agent: a, flight: flight, until: until, book: book, origin: known}
	r.recalls(s, course)
	v, err := r.decide(ctx, s, course)
	if err != nil || v == nil {
		return nil, on, err
	}
	now := time.Now()
	if until := deadline.On(v.NotBefore, now, guard.Longest); !deadline.Over(until, now) {
		r.waits(ctx, s, status.CheckPaces, until, cmp.Or(status.Gist(v.Output), v.Why))
		if ctx.Err() != nil || !r.stillAsked(s) {
			return nil, on, nil
		}
	}
	return r.apply(ctx, s, v)
}

// subject is what a verdict is about.
type subject struct {
	agent  *config.Agent
	flight *inbox.InFlight
	until  *config.Until // nil: nothing has to be passed any more
	book   *ledger.Book
	origin
}

// definition is that of what it has to pass.
func (s subject) definition() string {
	if s.until == nil {
		return ""
	}
	return ledger.Definition(s.until)
}
