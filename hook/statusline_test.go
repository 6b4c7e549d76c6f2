package hook

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
			l := newLab(t, func(r *Record) { r.Attached = tt.attached })
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
			told, err := ReadStatusLine(l.home, time.Now())
			if at, _ := StatusLineAt(l.home); err != nil || told == nil || told.Cost != 0.5 || told.Context.Used != 12 || at.IsZero() {
				t.Errorf("kept: %+v, %v", told, err)
			}
		})
	}
}

// TestStatusLineOfAnotherClient keeps nothing and runs nothing.
func TestStatusLineOfAnotherClient(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(l *lab){
		"without the session's token": func(l *lab) { l.env = append(l.env, EnvSession+"=another") },
		"without a session":           func(l *lab) { l.env = append(l.env, EnvSession+"=") },
		"whose shim is dead":          func(l *lab) { l.release() },
		"that is not the bound one":   func(l *lab) { l.env = append(l.env, "CLAUDE_PID=1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, func(r *Record) {
				r.Attached, r.Client, r.BoundAt = 1, self(), time.Now()
			})
			change(l)
			r := l.run(l.command([]string{"hook", "status-line", "echo shown"}, toldOnce))
			if r.status != 0 || r.stdout != "" {
				t.Errorf("status %d, %q", r.status, r.stdout)
			}
			if told, err := ReadStatusLine(l.home, time.Now()); told != nil || err != nil {
				t.Errorf("kept: %+v, %v", told, err)
			}
		})
	}
}

// TestStatusLineFileThatTheAgentHasReplaced is not followed, and not waited for.
func TestStatusLineFileThatTheAgentHasReplaced(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	path := filepath.Join(l.home, statusLineName)
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte(toldOnce), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, path); err != nil {
		t.Fatal(err)
	}
	if told, err := ReadStatusLine(l.home, time.Now()); told != nil || err == nil {
		t.Errorf("a link was followed: %+v, %v", told, err)
	}
	l.run(l.command([]string{"hook", "status-line"}, strings.Replace(toldOnce, "0.5", "0.7", 1)))
	if told, err := ReadStatusLine(l.home, time.Now()); err != nil || told == nil || told.Cost != 0.7 {
		t.Errorf("kept: %+v, %v", told, err)
	}
	if data, _ := os.ReadFile(outside); string(data) != toldOnce {
		t.Errorf("it was written through the link: %s", data)
	}
}
