package hook

import (
	"slices"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/hook/handover"
	"heartbeat/queue"
)

// TestDecideWhatTheServiceInterrupts goes through the states of an entry at a
// failure of the API, and through what shows that another session goes on with
// it.
func TestDecideWhatTheServiceInterrupts(t *testing.T) {
	t.Parallel()
	inConversation := func(id string) func(*Record) { return func(r *Record) { r.Conversation = id } }
	foreign := func(r *Record) { r.Policy.ForeignStopHooks = true }
	goingOn := func(g *queue.Given) {
		g.Handover.Via, g.Handover.PromptID, g.Failure = queue.ViaResume, "", "rate_limit"
	}
	limit := func(p *client.Event) { p.Error = "rate_limit" }
	asks := func(prompt string) func(*client.Event) { return func(p *client.Event) { p.Prompt = prompt } }
	type want struct {
		advance           queue.State
		failure           string
		goesOn, look, ack bool
		phase             Phase
	}
	for _, c := range []struct {
		name     string
		record   *Record
		flight   *queue.Given
		event    *client.Event
		evidence evidence
		want     want
	}{
		{name: "taken", flight: flightIn(queue.Taken), event: event(client.StopFailure, limit), want: want{failure: "rate_limit", phase: Ending}},
		{name: "started", flight: flightIn(queue.Started), event: event(client.StopFailure, limit), want: want{failure: "rate_limit", phase: Ending}},
		{name: "background", flight: flightIn(queue.Background), event: event(client.StopFailure, limit, otherID), want: want{failure: "rate_limit", phase: Ending}},
		{name: "a kind that it does not name", flight: flightIn(queue.Taken), event: event(client.StopFailure), want: want{failure: "unknown", phase: Ending}},
		{
			name: "handed over by the Stop before", flight: flightIn(queue.Offered), event: event(client.StopFailure, limit),
			want: want{advance: queue.Taken, failure: "rate_limit", phase: Ending},
		},
		{
			name: "the same beside a foreign hook", record: liveRecord(inConversation("C"), foreign), flight: flightIn(queue.Offered),
			event: event(client.StopFailure, limit), want: want{look: true, phase: Ending},
		},
		{name: "kick-off without a proof", flight: flightIn(queue.Offered, byKickoff), event: event(client.StopFailure, limit), want: want{look: true, phase: Ending}},
		{
			name: "kick-off in the transcript", flight: flightIn(queue.Offered, byKickoff), event: event(client.StopFailure, limit), evidence: present,
			want: want{advance: queue.Taken, failure: "rate_limit", phase: Ending},
		},
		{
			name: "kick-off that never arrived", flight: flightIn(queue.Offered, byKickoff), event: event(client.StopFailure, limit), evidence: absent,
			want: want{phase: Ending},
		},
		{
			name: "after /clear nothing could go on with it", record: liveRecord(inConversation("before")), flight: flightIn(queue.Started),
			event: event(client.StopFailure, limit), want: want{phase: Ending},
		},
		{name: "a subagent's", flight: flightIn(queue.Started), event: event(client.StopFailure, limit, subagent), want: want{phase: Turn}},

		{name: "it goes on", flight: flightIn(queue.Started, goingOn), event: event(client.UserPromptSubmit, asks(handover.GoOnPrompt)), want: want{goesOn: true, phase: Turn}},
		{name: "a person asks something", flight: flightIn(queue.Started, goingOn), event: event(client.UserPromptSubmit, asks("hello")), want: want{phase: Turn}},
		{name: "a Stop before it shows", flight: flightIn(queue.Started, goingOn), event: event(client.Stop), want: want{look: true, phase: Turn}},
		{name: "a Stop, and the transcript shows it", flight: flightIn(queue.Started, goingOn), event: event(client.Stop), evidence: present, want: want{ack: true, phase: Turn}},
		{name: "a Stop, and it does not go on", flight: flightIn(queue.Started, goingOn), event: event(client.Stop), evidence: absent, want: want{phase: Unattended}},
		{name: "interrupted again", flight: flightIn(queue.Taken, goingOn), event: event(client.StopFailure, limit), want: want{failure: "rate_limit", phase: Ending}},
		{
			name: "a tool of the turn that goes on", flight: flightIn(queue.Taken, goingOn, func(g *queue.Given) { g.Failure = "" }),
			event: event(client.PreToolUse), want: want{advance: queue.Started, phase: Turn},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := c.record
			if r == nil {
				r = liveRecord(inConversation("C"))
			}
			f := facts{now: noon, event: c.event, client: caller42, flight: c.flight, evidence: c.evidence}
			if c.flight.Handover.Via == queue.ViaResume {
				f.kickoff = handover.GoOnPrompt
			}
			d := decide(r, f)
			got := want{d.advance, d.failure, d.goesOn, d.look, d.acknowledge != nil, r.Phase}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestTheHooksAreKilledWhereTheServiceInterrupts at each of their stages: the
// entry stays in flight from the moment that the failure is recorded until a
// session demonstrably goes on with it, and is never given again meanwhile.
func TestTheHooksAreKilledWhereTheServiceInterrupts(t *testing.T) {
	t.Parallel()
	for _, stage := range []string{"start", "answered", ""} {
		for _, going := range []string{"start", "answered", ""} {
			t.Run(stage+", "+going, func(t *testing.T) {
				t.Parallel()
				l := newLab(t, func(r *Record) { r.Conversation = "C" })
				l.append("one", "two")
				first := l.offerFirst()
				l.quietly(client.SessionStart, fields{"source": "startup"})
				l.quietly(client.UserPromptSubmit, fields{"prompt": handover.KickoffPrompt(first.Prompt)})
				l.quietly(client.PreToolUse, nil)
				l.killed(stage, client.StopFailure, fields{"error": "limit"})
				failed := stage != "start"
				if got := l.flight().Failure == "limit"; got != failed {
					t.Fatalf("the failure is recorded: %t", got)
				}
				if !failed {
					return // an orphan as any other
				}
				recovered := func() queue.Outcome {
					outcome, _ := l.recovers(queue.Interruption{Policy: queue.DeadLetterOrphan, Counts: true, Passes: l.flight().Failure == "limit"})
					return outcome
				}
				if got := recovered(); got != queue.Kept {
					t.Fatalf("recovered: %s", got)
				}
				// The next session, in the same conversation.
				l.change(func(r *Record) { r.Session, r.Phase, r.BoundAt, r.Ruling = "S2", Starting, time.Time{}, nil })
				err := l.queue.Change(first.Delivery, func(e queue.Entry) (queue.Entry, error) { return e.Rebind(queue.Handover{Session: "S2"}) })
				if err != nil {
					t.Fatal(err)
				}
				l.moved()
				l.killed(going, client.UserPromptSubmit, fields{"prompt": handover.GoOnPrompt, "prompt_id": "P9"})
				if went := going != "start"; went != (l.flight().Failure == "") {
					t.Fatalf("it goes on: %t, in flight %+v", went, l.flight())
				} else if !went {
					if got := recovered(); got != queue.Kept {
						t.Errorf("a session that did not go on: %s", got)
					}
					return
				}
				l.handsOver("two", fields{"prompt_id": "P9"}) // after the first is acknowledged
				if n := len(l.replies()); n != 1 {
					t.Errorf("%d acknowledged", n)
				}
			})
		}
	}
}

// killed calls a hook that is killed at a stage, or at none.
func (l *lab) killed(stage, event string, more fields) {
	l.t.Helper()
	if stage == "" {
		l.quietly(event, more)
		return
	}
	env := l.env
	l.env = append(slices.Clone(env), "HEARTBEAT_CRASH="+stage+":kill")
	if r := l.event(event, more); r.status != -1 {
		l.t.Fatalf("%+v, want it killed", r)
	}
	l.env = env
}
