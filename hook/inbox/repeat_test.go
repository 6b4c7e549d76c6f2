package inbox

import (
	"fmt"
	"testing"

	form "heartbeat/queue/line"
)

// How an attempt ended, and whether the next one has to warn of a repeat: only
// when a session may have worked on it. A warning once due stays.
func TestARepeatIsMarkedOnlyWhenASessionMayHaveWorkedOnIt(t *testing.T) {
	t.Parallel()
	type end struct {
		name  string
		clean bool // no session can have worked on it
		do    func(r *rig)
	}
	interrupted := func(name string, clean bool, s State, i Interruption) end {
		return end{name, clean, func(r *rig) {
			if s != Offered {
				r.advance(s)
			}
			its := i // it serves several tests at once
			its.Policy, its.MaxAttempts = Retry, 100
			r.recover(its)
		}}
	}
	seen := func(a Arrival) func(InFlight) Arrival { return func(InFlight) Arrival { return a } }
	ends := []end{
		{"withdrawn", true, func(r *rig) {
			if err := r.Withdraw(); err != nil {
				t.Error(err)
			}
		}},
		interrupted("offered, unseen by a client that ended in order", true, Offered, Interruption{Untaken: true, Arrived: seen(Unseen)}),
		interrupted("offered, refused by the service", true, Offered, Interruption{Refused: true, Arrived: seen(Unseen)}),
		interrupted("offered and seen, refused by the service", true, Offered, Interruption{Refused: true, Arrived: seen(Seen)}),
		interrupted("taken, refused by the service", true, Taken, Interruption{Refused: true}),
		interrupted("offered, unseen", false, Offered, Interruption{Arrived: seen(Unseen)}),
		interrupted("offered, and nothing to look into", false, Offered, Interruption{Counts: true}),
		interrupted("offered, seen after all", false, Offered, Interruption{Untaken: true, Arrived: seen(Seen)}),
		interrupted("taken", false, Taken, Interruption{Counts: true}),
		interrupted("taken, told to end", false, Taken, Interruption{}),
		interrupted("started, then the service failed", false, Started, Interruption{Refused: true}),
		interrupted("background, then the service failed", false, Background, Interruption{Refused: true}),
		{"offered again in the same session", false, func(r *rig) {
			if _, _, err := r.Reoffer(Offering{Via: ViaStop, Session: "s1"}); err != nil {
				t.Error(err)
			}
			r.recover(Interruption{Policy: Retry, Untaken: true})
		}},
	}
	for _, first := range ends {
		for _, second := range ends {
			t.Run(fmt.Sprintf("%s; %s", first.name, second.name), func(t *testing.T) {
				t.Parallel()
				r := newRig(t).unsynced()
				r.t = t
				r.echo("one\ntwo\n")
				if f := r.offer(); f.Repeat() {
					t.Errorf("the first attempt: %+v", f)
				}
				first.do(r)
				r.reopen()
				f := r.offer()
				if f.Repeat() == first.clean || f.RawLine != "one" {
					t.Errorf("the second attempt: %+v", f)
				}
				before := f.Attempt
				second.do(r)
				r.reopen()
				if f = r.offer(); f.Repeat() == (first.clean && second.clean) {
					t.Errorf("the third attempt: %+v", f)
				}
				if counted := f.Attempt - before; counted < 0 || counted > 2 || counted == 0 != (second.name == "withdrawn") {
					t.Errorf("attempt %d after %d", f.Attempt, before)
				}
				r.advance(Taken)
				r.ack()
				if f := r.offer(); f.Repeat() || f.Attempt != 1 {
					t.Errorf("the next entry: %+v", f)
				}
			})
		}
	}
}

// Records of an earlier version do not say whether an attempt was touched.
func TestAnEarlierVersionsRepeatStaysMarked(t *testing.T) {
	t.Parallel()
	f := parseFlight([]byte(`{"entry_id":"` + form.Sum([]byte("one")) + `","start_offset":0,"end_offset":4,"raw_line":"one",` +
		`"delivered_at":"2026-11-22T00:00:00Z","delivery_id":"d","state":"offered","attempt":2}`))
	if f == nil || !f.Repeat() {
		t.Errorf("%+v", f)
	}
}

// TestAToolThatNoHookToldOf: what the transcript shows of one counts as started,
// whatever the record says.
func TestAToolThatNoHookToldOf(t *testing.T) {
	t.Parallel()
	for _, state := range []State{Offered, Taken, Started} {
		for policy, want := range map[OrphanPolicy]Outcome{DeadLetter: DeadLettered, Drop: DroppedOrphan, Retry: Requeued} {
			r := newRig(t).unsynced()
			r.echo("one\ntwo\n")
			r.offer()
			r.advance(state)
			got := r.recover(Interruption{Policy: policy, Refused: true, Arrived: func(InFlight) Arrival { return Worked }})
			if got != want {
				t.Errorf("%s, %s: %s, want %s", state, policy, got, want)
			}
			if f := r.offer(); want == Requeued && (f.Attempt != 2 || f.Untouched) {
				t.Errorf("%s, %s: the repeat is not marked: %+v", state, policy, f)
			}
		}
	}
}
