package crash

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"heartbeat/internal/promise"
	"heartbeat/orchestrator/proving/provingtest"
)

// In a lab whose entries are checked, each passes in its second iteration, however often
// somebody is killed.

const passesAt = 2

// desk is the part of a scheduler that decides about the entry in flight.
func (l *lab) desk() provingtest.Desk {
	return provingtest.Desk{Agent: agent, Dir: l.dir(), Inbox: l.inbox, StateDir: filepath.Join(l.dir(), "state"), Passes: l.checks}
}

// checks is the check, which notes what it has passed.
func (l *lab) checks(delivery string, iteration int) bool {
	if iteration < passesAt {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed = append(l.passed, delivery)
	return true
}

// passes are the deliveries that the check has passed.
func (l *lab) passes() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.passed
}

// proved goes back to a time when the check had passed these deliveries.
func (l *lab) proved(deliveries []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed = deliveries
}

// judging decides what a Stop hook asks for, until stop is called.
func (l *lab) judging(event string) (stop func()) {
	if l.form != checked || event != "Stop" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var desk sync.WaitGroup
	desk.Go(func() {
		var seen time.Time
		for n := 0; ctx.Err() == nil; n++ {
			if now := l.touched(); n%50 == 0 || !now.Equal(seen) { // to look costs more
				seen = now
				l.desk().Prove(ctx)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	return func() {
		cancel()
		desk.Wait()
	}
}

// touched is when a file of the queue was put in its place last.
func (l *lab) touched() (at time.Time) {
	if info, err := os.Stat(l.home); err == nil {
		at = info.ModTime()
	}
	return at
}

// decides goes on with what a recovery has left to be checked.
func (l *lab) decides() {
	if l.form != checked || !l.flightIs("checking") {
		return
	}
	l.desk().Prove(l.t.Context())
	if l.flightIs("unproven") {
		l.recoverOrphan(0) // on-orphan decides where the claim to be done was interrupted
	}
}

// flightIs reports whether the entry in flight is in a state.
func (l *lab) flightIs(state string) bool {
	return slices.ContainsFunc(l.left(), func(e promise.Queued) bool { return e.State == state })
}

// entryOf is what is handed over without what a check has found, and the iteration that
// it says, "" for the first.
func entryOf(text string) (entry, iteration string) {
	rest, is := strings.CutPrefix(text, "[heartbeat: iteration ")
	_, entry, cut := strings.Cut(rest, "\n\n[heartbeat: the entry:]\n\n")
	if !is || !cut {
		return text, ""
	}
	iteration, _, _ = strings.Cut(rest, " ")
	return entry, iteration
}

// proofs notes what is done and was not proven, or not in its second iteration. A kill costs
// at most one more: a turn that began without our hand-over voids a verdict that no hook has
// heard, and it was one.
func (l *lab) proofs() (r promise.Record) {
	most := passesAt + l.record.Count().Interruptions
	for _, d := range lines[promise.Reply](l.t, filepath.Join(l.home, "outbox.jsonl")) {
		if !slices.Contains(l.passes(), d.DeliveryID) || d.Verdict == nil || d.Verdict.Iteration < passesAt || d.Verdict.Iteration > most {
			r = append(r, promise.Fact{At: time.Now(), Kind: promise.Seen, Note: "done without a proof: " + d.DeliveryID + " " + d.ID})
		}
	}
	return r
}
