// Package check has the work of agents checked: it finds out what the entry in flight has to
// pass, has the check run, and carries out the verdict. A verdict, what follows from it, and what
// the agent is told of it are one transaction; whatever interrupts it, it was carried out or it
// was not. What follows a check that did not pass is package guard's to decide; when an agent is
// to be looked at is the scheduler's.
//
// A check goes on for as long as the store and the file ask for it: it is ended once the entry is
// not there any more (cancelled, dropped, given up, worked on again), has to pass something else,
// or the agent or its directory is gone. A pause, a hold, a limit or the end of its session do not
// end it: they start nothing new, and its verdict stands.
package check

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"heartbeat/config"
	"heartbeat/hook/foreign"
	"heartbeat/orchestrator/attempts"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// Approvals answers for what has passed its check and waits for people. Asking again is no second
// request.
type Approvals interface {
	Of(Ask) (Say, error)
	// Asked is what the agent itself has asked while it worked on an entry and has not been told;
	// Told notes that it is told, in the transaction that tells it.
	Asked(agent, delivery string) (Asked, error)
	Told(c *store.Change, ids []string) error
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
	// Prompt is what the agent was given at first, Reply its last message, Output what its check
	// has said.
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

// Options are what a Checker needs.
type Options struct {
	Store    *store.Store
	StateDir string
	// Run runs a check, and Files looks at an agent's files; nil: as package proof does.
	Run   func(context.Context, proof.Check) (proof.Result, error)
	Files func(ctx context.Context, dir string) string
	// Approvals, if not nil, has to say yes, too.
	Approvals Approvals
	Note      func(journal.Event)
	Log       *slog.Logger
}

// Checker has checks run for all agents of a fleet.
type Checker struct {
	opt      Options
	attempts *attempts.Book // which checks run
	room     proof.Room
}

// New returns a Checker at which as many checks run at once as Limit says.
func New(opt Options) *Checker {
	if opt.Run == nil {
		opt.Run = proof.Run
	}
	if opt.Files == nil {
		opt.Files = proof.Files
	}
	c := &Checker{opt: opt, attempts: attempts.Of(opt.StateDir)}
	c.Limit(0)
	return c
}

// Limit sets how many checks run at once; 0: as many as there are processors.
func (c *Checker) Limit(most int) { c.room.Limit(most) }

// Sweep ends what is left of checks of a scheduler that was killed.
func (c *Checker) Sweep(ctx context.Context) (agents []string, err error) {
	return proof.Sweep(ctx, c.opt.StateDir)
}

// Case is an agent whose entry in flight is to be checked.
type Case struct {
	Key     string // the agent's
	Binding int64  // of the agent: see entries.Hold
	// Agent is its definition in force at the time.
	Agent func() *config.Agent
	// Tell is called with how far it is, each time that changes.
	Tell func(status.Proof)
	// Worked returns how long the agent has worked on the entry in flight since the last verdict,
	// as far as this run has seen it; 0: it has not.
	Worked func() time.Duration
	// Judged is called with what the entry has become by a verdict, or when it was suspended.
	Judged func(queue.Entry)
	// Conversation returns the client's in which the entry in flight was worked on, or "".
	Conversation func(queue.Entry) string
	// Wake cuts a wait short: somebody has answered, or wants it tried again. Look says that the
	// entry may not be asked about any more.
	Wake, Look <-chan struct{}
}

// Prove checks the entry in flight of an agent, if it is to be checked, and carries out the
// verdict. It returns when nothing is to be checked any more, or ctx is done; what prevents it
// from a verdict is told (Case.Tell), and tried again. One agent has one Prove at a time.
func (c *Checker) Prove(ctx context.Context, of Case) {
	r := run{Checker: c, Case: of}
	for ctx.Err() == nil {
		over, err := r.step(ctx)
		switch {
		case ctx.Err() != nil, over:
			return
		case err != nil:
			r.trouble(ctx, err)
		}
	}
}

// subject is an entry whose work is to be checked, with all that is known of it.
type subject struct {
	queue.Entry
	agent    *config.Agent
	prompt   string
	output   string // what its last check said
	reply    *queue.Reply
	until    *config.Until // nil: nothing has to be passed any more
	verdicts []entries.Verdict
	pass     *pass
	vain     *status.Vain
}

// subjectOf reads all that is known of an entry; nil: its work is not to be checked.
func (c *Checker) subjectOf(ctx context.Context, a *config.Agent, find func(*store.View) (*queue.Entry, error)) (*subject, error) {
	return store.Get(ctx, c.opt.Store.Reader, func(v *store.View) (*subject, error) {
		e, err := find(v)
		if err != nil || e == nil || e.State != queue.Checking && e.State != queue.Suspended {
			return nil, err
		}
		return read(v, a, *e)
	})
}

func read(v *store.View, a *config.Agent, e queue.Entry) (*subject, error) {
	s := &subject{Entry: e, agent: a}
	g, err := entries.GivenOf(v, &e)
	if err != nil {
		return nil, err
	}
	s.prompt, s.output = g.Prompt, g.Output
	if s.reply, err = entries.ReplyOf(v, e.Key); err != nil {
		return nil, err
	}
	if s.until, err = Of(v, a, e.Key); err != nil {
		return nil, err
	}
	if s.verdicts, err = entries.VerdictsOf(v, e.Key); err != nil {
		return nil, err
	}
	if e.Iteration <= 1 { // the others are from before a person has queued it again
		s.verdicts = slices.DeleteFunc(s.verdicts, func(v entries.Verdict) bool { return v.Check != e.Check })
	}
	if s.pass, err = passOf(v, e.Key); err != nil {
		return nil, err
	}
	s.vain, err = vainOf(v, e.Key)
	return s, err
}

func (c *Checker) inFlight(key string) func(*store.View) (*queue.Entry, error) {
	return func(v *store.View) (*queue.Entry, error) { return entries.InFlight(v, key) }
}

// definition is that of what it has to pass.
func (s *subject) definition() string { return Definition(s.until) }

// standing is the verdict about the present check that is decided, and not yet carried out; nil:
// there is none.
func (s *subject) standing() *entries.Verdict {
	if n := len(s.verdicts); n > 0 && s.verdicts[n-1].Check == s.Check {
		v := s.verdicts[n-1]
		v.Output = s.output
		return &v
	}
	return nil
}

// past is what guard makes of the verdicts before the present check.
func (s *subject) past() guard.Past {
	var p guard.Past
	for _, v := range s.verdicts {
		if v.Check < s.Check && !v.Told {
			p, _ = p.After(guard.Iteration{Worked: v.Worked, Said: v.Said, Same: v.Same}, guard.Rule{})
		}
	}
	return p
}

// passed reports whether the present check has passed, and waits for people.
func (s *subject) passed() bool {
	return s.pass != nil && s.pass.check == s.Check && s.pass.definition == s.definition()
}

// files is the digest of the agent's files after the last check, or "".
func (s *subject) files() string {
	if n := len(s.verdicts); n > 0 {
		return s.verdicts[n-1].Files
	}
	return ""
}

// verdict is one about the present check, yet to be decided.
func (s *subject) verdict() entries.Verdict {
	v := entries.Verdict{Iteration: s.Iteration, By: "check", At: time.Now()}
	v.Check = s.Check
	return v
}

// shown is a hash of what approvers are shown.
func (s *subject) shown() string {
	what := struct {
		Definition, Output, Prompt, Reply, Files string
		Check                                    int
	}{Prompt: s.prompt, Check: s.Check}
	if s.pass != nil {
		what.Definition, what.Output, what.Files = s.pass.definition, s.pass.output, s.pass.files
	}
	what.Reply = s.said()
	data, err := json.Marshal(what)
	if err != nil { // it is plain data
		data = []byte(err.Error())
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// run is one Prove.
type run struct {
	*Checker
	Case
	again int // how often in a row there was no answer, in this run
	vain  *status.Vain
	told  status.Proof
}

// step does what is next for the entry in flight, and waits where that is it. It returns true
// when nothing is to be checked.
func (r *run) step(ctx context.Context) (over bool, err error) {
	a := r.Agent()
	s, err := r.subjectOf(ctx, a, r.inFlight(r.Key))
	switch {
	case err != nil:
		return false, err
	case s == nil || s.State != queue.Checking:
		return true, nil
	}
	r.about(s)
	if v := s.standing(); v != nil {
		return false, r.carryOut(ctx, s, *v)
	}
	if s.until == nil {
		return false, r.carryOut(ctx, s, s.needless())
	}
	asked, waits, err := r.asked(s)
	switch {
	case err != nil:
		return false, err
	case waits:
		r.waits(ctx, s, status.CheckAsked, time.Now().Add(askEvery), "waits for approval")
		return false, nil
	case asked != nil:
		return false, r.judge(ctx, s, asked.verdict(s), func(c *store.Change) error { return r.opt.Approvals.Told(c, asked.IDs) })
	case !s.passed():
		return false, r.check(ctx, s)
	}
	return false, r.approved(ctx, s)
}

// needless is the verdict where nothing has to be passed any more. An interrupted session has not
// said that it is done: on-orphan decides about its entry.
func (s *subject) needless() entries.Verdict {
	v := s.verdict()
	v.By, v.Why, v.Passed = "none", "nothing has to be passed any more", s.Interrupted == ""
	return v
}

// asked returns what the agent itself has asked in the turn that is over, once it is answered:
// its work goes on with that, and nothing is checked before. waits is true while it is not.
func (r *run) asked(s *subject) (told *Asked, waits bool, err error) {
	if r.opt.Approvals == nil {
		return nil, false, nil
	}
	q, err := r.opt.Approvals.Asked(r.Key, s.Delivery)
	if err != nil || q.Waits || len(q.IDs) == 0 {
		return nil, q.Waits, err
	}
	return &q, false, nil
}

func (q *Asked) verdict(s *subject) entries.Verdict {
	v := s.verdict()
	v.By, v.Why, v.Told, v.Answers, v.Output = "people", "it has asked for an approval", true, q.Answers, s.output
	return v
}

// check runs the check of an entry: what follows is judged, or recorded as a pass that waits for
// people. Where it gave no answer, it has waited.
func (r *run) check(ctx context.Context, s *subject) error {
	before := r.opt.Files(ctx, s.agent.Dir)
	result, err := r.runs(ctx, s)
	switch {
	case errors.Is(err, errSuperseded), err == nil && !r.isAsked(ctx, s):
		return nil // look again
	case err != nil || ctx.Err() != nil:
		return err
	case result.Answer == proof.Later || result.Answer == proof.Trouble:
		return r.asksAgain(ctx, s, result)
	}
	r.again, r.vain = 0, nil
	v := s.verdict()
	v.Took, v.Output, v.Why, v.Said = result.Took, result.Output, result.Why, result.Said
	v.Files = r.opt.Files(ctx, s.agent.Dir)
	v.Same = before != "" && before == s.files()
	if result.Answer == proof.Passed && !s.until.Promises(s.said()) {
		v.By, v.Why = "promise", "it passes, and the claim is missing"
		v.Output = fmt.Sprintf("The check passes. What is missing is your claim that all is done, in your last message: <promise>%s</promise>", s.until.Promise)
		v.Said, result.Answer = v.Output, proof.Failed
	}
	switch {
	case result.Answer == proof.Failed:
		return r.notPassed(ctx, s, v)
	case len(s.until.Approve) == 0:
		v.Passed = true
		return r.carryOut(ctx, s, v)
	}
	// It is not run again while people decide, and what they are asked about stands.
	return r.write(ctx, func(c *store.Change) error {
		if err := dropVain(c, s.Key); err != nil {
			return err
		}
		return pass{s.Check, s.definition(), queue.CleanOutput(v.Output), v.Files, v.Took, v.At}.keep(c, s.Key)
	})
}

// said is the session's last message about the work that is checked: one that was interrupted has
// said nothing of it.
func (s *subject) said() string {
	if s.reply == nil || s.Interrupted != "" {
		return ""
	}
	return s.reply.Text
}

// notPassed decides what follows an iteration that was not proven: it stands from then on, and is
// carried out once the agent need not wait any more.
func (r *run) notPassed(ctx context.Context, s *subject, v entries.Verdict) error {
	v.Worked = r.worked(s)
	_, d := s.past().After(
		guard.Iteration{Worked: v.Worked, Said: v.Said, Same: v.Same}, guard.Rule{MaxIterations: s.until.MaxIterations, MaxTime: s.until.MaxTime},
	)
	v.GiveUp = d.Gone
	if d.Wait == 0 || s.State == queue.Suspended { // which has waited for people
		return r.carryOut(ctx, s, v)
	}
	return r.write(ctx, func(c *store.Change) error {
		if err := dropVain(c, s.Key); err != nil {
			return err
		}
		return entries.Record(c, s.Key, v)
	})
}

// worked is how long the agent has worked in this iteration: as this run has seen it. Where it
// has seen nothing of it (the scheduler was started since, or the entry was suspended, and the agent
// has worked on others), from the hand-over to the claim, but not longer than since the last verdict. A session that was interrupted has claimed nothing, and
// nobody knows how long it worked: hours in which nothing ran are no work.
func (r *run) worked(s *subject) time.Duration {
	if r.Worked != nil && s.State == queue.Checking {
		if seen := r.Worked(); seen > 0 {
			return seen
		}
	}
	if s.Interrupted != "" || s.Handover.At.IsZero() {
		return 0
	}
	recorded := s.Claimed.Sub(s.Handover.At)
	if n := len(s.verdicts); n > 0 {
		recorded = min(recorded, time.Since(s.verdicts[n-1].At))
	}
	return max(0, recorded)
}

// askEvery is how often an approval is looked at that nobody has announced.
const askEvery = time.Minute

// approved asks people about an entry whose check has passed.
func (r *run) approved(ctx context.Context, s *subject) error {
	say, ask := Say{}, r.ask(ctx, s)
	if r.opt.Approvals != nil {
		var err error
		if say, err = r.opt.Approvals.Of(ask); err != nil {
			return err
		}
	}
	switch {
	case say.Answer != Waits:
		return r.answered(ctx, s, say)
	case s.State == queue.Suspended:
		return nil
	case ask.Aside:
		return r.suspend(ctx, s)
	}
	r.waits(ctx, s, status.CheckAwaits, time.Now().Add(askEvery), "waits for approval")
	return nil
}

// answered carries out what people have said of an entry whose check has passed.
func (r *run) answered(ctx context.Context, s *subject, say Say) error {
	v := s.verdict()
	v.Took, v.Output, v.Files = s.pass.took, s.pass.output, s.pass.files
	if say.Answer != Rejected {
		v.At, v.Passed = s.pass.at, true
		if say.Answer == Approved {
			v.By = "check, " + say.By
		}
		return r.carryOut(ctx, s, v)
	}
	v.By, v.Why, v.Output = say.By, "not approved", "Rejected by "+say.By
	if say.Note != "" {
		v.Output += ": " + say.Note
	}
	v.Said = v.Output
	return r.notPassed(ctx, s, v)
}

func (r *run) ask(ctx context.Context, s *subject) Ask {
	a := Ask{
		Agent: s.agent.Name, Key: s.Agent, Delivery: s.Delivery, Iteration: s.Iteration, Until: s.until,
		Prompt: s.prompt, Reply: s.said(), Output: s.pass.output, About: s.shown(), Aside: s.State == queue.Suspended || s.until.Aside && r.mayBeSuspended(ctx, s),
	}
	return a
}

// mayBeSuspended reports whether there is room beside the queue.
func (r *run) mayBeSuspended(ctx context.Context, s *subject) bool {
	all, err := store.Get(ctx, r.opt.Store.Reader, func(v *store.View) ([]queue.Entry, error) { return entries.Suspended(v, s.Agent) })
	return err == nil && len(all) < queue.MostSuspended
}

// suspend takes an entry that lacks only a person's yes out of the queue's order.
func (r *run) suspend(ctx context.Context, s *subject) error {
	conversation := s.Conversation
	if conversation == "" && r.Conversation != nil {
		conversation = r.Conversation(s.Entry)
	}
	var after *queue.Entry
	err := r.write(ctx, func(c *store.Change) (err error) {
		after, err = entries.Suspend(c, s.Key, s.Check, conversation, time.Now())
		return err
	})
	if errors.Is(err, entries.ErrNoRoom) || errors.Is(err, queue.ErrStale) {
		return nil // look again
	}
	if err != nil {
		return err
	}
	r.opt.Note(journal.Event{Agent: s.agent.Name, Kind: journal.Aside, Entry: s.Delivery, Iteration: s.Iteration, Reason: "waits for approval; the queue goes on"})
	if r.Judged != nil {
		r.Judged(*after)
	}
	return nil
}

// carryOut judges an entry by a verdict, once the agent need not wait for it any more.
func (r *run) carryOut(ctx context.Context, s *subject, v entries.Verdict) error {
	if !v.Passed && v.GiveUp == "" && !v.Told && s.State == queue.Checking {
		_, d := s.past().After(guard.Iteration{Worked: v.Worked, Said: v.Said, Same: v.Same}, guard.Rule{})
		if until := deadline.On(v.At.Add(d.Wait), time.Now(), guard.Longest); d.Wait > 0 && !deadline.Over(until, time.Now()) {
			r.waits(ctx, s, status.CheckPaces, until, cmp.Or(status.Gist(s.output), v.Why))
			if ctx.Err() != nil || !r.isAsked(ctx, s) || !deadline.Over(until, time.Now()) {
				return nil // look again
			}
		}
	}
	return r.judge(ctx, s, v, nil)
}

// judge carries a verdict out: the entry, the verdict, and what else changes with it.
func (r *run) judge(ctx context.Context, s *subject, v entries.Verdict, also func(*store.Change) error) error {
	if s.until != nil && s.until.MaxIterations > 0 {
		v.Most = s.until.MaxIterations + s.asks()
	}
	if !v.Passed {
		v.Cause = cause(v) // if that ends it
	}
	var after *queue.Entry
	err := r.write(ctx, func(c *store.Change) (err error) {
		if after, err = entries.Judge(c, s.Key, v); err != nil {
			return err
		}
		if err := errors.Join(dropPass(c, s.Key), dropVain(c, s.Key)); err != nil {
			return err
		}
		if also != nil {
			return also(c)
		}
		return nil
	})
	if errors.Is(err, queue.ErrStale) {
		return nil // look again
	}
	if err != nil {
		return err
	}
	r.note(s, v, *after)
	if r.Judged != nil {
		r.Judged(*after)
	}
	return nil
}

// asks counts the verdicts by which the agent was told answers.
func (s *subject) asks() (n int) {
	for _, v := range s.verdicts {
		if v.Told {
			n++
		}
	}
	return n
}

// write changes the store, if the agent is still this scheduler's.
func (r *run) write(ctx context.Context, act func(*store.Change) error) error {
	return r.opt.Store.Write(context.WithoutCancel(ctx), func(c *store.Change) error {
		if err := entries.Hold(c, r.Key, r.Binding); err != nil {
			return err
		}
		return act(c)
	})
}

// cause is why an entry is given up, in a line.
func cause(v entries.Verdict) string {
	what := v.Why
	if gist := status.Gist(v.Output); gist != "" {
		what += ": " + gist
	}
	iterations := "1 iteration"
	if v.Iteration != 1 {
		iterations = fmt.Sprintf("%d iterations", v.Iteration)
	}
	return fmt.Sprintf("after %s: %s", iterations, what)
}

// note tells the journal and the log of a verdict, by which an entry has become after.
func (r *run) note(s *subject, v entries.Verdict, after queue.Entry) {
	log := r.opt.Log.With("agent", s.agent.Name, "entry", s.Delivery, "iteration", v.Iteration)
	cancelled := !v.Passed && (after.Reason == queue.Cancelled || after.Iteration == 0)
	if v.Told && !cancelled { // its work on this iteration goes on
		log.Info("an entry goes on with the answers to what its agent has asked")
		return
	}
	verdict := journal.Unproven
	switch {
	case v.Passed:
		verdict = journal.Passed
	case v.GiveUp != "":
		verdict = string(v.GiveUp)
	}
	r.opt.Note(journal.Event{
		Agent: s.agent.Name, Kind: journal.Checked, Entry: s.Delivery, Verdict: verdict, Iteration: v.Iteration,
		Reason: foreign.Text(v.Why), Detail: foreign.Text(status.Gist(v.Output)), Started: v.At.Add(-v.Took), TookMS: v.Took.Milliseconds(),
	})
	log = log.With("took", v.Took.Round(time.Millisecond))
	switch {
	case v.Passed:
		log.Info("an entry is proven")
	case cancelled:
		log.Info("an entry is not proven, and is not handed over again: it was cancelled", "is", after.State)
	case v.GiveUp != "":
		log.Warn("an entry is given up: it could not be proven", "why", v.GiveUp, "check", v.Cause)
	default:
		log.Info("an entry is not proven, and is handed over again", "check", v.Why, "says", status.Gist(v.Output))
	}
}
