package agent

import (
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/orchestrator/status"
)

// TestAnotherLoginIsSeen: an account that has refused its login is asked again when
// something has changed that may be another one, and not before; how often that is
// looked at gets seldomer.
func TestAnotherLoginIsSeen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers []string // at each look
		f       *Failed
		want    bool
	}{
		"nothing has changed":      {[]string{"one", "one", "one", "one"}, nil, false},
		"a login":                  {[]string{"one", "one", "two"}, nil, true},
		"none could start, now so": {[]string{"", "", "one"}, nil, true},
		"what it cannot know yet":  {[]string{"one"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := New(&config.Agent{Name: "a"}, noon)
			a.Parks(Parking{Person: true, Reason: "authentication_failed"}, noon)
			a.Settle(noon)
			if a.State() != status.Held {
				t.Fatalf("it is %s", a.State())
			}
			now := noon
			for _, answers := range tt.answers {
				next := a.Next()
				if next.IsZero() || next.Sub(now) > askLate || next.Before(now.Add(askSoon)) {
					t.Fatalf("after %s the next look is after %s", now.Sub(noon), next.Sub(now))
				}
				now = next
				if due := a.Ring(now); len(due) != 1 || due[0] != Ask {
					t.Fatalf("due: %v", due)
				}
				a.Asked(tt.f, answers, now)
			}
			if a.LoginChanged() != tt.want {
				t.Errorf("changed: %t", a.LoginChanged())
			}
			a.Unparks()
			if a.Settle(now); a.LoginChanged() || a.State() != status.Idle {
				t.Errorf("afterwards it is %s", a.State())
			}
		})
	}
	a := New(&config.Agent{Name: "a"}, noon)
	if a.Parks(Parking{Until: noon.Add(time.Hour), Reason: "a limit"}, noon); a.Next() != noon.Add(time.Hour) {
		t.Error("a limit is looked at")
	}
}
