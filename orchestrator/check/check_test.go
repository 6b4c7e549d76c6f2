package check_test

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/check"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/entries/entriestest"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// rig is an agent whose entry is checked by answers that the test gives.
type rig struct {
	testing.TB
	*store.Store
	*check.Checker
	agent   *config.Agent
	binding int64
	people  *people
	wake    chan struct{}
	look    chan struct{}

	mu      sync.Mutex
	answers []proof.Result // of the next checks
	ran     int
	told    []status.Proof
	events  []journal.Event
	running chan struct{} // a check runs until it is closed or its context ends; nil: it answers at once
	files   string
}

// people is what people have answered.
type people struct {
	mu    sync.Mutex
	say   check.Say
	asked check.Asked
	seen  []check.Ask
	told  []string
}

func (p *people) Of(a check.Ask) (check.Say, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, a)
	if len(a.Until.Approve) == 0 {
		return check.Say{}, nil
	}
	return p.say, nil
}

func (p *people) Asked(string, string) (check.Asked, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked, nil
}

func (p *people) Told(_ *store.Change, ids []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told, p.asked = append(p.told, ids...), check.Asked{}
	return nil
}

func (p *people) answer(s check.Say) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.say = s
}

func newRig(t testing.TB, until *config.Until) *rig {
	dir := t.TempDir()
	r := &rig{
		TB: t, Store: entriestest.New(t, dir), people: &people{say: check.Say{Answer: check.Waits}}, wake: make(chan struct{}, 1), look: make(chan struct{}, 1),
		agent: &config.Agent{Name: "a", Dir: t.TempDir(), Until: until},
	}
	r.Checker = check.New(check.Options{
		Store: r.Store, StateDir: dir, Approvals: r.people, Log: slog.New(slog.DiscardHandler),
		Files: func(context.Context, string) string { r.mu.Lock(); defer r.mu.Unlock(); return r.files },
		Note:  func(e journal.Event) { r.mu.Lock(); defer r.mu.Unlock(); r.events = append(r.events, e) },
		Run: func(ctx context.Context, c proof.Check) (proof.Result, error) {
			r.mu.Lock()
			r.ran++
			n, wait := r.ran, r.running
			result := proof.Result{Answer: proof.Passed, Why: "exit status 0"}
			if n <= len(r.answers) {
				result = r.answers[n-1]
			}
			r.mu.Unlock()
			if wait != nil {
				select {
				case <-wait:
				case <-ctx.Done():
					return proof.Result{}, context.Cause(ctx)
				}
			}
			return result, nil
		},
	})
	r.write(func(c *store.Change) (err error) {
		r.binding, err = entries.Bind(c, "key")
		return err
	})
	return r
}

func (r *rig) write(act func(*store.Change) error) {
	r.Helper()
	if err := r.Store.Write(r.Context(), act); err != nil {
		r.Fatal(err)
	}
}

// claim queues an entry, hands it over, and has its session claim to be done.
func (r *rig) claim(d *check.Demand, reply string) (e *queue.Entry) {
	r.Helper()
	r.write(func(c *store.Change) error {
		a, err := entries.Add(c, "key", 0, time.Now(), queue.Letter{Prompt: "make it so", Checked: true})
		if err != nil {
			return err
		}
		if d == nil {
			return nil
		}
		return d.Keep(c, a[0].Key)
	})
	return r.again(reply)
}

// again hands over what is next, and has its session claim to be done.
func (r *rig) again(reply string) (e *queue.Entry) {
	r.Helper()
	r.write(func(c *store.Change) error {
		now, err := entries.InFlight(&c.View, "key")
		if err != nil {
			return err
		}
		var g *queue.Given
		to := queue.Handover{Session: "s", Via: queue.ViaStop, At: time.Now()}
		if now == nil {
			g, err = entries.Offer(c, "key", to)
		} else {
			g, err = entries.OfferAgain(c, entries.RefOf(now), to)
		}
		if err == nil {
			e, err = entries.Claim(c, entries.RefOf(&g.Entry), queue.Reply{Session: "s", Text: reply, At: time.Now()})
		}
		return err
	})
	return e
}

func (r *rig) suit() check.Case {
	return check.Case{
		Key: "key", Binding: r.binding, Agent: func() *config.Agent { return r.agent }, Wake: r.wake, Look: r.look,
		Tell:         func(p status.Proof) { r.mu.Lock(); defer r.mu.Unlock(); r.told = append(r.told, p) },
		Conversation: func(queue.Entry) string { return "talk" },
	}
}

