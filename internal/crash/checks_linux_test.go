package crash

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/internal/promise"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/proof"
	"heartbeat/orchestrator/proving"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/status"
)

// In a lab whose entries are checked, each passes in its second iteration, however often
// somebody is killed.

const passesAt = 2

func (l *lab) stateDir() string { return filepath.Join(filepath.Dir(l.home), "state") }

// book is the file of what was decided.
func (l *lab) book() string { return filepath.Join(l.stateDir(), "proofs", agent+".json") }

func (l *lab) definition() *config.Agent {
	return &config.Agent{Name: agent, Dir: filepath.Dir(l.home), Inbox: l.inbox, Until: config.NewUntil("true")}
}

// desk is the part of a scheduler that decides about the entry in flight.
func (l *lab) desk() *proving.Desk {
	return proving.New(proving.Options{
		StateDir: l.stateDir(), Note: func(journal.Event) {}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Files: func(context.Context, string) string { return "" },
		Check: func(_ context.Context, c proof.Check) (proof.Result, error) {
			if c.Iteration >= passesAt {
				return proof.Result{Answer: proof.Passed}, nil
			}
			return proof.Result{Answer: proof.Failed, Why: "exit status 1", Output: "not yet", Said: c.Delivery}, nil
		},
	})
}

func (l *lab) prove(ctx context.Context) {
	l.desk().Prove(ctx, proving.Case{Key: agent, Agent: l.definition, Tell: func(status.Proof) {}})
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
				l.prove(ctx)
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
	if l.form != checked {
		return
	}
	f, err := queue.InFlight(l.definition())
	if err != nil {
		l.fault("%v", err)
	}
	if f == nil || f.State != inbox.Checking {
		return
	}
	l.prove(l.t.Context())
	if f, err := queue.InFlight(l.definition()); err != nil || f != nil && f.State == inbox.Unproven && f.Interrupted != "" {
		l.recoverOrphan(0) // on-orphan decides
	}
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
	book, err := ledger.Open(l.stateDir(), agent)
	if err != nil {
		return promise.Record{{Kind: promise.Seen, Note: err.Error()}}
	}
	most := passesAt + l.record.Count().Interruptions
	l.queue(func(q *inbox.Queue) {
		for d, err := range q.Deliveries() {
			if err != nil || !book.Passed(d.DeliveryID) || d.Verdict == nil || d.Verdict.Iteration < passesAt || d.Verdict.Iteration > most {
				r = append(r, promise.Fact{At: time.Now(), Kind: promise.Seen, Note: "done without a proof: " + d.DeliveryID + " " + d.ID})
			}
		}
	})
	return r
}
