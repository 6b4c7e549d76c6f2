package takeover

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/check"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/entries/entriestest"
	"heartbeat/orchestrator/intake"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// programs are what the test's own program can be: by the name of a variable, whose value it is
// given.
var programs = map[string]func(string){}

func TestMain(m *testing.M) {
	for name, do := range programs {
		if value := os.Getenv(name); value != "" {
			do(value)
		}
	}
	os.Exit(testbed.Run(m))
}

const key = "k"

// rig is an agent's directory with a queue of the earlier design, and a store.
type rig struct {
	testing.TB
	store *store.Store
	agent *config.Agent
	state string
	key   string
}

// schemas are those of the tables that are no step of the store yet.
var schemas = map[string]string{"entries": entries.Schema, "demands": check.Schema, "intakes": intake.Schema, "takeovers": Schema}

func newRig(t testing.TB) *rig {
	t.Helper()
	return rigIn(t, t.TempDir())
}

func agentIn(dir string) *config.Agent {
	home := filepath.Join(dir, "a", ".heartbeat")
	return &config.Agent{Name: "a", Dir: filepath.Dir(home), Home: home, Inbox: filepath.Join(home, "inbox.jsonl"), MaxEntry: 1 << 20, OnOrphan: "retry"}
}

func rigIn(t testing.TB, dir string) *rig {
	t.Helper()
	r := &rig{TB: t, state: filepath.Join(dir, "state"), agent: agentIn(dir), key: key}
	if err := errors.Join(os.MkdirAll(r.state, 0o700), os.MkdirAll(r.agent.Home, 0o700)); err != nil {
		t.Fatal(err)
	}
	r.store = entriestest.New(t, r.state)
	for table, schema := range schemas {
		entriestest.Apply(t, r.store, table, schema)
	}
	return r
}

// another is a rig with the same store, and a directory of its own.
func (r *rig) another() *rig {
	r.Helper()
	n := others.Add(1)
	dir := r.TempDir()
	o := &rig{TB: r.TB, store: r.store, state: filepath.Join(dir, "state"), agent: agentIn(dir), key: fmt.Sprint(key, n)}
	if err := errors.Join(os.Mkdir(o.state, 0o700), os.MkdirAll(o.agent.Home, 0o700)); err != nil {
		r.Fatal(err)
	}
	return o
}

var others atomic.Int64