// prove has the entry in flight checked until nothing is left to check.
func (r *rig) prove() {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	r.Prove(ctx, r.suit())
	if ctx.Err() != nil {
		r.Fatal("it has not ended")
	}
}

// begins is prove in the background; the result waits for its end.
func (r *rig) begins() (ends func()) {
	done := make(chan struct{})
	go func() { defer close(done); r.Prove(r.Context(), r.suit()) }()
	return func() { <-done }
}

// until waits for a state to be told.
func (r *rig) until(s status.ProofState) {
	r.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		r.mu.Lock()
		is := slices.ContainsFunc(r.told, func(p status.Proof) bool { return p.State == s })
		r.mu.Unlock()
		if is {
			return
		}
	}
	r.Fatalf("%s was never told: %+v", s, r.told)
}

func (r *rig) now(e *queue.Entry) *queue.Entry {
	r.Helper()
	got, err := store.Get(r.Context(), r.Store.Reader, func(v *store.View) (*queue.Entry, error) { return entries.Get(v, e.Key) })
	if err != nil {
		r.Fatal(err)
	}
	return got
}

func failed(output string) proof.Result {
	return proof.Result{Answer: proof.Failed, Why: "exit status 1", Output: output, Said: output}
}

func TestWorkIsDoneWhenItsCheckPasses(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.NewUntil("make", "test"))
	r.answers = []proof.Result{failed("no such file")}
	e := r.claim(nil, "done")
	r.prove()
	if got := r.now(e); got.State != queue.Unproven || got.Iteration != 2 || got.Most != config.DefaultMaxIterations {
		t.Fatalf("%+v", got)
	}
	r.again("now it is")
	r.prove()
	if got := r.now(e); got.State != queue.Done || r.ran != 2 {
		t.Fatalf("after %d checks: %+v", r.ran, got)
	}
	var verdicts []string
	for _, e := range r.events {
		verdicts = append(verdicts, fmt.Sprint(e.Verdict, " ", e.Iteration))
	}
	if want := []string{journal.Unproven + " 1", journal.Passed + " 2"}; !slices.Equal(verdicts, want) {
		t.Errorf("%q", verdicts)
	}
}

func TestAClaimIsMissing(t *testing.T) {
	t.Parallel()
	u := config.NewUntil("true")
	u.Promise = "ALL DONE"
	r := newRig(t, u)
	e := r.claim(nil, "I think so")
	r.prove()
	if got := r.now(e); got.State != queue.Unproven {
		t.Fatalf("%+v", got)
	}
	r.again("yes <promise>ALL DONE</promise>")
	r.prove()
	if got := r.now(e); got.State != queue.Done {
		t.Fatalf("%+v", got)
	}
}

func TestAnEntryHasDemandsOfItsOwn(t *testing.T) {
	t.Parallel()
	u := config.NewUntil("./check.sh", "a b", "")
	u.Program, u.Promise, u.Approve, u.Env = "/p/check.sh", "YES", []string{"ada", "bob"}, map[string]string{"A": "x=y\nz", "B": ""}
	r := newRig(t, nil)
	var k queue.Key
	r.write(func(c *store.Change) error {
		a, err := entries.Add(c, "key", 0, time.Now(), queue.Letter{Prompt: "p", Checked: true})
		k = a[0].Key
		if err == nil {
			err = check.Demand{Trigger: "t", Until: u}.Keep(c, k)
		}
		return err
	})
	of := func() *config.Until {
		got, err := store.Get(t.Context(), r.Store.Reader, func(v *store.View) (*config.Until, error) { return check.Of(v, r.agent, k) })
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := of(); !reflect.DeepEqual(got, u) {
		t.Errorf("%+v, want %+v", got, u)
	}
	other := config.NewUntil("true")
	r.agent = &config.Agent{Name: "a", Triggers: []config.Trigger{{Name: "t", Until: other}}}
	if got := of(); got != other {
		t.Errorf("its trigger says %+v now, and it has to pass %+v", other, got)
	}
	none := newRig(t, config.NewUntil("false"))
	e := none.claim(&check.Demand{}, "done")
	none.prove()
	if got := none.now(e); got.State != queue.Done || none.ran != 0 {
		t.Errorf("nothing is demanded of it: %+v, %d checks", got, none.ran)
	}
}

func TestAnEntryIsGivenUp(t *testing.T) {
	t.Parallel()
	u := config.NewUntil("false")
	u.MaxIterations = 2
	r := newRig(t, u)
	r.answers = []proof.Result{failed("one"), failed("two")}
	e := r.claim(nil, "done")
	r.prove()
	r.again("done")
	r.prove()
	if got := r.now(e); got.State != queue.Dead || got.Reason != queue.MaxIterations || got.Cause != "after 2 iterations: exit status 1: two" {
		t.Errorf("%+v", got)
	}
	if _, err := store.Get(t.Context(), r.Store.Reader, func(v *store.View) (*queue.Entry, error) { return entries.InFlight(v, "key") }); err != nil {
		t.Error(err)
	}
	// A person queues it again, as if it were new.
	r.write(func(c *store.Change) error {
		_, _, err := entries.Retry(c, "key", time.Now(), e.Delivery)
		return err
	})
	r.answers = append(r.answers, failed("three"))
	r.again("done")
	r.prove()
	if got := r.now(e); got.State != queue.Unproven || got.Iteration != 2 {
		t.Errorf("queued again: %+v", got)
	}
}

func TestNothingThatChangesIsNoProgress(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.NewUntil("false"))
	r.files = "as ever"
	r.answers = []proof.Result{failed("x"), failed("x"), failed("x")}
	e := r.claim(nil, "done")
	for range 3 {
		r.prove()
		if r.now(e).State == queue.Unproven {
			r.again("done")
		}
	}
	if got := r.now(e); got.State != queue.Dead || got.Reason != queue.NoProgress {
		t.Errorf("%+v", got)
	}
}

