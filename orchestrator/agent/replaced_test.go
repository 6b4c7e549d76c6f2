package agent

import (
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/session"
)

// TestWhatIsInFlightInAnotherDirectoryIsDealtWithFirst: a directory that took
// the place of the locked one while its agent was paused, held, starting or
// recovering was not recovered in. The first session there failed, as an entry was in
// flight, and how that one ended decided about an entry that it never had.
func TestWhatIsInFlightInAnotherDirectoryIsDealtWithFirst(t *testing.T) {
	t.Parallel()
	for _, wish := range []situation{wishes[0], wishes[1]} {
		for _, past := range pasts {
			for _, life := range lives {
				a, now := fresh(), noon
				for _, s := range []situation{past, life, wish} {
					s.into(a)
				}
				name := wish.name + " " + past.name + " " + life.name
				was := a.Doing()
				a.Replaced()
				a.Retaken(now)
				if was == Recovering { // in the directory that was there before
					a.Recovered(session.Outcome{}, &Failed{Text: "it is gone", Person: true}, now, 0)
				}
				a.Launched("s", Runs, now)
				if a.Doing() == Live {
					if o := a.Orders(); len(o) == 0 || !o[len(o)-1].Stop {
						t.Errorf("%s: a session goes on there: %+v", name, o)
					}
					a.Ended(End{Outcome: session.Outcome{Why: hook.EndFinished}, Left: true}, now, 0)
				}
				now = now.Add(time.Hour)
				a.Probed(Client{ID: badClient.ID}, now)
				a.Resume(now)
				a.Ring(now)
				if a.Doing() == None && !a.Owes() {
					t.Errorf("%s: it begins with what is queued", name)
				}
				a.Recover("what was in flight was dealt with")
				a.Recovered(session.Outcome{}, nil, now, 0)
				if a.Owes() || !a.Wants(now) {
					t.Errorf("%s: it never starts again: %+v", name, a.Standing(now))
				}
			}
		}
	}
}
