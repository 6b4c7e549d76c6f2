package hook

import (
	"testing"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/internal/testbed"
)

const toldOnce = `{"session_id":"C","cost":{"total_cost_usd":0.5},"context_window":{"used_percentage":12}}`

// TestStatusLineKeepsWhatItIsTold, and shows a person's own status line only to a
// person who has joined, for as long as it may take.
func TestStatusLineKeepsWhatItIsTold(t *testing.T) {
	t.Parallel()
	const echo = `printf 'mine: '; cut -c1-17`
	for name, tt := range map[string]struct {
		attached int
		theirs   string
		shown    string
	}{
		"nobody has joined":        {0, echo, ""},
		"somebody has":             {1, echo, `mine: {"session_id":"C"`},
		"somebody has, without it": {1, "", ""},
		"it takes too long":        {1, "echo begun; sleep 600", ""},
		"it fails":                 {1, "echo shown; exit 2", "shown"},
		"it reads nothing":         {1, "exec <&-; echo shown", "shown"},
		"it leaves a process":      {1, "sleep 600 & echo begun", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, func(r *Record) { r.Attached, r.ClientSession = tt.attached, "C" })
			args := []string{"hook", "status-line"}
			if tt.theirs != "" {
				args = append(args, tt.theirs)
			}
			r := l.run(l.command(args, toldOnce))
			if r.status != 0 || r.stdout != tt.shown || r.stderr != "" {
				t.Errorf("status %d, %q, %q; want %q", r.status, r.stdout, r.stderr, tt.shown)
			}
			if r.took > testbed.Patience {
				t.Errorf("it took %v", r.took)
			}
			told, at := l.live.Told()
			if told == nil || told.Cost != 0.5 || told.Context.Used != 12 || at.IsZero() {
				t.Errorf("kept: %+v", told)
			}
		})
	}
}

// TestStatusLineOfAnotherClient keeps nothing and runs nothing.
func TestStatusLineOfAnotherClient(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(l *lab){
		"without the session's token": func(l *lab) { l.env = append(l.env, ask.EnvSession+"=another") },
		"without a session":           func(l *lab) { l.env = append(l.env, ask.EnvSession+"=") },
		"whose session has ended":     func(l *lab) { l.change(func(r *Record) { r.Phase = Ended }) },
		"that is not the bound one":   func(l *lab) { l.isCalledBy(Process{PID: 1}) },
		"in another conversation":     func(l *lab) { l.change(func(r *Record) { r.ClientSession, r.Attached = "D", 0 }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, func(r *Record) {
				r.Attached, r.Client, r.BoundAt, r.ClientSession = 1, self(), time.Now(), "C"
			})
			change(l)
			r := l.run(l.command([]string{"hook", "status-line", "echo shown"}, toldOnce))
			if r.status != 0 || r.stdout != "" {
				t.Errorf("status %d, %q", r.status, r.stdout)
			}
			if told, _ := l.live.Told(); told != nil {
				t.Errorf("kept: %+v", told)
			}
		})
	}
}