func TestACheckIsNotRunAgainWhilePeopleDecide(t *testing.T) {
	t.Parallel()
	u := config.NewUntil("true")
	u.Approve = []string{"release"}
	r := newRig(t, u)
	e := r.claim(nil, "done")
	ends := r.begins()
	r.until(status.CheckAwaits)
	r.people.answer(check.Say{Answer: check.Approved, By: "ada"})
	r.wake <- struct{}{}
	ends()
	if got := r.now(e); got.State != queue.Done || r.ran != 1 {
		t.Errorf("%d checks: %+v", r.ran, got)
	}
	if v := r.verdicts(e); len(v) != 1 || v[0].By != "check, ada" {
		t.Errorf("%+v", v)
	}
}

func (r *rig) verdicts(e *queue.Entry) []entries.Verdict {
	r.Helper()
	got, err := store.Get(r.Context(), r.Store.Reader, func(v *store.View) ([]entries.Verdict, error) { return entries.VerdictsOf(v, e.Key) })
	if err != nil {
		r.Fatal(err)
	}
	return got
}

func TestANoSaysWhy(t *testing.T) {
	t.Parallel()
	u := config.NewUntil("true")
	u.Approve = []string{"release"}
	r := newRig(t, u)
	r.people.answer(check.Say{Answer: check.Rejected, By: "ada", Note: "wrong year"})
	e := r.claim(nil, "done")
	r.prove()
	got := r.now(e)
	shown, err := store.Get(t.Context(), r.Store.Reader, func(v *store.View) (queue.Shown, error) { return entries.ShownOf(v, e.Key) })
	if got.State != queue.Unproven || shown.Output != "Rejected by ada: wrong year" || err != nil {
		t.Errorf("%+v, %+v, %v", got, shown, err)
	}
}

func TestWhatWaitsForPeopleIsSuspended(t *testing.T) {
	t.Parallel()
	u := config.NewUntil("true")
	u.Approve, u.Aside = []string{"release"}, true
	r := newRig(t, u)
	first := r.claim(nil, "done")
	r.prove()
	if got := r.now(first); got.State != queue.Suspended || got.Conversation != "talk" {
		t.Fatalf("%+v", got)
	}
	second := r.claim(nil, "done, too") // the queue goes on
	r.prove()
	tend := func() {
		t.Helper()
		if err := r.Tend(t.Context(), r.suit()); err != nil {
			t.Fatal(err)
		}
	}
	tend()
	if r.now(first).State != queue.Suspended || r.ran != 2 {
		t.Errorf("%d checks: %+v", r.ran, r.now(first))
	}
	shown := r.people.seen[len(r.people.seen)-1]
	if !shown.Aside || shown.Reply != "done, too" || shown.About == r.people.seen[0].About {
		t.Errorf("%+v", shown)
	}
	r.people.answer(check.Say{Answer: check.Rejected, By: "ada"})
	tend()
	if got := r.now(second); got.State != queue.Queued || got.Lane != queue.Returning || got.Iteration != 2 || got.Conversation != "talk" {
		t.Errorf("%+v", got)
	}
	r.people.answer(check.Say{Answer: check.Approved, By: "ada"})
	third := r.again("better")
	r.prove()
	if got := r.now(third); got.State != queue.Done {
		t.Errorf("%+v", got)
	}
}

