package inbox

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"heartbeat/queue"

	form "heartbeat/queue/line"

	"pgregory.net/rapid"
)

// offerChecked hands the next entry over, which has to be checked.
func (r *rig) offerChecked() *InFlight {
	r.t.Helper()
	e, err := r.Next()
	if err != nil {
		r.t.Fatalf("Next: %v", err)
	}
	f, err := r.Offer(e, Offering{Via: ViaStop, Session: "s1", PromptID: "p1", Checked: true})
	if err != nil {
		r.t.Fatalf("Offer: %v", err)
	}
	return f
}

// claims has the session claim to be done.
func (r *rig) claims(reply string) *InFlight {
	r.t.Helper()
	f, err := r.Held.Check(Acknowledgement{Session: "s1", Reply: reply, Abandoned: []string{"shell: make"}})
	if err != nil {
		r.t.Fatalf("Check: %v", err)
	}
	return f
}

func (r *rig) verdict(v Verdict) *Delivery {
	r.t.Helper()
	d, err := r.Verdict(v)
	if err != nil {
		r.t.Fatalf("Verdict: %v", err)
	}
	return d
}

// TestWhatIsCheckedIsDoneByAVerdictOnly, of the check that is awaited.
func TestWhatIsCheckedIsDoneByAVerdictOnly(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	if _, err := r.Append(t.Context(), Letter{ID: "a", Source: "send", Prompt: "mend it", Checked: true}); err != nil {
		t.Fatal(err)
	}
	e, err := r.Next()
	if err != nil || !e.Checked {
		t.Fatalf("%+v %v: the mark is gone", e, err)
	}
	r.echo("next\n")
	f := r.offerChecked()
	if f.Iteration != 1 || f.Check != 0 {
		t.Fatalf("%+v", f.Proving)
	}
	r.advance(Started)
	if _, err := r.Acknowledge(Acknowledgement{Session: "s1"}); !errors.Is(err, ErrUnproven) {
		t.Fatalf("acknowledged without a verdict: %v", err)
	}
	if _, err := r.Advance(Checking, ""); err == nil {
		t.Fatal("a check was recorded without a claim")
	}
	id := f.DeliveryID
	if f = r.claims("one"); f.State != Checking || f.Check != 1 || f.Claim.Reply != "one" {
		t.Fatalf("%+v", f)
	}
	if again := r.claims("two"); again.Check != 1 || again.Claim.Reply != "one" {
		t.Fatalf("the same claim twice: %+v", again.Proving)
	}
	for _, v := range []Verdict{{Delivery: id, Check: 2, Passed: true}, {Delivery: "other", Check: 1, Passed: true}, {Delivery: id, Passed: true}} {
		if _, err := r.Verdict(v); !errors.Is(err, ErrStale) {
			t.Errorf("%+v: %v", v, err)
		}
	}
	for range 2 { // and once more
		r.verdict(Verdict{Delivery: id, Check: 1, Output: "\x1b[31mtwo tests fail\x1b[0m", Most: 10})
		f, err = r.InFlight()
		if err != nil || f.State != Unproven || f.Iteration != 2 || f.Output != "two tests fail" || f.Most != 10 || f.Claim != nil || f.Attempt != 1 {
			t.Fatalf("%+v %v", f, err)
		}
	}
	for _, v := range []Verdict{{Delivery: id, Check: 1, Passed: true}, {Delivery: id, Check: 1, GiveUp: NoProgress}} {
		if _, err := r.Verdict(v); !errors.Is(err, ErrStale) {
			t.Errorf("%+v, after another verdict of this check: %v", v, err)
		}
	}
	e, f, err = r.Reoffer(Offering{Via: ViaStop, Session: "s1"})
	if err != nil || e.Prompt != "mend it" || f.Iteration != 2 || f.Attempt != 1 || !f.Checked || f.Output == "" || f.Repeat() {
		t.Fatalf("%+v %v", f, err)
	}
	// A turn that nobody has handed over voids a check.
	r.advance(Taken)
	r.claims("two")
	if f, err = r.Void(); err != nil || f.State != Started {
		t.Fatalf("%+v %v", f, err)
	}
	if _, err := r.Verdict(Verdict{Delivery: id, Check: 2, Passed: true}); !errors.Is(err, ErrStale) {
		t.Fatalf("a void check has passed: %v", err)
	}
	f = r.claims("three")
	for range 2 {
		d := r.verdict(Verdict{Delivery: id, Check: f.Check, Passed: true, By: "check", Took: 1500 * time.Millisecond})
		if d == nil {
			continue // the second time
		}
		if d.Reply != "three" || d.Verdict == nil || *d.Verdict != (Proven{"check", 2, 1500}) || d.Attempt != 1 || d.Abandoned[0] != "shell: make" {
			t.Fatalf("%+v", d)
		}
	}
	if n := strings.Count(r.get(outboxFile), id); n != 1 {
		t.Fatalf("%d records", n)
	}
	if got := r.next(); got != "next" {
		t.Fatalf("%q is next", got)
	}
}

