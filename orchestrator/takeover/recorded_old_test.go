package takeover

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	scheduled "heartbeat/orchestrator/later"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proof/guard"
)

// fill makes one entry of each kind.
func (r *rig) fill() {
	r.Helper()
	r.send("done", "dead", "in flight")
	r.done("yes")
	r.old(func(h inbox.Orphaned) { must[int](r)(h.DropQueued("dead")) })
	r.asked("aside", "checked")
	r.offer(inbox.Offering{Session: "s"})
	r.old(func(h inbox.Orphaned) {
		must[*inbox.InFlight](r)(h.Advance(inbox.Taken, ""))
		must[*inbox.Delivery](r)(h.Acknowledge(inbox.Acknowledgement{}))
	})
	f := r.claimed("done")
	now := time.Now()
	c := courseOf(f, guard.Past{}, nil)
	c.Answered = &ledger.Answered{Check: f.Check, Claimed: f.Claim.Since, Definition: ledger.Definition(config.NewUntil("x")), At: now}
	r.book(c)
	if err := ledger.KeepAside(r.state, key, ledger.Aside{Flight: f.AsideSince(now)}); err != nil {
		r.Fatal(err)
	}
	r.old(func(h inbox.Orphaned) { must[*inbox.InFlight](r)(h.SetAside(f.DeliveryID, f.Check, now)) })
	r.claimed("done, too")
	r.send("queued")
	r.old(func(h inbox.Orphaned) {
		must[string](r)(h.Append(r.Context(), inbox.Letter{ID: "urgent", Prompt: "urgent", Urgent: true}))
	})
	r.old(func(h inbox.Orphaned) { must[int](r)(0, h.Settle()) })
	must[scheduled.Prompt](r)(scheduled.Put(r.Context(), r.agent, scheduled.Prompt{ID: "later", At: now.Add(time.Hour), Text: "later"}))
	r.echo("by hand\n")
}

// TestQueuesAreRecorded makes what TestRecordedQueuesAreTaken takes, by the code of the earlier
// design, where UPDATE_GOLDEN is set.
func TestQueuesAreRecorded(t *testing.T) {
	t.Parallel()
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Skip("only with UPDATE_GOLDEN=1")
	}
	all := inFlight()
	all["everything"] = nil
	for name, do := range all {
		r := newRig(t)
		if do == nil {
			r.fill()
		} else {
			r.send("one", "two")
			r.done("")
			r.send("three")
			r.old(func(h inbox.Orphaned) { do(r, h) })
		}
		to := filepath.Join(recorded, strings.NewReplacer(" ", "-", ",", "").Replace(name))
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		r.record(r.agent.Home, filepath.Join(to, "home"))
		r.record(r.state, filepath.Join(to, "state"))
	}
}

// record copies a folder, without what a copy cannot have.
func (r *rig) record(from, to string) {
	r.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		name := d.Name()
		if err != nil || d.IsDir() || strings.HasPrefix(name, "heartbeat.") || strings.HasSuffix(name, "lock") || strings.HasSuffix(name, ".kept") {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel = strings.ReplaceAll(rel, hashOf(r.agent.Inbox, 8), "INBOX")
		data = bytes.ReplaceAll(data, []byte(r.agent.Dir), []byte("@DIR@"))
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, rel)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	})
	if err != nil {
		r.Fatal(err)
	}
}
