package inbox

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/durable"

	"pgregory.net/rapid"
)

// asks hands the next entry over, and it waits for a person.
func (r *rig) asks() *InFlight {
	r.t.Helper()
	f := r.offerChecked()
	r.claims("done with " + f.Prompt())
	w, err := r.SetAside(f.DeliveryID, 1, time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

// waits returns the prompts that are set aside; those that return have a plus.
func (r *rig) waits() string {
	r.t.Helper()
	all, err := r.Waiting()
	if err != nil {
		r.t.Fatal(err)
	}
	var s []string
	for _, f := range all {
		if p := f.Prompt(); f.Returns() {
			s = append(s, p+"+")
		} else {
			s = append(s, p)
		}
	}
	return strings.Join(s, " ")
}

func (r *rig) reconcile(want ...InFlight) Reconciled {
	r.t.Helper()
	got, err := r.KeepWaiting(want, func(string) bool { return false })
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

// TestWhatIsSetAsideLeavesTheQueueToOthers: a yes finishes it without being handed over,
// a no puts it before all that is queued, and nothing that is in flight is interrupted.
func TestWhatIsSetAsideLeavesTheQueueToOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\ntwo\nthree\nfour\n")
	one, two := r.asks(), r.asks()
	if got := r.waits(); got != "one two" || r.next() != "three" {
		t.Fatalf("%s waits, %s is next", got, r.next())
	}
	if d, err := r.Depth(0); err != nil || d.Aside != 2 || d.Entries != 2 || !d.AsideSince.Equal(one.Aside.Since) {
		t.Fatalf("%+v %v", d, err)
	}
	if again, err := r.SetAside(one.DeliveryID, 1, time.Now()); err != nil || again.DeliveryID != one.DeliveryID {
		t.Fatalf("%+v %v", again, err)
	}
	three := r.offer()
	d := r.verdict(Verdict{Delivery: one.DeliveryID, Check: 1, Passed: true, By: "check, release by ann"})
	if d == nil || d.Reply != "done with one" || d.Verdict.By != "check, release by ann" {
		t.Fatalf("%+v", d)
	}
	r.verdict(Verdict{Delivery: two.DeliveryID, Check: 1, Output: "not yet"})
	if got := r.waits(); got != "two+" {
		t.Fatalf("%s waits", got)
	}
	if _, err := r.BringBack(); !errors.Is(err, ErrInFlight) {
		t.Fatalf("three is in flight: %v", err)
	}
	if f, err := r.InFlight(); err != nil || f.DeliveryID != three.DeliveryID {
		t.Fatalf("%+v %v", f, err)
	}
	r.advance(Taken)
	r.ack()
	f, err := r.BringBack()
	if err != nil || f.DeliveryID != two.DeliveryID || f.State != Unproven || f.Iteration != 2 || r.waits() != "" {
		t.Fatalf("%+v %v", f, err)
	}
	e, f, err := r.Reoffer(Offering{Via: ViaKickoff, Session: "s2"})
	if err != nil || e.Prompt != "two" || f.Output != "not yet" {
		t.Fatalf("%+v %v", f, err)
	}
	r.advance(Started)
	r.reopen()
	if o := r.recover(Interruption{Policy: Retry, Counts: true}); o != LeftChecking {
		t.Fatal(o)
	}
	f, _ = r.InFlight()
	r.verdict(Verdict{Delivery: two.DeliveryID, Check: f.Check, Output: "it fails"})
	if o := r.recover(Interruption{Policy: Retry}); o != LeftUnproven {
		t.Fatalf("%s: it is no line of the queue", o)
	}
	if f, _ = r.InFlight(); f.Attempt != 2 || f.State != Unproven {
		t.Fatalf("%+v", f)
	}
	if _, _, err = r.Reoffer(Offering{Via: ViaKickoff, Session: "s3"}); err != nil {
		t.Fatal(err)
	}
	f = r.claims("two")
	if d := r.verdict(Verdict{Delivery: two.DeliveryID, Check: f.Check, Passed: true}); d == nil || d.DeliveryID != two.DeliveryID {
		t.Fatalf("%+v", d)
	}
	if got := r.drain(); fmt.Sprint(got) != "[four]" {
		t.Fatalf("%q is left", got)
	}
}

// TestAnswersKeepTheirOrder, also of an urgent entry.
func TestAnswersKeepTheirOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\ntwo\n")
	if _, err := r.Append(t.Context(), Letter{ID: "u", Prompt: "now", Urgent: true}); err != nil {
		t.Fatal(err)
	}
	now, one, two := r.asks(), r.asks(), r.asks()
	if !now.Urgent || r.waits() != "now one two" {
		t.Fatalf("%s", r.waits())
	}
	at := time.Now()
	for i, f := range []*InFlight{two, now, one} {
		r.verdict(Verdict{Delivery: f.DeliveryID, Check: 1, Now: at.Add(time.Duration(i) * time.Millisecond)})
	}
	if _, err := r.Append(t.Context(), Letter{ID: "v", Prompt: "hurry", Urgent: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []*InFlight{two, now, one} {
		f, err := r.BringBack()
		if err != nil || f.DeliveryID != want.DeliveryID {
			t.Fatalf("%+v %v, not %s", f, err, want.Prompt())
		}
		if _, _, err := r.Reoffer(Offering{Via: ViaStop, Session: "s1"}); err != nil {
			t.Fatal(err)
		}
		f = r.claims("x")
		r.verdict(Verdict{Delivery: f.DeliveryID, Check: f.Check, Passed: true})
	}
	if f, err := r.BringBack(); f != nil || err != nil || r.next() != "hurry" {
		t.Fatalf("%+v %v", f, err)
	}
}

// TestWhatWaitsIsBounded, and what is over the bound stays in flight.
func TestWhatWaitsIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	for i := range MostAside {
		r.echo(fmt.Sprint("p", i, "\n"))
		r.asks()
	}
	r.echo("more\n")
	f := r.offerChecked()
	r.claims("x")
	if _, err := r.SetAside(f.DeliveryID, 1, time.Now()); !errors.Is(err, ErrNoRoomAside) {
		t.Fatal(err)
	}
	if f, err := r.InFlight(); err != nil || f.State != Checking {
		t.Fatalf("%+v %v", f, err)
	}
	waiting, _ := r.Waiting()
	r.verdict(Verdict{Delivery: waiting[3].DeliveryID, Check: 1, Passed: true})
	if _, err := r.SetAside(f.DeliveryID, 1, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// TestWhatTheAgentDoesToTheWaitingIsUndone: what it removes or changes stands there
// again, what it adds is told, and what a person drops has ended.
func TestWhatTheAgentDoesToTheWaitingIsUndone(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\ntwo\nthree\n")
	one, two := r.asks(), r.asks()
	file := r.get(WaitingFile)
	for name, done := range map[string]func(){
		"removed":  func() { r.remove(WaitingFile) },
		"emptied":  func() { r.put(WaitingFile, "") },
		"garbage":  func() { r.put(WaitingFile, "{}\nnot a record\n{\"delivery_id\":3}\n") },
		"changed":  func() { r.put(WaitingFile, strings.ReplaceAll(file, `"state":"checking"`, `"state":"unproven"`)) },
		"a folder": func() { r.remove(WaitingFile); _ = os.Mkdir(r.path(WaitingFile), 0o700) },
	} {
		done()
		if got := r.reconcile(*one, *two); len(got.Removed) != 2 || len(got.Unknown) != 0 || r.waits() != "one two" {
			t.Errorf("%s: %+v, %s", name, got, r.waits())
		}
		if got := r.reconcile(*one, *two); len(got.Removed) != 0 || r.get(WaitingFile) != file {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := r.reconcile(*one); len(got.Unknown) != 1 || got.Unknown[0].DeliveryID != two.DeliveryID {
		t.Errorf("%+v", got)
	}
	if n, err := r.DropQueued(two.DeliveryID); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got := r.reconcile(*one, *two); len(got.Ended) != 1 || r.waits() != "one" {
		t.Errorf("%+v", got)
	}
	if dead := r.dead(); len(dead) != 1 || dead[0].Reason != Dropped || r.next() != "three" {
		t.Errorf("%+v", dead)
	}
}

// TestAnAnswerThatAKillCutsOffIsNobodysDoing: who was to have an entry handed over again was
// killed before the file said so.
func TestAnAnswerThatAKillCutsOffIsNobodysDoing(t *testing.T) {
	t.Parallel()
	r := newRig(t).unsynced()
	r.echo("one\n")
	one := r.asks()
	again := one.Again(Verdict{Output: "Rejected", Now: time.Now()})
	if got := r.reconcile(again); len(got.Removed)+len(got.Unknown)+len(got.Ended) != 0 {
		t.Errorf("%+v", got)
	}
	if waiting, err := r.Waiting(); err != nil || len(waiting) != 1 || !waiting[0].Returns() {
		t.Errorf("%+v %v", waiting, err)
	}
}

// TestWhatStandsInTheQueueIsNotSetAsideToo: whoever set it aside was killed on the way,
// and its session went on and ended. It would be done twice.
func TestWhatStandsInTheQueueIsNotSetAsideToo(t *testing.T) {
	t.Parallel()
	killed := errors.New("killed")
	for _, urgent := range []bool{false, true} {
		for before := range 6 { // steps of SetAside that are carried out; first: none but that it is known
			r := newRig(t).unsynced()
			if _, err := r.Append(t.Context(), Letter{ID: "a", Prompt: "one", Urgent: urgent}); err != nil {
				t.Fatal(err)
			}
			r.echo("two\n")
			r.offerChecked()
			f := r.claims("done with one")
			known, steps := f.AsideSince(time.Now()), before
			r.guard(func(_ durable.Step, run func() error) error {
				if steps--; steps < 0 {
					return killed
				}
				return run()
			})
			_, err := r.SetAside(f.DeliveryID, 1, time.Now())
			r.unsynced()
			r.reopen()
			if flies, flightErr := r.InFlight(); flightErr != nil || err != nil && !errors.Is(err, killed) {
				t.Fatal(err, flightErr)
			} else if flies == nil {
				continue // it was set aside
			}
			if got := r.reconcile(known); len(got.Removed)+len(got.Queued) != 0 || r.get(WaitingFile) != "" {
				t.Fatalf("%d steps: in flight: %+v", before, got)
			}
			if _, err := r.Void(); err != nil { // a turn that nobody has handed over
				t.Fatal(err)
			}
			if o := r.recover(Interruption{Policy: Retry, Counts: true}); o == LeftChecking {
				f, _ = r.InFlight()
				r.verdict(Verdict{Delivery: f.DeliveryID, Check: f.Check, Output: "it fails"})
				if o = r.recover(Interruption{Policy: Retry, Counts: true}); o != Requeued {
					t.Fatal(o)
				}
			}
			file := r.get(WaitingFile)
			for _, there := range []string{file, r.line(known)} { // SetAside may have come that far
				for _, want := range [][]InFlight{{known}, nil} {
					r.put(WaitingFile, there)
					got := r.reconcile(want...)
					if len(got.Queued) != len(want) || len(got.Removed)+len(got.Unknown) != 0 || r.waits() != "" {
						t.Fatalf("urgent %t, %d steps: queued: %+v, %q waits", urgent, before, got, r.waits())
					}
				}
			}
			if got := join(r.drain()); got != "one|two" {
				t.Fatalf("urgent %t, %d steps: %s was done", urgent, before, got)
			}
		}
	}
}

// line is the record of an entry as files have it.
func (r *rig) line(f InFlight) string {
	r.t.Helper()
	line, err := encodeJSON(f)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(line)
}

// setting is what the world knows of entries that are set aside.
type setting struct {
	proving
	aside map[string]InFlight // :: delivery → as the state directory has it
	// applied are those that passed, and whose verdict was carried out as far as anybody knows.
	applied map[string]bool
}

func (p *setting) known() (all []InFlight) {
	for delivery, f := range p.aside {
		if !p.applied[delivery] {
			all = append(all, f)
		}
	}
	return all
}

// SetAside has a person asked.
func (p *setting) SetAside(t *rapid.T) {
	f, err := p.m.q.InFlight()
	if err != nil {
		t.Fatal(err)
	}
	if _, decided := p.ledger[p.key2(f)]; f == nil || f.State != Checking || decided {
		return
	}
	now := *f
	now.Aside, now.Generation, now.InboxSize = &Aside{Since: time.Unix(1, 0).UTC()}, 0, 0
	p.aside[f.DeliveryID] = now
	set := func() error { _, err := p.m.q.SetAside(f.DeliveryID, f.Check, time.Unix(1, 0)); return err }
	p.m.process(t, set) // killed, it may stay where it was, and is known to be aside
}

func (p *setting) key2(f *InFlight) string {
	if f == nil {
		return ""
	}
	return p.key(f)
}

// Answer is a person's, to the first that waits.
func (p *setting) Answer(t *rapid.T) {
	waiting, err := p.m.q.Waiting()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range waiting {
		if f.State != Checking {
			continue
		}
		v, there := p.ledger[p.key(&f)]
		if !there {
			v = Verdict{Delivery: f.DeliveryID, Check: f.Check, Output: "no"}
			switch rapid.IntRange(0, 3).Draw(t, "answer") {
			case 0:
				v.Passed, p.passed[f.DeliveryID] = true, true
			case 1:
				v.GiveUp = MaxIterations
			}
			p.ledger[p.key(&f)] = v
		}
		if p.m.process(t, func() error { _, err := p.m.q.Verdict(v); return err }) && v.Passed {
			p.applied[v.Delivery] = true
		}
		return
	}
}

// Judge is proving's, which notes that a verdict was carried out.
func (p *setting) Judge(t *rapid.T) {
	p.proving.Judge(t)
	if f, err := p.m.q.InFlight(); err != nil {
		t.Fatal(err)
	} else if f == nil {
		p.carriedOut(t)
	}
}

func (p *setting) carriedOut(t *rapid.T) {
	for d, err := range p.m.q.Deliveries() {
		if err != nil {
			t.Fatal(err)
		}
		p.applied[d.DeliveryID] = true
	}
}

// Back is the start of a session while something returns.
func (p *setting) Back(t *rapid.T) {
	p.m.process(t, func() error {
		_, err := p.m.q.BringBack()
		if errors.Is(err, ErrInFlight) {
			return nil
		}
		return err
	})
}

// Agent removes the file.
func (p *setting) Agent(t *rapid.T) {
	p.m.process(t, func() error { return p.m.q.dir.Remove(WaitingFile) })
	p.keep(t)
}

// keep is what the scheduler does now and then: the file says what it knows.
func (p *setting) keep(t *rapid.T) {
	t.Helper()
	now, err := p.m.q.Waiting()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range now {
		if _, known := p.aside[f.DeliveryID]; known {
			p.aside[f.DeliveryID] = f
		}
	}
	r, err := p.m.q.KeepWaiting(p.known(), func(d string) bool { return p.applied[d] })
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range slices.Concat(r.Ended, r.Queued) {
		delete(p.aside, d)
	}
	for d := range p.applied {
		delete(p.aside, d)
	}
	for _, f := range r.Unknown {
		t.Fatalf("nobody knows %+v", f)
	}
}

// end has all that waits answered and all that returns handed over.
func (p *setting) end(t *rapid.T) {
	for range p.sent + 2 {
		p.drain(t)
		p.carriedOut(t)
		p.keep(t)
		waiting, err := p.m.q.Waiting()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range waiting {
			if f.State == Checking {
				v, there := p.ledger[p.key(&f)]
				if !there {
					v = Verdict{Delivery: f.DeliveryID, Check: f.Check, Passed: true}
					p.passed[f.DeliveryID] = true
				}
				if _, err := p.m.q.Verdict(v); err != nil {
					t.Fatal(err)
				}
			}
		}
		if f, err := p.m.q.BringBack(); err != nil {
			t.Fatal(f, err)
		}
	}
	p.drain(t)
	if waiting, err := p.m.q.Waiting(); err != nil || len(waiting) > 0 {
		t.Fatalf("%+v waits %v", waiting, err)
	}
	p.count(t)
}

// TestWhatIsSetAsideIsNeverLostNorTwice, whoever is killed where.
func TestWhatIsSetAsideIsNeverLostNorTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		p := &setting{
			proving: proving{m: m, policy: rapid.SampledFrom([]OrphanPolicy{DeadLetter, Retry}).Draw(t, "policy"), passed: map[string]bool{}, ledger: map[string]Verdict{}},
			aside:   map[string]InFlight{}, applied: map[string]bool{},
		}
		t.Repeat(rapid.StateMachineActions(p))
		p.end(t)
	})
}

// TestWhatEndsWithoutATraceIsToldBefore: on-orphan: drop, and a cancellation that queues
// again, leave nothing by which an entry that was set aside once could be known to have
// ended.
func TestWhatEndsWithoutATraceIsToldBefore(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]Interruption{
		"dropped":           {Policy: Drop},
		"cancelled, queued": {Policy: Retry, Cancel: &Cancellation{Again: true}},
	} {
		r := newRig(t).unsynced()
		r.echo("one\n")
		one := r.asks()
		r.verdict(Verdict{Delivery: one.DeliveryID, Check: 1, Output: "not yet"})
		if _, err := r.BringBack(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Reoffer(Offering{Via: ViaKickoff, Session: "s2"}); err != nil {
			t.Fatal(err)
		}
		r.advance(Started)
		f, _ := r.InFlight()
		f.Checked = false // nothing has to be passed any more
		line, err := encodeJSON(*f)
		if err != nil {
			t.Fatal(err)
		}
		r.put(FlightFile, string(line))
		if how.Cancel != nil {
			how.Cancel.Delivery = one.DeliveryID
		}
		killed, ends := errors.New("killed"), 0
		how.Ends = func(delivery string) error {
			if ends++; delivery != one.DeliveryID {
				t.Errorf("%s: %s ends", name, delivery)
			}
			return killed
		}
		r.reopen()
		if _, _, err := r.Recover(how); !errors.Is(err, killed) {
			t.Fatalf("%s: %v", name, err)
		}
		if f, err := r.InFlight(); err != nil || f == nil && len(r.dead()) == 0 {
			t.Fatalf("%s: it has ended already: %+v %v", name, f, err)
		}
		how.Ends = func(string) error { ends++; return nil }
		o := r.recover(how)
		if f, err := r.InFlight(); err != nil || f != nil || ends == 0 || r.waits() != "" {
			t.Errorf("%s: %s, %+v %v", name, o, f, err)
		}
	}
}