// TestAVerdictGivesUp once, with what the check said last.
func TestAVerdictGivesUp(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.send("a", "never")
	r.offerChecked()
	f := r.claims("done!")
	for range 2 {
		r.verdict(Verdict{Delivery: f.DeliveryID, Check: f.Check, GiveUp: NoProgress, Cause: "nothing has changed in three checks", Output: "1 test fails"})
	}
	dead := r.dead()
	if len(dead) != 1 || dead[0].Reason != NoProgress || dead[0].Output != "1 test fails" || dead[0].Cause == "" || dead[0].Iterations != 1 {
		t.Fatalf("%+v", dead)
	}
	if r.get(outboxFile) != "" || r.next() != "" {
		t.Error("it was acknowledged, or is queued")
	}
	if n, err := r.RetryDead(f.DeliveryID); n != 1 || err != nil || r.next() != "never" {
		t.Error(n, err)
	}
}

// TestAnInterruptedIterationIsCheckedFirst if its session may have done it.
func TestAnInterruptedIterationIsCheckedFirst(t *testing.T) {
	t.Parallel()
	const first, second = 1, 2
	for _, k := range []struct {
		iteration int
		state     State
		policy    OrphanPolicy
		want      Outcome
		state2    State
		after     Outcome // once its check has not passed
	}{
		{first, Offered, Retry, Requeued, "", ""},
		{first, Taken, DeadLetter, Requeued, "", ""},
		{first, Started, Retry, LeftChecking, Checking, Requeued},
		{first, Started, DeadLetter, LeftChecking, Checking, DeadLettered},
		{first, Background, Drop, LeftChecking, Checking, DroppedOrphan},
		{second, Offered, DeadLetter, LeftUnproven, Unproven, ""},
		{second, Taken, DeadLetter, LeftChecking, Checking, Requeued},
		{second, Started, DeadLetter, LeftChecking, Checking, DeadLettered},
	} {
		t.Run(fmt.Sprintf("%d %s %s", k.iteration, k.state, k.policy), func(t *testing.T) {
			t.Parallel()
			r := newRig(t).unsynced()
			r.send("a", "mend it")
			r.offerChecked()
			if k.iteration == second {
				f := r.claims("")
				r.verdict(Verdict{Delivery: f.DeliveryID, Check: f.Check, Output: "fails"})
				if _, _, err := r.Reoffer(Offering{Via: ViaStop, Session: "s1"}); err != nil {
					t.Fatal(err)
				}
			}
			if k.state != Offered {
				r.advance(k.state)
			}
			i := Interruption{Policy: k.policy, Counts: true, Arrived: func(InFlight) Arrival { return Unseen }}
			for range 2 {
				if got := r.recover(i); got != k.want && got != NothingToRecover {
					t.Fatalf("%s", got)
				}
			}
			f, err := r.InFlight()
			if err != nil || f == nil != (k.state2 == "") || f != nil && (f.State != k.state2 || f.Attempt != 1) {
				t.Fatalf("%+v %v", f, err)
			}
			if k.after == "" {
				return
			}
			if f.Repeats != 1 || f.Interrupted != k.state {
				t.Errorf("%+v", f)
			}
			r.verdict(Verdict{Delivery: f.DeliveryID, Check: f.Check, Output: "still fails"})
			if _, _, err := r.Reoffer(Offering{}); err == nil {
				t.Fatal("handed over before Recover has decided")
			}
			if got := r.recover(i); got != k.after {
				t.Fatalf("%s after the check", got)
			}
			if k.after != Requeued {
				return
			}
			if f := r.offerChecked(); f.Iteration != k.iteration+1 || f.Attempt != 2 || f.Repeats != 1 || f.Output != "still fails" || f.Check == 0 || !f.Repeat() {
				t.Errorf("what was known of it is gone: %+v", f)
			}
		})
	}
}

