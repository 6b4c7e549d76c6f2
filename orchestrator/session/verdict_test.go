package session

import (
	"testing"
	"time"

	"heartbeat/hook"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	l := limits{
		entry: time.Hour, session: 8 * time.Hour, start: 30 * time.Second,
		idle: 10 * time.Second, background: 10 * time.Minute, stall: 5 * time.Minute,
		hold: 3 * time.Hour, tool: 20 * time.Minute, tools: map[string]time.Duration{"WebFetch": 2 * time.Minute, "Task": 0},
	}
	record := func(change func(*hook.Record)) *hook.Record {
		r := &hook.Record{
			Phase:     hook.Turn,
			Since:     ago(time.Minute),
			StartedAt: ago(time.Hour),
			Bound:     hook.Bound{BoundAt: ago(time.Hour)},
			Progress:  hook.Progress{LastEventAt: ago(time.Minute), Work: &hook.Work{Since: ago(time.Minute)}},
		}
		change(r)
		return r
	}
	tests := []struct {
		name   string
		change func(*hook.Record)
		facts  facts
		want   verdict // detail is not compared
	}{
		{name: "a turn without a sign of life", change: func(r *hook.Record) {
			r.LastEventAt, r.Since, r.Work.Since = ago(6*time.Minute), ago(6*time.Minute), ago(6*time.Minute)
		}, want: verdict{end: hook.EndStalled}},
		{name: "its hooks cannot be seen", change: func(r *hook.Record) {
			r.Phase, r.BoundAt, r.StartedAt = hook.Starting, time.Time{}, ago(time.Second)
		}, facts: facts{unseen: true}, want: verdict{end: hook.EndNoHooks}},
		{name: "somebody else's hooks cannot be seen", change: func(*hook.Record) {}, facts: facts{unseen: true}},
		{name: "it has said itself that it lives", change: func(r *hook.Record) {
			r.LastEventAt, r.Since, r.Work.Since = ago(6*time.Minute), ago(6*time.Minute), ago(6*time.Minute)
		}, facts: facts{signed: ago(4 * time.Minute)}},
		{name: "it has said so a while ago", change: func(r *hook.Record) {
			r.LastEventAt, r.Since, r.Work.Since = ago(16*time.Minute), ago(16*time.Minute), ago(16*time.Minute)
		}, facts: facts{signed: ago(5 * time.Minute)}, want: verdict{end: hook.EndStalled}},
		{name: "it has said so for long, and nothing else shows it", change: func(r *hook.Record) {
			r.LastEventAt, r.Since, r.Work.Since = ago(24*time.Minute), ago(24*time.Minute), ago(24*time.Minute)
		}, facts: facts{signed: now}},
		{name: "it has said so for too long", change: func(r *hook.Record) {
			r.LastEventAt, r.Since, r.Work.Since = ago(25*time.Minute), ago(25*time.Minute), ago(25*time.Minute)
		}, facts: facts{signed: now}, want: verdict{end: hook.EndStalled}},
		{name: "a tool runs meanwhile", change: func(r *hook.Record) {
			r.LastEventAt, r.Since, r.Work.Since = ago(6*time.Minute), ago(6*time.Minute), ago(6*time.Minute)
		}, facts: facts{tool: &Tool{"Bash", ago(6 * time.Minute)}}},
		{name: "a tool has ended a while ago", change: func(r *hook.Record) {
			r.LastEventAt, r.Since, r.Work.Since = ago(6*time.Minute), ago(6*time.Minute), ago(6*time.Minute)
		}, facts: facts{toolEnded: ago(4 * time.Minute)}},
		{name: "a tool runs for too long", change: func(*hook.Record) {}, facts: facts{tool: &Tool{"Bash", ago(20 * time.Minute)}}, want: verdict{end: hook.EndTimeout}},
		{name: "a tool with a limit of its own", change: func(*hook.Record) {}, facts: facts{tool: &Tool{"WebFetch", ago(3 * time.Minute)}}, want: verdict{end: hook.EndTimeout}},
		{name: "a tool without a limit", change: func(*hook.Record) {}, facts: facts{tool: &Tool{"Task", ago(50 * time.Minute)}}},
		{name: "a tool of a person's turn", change: func(r *hook.Record) { r.Attached = 1 }, facts: facts{tool: &Tool{"Bash", ago(20 * time.Minute)}}},
		{name: "a turn goes on", change: func(*hook.Record) {}},
		{name: "no SessionStart in time is a start-up dialog", change: func(r *hook.Record) {
			r.Phase, r.BoundAt, r.StartedAt = hook.Starting, time.Time{}, ago(31*time.Second)
		}, want: verdict{end: hook.EndStartTimeout}},
		{name: "a start may take its time", change: func(r *hook.Record) {
			r.Phase, r.BoundAt, r.StartedAt = hook.Starting, time.Time{}, ago(29*time.Second)
		}},
		{name: "no start ends under a person's hands", change: func(r *hook.Record) {
			r.Phase, r.BoundAt, r.StartedAt, r.Attached = hook.Starting, time.Time{}, ago(time.Hour), 1
		}},
		{name: "a person has just answered a dialog and left", change: func(r *hook.Record) {
			r.Phase, r.BoundAt, r.StartedAt, r.TypedAt = hook.Starting, time.Time{}, ago(time.Hour), ago(29*time.Second)
		}},
		{name: "a person has left long ago", change: func(r *hook.Record) {
			r.Phase, r.BoundAt, r.StartedAt, r.TypedAt = hook.Starting, time.Time{}, ago(time.Hour), ago(31*time.Second)
		}, want: verdict{end: hook.EndStartTimeout}},
		{name: "a SessionStart without a prompt", change: func(r *hook.Record) {
			r.Phase, r.Since = hook.Starting, ago(31*time.Second)
		}, want: verdict{end: hook.EndStartTimeout}},
		{name: "an entry over its timeout", change: func(r *hook.Record) {
			r.Work.Since = ago(time.Hour)
		}, want: verdict{end: hook.EndTimeout}},
		{name: "a turn without an entry over the timeout", change: func(r *hook.Record) {
			r.Work, r.Since = nil, ago(time.Hour)
		}, want: verdict{end: hook.EndTimeout}},
		{name: "a person's long turn is theirs", change: func(r *hook.Record) {
			r.Work, r.Since, r.Attached = nil, ago(time.Hour), 1
		}},
		{name: "unattended for less than the grace", change: func(r *hook.Record) {
			r.Phase, r.Since = hook.Unattended, ago(9*time.Second)
		}},
		{name: "unattended for the grace", change: func(r *hook.Record) {
			r.Phase, r.Since = hook.Unattended, ago(10*time.Second)
		}, want: verdict{end: hook.EndUnattended}},
		{name: "unattended, but a person is attached", change: func(r *hook.Record) {
			r.Phase, r.Since, r.Attached = hook.Unattended, ago(time.Hour/2), 1
		}},
		{name: "background tasks in time", change: func(r *hook.Record) {
			r.Phase, r.Since, r.BackgroundSince = hook.Background, ago(9*time.Minute), ago(9*time.Minute)
		}},
		{name: "background tasks for ever", change: func(r *hook.Record) {
			r.Phase, r.Since, r.BackgroundSince = hook.Background, ago(time.Second), ago(10*time.Minute)
		}, want: verdict{end: hook.EndReleased, abandon: true}},
		{name: "a waiting hook that was killed", change: func(r *hook.Record) {
			r.Phase, r.Work = hook.Waiting, nil
		}, facts: facts{waiterGone: true}, want: verdict{leave: true}},
		{
			name: "a waiting hook that was asked for the slot", change: func(r *hook.Record) { r.Phase, r.Work = hook.Waiting, nil },
			facts: facts{asked: ago(yieldPatience - time.Second)},
		},
		{
			name: "a waiting hook that keeps the slot", change: func(r *hook.Record) { r.Phase, r.Work = hook.Waiting, nil },
			facts: facts{asked: ago(yieldPatience)}, want: verdict{end: hook.EndReleased},
		},
		{
			name: "somebody types in the session that was asked for its slot", facts: facts{asked: ago(time.Minute)},
			change: func(r *hook.Record) { r.Phase, r.Work, r.TypedAt = hook.Waiting, nil, ago(time.Minute) },
		},
		{name: "the client was about to end", change: func(r *hook.Record) {
			r.Phase, r.Since, r.Work = hook.Ending, ago(parting-time.Second), nil
		}},
		{name: "the client was about to end, and does not", change: func(r *hook.Record) {
			r.Phase, r.Since, r.Work = hook.Ending, ago(parting), nil
		}, want: verdict{end: hook.EndUnattended}},
		{name: "a waiting hook", change: func(r *hook.Record) { r.Phase, r.Work = hook.Waiting, nil }},
		{
			name: "a turn whose terminal fell silent was interrupted", change: func(*hook.Record) {},
			facts: facts{quietSince: ago(21 * time.Second)}, want: verdict{leave: true},
		},
		{
			name: "a terminal that fell silent just before the turn began", change: func(r *hook.Record) { r.Since = ago(20 * time.Second) },
			facts: facts{quietSince: ago(21 * time.Second)}, want: verdict{leave: true},
		},
		{
			name: "a turn that has just begun on a silent terminal", change: func(r *hook.Record) { r.Since = ago(19 * time.Second) },
			facts: facts{quietSince: ago(time.Hour)},
		},
		{name: "unattended after a person has left", change: func(r *hook.Record) {
			r.Phase, r.Since, r.Work, r.TypedAt = hook.Unattended, ago(10*time.Second), nil, ago(time.Minute)
		}, want: verdict{end: hook.EndReleased}},
		{name: "a person left in the middle of an entry", change: func(r *hook.Record) {
			r.Phase, r.Since, r.TypedAt = hook.Unattended, ago(10*time.Second), ago(time.Minute)
		}, want: verdict{end: hook.EndUnattended}},
		{name: "a turn without a sign of life", change: func(r *hook.Record) {
			r.Since, r.LastEventAt, r.Work.Since = ago(5*time.Minute), ago(5*time.Minute), ago(5*time.Minute)
		}, want: verdict{end: hook.EndStalled}},
		{
			name: "a turn whose last sign of life is not long ago", facts: facts{aliveAt: ago(5*time.Minute - time.Second)},
			change: func(r *hook.Record) {
				r.Since, r.LastEventAt, r.Work.Since = ago(time.Hour/2), ago(time.Hour/2), ago(time.Hour/2)
			},
		},
		{
			name: "a turn whose last sign of life is long ago", facts: facts{aliveAt: ago(5 * time.Minute)},
			change: func(r *hook.Record) {
				r.Since, r.LastEventAt, r.Work.Since = ago(time.Hour/2), ago(time.Hour/2), ago(time.Hour/2)
			},
			want: verdict{end: hook.EndStalled},
		},
		{name: "no sign of life, but a person is attached", change: func(r *hook.Record) {
			r.Since, r.LastEventAt, r.Attached = ago(time.Hour/2), ago(time.Hour/2), 1
		}},
		{name: "a waiting hook is silent for long", change: func(r *hook.Record) {
			r.Phase, r.Since, r.LastEventAt, r.Work = hook.Waiting, ago(time.Hour/2), ago(time.Hour/2), nil
		}},
		{name: "drained a moment ago: a task may be starting a turn", change: func(r *hook.Record) {
			r.Phase, r.Since, r.LastEventAt = hook.Ending, ago(time.Millisecond), ago(time.Millisecond)
			r.Ruling = &hook.Ruling{Why: hook.EndDrained}
		}},
		{name: "drained a second ago", change: func(r *hook.Record) {
			r.Phase, r.Since, r.LastEventAt = hook.Ending, ago(time.Second), ago(time.Second)
			r.Ruling = &hook.Ruling{Why: hook.EndDrained}
		}, want: verdict{end: hook.EndDrained}},
		{name: "an API failure ends it at once", change: func(r *hook.Record) {
			r.LastEventAt = now
			r.Ruling = &hook.Ruling{Why: hook.EndAPIFailure, Detail: "rate_limit"}
		}, want: verdict{end: hook.EndAPIFailure}},
		{name: "the session's time is up, its entry may finish", change: func(r *hook.Record) {
			r.StartedAt = ago(8 * time.Hour)
		}, want: verdict{end: hook.EndFinished, afterTurn: true}},
		{name: "the session's time is up, and it has done nothing: other limits hold", change: func(r *hook.Record) {
			r.StartedAt, r.Work, r.Acknowledged = ago(8*time.Hour), nil, 0
		}},
		{name: "the session's time is up, and it waits for work", change: func(r *hook.Record) {
			r.StartedAt, r.Phase, r.Work = ago(8*time.Hour), hook.Waiting, nil
		}, facts: facts{waits: true}, want: verdict{end: hook.EndFinished, afterTurn: true}},
		{name: "the session's time was up, its entry is not finished", change: func(r *hook.Record) {
			r.Ruling = &hook.Ruling{Why: hook.EndFinished, Detail: "session-timeout of 8h"}
		}},
		{name: "the session's time was up, its entry is finished", change: func(r *hook.Record) {
			r.Ruling, r.Work, r.Phase = &hook.Ruling{Why: hook.EndFinished}, nil, hook.Ending
		}, want: verdict{end: hook.EndFinished}},
		{name: "told to finish, its turn goes on", change: func(r *hook.Record) {
			r.Ruling = &hook.Ruling{Why: hook.EndFinished}
		}},
		{name: "told to finish, its turn is over", change: func(r *hook.Record) {
			r.Ruling, r.Work, r.Phase = &hook.Ruling{Why: hook.EndFinished}, nil, hook.Ending
		}, want: verdict{end: hook.EndFinished}},
		{name: "its work is checked for longer than a turn may take", change: func(r *hook.Record) {
			r.Phase, r.Since, r.Work.Since, r.LastEventAt = hook.Checking, ago(2*time.Hour), ago(3*time.Hour), ago(2*time.Hour)
		}, facts: facts{waits: true, checking: true}},
		{name: "its work is checked, and the hook was killed", change: func(r *hook.Record) {
			r.Phase, r.Since = hook.Checking, ago(2*time.Hour)
		}, facts: facts{waiterGone: true, checking: true}},
		{name: "its check is over, and the hook was killed", change: func(r *hook.Record) { r.Phase = hook.Checking }, facts: facts{waiterGone: true}, want: verdict{end: hook.EndReleased}},
		{name: "its check is over, and a person has ended the hook", change: func(r *hook.Record) {
			r.Phase, r.Attached = hook.Checking, 1
		}, want: verdict{leave: true}},
		{name: "its check is over, and its hook is about to see it", change: func(r *hook.Record) { r.Phase = hook.Checking }, facts: facts{waits: true}},
		{name: "only its record says that it is checked", change: func(r *hook.Record) {
			r.Phase, r.Work.Since = hook.Checking, ago(2*time.Hour)
		}, facts: facts{waits: true}, want: verdict{end: hook.EndTimeout}},
		{name: "its check takes longer than hold", change: func(r *hook.Record) {
			r.Phase, r.Since = hook.Checking, ago(3*time.Hour)
		}, facts: facts{waits: true, checking: true}, want: verdict{end: hook.EndReleased}},
		{name: "the same, and a person is there", change: func(r *hook.Record) {
			r.Phase, r.Since, r.Attached = hook.Checking, ago(3*time.Hour), 1
		}, facts: facts{waits: true, checking: true}},
		{name: "another agent needs the slot while its work is checked", change: func(r *hook.Record) {
			r.Phase, r.Since = hook.Checking, ago(time.Minute)
		}, facts: facts{checking: true, asked: ago(6 * time.Second)}, want: verdict{end: hook.EndReleased}},
		{name: "its work is checked, and the session is over its time", change: func(r *hook.Record) {
			r.Phase, r.Since, r.StartedAt = hook.Checking, ago(time.Minute), ago(8*time.Hour)
		}, facts: facts{waits: true, checking: true}, want: verdict{end: hook.EndFinished}},
		{name: "its work is checked, and the scheduler stops", change: func(r *hook.Record) {
			r.Ruling, r.Phase = &hook.Ruling{Why: hook.EndShutdown}, hook.Checking
		}, facts: facts{waits: true, checking: true}, want: verdict{end: hook.EndShutdown}},
		{name: "told to finish while a hook waits for work", change: func(r *hook.Record) {
			r.Ruling, r.Work, r.Phase = &hook.Ruling{Why: hook.EndFinished}, nil, hook.Waiting
		}, want: verdict{end: hook.EndFinished}},
		{name: "told to finish before the first prompt was submitted", change: func(r *hook.Record) {
			r.Ruling, r.Phase = &hook.Ruling{Why: hook.EndFinished}, hook.Starting
		}, want: verdict{end: hook.EndFinished}},
		{name: "told to finish, its turn takes too long", change: func(r *hook.Record) {
			r.Ruling, r.Work.Since = &hook.Ruling{Why: hook.EndFinished}, ago(time.Hour)
		}, want: verdict{end: hook.EndTimeout}},
		{
			name: "told to finish, its turn was interrupted", facts: facts{quietSince: ago(21 * time.Second)},
			change: func(r *hook.Record) { r.Ruling = &hook.Ruling{Why: hook.EndFinished} },
			want:   verdict{end: hook.EndFinished},
		},
		{name: "told to finish, background tasks run for its entry", change: func(r *hook.Record) {
			r.Ruling, r.Phase, r.BackgroundSince = &hook.Ruling{Why: hook.EndFinished}, hook.Background, ago(9*time.Minute)
		}},
		{name: "told to finish, background tasks run for ever", change: func(r *hook.Record) {
			r.Ruling, r.Phase, r.BackgroundSince = &hook.Ruling{Why: hook.EndFinished}, hook.Background, ago(10*time.Minute)
		}, want: verdict{end: hook.EndFinished, abandon: true}},
		{name: "told to finish, background tasks run for no entry", change: func(r *hook.Record) {
			r.Ruling, r.Phase, r.Work = &hook.Ruling{Why: hook.EndFinished}, hook.Background, nil
		}, want: verdict{end: hook.EndFinished}},
		{name: "the scheduler stops, its turn goes on", change: func(r *hook.Record) {
			r.Ruling = &hook.Ruling{Why: hook.EndShutdown}
		}},
		{name: "the scheduler stops, its turn is over", change: func(r *hook.Record) {
			r.Ruling, r.Work, r.Phase = &hook.Ruling{Why: hook.EndShutdown}, nil, hook.Ending
		}, want: verdict{end: hook.EndShutdown}},
		{name: "ruled at last, in a turn", change: func(r *hook.Record) {
			r.Ruling = &hook.Ruling{Why: hook.EndShutdown, Final: true}
		}, want: verdict{end: hook.EndShutdown}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := tt.facts
			f.now = now
			got := judge(f.of(record(tt.change)), l)
			got.detail = ""
			if got != tt.want {
				t.Errorf("judge = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// of are the facts that a record's times stand for.
func (f facts) of(r *hook.Record) facts {
	f.ruling, f.attached, f.typed = r.Ruling, r.Attached, r.TypedAt
	f.seen = sight{
		started: r.StartedAt, bound: r.BoundAt, phase: r.Phase, since: r.Since, event: r.LastEventAt, background: r.BackgroundSince,
		ruled: f.now,
	}
	if r.Work != nil {
		f.seen.entry.work, f.seen.entry.given, f.seen.entry.handedOver = "an entry", r.Work.Since, r.Work.Since
	} else if r.Phase == hook.Turn {
		f.seen.free = f.now.Sub(r.Since)
	}
	return f
}

// TestJudgeEntryTimeoutAlsoUnderALateSessionTimeout: it uses up an attempt, as without it.
func TestJudgeEntryTimeoutAlsoUnderALateSessionTimeout(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := &hook.Record{
		Phase:     hook.Turn,
		Since:     now.Add(-2 * time.Hour),
		StartedAt: now.Add(-9 * time.Hour),
		Bound:     hook.Bound{BoundAt: now.Add(-9 * time.Hour)},
		Progress:  hook.Progress{Work: &hook.Work{Since: now.Add(-2 * time.Hour)}},
		Ruling:    &hook.Ruling{Why: hook.EndFinished, Detail: "session-timeout of 8h"},
	}
	got := judge(facts{now: now}.of(r), limits{entry: time.Hour, session: 8 * time.Hour})
	if got.end != hook.EndTimeout || got.afterTurn {
		t.Errorf("judge = %+v: the entry's own timeout must still end the session", got)
	}
}
