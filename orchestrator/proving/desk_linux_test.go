package proving_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/status"
)

// deskName is the name by which the test binary is the part of a scheduler that has
// the entry in flight checked and applies the verdict.
const deskName = "desk"

// bench is an agent whose entry is being checked, and what its scheduler knows.
type bench struct {
	// Home has what is tried: the agent's directory and the state directory. Witness has
	// what the check and the journal say, which no power cut takes away.
	Home, Witness string
	trial
}

// trial is what is checked, and what is to come of it.
type trial struct {
	Name string
	// Passes is whether the check does. Most bounds the iterations.
	Passes bool
	Most   int
	// Answer is what is said to the request that follows a check, or "".
	Answer approval.State
	// Rule has a rule give the answer, Demand has the entry itself demand the check, and
	// Aside has it wait aside for the answer.
	Rule, Demand, Aside bool
}

func trials() []trial {
	return []trial{
		{Name: "passes", Passes: true},
		{Name: "passes what it demands", Passes: true, Demand: true},
		{Name: "fails"},
		{Name: "is given up", Most: 1, Demand: true},
		{Name: "is approved", Passes: true, Answer: approval.Approved},
		{Name: "is approved by a rule", Passes: true, Answer: approval.Approved, Rule: true},
		{Name: "is rejected", Passes: true, Answer: approval.Rejected},
		{Name: "is approved aside", Passes: true, Answer: approval.Approved, Aside: true},
		{Name: "is rejected aside", Passes: true, Answer: approval.Rejected, Aside: true},
	}
}

const (
	agent    = "a"
	entryID  = "e1"
	approver = "release"
)

func (b *bench) state() string   { return filepath.Join(b.Home, "state") }
func (b *bench) runs() string    { return filepath.Join(b.Witness, "runs") }
func (b *bench) journal() string { return filepath.Join(b.Witness, "journal") }

func (b *bench) until() *config.Until {
	exit := "echo not yet; exit 1"
	if b.Passes {
		exit = "exit 0"
	}
	u := config.NewUntil("/bin/sh", "-c", "echo run >> "+b.runs()+"; "+exit)
	if b.Most > 0 {
		u.MaxIterations = b.Most
	}
	if b.Answer != "" {
		u.Approve, u.Aside = []string{approver}, b.Aside
	}
	return u
}

func (b *bench) agent() *config.Agent {
	a := &config.Agent{Name: agent, Dir: filepath.Join(b.Home, "work"), Inbox: filepath.Join(b.Home, "work", ".heartbeat", "inbox.jsonl")}
	if !b.Demand {
		a.Until = b.until()
	}
	return a
}

func init() { programs[deskName] = deskMain }

// deskMain is the program: its argument is a bench.
func deskMain(args []string) int {
	var b bench
	if err := json.Unmarshal([]byte(args[0]), &b); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*testbed.Patience)
	defer cancel()
	wake := make(chan struct{}, 1)
	desk := proving.New(proving.Options{
		StateDir: b.state(), Approvals: people{b, wake}, Note: b.note, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if _, err := desk.Sweep(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	desk.Prove(ctx, proving.Case{Key: agent, Agent: b.agent, Tell: func(status.Proof) {}, Wake: wake})
	if err := b.sideline(ctx, desk); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if ctx.Err() != nil {
		fmt.Fprintln(os.Stderr, "it does not end")
		return 1
	}
	return 0
}

// sideline applies the answer to the entry that waits aside, and has it handed over again
// where it has to be: nothing else is in flight.
func (b *bench) sideline(ctx context.Context, desk *proving.Desk) error {
	w, err := desk.Tend(ctx, b.agent(), agent)
	if err == nil && len(w.Deliveries) > 0 {
		return fmt.Errorf("it waits: %v", w.Deliveries)
	}
	if err == nil && w.Returning > 0 {
		_, err = desk.Return(ctx, b.agent(), agent)
	}
	return err
}

// note tells the journal of verdicts, and of what somebody else has done to the files.
func (b bench) note(e journal.Event) {
	if e.Kind == journal.Aside {
		return
	}
	f, err := os.OpenFile(b.journal(), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, e.Entry, e.Iteration, e.Kind, e.Verdict)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		panic(err)
	}
}

// people answer at once, and the check that waits for them is woken. What they were asked stands
// in Witness.
type people struct {
	bench
	wake chan<- struct{}
}

// requests are what people were asked, by the claim that it is about.
func (b bench) requests() (all map[string]approval.Request, err error) {
	data, err := os.ReadFile(filepath.Join(b.Witness, "requests"))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]approval.Request{}, nil
	}
	return all, errors.Join(err, json.Unmarshal(data, &all))
}

func (p people) Of(a proving.Ask) (proving.Say, error) {
	if p.Answer == "" {
		return proving.Say{}, nil
	}
	about := a.Key + " " + a.Delivery + " " + a.About
	r, err := p.asked(about)
	if err == nil && r.State == "" {
		r.State = approval.Asked
		if p.Rule {
			r.State, r.AnsweredAt, r.By = p.Answer, time.Now(), "a rule"
		}
		err = p.keep(about, r)
	}
	if err != nil {
		return proving.Say{}, err
	}
	if r.Waits() {
		r.State, r.AnsweredAt, r.By, r.Person, r.Note = p.Answer, time.Now(), "a person", true, "so it is"
		err := p.keep(about, r)
		p.wake <- struct{}{}
		return proving.Say{Answer: proving.Waits}, err
	}
	return proving.Say{Answer: proving.Answer(r.State), By: r.By, Note: r.Note.Raw()}, nil
}