// TestAnIterationOfWhichEachSessionDiesBeforeItIsProvenIsPoison, as any other entry.
func TestAnIterationOfWhichEachSessionDiesBeforeItIsProvenIsPoison(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.send("a", "mend it")
	r.offerChecked()
	f := r.claims("")
	r.verdict(Verdict{Delivery: f.DeliveryID, Check: f.Check, Output: "fails"})
	i := Interruption{Policy: DeadLetter, MaxAttempts: 3, Counts: true, Fatal: true, Delivery: f.DeliveryID}
	for _, want := range []Outcome{LeftUnproven, LeftUnproven, DeadLettered} {
		if _, _, err := r.Reoffer(Offering{Via: ViaKickoff, Session: "s2"}); err != nil {
			t.Fatal(err)
		}
		if got := r.recover(i); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	if dead := r.dead(); len(dead) != 1 || dead[0].Reason != Poison || dead[0].ID != "a" {
		t.Errorf("dead letters %+v", dead)
	}
}

// TestWhatIsBeingCheckedOutlivesItsSession: neither a check nor an iteration that is
// due uses up an attempt.
func TestWhatIsBeingCheckedOutlivesItsSession(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.send("a", "mend it")
	r.offerChecked()
	r.advance(Started)
	f := r.claims("done")
	i := Interruption{Policy: DeadLetter, MaxAttempts: 1, Counts: true, Finished: func(InFlight) *Acknowledgement { return &Acknowledgement{} }}
	for range 3 {
		if got := r.recover(i); got != LeftChecking {
			t.Fatal(got)
		}
	}
	if d, err := r.Depth(0); err != nil || d.State != Checking {
		t.Error(d, err)
	}
	r.verdict(Verdict{Delivery: f.DeliveryID, Check: f.Check})
	for range 3 {
		if got := r.recover(i); got != LeftUnproven {
			t.Fatal(got)
		}
	}
	if d, err := r.Depth(0); err != nil || d.State != Unproven {
		t.Error(d, err)
	}
	_, f, err := r.Reoffer(Offering{Via: ViaKickoff, Session: "s2"})
	if err != nil || f.Attempt != 1 || f.Repeats != 0 {
		t.Fatalf("%+v %v", f, err)
	}
	if err := r.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if f, err := r.InFlight(); err != nil || f.State != Unproven || f.Iteration != 2 {
		t.Fatalf("%+v %v", f, err)
	}
	i.Cancel = &Cancellation{Delivery: f.DeliveryID}
	if got := r.recover(i); got != CancelledOrphan {
		t.Fatal(got)
	}
}

// TestATurnThatWasOverIsChecked, and not acknowledged: by the memory of who asks, too.
func TestATurnThatWasOverIsChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.send("a", "mend it")
	r.offer() // the record has no mark
	r.advance(Taken)
	got := r.recover(Interruption{
		Finished: func(InFlight) *Acknowledgement { return &Acknowledgement{Reply: "done"} },
		Checked:  func(InFlight) bool { return true },
	})
	if f, err := r.InFlight(); err != nil || got != LeftChecking || f.Claim.Reply != "done" || f.Interrupted != "" {
		t.Fatalf("%s %+v %v", got, f, err)
	}
}

