package orchestrator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/journal"
)

// somebodysAct is what somebody else does while an entry of "a" waits aside for a yes.
type somebodysAct struct {
	name string
	does func(r *rig) error
	// asked is how many people are asked after it, done how many entries are done without
	// an answer, and told how often the journal says forged.
	asked, done, told int
}

func somebodysActs() []somebodysAct {
	reload := func(change func(a *config.Agent)) func(r *rig) error {
		return func(r *rig) error {
			a := *r.agent("a")
			change(&a)
			r.fleet = r.with(&a)
			_, err := r.s.Reload(r.fleet)
			return err
		}
	}
	waiting := func(r *rig) string { return filepath.Join(r.agent("a").Home, inbox.WaitingFile) }
	write := func(change func(f inbox.InFlight) string) func(r *rig) error {
		return func(r *rig) error { return os.WriteFile(waiting(r), []byte(change(r.asidesOf("a")[0])), 0o600) }
	}
	return []somebodysAct{
		{"until is removed", reload(func(a *config.Agent) { a.Until = nil }), 0, 1, 0},
		{"aside is removed", reload(func(a *config.Agent) { a.Until = approved("release") }), 1, 0, 0},
		{"the check is changed", reload(func(a *config.Agent) {
			u := *sideways("release")
			u.Check = []string{"make", "other"}
			a.Until = &u
		}), 1, 0, 0},
		{"the file is removed", func(r *rig) error { return os.Remove(waiting(r)) }, 1, 0, 1},
		{"the file is garbage", write(func(inbox.InFlight) string { return "no record\n" }), 1, 0, 1},
		{"its last line is torn", write(func(f inbox.InFlight) string { return `{"delivery_id":"` + f.DeliveryID }), 1, 0, 1},
		{"the inbox is removed", func(r *rig) error { return os.Remove(r.agent("a").Inbox) }, 1, 0, 0},
		// No session lives that has written it: the journal says nothing.
		{"the outbox calls it done", func(r *rig) error {
			f := r.asidesOf("a")[0]
			line := fmt.Sprintf("{\"delivery_id\":%q,\"reply\":\"done\",\"at\":%q}\n", f.DeliveryID, time.Now().UTC().Format(time.RFC3339))
			out, err := os.OpenFile(filepath.Join(r.agent("a").Home, "outbox.jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = out.WriteString(line)
				err = errors.Join(err, out.Close())
			}
			return err
		}, 1, 0, 0},
	}
}

// TestSomebodysActWhileAnEntryWaitsAside neither loses the entry nor has it done twice, and
// without a yes it is done only where nothing has to be passed any more.
func TestSomebodysActWhileAnEntryWaitsAside(t *testing.T) {
	t.Parallel()
	for _, is := range somebodysActs() {
		t.Run(is.name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.proves(sideways("release"), passing)
				r.set("a", claims(time.Minute))
				r.send("a", 1)
				end := r.run()
				defer func() { end() }()
				r.sleep(10 * time.Minute)
				if len(r.asidesOf("a")) != 1 {
					t.Fatalf("%+v is aside", r.asidesOf("a"))
				}
				entry := r.asidesOf("a")[0].DeliveryID
				if err := is.does(r); err != nil {
					t.Fatal(err)
				}
				r.sleep(30 * time.Minute)
				proven := func() (n int) {
					for _, d := range r.replies("a") {
						if d.DeliveryID == entry && d.Verdict != nil {
							n++
						}
					}
					return n
				}
				told := slices.DeleteFunc(r.journal(journal.Forged), func(e journal.Event) bool { return e.Entry != entry })
				if len(told) != is.told {
					t.Errorf("told: %+v", told)
				}
				if n := proven(); len(r.waiting()) != is.asked || n != is.done {
					t.Errorf("%+v is asked, %d are done", r.waiting(), n)
				}
				r.says(approval.Approved)
				r.sleep(10 * time.Minute)
				if n := proven(); n != 1 || len(r.asidesOf("a")) > 0 || len(r.waiting()) > 0 || len(r.dead("a")) > 0 {
					t.Errorf("done %d times, %+v is aside, %+v is asked, dead %+v", n, r.asidesOf("a"), r.waiting(), r.dead("a"))
				}
			})
		})
	}
}
