package orchestrator

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
)

// reasons are those of an agent's dead letters, oldest first.
func (r *rig) reasons(agent string) []inbox.Reason {
	r.t.Helper()
	q, err := queue.Open(r.agent(agent))
	if err != nil {
		r.t.Fatal(err)
	}
	defer q.Close()
	var reasons []inbox.Reason
	for d, err := range q.DeadLetters() {
		if err != nil {
			r.t.Fatal(err)
		}
		reasons = append(reasons, d.Reason)
	}
	return reasons
}

// One blocked its agent for ever, and with the limits that hold by default the
// agent was held instead, with what is behind it.
func TestAPromptThatEndsEachSessionIsPoisonAndTheOneBehindItIsDone(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]session.Outcome{
		"always refused by the API":   {Why: hook.EndAPIFailure, Detail: "invalid_request", Bound: true},
		"its answer is always cut":    {Why: hook.EndAPIFailure, Detail: "max_output_tokens", Bound: true},
		"kills the client each time":  {Why: hook.EndCrashed, Bound: true},
		"takes more than its timeout": {Why: hook.EndTimeout, Bound: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				poisonous := o
				r.set("a", func(f *fakeSession) session.Outcome {
					time.Sleep(boot)
					for f.work(entry, "do 0") {
					}
					if f.acknowledged > 0 {
						return session.Outcome{Why: hook.EndDrained, Bound: true}
					}
					return poisonous
				})
				r.send("a", 3)
				stop := r.run()
				defer stop()
				r.sleep(5 * time.Minute)
				r.want("a", Idle)
				if a := r.state("a"); a.Acknowledged != 2 || a.DeadLettered != 1 {
					t.Errorf("%d done, %d dead letters; want the two behind the poison done", a.Acknowledged, a.DeadLettered)
				}
				if got := r.reasons("a"); !slices.Equal(got, []inbox.Reason{inbox.Poison}) {
					t.Errorf("dead letters %v, want one, poison", got)
				}
				if n := len(r.started("a")); n != config.DefaultMaxAttempts+1 {
					t.Errorf("%d starts, want %d and one for what is behind", n, config.DefaultMaxAttempts)
				}
			})
		})
	}
}

func TestAClientThatRefusesEverythingCostsOneDeadLetter(t *testing.T) {
	t.Parallel()
	for _, o := range []session.Outcome{
		{Why: hook.EndAPIFailure, Detail: "invalid_request", Bound: true}, {Why: hook.EndCrashed, Bound: true},
	} {
		t.Run(string(o.Why), func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.set("a", chokes("do", o))
				r.send("a", 4)
				stop := r.run()
				defer stop()
				r.sleep(time.Hour)
				r.want("a", Held)
				if got := r.reasons("a"); !slices.Equal(got, []inbox.Reason{inbox.Poison}) {
					t.Errorf("dead letters %v, want one, poison", got)
				}
				if got := r.state("a").Reason.String(); !strings.HasPrefix(got, "6 ") {
					t.Errorf("held because %q, want the sixth", got)
				}
			})
		})
	}
}

// dies is chokes, and nothing proves that the entry arrived that ends it.
func dies(fatal string, o session.Outcome) act {
	return func(f *fakeSession) session.Outcome {
		time.Sleep(boot)
		f.abrupt = true
		for f.work(entry, fatal) {
		}
		if o.Delivery = f.given; f.given == "" {
			return session.Outcome{Why: hook.EndDrained, Bound: true}
		}
		o.Acknowledged = f.acknowledged
		return o
	}
}