// old has the earlier design's own code do something with the queue.
func (r *rig) old(do func(h inbox.Orphaned)) {
	r.Helper()
	q, err := inbox.Open(inbox.Place{Inbox: r.agent.Inbox, Home: r.agent.Home, Dir: r.agent.Dir})
	if err != nil {
		r.Fatal(err)
	}
	defer q.Close()
	h, err := q.Lock(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = h.Unlock() }()
	do(inbox.Orphaned{Held: h})
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// send queues prompts, with ids that are the prompts.
func (r *rig) send(prompts ...string) {
	r.Helper()
	r.old(func(h inbox.Orphaned) {
		for _, p := range prompts {
			must[string](r)(h.Append(r.Context(), inbox.Letter{ID: p, Source: "send", Prompt: p, Idempotent: true}))
		}
	})
}

// echo appends bytes to the inbox as a shell does.
func (r *rig) echo(s string) {
	r.Helper()
	f, err := os.OpenFile(r.agent.Inbox, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(s)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		r.Fatal(err)
	}
}

// offer hands over the first entry.
func (r *rig) offer(o inbox.Offering) (f *inbox.InFlight) {
	r.Helper()
	r.old(func(h inbox.Orphaned) { f = offerIn(r, h, o) })
	return f
}

func offerIn(t testing.TB, h inbox.Orphaned, o inbox.Offering) *inbox.InFlight {
	t.Helper()
	return must[*inbox.InFlight](t)(h.Offer(must[*inbox.Entry](t)(h.Next()), o))
}

// done hands over and acknowledges the first entry.
func (r *rig) done(reply string) {
	r.Helper()
	r.old(func(h inbox.Orphaned) {
		offerIn(r, h, inbox.Offering{Session: "s", Via: "stop"})
		must[*inbox.InFlight](r)(h.Advance("taken", "p"))
		must[*inbox.Delivery](r)(h.Acknowledge(inbox.Acknowledgement{Session: "s", Reply: reply}))
	})
}

// take takes the queue over, which asks nothing.
func (r *rig) take() Report {
	r.Helper()
	got := must[Report](r)(Take(r.Context(), r.store, r.state, r.agent, r.key))
	if got.Asks != nil || got.Owed != nil {
		r.Fatalf("%+v", got)
	}
	return got
}

func read[T any](r *rig, ask func(*store.View) (T, error)) T {
	r.Helper()
	return must[T](r)(store.Get(r.Context(), r.store.Reader, ask))
}

func (r *rig) flight() *queue.Entry {
	r.Helper()
	return read(r, func(v *store.View) (*queue.Entry, error) { return entries.InFlight(v, r.key) })
}

// all are all entries in the order of their numbers.
func (r *rig) all() (all []entries.New) {
	r.Helper()
	return read(r, func(v *store.View) (all []entries.New, err error) {
		last, err := entries.LastOf(v, r.key)
		for seq := int64(1); seq <= last && err == nil; seq++ {
			e, failed := entries.Get(v, queue.Key{Agent: r.key, Seq: seq})
			if err = failed; e == nil || err != nil {
				continue
			}
			var text queue.Text
			text, err = entries.TextOf(v, e.Key)
			all = append(all, entries.New{Entry: *e, Text: text})
		}
		return all, err
	})
}

// is returns the prompts of the entries in a state, in the order in which they are handed over.
func (r *rig) is(s queue.State) (prompts []string) {
	r.Helper()
	for _, e := range r.all() {
		if e.State == s {
			prompts = append(prompts, e.Prompt)
		}
	}
	return prompts
}

// given is one hand-over, as the old queue and the new one have it.
type given struct {
	Prompt, Delivery, ID, EntryID string
	Attempt, Iteration            int
	Repeat                        bool
}

// drain hands over all that is queued.
func (r *rig) drain() (all []given) {
	r.Helper()
	for {
		var g *queue.Given
		err := r.store.Write(r.Context(), func(c *store.Change) (err error) {
			if g, err = entries.Offer(c, r.key, queue.Handover{Session: "s", At: time.Now()}); err != nil {
				return err
			}
			_, err = entries.Acknowledge(c, entries.RefOf(&g.Entry), queue.Reply{At: time.Now()})
			if errors.Is(err, queue.ErrUnproven) {
				_, err = entries.TakeBy(c, g.Key, time.Now(), func(e queue.Entry) (queue.Entry, error) { return e.EndAs("", "", time.Now()) })
			}
			return err
		})
		if errors.Is(err, entries.ErrEmpty) {
			return all
		}
		if err != nil {
			r.Fatal(err)
		}
		all = append(all, given{g.Prompt, g.Delivery, g.ID, g.EntryID, g.Attempt, g.Iteration, g.IsRepeat()})
	}
}

// drainOld does the same by the earlier design's own code.
func (r *rig) drainOld() (all []given) {
	r.Helper()
	r.old(func(h inbox.Orphaned) {
		for {
			e, err := h.Next()
			if errors.Is(err, inbox.ErrEmpty) {
				return
			}
			if err != nil {
				r.Fatal(err)
			}
			f := must[*inbox.InFlight](r)(h.Offer(e, inbox.Offering{Session: "s", Checked: e.Checked}))
			all = append(all, given{f.Prompt(), f.DeliveryID, f.ID, f.EntryID, f.Attempt, f.Iteration, f.Repeat()})
			if !f.Checked {
				must[*inbox.Delivery](r)(h.Acknowledge(inbox.Acknowledgement{}))
				continue
			}
			must[*inbox.InFlight](r)(h.Advance("taken", ""))
			f = must[*inbox.InFlight](r)(h.Check(inbox.Acknowledgement{}))
			must[*inbox.Delivery](r)(h.Verdict(inbox.Verdict{Delivery: f.DeliveryID, Check: f.Check, Passed: true}))
		}
	})
	return all
}

// copied is a rig with a copy of the directory.
func (r *rig) copied() *rig {
	r.Helper()
	c := r.another()
	if err := os.CopyFS(c.agent.Dir, os.DirFS(r.agent.Dir)); err != nil {
		r.Fatal(err)
	}
	return c
}

func (r *rig) exists(path ...string) bool {
	_, err := os.Lstat(filepath.Join(append([]string{r.agent.Home}, path...)...))
	return err == nil
}