func (p people) asked(about string) (approval.Request, error) {
	all, err := p.requests()
	return all[about], err
}

func (p people) keep(about string, r approval.Request) error {
	all, err := p.requests()
	if err != nil {
		return err
	}
	all[about] = r
	data, err := json.Marshal(all)
	path := filepath.Join(p.Witness, "requests")
	return errors.Join(err, os.WriteFile(path+".new", data, 0o600), os.Rename(path+".new", path))
}

func (people) Asked(string, string) (proving.Asked, error) { return proving.Asked{}, nil }
func (people) Told([]string) error                         { return nil }

// newBench makes one whose session has just claimed to be done.
func newBench(t testing.TB, home string, is trial) *bench {
	t.Helper()
	b := &bench{Home: home, Witness: t.TempDir(), trial: is}
	a := b.agent()
	err := errors.Join(os.MkdirAll(filepath.Dir(a.Inbox), 0o700), os.MkdirAll(b.state(), 0o700))
	if err == nil && b.Demand {
		_, err = ledger.Asks(b.state(), ledger.Demand{ID: entryID, Inbox: a.Inbox, Until: b.until(), At: time.Now()})
	}
	if err == nil {
		err = b.locked(t, func(q *inbox.Held) error {
			_, err := q.Append(t.Context(), inbox.Letter{ID: entryID, Source: "send", Prompt: "do it", Checked: b.Demand})
			if err != nil {
				return err
			}
			e, err := q.Next()
			if err == nil {
				_, err = q.Offer(e, inbox.Offering{Via: inbox.ViaStop, Session: "S1", Checked: true})
			}
			if err == nil {
				_, err = q.Advance(inbox.Taken, "")
			}
			if err == nil {
				_, err = q.Check(inbox.Acknowledgement{Session: "S1", Reply: "done: do it"})
			}
			return err
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) locked(t testing.TB, do func(q *inbox.Held) error) error {
	q, err := inbox.Open(inbox.Place{Inbox: b.agent().Inbox})
	if err != nil {
		return err
	}
	defer q.Close()
	ctx, cancel := context.WithTimeout(t.Context(), testbed.Patience)
	defer cancel()
	return q.Hold(ctx, do)
}

// desk is the program.
func (b *bench) desk(t testing.TB) stepper.Program {
	t.Helper()
	arg, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(b.Witness, deskName)
	self, err := os.Executable()
	if err == nil {
		if err = os.Symlink(self, path); errors.Is(err, os.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return stepper.Program{Path: path, Args: []string{string(arg)}, Dir: b.Witness, Env: []string{"PATH=" + os.Getenv("PATH")}, Forks: true}
}

// TestTheDeskIsKilled before each of its calls that change something, and its successor
// before any of its own: of what was decided nothing is decided again, of what was not
// everything. Without -full that is a sample.
func TestTheDeskIsKilled(t *testing.T) {
	t.Parallel()
	notRaced(t)
	stepper.Need(t, stepper.Program{Path: "/bin/true"})
	const thin = 96
	points, all := testbed.Turn(t, thin), trials()
	var kills, made [16]int
	var work sync.WaitGroup
	for i := range all {
		work.Go(func() {
			r, stride := testbed.Chance(t, all[i].Name), testbed.Stride(thin)
			for n := 1 + (points+i*thin/len(all))%stride; ; n += stride {
				dir, err := os.MkdirTemp("", "heartbeat-desk-") // nothing of it is kept: a full run makes hundreds
				if err != nil {
					t.Error(err)
					return
				}
				b := newBench(t, dir, all[i])
				o, err := stepper.Run(b.desk(t), n)
				if err != nil {
					t.Error(err)
					return
				}
				where := fmt.Sprintf("an entry that %s, the desk killed before call %d of %q", b.Name, n, o.Calls)
				if o.Killed {
					kills[i]++
				}
				if again := 1 + r.IntN(max(1, len(o.Calls))); r.IntN(2) == 0 {
					if o, err := stepper.Run(b.desk(t), again); err != nil {
						t.Error(err)
					} else if o.Killed {
						kills[i]++
						where += fmt.Sprintf(", and the next before call %d of %q", again, o.Calls)
					}
				}
				b.recovers(t, where)
				os.RemoveAll(dir)
				if !o.Killed {
					if o.Status != 0 || len(o.Calls) < 30 {
						t.Errorf("%s: undisturbed, status %d, %s, %d calls: %q", where, o.Status, o.Stderr, len(o.Calls), o.Calls)
					}
					made[i] = len(o.Calls)
					return
				}
			}
		})
	}
	work.Wait()
	for i, is := range all {
		testbed.Played(t, testbed.Kills, kills[i])
		t.Logf("an entry that %s: %d calls, %d kills", is.Name, made[i], kills[i])
	}
}

// notRaced skips a test of the program under the race detector, whose threads
// make calls of their own.
func notRaced(t *testing.T) {
	t.Helper()
	if testbed.Raced {
		t.Skip("the desk works alone: the race detector has nothing to see")
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}