// TestForgedOnesAreFiledOnce, and can be queued again, to be checked.
func TestForgedOnesAreFiledOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.send("a", "mend it")
	r.offer()
	d := r.ack()
	for range 2 {
		if _, err := r.FileForged(*d, ""); err != nil {
			t.Fatal(err)
		}
	}
	if dead := r.dead(); len(dead) != 1 || dead[0].Reason != Forged || !dead[0].Retryable() {
		t.Fatalf("%+v", dead)
	}
	if n, err := r.RetryDead(d.DeliveryID); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if e, err := r.Next(); err != nil || e.Prompt != "mend it" || !e.Checked || e.ID != "a" {
		t.Errorf("%+v %v", e, err)
	}
	r.offer()
	r.ack()
	r.send("b", "as it stands in the inbox")
	r.offer()
	if _, err := r.FileForged(*r.ack(), ""); err != nil {
		t.Fatal(err)
	}
	if dead := r.dead(); len(dead) != 1 || form.Decode(dead[0].Raw(), false).Prompt != "as it stands in the inbox" {
		t.Errorf("%+v", dead)
	}
}

// proving is what the world knows of entries that are checked: which checks have
// passed, which prompts were done.
type proving struct {
	m      *model
	policy OrphanPolicy
	passed map[string]bool // :: delivery → a check of it has passed, by the ledger
	ledger map[string]Verdict
	lives  bool
	sent   int
}

func (p *proving) key(f *InFlight) string { return fmt.Sprint(f.DeliveryID, " ", f.Check) }

// Send queues an entry.
func (p *proving) Send(t *rapid.T) {
	p.sent++
	if _, err := p.m.q.Append(t.Context(), Letter{ID: fmt.Sprint(p.sent), Prompt: fmt.Sprint("prompt ", p.sent), Checked: true}); err != nil {
		t.Fatal(err)
	}
}

// Stop is a Stop hook of a live session, or the start of the next one.
func (p *proving) Stop(t *rapid.T) {
	p.lives = p.m.process(t, func() error {
		f, err := p.m.q.InFlight()
		if err != nil {
			return err
		}
		switch {
		case f == nil:
			e, err := p.m.q.Next()
			if errors.Is(err, ErrEmpty) {
				return nil
			}
			if err == nil {
				_, err = p.m.q.Offer(e, Offering{Via: ViaStop, Checked: e.Checked})
			}
			return err
		case f.State == Checking:
			return nil
		case f.State == Unproven && f.Interrupted != "":
			return nil // Recover has to decide
		case f.State == Unproven:
			_, g, err := p.m.q.Reoffer(Offering{Via: ViaStop})
			if err == nil && (g.Attempt != f.Attempt || g.Output != f.Output) {
				t.Fatalf("%+v from %+v", g, f)
			}
			return err
		case !p.lives:
			return nil // another session's
		}
		_, err = p.m.q.Held.Check(Acknowledgement{Reply: "I am done"})
		return err
	})
}

// Tool is a tool that runs, in a turn that was handed over or in one that was not.
func (p *proving) Tool(t *rapid.T) {
	p.m.process(t, func() error {
		_, err := p.m.q.Void()
		if err == nil {
			_, err = p.m.q.Advance(Started, "")
		}
		if errors.Is(err, ErrNothingInFlight) {
			return nil
		}
		return err
	})
}

