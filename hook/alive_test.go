package hook

import (
	"errors"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/ask"
	"heartbeat/hook/foreign"
	"heartbeat/hook/process"
)

// TestASignOfLife is kept for the session that gives it, as long as it may be.
func TestASignOfLife(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	for _, text := range []string{"", "half of the tests", "\x1b[31mred\n\u202e", strings.Repeat("ü", 300)} {
		session, err := SayAlive(l.getenv, text)
		sign := l.live.Sign()
		if err != nil || session != l.record().Session || sign == nil {
			t.Fatalf("%q: %v, %+v", text, err, sign)
		}
		if want := foreign.Cut(text, MaxSaid); sign.Text != want || sign.At.IsZero() {
			t.Errorf("%q was kept as %q", text, sign.Text)
		}
	}
}

// TestASignOfLifeFromAProcessNamespace: there the client's number is another one.
func TestASignOfLifeFromAProcessNamespace(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(r *Record) { r.Client, r.BoundAt = self(), time.Now() })
	l.env = append(l.env, "CLAUDE_PID=1")
	if session, err := SayAlive(l.getenv, "x"); err != nil || session != "S" || l.live.Sign() == nil {
		t.Errorf("%q, %v", session, err)
	}
}

// TestASignOfLifeOfAnotherClient: who is not in the live session says nothing.
func TestASignOfLifeOfAnotherClient(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(l *lab){
		"without the session's token": func(l *lab) { l.env = append(l.env, ask.EnvSession+"=another") },
		"without a session":           func(l *lab) { l.env = append(l.env, ask.EnvSession+"=") },
		"whose session has ended":     func(l *lab) { l.change(func(r *Record) { r.Phase = Ended }) },
		"inside of a nested client":   func(l *lab) { l.env = append(l.env, "CLAUDE_PID=1"); l.isCalledBy(process.Of(1)) },
		"whose shim is gone":          func(l *lab) { l.env = append(l.env, ask.EnvSocket+"="+socket(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, func(r *Record) { r.Client, r.BoundAt = self(), time.Now() })
			change(l)
			if session, err := SayAlive(l.getenv, "x"); !errors.Is(err, ask.ErrNoSession) || session != "" {
				t.Errorf("%q, %v", session, err)
			}
			if sign := l.live.Sign(); sign != nil {
				t.Errorf("kept: %+v", sign)
			}
		})
	}
}
