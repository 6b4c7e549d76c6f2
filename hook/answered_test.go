package hook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
)

// TestEachStopsAnswerIsNoted, and nothing of any other event.
func TestEachStopsAnswerIsNoted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(*Record)
		lines  []string
		play   func(l *lab)
		want   string
	}{
		"gave and drained": {nil, []string{"one", "two"}, func(l *lab) {
			l.handsOver("one", nil)
			l.handsOver("two", fields{"stop_hook_active": true})
			l.quietly(client.PreToolUse, fields{"tool_name": "Bash"})
			l.quietly(client.Stop, fields{"stop_hook_active": true})
		}, "gave ENTRY: |gave ENTRY, DONE: |let-go, DONE: drained"},
		"it did not arrive": {nil, []string{"one"}, func(l *lab) {
			l.handsOver("one", nil)
			l.event(client.Stop, nil)
		}, "gave ENTRY: |gave-again ENTRY: "},
		"nothing was queued": {nil, nil, func(l *lab) { l.quietly(client.Stop, nil) }, "let-go: drained: nothing was queued"},
		"nothing can be handed over": {nil, []string{"one"}, func(l *lab) {
			l.broken.Store(new("the queue needs a person"))
			l.quietly(client.Stop, nil)
		}, `held-back: the queue needs a person`},
		"tasks run": {nil, []string{"one"}, func(l *lab) {
			l.handsOver("one", nil)
			l.quietly(client.Stop, fields{"stop_hook_active": true, "background_tasks": []fields{{"type": "shell", "status": "running", "description": "x"}}})
		}, "gave ENTRY: |let-go: background tasks run"},
		"others run": {func(r *Record) { r.Policy.ForeignStopHooks = true }, nil, func(l *lab) { l.quietly(client.Stop, nil) }, "let-go: drained: nothing was queued"},
		"it ends":    {func(r *Record) { r.End(EndFinished, "the scheduler is stopping", time.Now()) }, []string{"one"}, func(l *lab) { l.quietly(client.Stop, nil) }, "let-go: finished: the scheduler is stopping"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var changes []func(*Record)
			if tt.change != nil {
				changes = append(changes, tt.change)
			}
			l := newLab(t, changes...)
			l.append(tt.lines...)
			tt.play(l)
			var got []string
			for _, a := range l.record().Answers {
				text := string(a.Answer)
				if a.Entry != "" {
					text += " ENTRY"
				}
				if a.Done != "" {
					text += ", DONE"
				}
				got = append(got, text+": "+strings.ReplaceAll(a.Why, l.home, "HOME"))
			}
			if all := strings.Join(got, "|"); all != tt.want {
				t.Errorf("%s, want %s", all, tt.want)
			}
		})
	}
}

// TestARecordKeepsFewAnswers: a session of a year has no larger record.
func TestARecordKeepsFewAnswers(t *testing.T) {
	t.Parallel()
	r := new(Record)
	for i := range 100 {
		r.note(Answered{Answer: Gave, Entry: fmt.Sprint(i)})
	}
	if n := len(r.Answers); n != KeptAnswers || r.Answers[n-1].Entry != "99" || r.Answers[0].Entry != "92" {
		t.Errorf("kept: %+v", r.Answers)
	}
}