func TestASuspendedEntryReturnsIfItHasToPassSomethingElse(t *testing.T) {
	t.Parallel()
	u := config.NewUntil("true")
	u.Approve, u.Aside = []string{"release"}, true
	r := newRig(t, u)
	e := r.claim(nil, "done")
	r.prove()
	other := *u
	other.Check = []string{"other"}
	r.agent = &config.Agent{Name: "a", Dir: r.agent.Dir, Until: &other}
	if err := r.Tend(t.Context(), r.suit()); err != nil {
		t.Fatal(err)
	}
	if got := r.now(e); got.State != queue.Queued || got.Lane != queue.Returning {
		t.Errorf("%+v", got)
	}
}

// What the agent itself has asked people for comes before its check.
func TestAnAgentIsToldWhatPeopleHaveAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.NewUntil("true"))
	r.people.asked = check.Asked{Answers: "Yes, delete it.", IDs: []string{"1", "2"}}
	e := r.claim(nil, "may I?")
	r.prove()
	if got := r.now(e); got.State != queue.Unproven || r.ran != 0 || !slices.Equal(r.people.told, []string{"1", "2"}) {
		t.Fatalf("%d checks, told %q: %+v", r.ran, r.people.told, got)
	}
	shown, err := store.Get(t.Context(), r.Store.Reader, func(v *store.View) (queue.Shown, error) { return entries.ShownOf(v, e.Key) })
	if shown.Answers != "Yes, delete it." || err != nil {
		t.Errorf("%+v, %v", shown, err)
	}
	r.again("done")
	r.prove()
	if got := r.now(e); got.State != queue.Done {
		t.Errorf("%+v", got)
	}
}

func TestACheckThatGivesNoAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.NewUntil("true"))
	r.answers = []proof.Result{{Answer: proof.Later}}
	e := r.claim(nil, "done")
	ends := r.begins()
	r.until(status.CheckAgain)
	r.wake <- struct{}{}
	ends()
	if got := r.now(e); got.State != queue.Done || got.Iteration != 1 || r.ran != 2 {
		t.Errorf("%d checks: %+v", r.ran, got)
	}
}

func TestACheckEndsOnceItAnswersForNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*rig, *queue.Entry){
		"something else has to pass": func(r *rig, _ *queue.Entry) {
			r.agent = &config.Agent{Name: "a", Dir: r.agent.Dir}
		},
		"it is worked on again": func(r *rig, e *queue.Entry) {
			r.write(func(c *store.Change) error {
				_, err := entries.TakeBy(c, e.Key, time.Now(), func(e queue.Entry) (queue.Entry, error) { return e.VoidCheck(), nil })
				return err
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, config.NewUntil("sleep", "inf"))
			r.running = make(chan struct{})
			e := r.claim(nil, "done")
			ends := r.begins()
			r.until(status.CheckRuns)
			change(r, e)
			r.look <- struct{}{}
			ends()
			if r.now(e).State == queue.Unproven {
				t.Errorf("%+v", r.now(e))
			}
		})
	}
}

// TestAVerdictThatStandsIsCarriedOutAndNotDecidedAgain: a scheduler that is killed while an agent
// has to wait leaves it behind.
func TestAVerdictThatStandsIsCarriedOutAndNotDecidedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.NewUntil("false"))
	e := r.claim(nil, "done")
	r.write(func(c *store.Change) error {
		v := entries.Verdict{Iteration: 1, Why: "exit status 1", At: time.Now(), Shown: queue.Shown{Output: "said before"}}
		v.Check, v.GiveUp = 1, queue.TooFast
		return entries.Record(c, e.Key, v)
	})
	r.prove()
	if got := r.now(e); got.State != queue.Dead || got.Reason != queue.TooFast || r.ran != 0 || !strings.Contains(got.Cause, "said before") {
		t.Errorf("%d checks: %+v", r.ran, got)
	}
}

func TestASchedulerThatIsNotTheAgentsJudgesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.NewUntil("true"))
	e := r.claim(nil, "done")
	r.write(func(c *store.Change) error {
		_, err := entries.Bind(c, "key")
		return err
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Prove(ctx, r.suit()) }()
	r.until(status.CheckTrouble)
	cancel()
	<-done
	if got := r.now(e); got.State != queue.Checking {
		t.Errorf("%+v", got)
	}
}

func TestAnInterruptedSessionHasClaimedNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	e := r.claim(&check.Demand{Until: config.NewUntil("true")}, "earlier words")
	r.write(func(c *store.Change) error {
		_, err := entries.TakeBy(c, e.Key, time.Now(), func(e queue.Entry) (queue.Entry, error) {
			e = e.VoidCheck()
			e, _ = e.Recover(queue.Interruption{Policy: queue.DeadLetterOrphan, Now: time.Now()}, 9)
			return e, nil
		})
		if err == nil { // what was demanded of it is gone
			_, err = c.Do(`DELETE FROM demands`)
		}
		return err
	})
	r.prove()
	if got := r.now(e); got.State != queue.Unproven || got.Interrupted != queue.Started || r.ran != 0 {
		t.Errorf("%d checks: %+v", r.ran, got)
	}
}

func (r *rig) take(e *queue.Entry, step func(queue.Entry) (queue.Entry, error)) {
	r.Helper()
	r.write(func(c *store.Change) error {
		_, err := entries.TakeBy(c, e.Key, time.Now(), step)
		return err
	})
}

// TestPeopleAreNotShownWhatAnInterruptedSessionSaidBefore: it has said nothing of what is checked.
func TestPeopleAreNotShownWhatAnInterruptedSessionSaidBefore(t *testing.T) {
	t.Parallel()
	u := config.NewUntil("true")
	u.Approve = []string{"release"}
	r := newRig(t, u)
	r.people.answer(check.Say{Answer: check.Approved, By: "ada"})
	e := r.claim(nil, "earlier words")
	r.take(e, func(e queue.Entry) (queue.Entry, error) {
		e, _ = e.VoidCheck().Recover(queue.Interruption{Policy: queue.DeadLetterOrphan, Now: time.Now()}, 9)
		return e, nil
	})
	r.prove()
	if len(r.people.seen) != 1 || r.people.seen[0].Reply != "" {
		t.Errorf("%+v", r.people.seen)
	}
}

// TestWorkOnOthersIsNotThatOnASuspendedEntry: it was given up for the time that its agent had spent
// on the entry in flight.
func TestWorkOnOthersIsNotThatOnASuspendedEntry(t *testing.T) {
	t.Parallel()
	u := config.NewUntil("true")
	u.Approve, u.Aside, u.MaxTime = []string{"release"}, true, time.Hour
	r := newRig(t, u)
	e := r.claim(nil, "done")
	r.prove()
	r.people.answer(check.Say{Answer: check.Rejected, By: "ada"})
	of := r.suit()
	of.Worked = func() time.Duration { return 2 * time.Hour }
	if err := r.Tend(t.Context(), of); err != nil {
		t.Fatal(err)
	}
	if got := r.now(e); got.State != queue.Queued {
		t.Errorf("%+v", got)
	}
}

// TestACancelledEntryWhoseCheckFailsIsNotHandedOver, although its session is there still.
func TestACancelledEntryWhoseCheckFailsIsNotHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, config.NewUntil("false"))
	r.answers = []proof.Result{failed("no")}
	e := r.claim(nil, "done")
	r.take(e, func(e queue.Entry) (queue.Entry, error) { return e.MarkCancelled(queue.CancelForGood) })
	r.prove()
	if got := r.now(e); got.State != queue.Dead || got.Reason != queue.Cancelled || got.Cause == "" {
		t.Errorf("%+v", got)
	}
}

// TestAVerdictEndsTheChecksWithoutAnswer, also one that is carried out later.
func TestAVerdictEndsTheChecksWithoutAnswer(t *testing.T) {
	t.Parallel()
	u := config.NewUntil("false")
	u.MaxIterations = 0
	r := newRig(t, u)
	e := r.claim(nil, "done")
	for n := range 4 {
		r.answers = append(r.answers, failed(strings.Repeat("x", n+1)))
		r.prove()
		r.again("done")
	}
	r.answers = append(r.answers, proof.Result{Answer: proof.Later}, failed("y"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Prove(ctx, r.suit()) }()
	r.until(status.CheckAgain)
	r.wake <- struct{}{}
	r.until(status.CheckPaces) // the agent was too fast
	cancel()
	<-done
	n, err := store.Get(t.Context(), r.Store.Reader, func(v *store.View) (n int, err error) {
		_, err = v.One(`SELECT count(*) FROM unanswered_checks`, nil, &n)
		return n, err
	})
	if v := r.verdicts(e); n != 0 || err != nil || len(v) != 5 {
		t.Errorf("%d rows, %v; %d verdicts", n, err, len(v))
	}
}
