package session

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/usage"
)

// TestWhatHasBegunAfterTheTranscriptsEnd is known by what our hooks have recorded, by the
// second.
func TestWhatHasBegunAfterTheTranscriptsEnd(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	sec := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	answer := func(s int, a hook.Answer, done, entry string) hook.Answered {
		return hook.Answered{At: sec(s), Answer: a, Done: done, Entry: entry}
	}
	gave := []hook.Answered{answer(2, hook.Gave, "1", "2"), answer(4, hook.Gave, "2", "3"), answer(6, hook.Waits, "3", "")}
	for name, tt := range map[string]struct {
		answers []hook.Answered
		work    string
		inTurn  int
		tasks   []string
		end     int // when the transcript ends; 0: it is empty
		asking  bool
		asides  int
		want    []string
	}{
		"it has everything":                          {answers: gave, end: 5},
		"its last line is of the hand-over's moment": {answers: gave, end: 4},
		"one turn":                                     {answers: gave, end: 3, want: []string{"3"}},
		"two turns":                                    {answers: gave, end: 1, want: []string{"2", "3"}},
		"all of it":                                    {answers: gave, want: []string{"1", "2", "3"}},
		"an idle turn":                                 {answers: []hook.Answered{answer(2, hook.IdleTurn, "", "")}, end: 1, want: []string{""}},
		"no turn ever began":                           {},
		"the first turn runs":                          {work: "1", inTurn: 1, want: []string{"1"}},
		"a turn that somebody has typed":               {answers: gave, inTurn: 7, end: 5, want: []string{""}},
		"one of which the prompt is written":           {answers: gave, inTurn: 7, end: 6, asking: true},
		"one that is written":                          {answers: gave, inTurn: 7, end: 8},
		"one that was given and runs":                  {answers: gave[:1], work: "2", inTurn: 1, end: 1, want: []string{"2"}},
		"one that has begun by itself, and ended":      {answers: append(slices.Clone(gave), answer(8, hook.Waits, "", "")), end: 5, want: []string{""}},
		"one after the turn was let go":                {answers: []hook.Answered{answer(2, hook.LetGo, "", ""), answer(4, hook.Waits, "1", "")}, end: 1, want: []string{""}},
		"a wait that gives is of one Stop":             {answers: []hook.Answered{answer(6, hook.Waits, "3", ""), answer(8, hook.Gave, "", "4")}, end: 5, want: []string{"4"}},
		"a wait that ends is of one Stop":              {answers: []hook.Answered{answer(6, hook.Waits, "3", ""), answer(8, hook.LetGo, "", "")}, end: 5},
		"a time to come":                               {answers: []hook.Answered{answer(1000, hook.Gave, "", "4")}, end: 5},
		"a subagent":                                   {answers: gave[:1], work: "2", tasks: []string{"shell: x", "subagent: a task"}, end: 3, want: []string{"2"}},
		"a command in the background asks no model":    {answers: gave[:1], work: "2", tasks: []string{"shell: subagent: x"}, end: 3},
		"what has begun when the transcript goes on":   {answers: gave, tasks: nil, inTurn: 3, end: 5},
		"a subagent whose end is being worked on":      {answers: gave, tasks: []string{"subagent: a task"}, inTurn: 7, end: 8},
		"a subagent that asks in a turn":               {answers: gave[:1], work: "2", inTurn: 3, end: 8, asides: 1, want: []string{"2"}},
		"subagents that ask beside a task":             {answers: gave[:1], work: "2", tasks: []string{"subagent: a task"}, end: 3, asides: 2, want: []string{"2", "2"}},
		"a check is made and then the hook waits once": {answers: []hook.Answered{answer(6, hook.Checks, "", "3"), answer(8, hook.Waits, "3", "")}, end: 5},
	} {
		r := &hook.Record{}
		r.Answers, r.BackgroundTasks = tt.answers, tt.tasks
		if tt.work != "" {
			r.Work = &hook.Work{DeliveryID: tt.work}
		}
		var inTurn time.Time
		end := usage.Tail{Asking: tt.asking, Asides: tt.asides}
		if tt.inTurn > 0 {
			inTurn = sec(tt.inTurn)
		}
		if tt.end > 0 {
			end.At = sec(tt.end)
		}
		if got := unwritten(r, inTurn, end, sec(100)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestTurnsAreUnseenWhoeverCountsThem: the shim, when its client was killed, or who sweeps,
// when both were. A second sweep adds nothing.
func TestTurnsAreUnseenWhoeverCountsThem(t *testing.T) {
	t.Parallel()
	for _, killed := range []bool{false, true} {
		l := newLab(t)
		began := time.Now().Add(-time.Minute).Round(0)
		path := filepath.Join(l.user, "c.jsonl")
		s := l.billed(began, func(s *Spec) { s.Token = "00000000000000000000000000000e0e" })
		if err := os.MkdirAll(l.stateDir, 0o700); err != nil {
			t.Fatal(err)
		}
		s.record.Terms, s.record.Shim, s.record.Transcript = s.spec.terms(), hook.Process{PID: os.Getpid(), Start: 1}, path
		s.record.Work = &hook.Work{DeliveryID: "1", Since: began}
		s.openBill()
		l.writeDown(path, began.Add(time.Second), `"type":"user","message":{"role":"user","content":"one"}`)
		l.writeDown(path, began.Add(2*time.Second), answer("1"))
		s.spend(began.Add(3 * time.Second))
		s.record.Work, s.record.Phase = nil, hook.Waiting
		s.record.Answers = []hook.Answered{
			{At: began.Add(4 * time.Second), Answer: hook.Gave, Done: "1", Entry: "2"},
			{At: began.Add(5 * time.Second), Answer: hook.Gave, Done: "2", Entry: "3"},
			{At: began.Add(6 * time.Second), Answer: hook.Waits, Done: "3"},
		}
		var err error
		if killed {
			err = errors.Join(s.keepLeftover(), l.live(s.record).ShowAgain())
			for range 2 {
				_, swept := l.sweep()
				err = errors.Join(err, swept)
			}
		} else {
			s.closeBill(began.Add(7*time.Second), time.Time{})
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := l.spent(); got.Turns != 1 || got.Calls != 1 || got.Unseen != 2 {
			t.Errorf("the shim killed %v: %+v", killed, got)
		}
	}
}
