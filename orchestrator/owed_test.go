package orchestrator

import (
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/store"
)

// rows counts what the store has by a question.
func (r *rig) rows(question string) (n int) {
	r.t.Helper()
	err := r.opt.Store.Read(r.t.Context(), func(v *store.View) error { _, err := v.One(question, nil, &n); return err })
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// do changes the store.
func (r *rig) do(statement string) {
	r.t.Helper()
	err := r.opt.Store.Write(r.t.Context(), func(c *store.Change) error { _, err := c.Do(statement); return err })
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestWhatTheStoreRefusesIsWrittenLater: a hold, a parked account and what a session's end has
// shown were written with the next change of the same, which may never come: a run that was
// killed before had the next one spend its restarts again.
func TestWhatTheStoreRefusesIsWrittenLater(t *testing.T) {
	t.Parallel()
	crashes := session.Outcome{Why: hook.EndCrashed, Detail: "a crash", Bound: true}
	continued, unbound := crashes, session.Outcome{Why: hook.EndExited}
	continued.Gates = []string{"make test"}
	for table, c := range map[string]struct {
		act       act
		refused   string // the kind of change
		has       string // a question that counts what is to be there
		want, now int    // in the end, and while it is refused
		named     string // as what is told
	}{
		"holds":    {ends(crashes), "INSERT", `SELECT COUNT(*) FROM holds`, 1, 0, `whether agent "a" is held`},
		"accounts": {limitedUntil(func() *session.Refused { return saidTwice(time.Now().Add(5 * time.Hour)) }), "INSERT", `SELECT COUNT(*) FROM accounts WHERE until > 0`, 1, 0, "until when accounts are parked"},
		"stop_hooks": {
			ends(continued), "INSERT", `SELECT COUNT(*) FROM stop_hooks`, 1, 0,
			`which Stop hooks have continued the client of agent "a" in session`,
		},
		"conversations": {ends(unbound), "DELETE", `SELECT COUNT(*) FROM conversations`, 0, 1, `that agent "a" does not go on in conversation`},
		"triggers":      {drains, "INSERT", `SELECT COUNT(*) FROM triggers WHERE fired >= 946688400000`, 1, 0, `what the triggers of agent "a" remember`},
	} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.set("a", c.act)
				r.agent("a").OnOrphan = "retry"
				r.agent("a").Triggers = []config.Trigger{cron(t, "hourly", "0 * * * *")}
				r.send("a", 1)
				stop := r.run()
				defer stop()
				r.sleep(time.Second)
				r.do(`CREATE TRIGGER refuses BEFORE ` + c.refused + ` ON ` + table + ` BEGIN SELECT RAISE(ABORT, 'it refuses'); END`)
				r.sleep(2 * time.Hour)
				told := r.s.StoreTroubles()
				if n := r.rows(c.has); n != c.now || len(told) != 1 || told[0].Kind != store.Owed || !strings.Contains(told[0].Text, c.named) || !strings.Contains(told[0].Text, "it refuses") {
					t.Errorf("%d are there, and it is told as %+v", n, told)
				}
				if _, err := r.s.Pause("a"); err != nil { // nothing happens any more
					t.Error(err)
				}
				r.do(`DROP TRIGGER refuses`)
				r.sleep(10 * time.Second)
				if n, told := r.rows(c.has), r.s.StoreTroubles(); n != c.want || len(told) > 0 {
					t.Errorf("%d are there, want %d; told: %+v", n, c.want, told)
				}
			})
		})
	}
}