// TestAPromptOfWhichTheClientDiesBeforeItIsProvenIsPoison: the agent was held, or its
// sessions were started all night, and nothing behind it was done.
func TestAPromptOfWhichTheClientDiesBeforeItIsProvenIsPoison(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct {
		o     session.Outcome
		lasts time.Duration // each session, before it ends
	}{
		"crashes":           {o: session.Outcome{Why: hook.EndCrashed, Bound: true}},
		"exits in order":    {o: session.Outcome{Why: hook.EndExited, ExitCode: 1, Bound: true, Untaken: true}},
		"hangs, for longer": {o: session.Outcome{Why: hook.EndStalled, Bound: true}, lasts: 20 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.set("a", func(f *fakeSession) session.Outcome {
					o := dies("do 1", k.o)(f)
					if o.Why == k.o.Why && f.acknowledged < 2 {
						time.Sleep(k.lasts)
						return o
					}
					return session.Outcome{Why: hook.EndDrained, Bound: true, Acknowledged: f.acknowledged}
				})
				r.send("a", 4)
				stop := r.run()
				defer stop()
				r.sleep(5 * (time.Minute + k.lasts))
				r.want("a", Idle)
				if a := r.state("a"); a.Acknowledged != 3 || a.DeadLettered != 1 {
					t.Errorf("%d done, %d dead letters; want all but one done", a.Acknowledged, a.DeadLettered)
				}
				if got := r.reasons("a"); !slices.Equal(got, []inbox.Reason{inbox.Poison}) {
					t.Errorf("dead letters %v, want one, poison", got)
				}
				if n := len(r.started("a")); n != config.DefaultMaxAttempts+1 {
					t.Errorf("%d starts, want %d and one for what is behind", n, config.DefaultMaxAttempts)
				}
			})
		})
	}
}

// TestAClientThatDiesOfWhateverItIsGivenIsHeld: its queue does not become dead letters.
func TestAClientThatDiesOfWhateverItIsGivenIsHeld(t *testing.T) {
	t.Parallel()
	stalls := session.Outcome{Why: hook.EndStalled, Bound: true}
	for name, k := range map[string]struct {
		act   act
		lasts time.Duration
		want  int // dead letters
	}{
		"before it is handed anything":       {act: ends(session.Outcome{Why: hook.EndCrashed, Bound: true})},
		"before it has begun":                {act: dies("do", session.Outcome{Why: hook.EndCrashed})},
		"and nothing proves what it got":     {act: dies("do", session.Outcome{Why: hook.EndCrashed, Bound: true}), want: 1},
		"the same, further apart":            {act: dies("do", stalls), lasts: 20 * time.Minute, want: 3},
		"further apart, with what it took":   {act: chokes("do", stalls), lasts: 20 * time.Minute, want: 3},
		"it is asked something at its start": {act: dies("do", session.Outcome{Why: hook.EndStartTimeout, Bound: true})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.set("a", func(f *fakeSession) session.Outcome {
					o := k.act(f)
					time.Sleep(k.lasts)
					return o
				})
				r.send("a", 6)
				stop := r.run()
				defer stop()
				r.sleep(12 * time.Hour)
				r.want("a", Held)
				got := r.reasons("a")
				if len(got) != k.want || slices.ContainsFunc(got, func(why inbox.Reason) bool { return why != inbox.Poison }) {
					t.Errorf("dead letters %v, want %d, poison", got, k.want)
				}
			})
		})
	}
}

// What the service cannot do is no entry's fault, however long it lasts.
func TestAServiceThatFailsForHoursCostsNoEntryAndHoldsNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.set("a", chokes("do", session.Outcome{Why: hook.EndAPIFailure, Detail: "server_error", Bound: true}))
		r.send("a", 2)
		stop := r.run()
		defer stop()
		r.sleep(3 * time.Hour)
		for range 10 { // a try that runs at that moment ends first
			if r.state("a").State != BackingOff {
				r.sleep(time.Second)
			}
		}
		r.want("a", BackingOff)
		r.set("a", drains)
		r.sleep(10 * time.Minute)
		r.want("a", Idle)
		if a := r.state("a"); a.Acknowledged != 2 || a.DeadLettered != 0 {
			t.Errorf("%d done, %d dead letters", a.Acknowledged, a.DeadLettered)
		}
	})
}

// An upgrade that takes the binary away for seconds held an agent at once.
func TestAPIFailuresDoNotMakeTheNextOrdinaryFailureHold(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"server_error", "invalid_request", "unknown"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.set("a", chokes("do", session.Outcome{Why: hook.EndAPIFailure, Detail: kind, Bound: true}))
				r.send("a", 2)
				stop := r.run()
				defer stop()
				for len(r.started("a")) < config.DefaultMaxRestarts {
					r.sleep(time.Second)
				}
				r.sleep(boot + time.Millisecond)
				r.want("a", BackingOff)
				r.mu.Lock()
				r.unstartable = errors.New("cannot start a session's shim: no such file or directory")
				r.mu.Unlock()
				r.sleep(time.Until(r.state("a").Until) + time.Millisecond)
				r.want("a", BackingOff)
				if got := r.state("a").Reason.String(); !strings.Contains(got, "no such file") {
					t.Errorf("backs off because %q", got)
				}
			})
		})
	}
}