// Judge is the scheduler: it runs the check that is awaited, unless it has its
// verdict, and applies it.
func (p *proving) Judge(t *rapid.T) {
	f, err := p.m.q.InFlight()
	if err != nil {
		t.Fatal(err)
	}
	if f == nil || f.State != Checking {
		return
	}
	v, there := p.ledger[p.key(f)]
	if !there {
		v = Verdict{Delivery: f.DeliveryID, Check: f.Check, Output: "it fails"}
		switch rapid.IntRange(0, 3).Draw(t, "verdict") {
		case 0:
			v.Passed, p.passed[f.DeliveryID] = true, true
		case 1:
			v.GiveUp = MaxIterations
		}
		p.ledger[p.key(f)] = v
	}
	p.m.process(t, func() error { _, err := p.m.q.Verdict(v); return err })
}

// Stale applies some verdict of the past again.
func (p *proving) Stale(t *rapid.T) {
	before, err := p.m.q.InFlight()
	if err != nil {
		t.Fatal(err)
	}
	for key, v := range p.ledger {
		if before != nil && key == p.key(before) && before.State == Checking {
			continue
		}
		if _, err := p.m.q.Verdict(v); err != nil && !errors.Is(err, ErrStale) {
			t.Fatal(err)
		}
	}
	if after, err := p.m.q.InFlight(); err != nil || (before == nil) != (after == nil) || after != nil && after.State != before.State {
		t.Fatalf("a verdict of the past changed %+v to %+v: %v", before, after, err)
	}
}

// Interrupt ends the session.
func (p *proving) Interrupt(t *rapid.T) {
	p.lives = false
	p.m.process(t, func() error {
		_, _, err := p.m.q.Recover(Interruption{Policy: p.policy, Counts: true, MaxAttempts: 100})
		return err
	})
}

// Check holds between any two actions: nothing is acknowledged without a verdict
// that it has passed, and nothing twice.
func (p *proving) Check(t *rapid.T) {
	done := map[string]bool{}
	for d, err := range p.m.q.Deliveries() {
		if err != nil {
			t.Fatal(err)
		}
		if !p.passed[d.DeliveryID] || d.Verdict == nil {
			t.Fatalf("acknowledged without a verdict: %+v", d)
		}
		if done[d.ID] {
			t.Fatalf("done twice: %+v", d)
		}
		done[d.ID] = true
	}
}

func (p *proving) settle(t *rapid.T) {
	p.drain(t)
	p.count(t)
}

// drain works on all that is queued until it has ended.
func (p *proving) drain(t *rapid.T) {
	for range 20 * (p.sent + 1) {
		f, err := p.m.q.InFlight()
		if err != nil {
			t.Fatal(err)
		}
		if f != nil && f.State == Checking {
			v, there := p.ledger[p.key(f)]
			if !there {
				v = Verdict{Delivery: f.DeliveryID, Check: f.Check, Passed: true}
				p.passed[f.DeliveryID] = true
			}
			if _, err := p.m.q.Verdict(v); err != nil {
				t.Fatal(err)
			}
			continue
		}
		p.lives = false
		if _, _, err := p.m.q.Recover(Interruption{Policy: p.policy, MaxAttempts: 100}); err != nil {
			t.Fatal(err)
		}
		if f, err = p.m.q.InFlight(); err != nil {
			t.Fatal(err)
		}
		if f == nil {
			e, err := p.m.q.Next()
			if errors.Is(err, ErrEmpty) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err = p.m.q.Offer(e, Offering{Checked: e.Checked}); err != nil {
				t.Fatal(err)
			}
		} else if f.State == Unproven {
			if _, _, err := p.m.q.Reoffer(Offering{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.m.q.Held.Check(Acknowledgement{}); err != nil && !errors.Is(err, ErrNothingInFlight) {
			t.Fatal(err)
		}
	}
}

// count makes sure that each entry has ended, once.
func (p *proving) count(t *rapid.T) {
	p.Check(t)
	ended := map[string]bool{}
	for d := range p.m.q.Deliveries() {
		ended[d.ID] = true
	}
	for d := range p.m.q.DeadLetters() {
		if ended[d.ID] {
			t.Fatalf("done, and a dead letter: %+v", d)
		}
		ended[d.ID] = true
	}
	if len(ended) != p.sent && p.policy != Drop {
		t.Fatalf("%d of %d have ended", len(ended), p.sent)
	}
}

// TestNothingIsDoneUnproven, whoever is killed where.
func TestNothingIsDoneUnproven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &proving{m: newModel(t), passed: map[string]bool{}, ledger: map[string]Verdict{}}
		p.policy = p.m.policy
		t.Repeat(rapid.StateMachineActions(p))
		p.settle(t)
	})
}

