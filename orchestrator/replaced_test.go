package orchestrator

import (
	"errors"
	"os"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/launch"
	"heartbeat/orchestrator/queue"
)

// restore puts another directory under an agent's path, in which an entry has
// been in flight since another machine went, and a second one is queued: as a
// backup that is put back.
func (r *rig) restore(agent string) {
	r.t.Helper()
	// In full before it is put in place: a fleet that finds half of it has found
	// another directory.
	backup := r.declare("backup")
	r.send("backup", 2)
	q, err := queue.Open(backup)
	if err != nil {
		r.t.Fatal(err)
	}
	defer q.Close()
	h, err := q.Lock(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	e, err := h.Next()
	if err == nil {
		_, err = h.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: "gone"})
	}
	if err == nil {
		_, err = h.Advance(inbox.Taken, "")
	}
	dir := r.agent(agent).Dir
	err = errors.Join(err, h.Unlock(), os.RemoveAll(dir))
	if err == nil {
		err = os.Rename(backup.Dir, dir)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.tell(agent)
}

// TestABackupThatIsPutBackIsRecoveredIn, at the worst moments: a session was
// started beside what was in flight in it, and failed.
func TestABackupThatIsPutBackIsRecoveredIn(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]func(t *testing.T, r *rig){
		"idle": func(t *testing.T, r *rig) {
			r.restore("a")
		},
		"paused": func(t *testing.T, r *rig) {
			if _, err := r.s.Pause("a"); err != nil {
				t.Fatal(err)
			}
			r.restore("a")
			r.sleep(sweepEvery + 5*time.Second)
			if _, err := r.s.Resume("a"); err != nil {
				t.Fatal(err)
			}
		},
		"lost, then paused": func(t *testing.T, r *rig) {
			if err := os.RemoveAll(r.agent("a").Dir); err != nil {
				t.Fatal(err)
			}
			r.sleep(sweepEvery + 5*time.Second)
			if _, err := r.s.Pause("a"); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(r.agent("a").Dir, 0o700); err != nil {
				t.Fatal(err)
			}
			r.restore("a")
			r.sleep(5 * time.Second)
			if _, err := r.s.Resume("a"); err != nil {
				t.Fatal(err)
			}
		},
		"starting": func(t *testing.T, r *rig) {
			r.send("a", 1)
			r.sleep(time.Second) // it is being prepared
			r.want("a", Starting)
			r.restore("a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a b", func(t *testing.T, r *rig) {
				r.opt.Prepare = func(c *config.Agent) (launch.Prepared, error) {
					if time.Sleep(2 * time.Second); name == "starting" && len(r.started("a")) == 0 {
						time.Sleep(2 * sweepEvery)
					}
					return launch.Prepared{}, nil
				}
				stop := r.run()
				defer stop()
				r.sleep(time.Second)
				when(t, r)
				r.sleep(2*sweepEvery + 10*time.Minute)
				r.want("a", Idle)
				if n := r.state("a").Acknowledged; n != 2 {
					t.Errorf("%d entries done of 2: %+v", n, r.state("a"))
				}
				if len(r.journal("recovered")) == 0 {
					t.Error("nothing was recovered")
				}
			})
		})
	}
}