// TestARecordWithLongWordsIsReadAgain: what a claim and a verdict may hold fits into
// the record, and into the sidecar.
func TestARecordWithLongWordsIsReadAgain(t *testing.T) {
	t.Parallel()
	q, err := Open(Place{Inbox: t.TempDir() + "/inbox.jsonl", MaxEntry: 64})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, Orphaned: unlocked(q)}
	defer q.Close()
	if err := os.WriteFile(q.place.Inbox, []byte("mend it\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.offerChecked()
	r.advance(Started)
	wild := strings.Repeat("\x01", 2*MaxReply)
	f, err := r.Held.Check(Acknowledgement{Reply: wild, Abandoned: strings.SplitAfter(strings.Repeat("\x02", 1000), "\x02")})
	if err != nil {
		t.Fatal(err)
	}
	if g, err := r.InFlight(); err != nil || g == nil || g.State != Checking {
		t.Fatalf("%+v %v", g, err)
	}
	r.verdict(Verdict{Delivery: f.DeliveryID, Check: f.Check, Output: strings.Repeat("<\u2028\"", MaxShown)})
	if f, err = r.Advance(Started, ""); err != nil || f.State != Unproven {
		t.Fatal(f, err)
	}
	if _, _, err := r.Reoffer(Offering{}); err != nil {
		t.Fatal(err)
	}
	r.advance(Started)
	if got := r.recover(Interruption{Policy: Retry}); got != LeftChecking {
		t.Fatal(got)
	}
	if f, err = r.InFlight(); err != nil {
		t.Fatal(err)
	}
	output := strings.Repeat("<\u2028\"", MaxShown)
	r.verdict(Verdict{Delivery: f.DeliveryID, Check: f.Check, Output: output})
	if got := r.recover(Interruption{Policy: Retry}); got != Requeued {
		t.Fatal(got)
	}
	if f := r.offerChecked(); f.Output != queue.CleanOutput(output) || f.Iteration != 3 {
		t.Errorf("%+v", f.Proving)
	}
}

// TestASidecarWithImpossibleChecks: with what it says of an entry's checks no record
// could be written that can be read again.
func TestASidecarWithImpossibleChecks(t *testing.T) {
	t.Parallel()
	for wrong, says := range map[bool]string{false: `"iteration":2,"check":1`, true: `"iteration":-1,"check":1`} {
		m := parseMeta([]byte(`{"ino":1,"generation":1,"cursor":0,"tail":"` + strings.Repeat("0", 64) + `","requeued":{"delivery_id":"d","entry_id":"e","attempt":1,` + says + `}}`))
		if m == nil || (m.Requeued == nil) != wrong {
			t.Errorf("%s: %+v", says, m)
		}
	}
}

// TestWhatIsOverIsNotRestored: an entry that has ended, and whose line stands before no
// cursor, was in flight again.
func TestWhatIsOverIsNotRestored(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]Verdict{"done": {Passed: true}, "given up": {GiveUp: Poison}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).unsynced()
			r.echo("one\ntwo\n")
			r.offerChecked()
			r.advance(Started)
			f := r.claims("done")
			end.Delivery, end.Check = f.DeliveryID, f.Check
			before := r.get(metaFile)
			r.verdict(end)
			r.put(metaFile, before)
			r.put(CursorFile, "0")
			if f, err := r.Restore(f.DeliveryID, 1, Offering{Session: "s1"}); f != nil || err != nil {
				t.Errorf("%+v %v", f, err)
			}
		})
	}
}
