package entries_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/entries/entriestest"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

var noon = time.UnixMilli(1_796_040_000_000)

// rig is a queue in a store of its own.
type rig struct {
	testing.TB
	*store.Store
}

func newRig(t testing.TB) rig { return rig{t, entriestest.New(t, t.TempDir())} }

// do changes the store; it must work.
func (r rig) do(act func(*store.Change) error) {
	r.Helper()
	if err := r.Write(r.Context(), act); err != nil {
		r.Fatal(err)
	}
}

// fails changes the store, which must be refused with an error.
func (r rig) fails(want error, act func(*store.Change) error) {
	r.Helper()
	if err := r.Write(r.Context(), act); !errors.Is(err, want) {
		r.Errorf("%v, want %v", err, want)
	}
}

func (r rig) add(letters ...queue.Letter) (added []entries.Added) {
	r.Helper()
	r.do(func(c *store.Change) (err error) {
		added, err = entries.Add(c, "a", 0, noon, letters...)
		return err
	})
	return added
}

func (r rig) prompts(prompts ...string) {
	r.Helper()
	for _, p := range prompts {
		r.add(queue.Letter{Prompt: p})
	}
}

func (r rig) offer() (g *queue.Given) {
	r.Helper()
	r.do(func(c *store.Change) (err error) {
		g, err = entries.Offer(c, "a", queue.Handover{Session: "s1", Via: queue.ViaStop, At: noon, Transcript: "/t", Offset: 7})
		return err
	})
	return g
}

func (r rig) take(g *queue.Given, step func(queue.Entry) (queue.Entry, error)) {
	r.Helper()
	r.do(func(c *store.Change) error {
		e, err := entries.Take(c, entries.RefOf(&g.Entry), noon, step)
		if err == nil {
			g.Entry = *e
		}
		return err
	})
}

func (r rig) acknowledge(g *queue.Given) {
	r.Helper()
	r.do(func(c *store.Change) error {
		_, err := entries.Acknowledge(c, entries.RefOf(&g.Entry), queue.Reply{Session: "s1", Text: "ok " + g.Prompt, At: noon})
		return err
	})
}

// drain hands over and acknowledges all that is queued.
func (r rig) drain() (prompts []string) {
	r.Helper()
	for {
		var g *queue.Given
		err := r.Write(r.Context(), func(c *store.Change) (err error) {
			g, err = entries.Offer(c, "a", queue.Handover{At: noon})
			return err
		})
		if errors.Is(err, entries.ErrEmpty) {
			return prompts
		}
		if err != nil {
			r.Fatal(err)
		}
		prompts = append(prompts, g.Prompt)
		r.acknowledge(g)
	}
}

func get[T any](r rig, ask func(*store.View) (T, error)) T {
	r.Helper()
	got, err := store.Get(r.Context(), r.Reader, ask)
	if err != nil {
		r.Fatal(err)
	}
	return got
}

func TestEntriesAreHandedOverInOrderAndOneAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.prompts("one", "two")
	r.add(queue.Letter{Prompt: "now", Urgent: true})
	g := r.offer()
	if g.Prompt != "now" || g.State != queue.Offered || g.Attempt != 1 || g.Handover.Offset != 7 {
		t.Fatalf("%+v", g)
	}
	r.fails(entries.ErrInFlight, func(c *store.Change) error {
		_, err := entries.Offer(c, "a", queue.Handover{})
		return err
	})
	r.acknowledge(g)
	if got := r.drain(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q", got)
	}
	done := get(r, func(v *store.View) (*queue.Entry, error) { return entries.Find(v, "a", g.Delivery) })
	if done.State != queue.Done || !done.Ended.Equal(noon) || done.Handover.Session != "s1" {
		t.Errorf("%+v", done)
	}
	if reply := get(r, func(v *store.View) (*queue.Reply, error) { return entries.ReplyOf(v, done.Key) }); reply.Text != "ok now" {
		t.Errorf("%+v", reply)
	}
	r.fails(entries.ErrEmpty, func(c *store.Change) error {
		_, err := entries.Offer(c, "a", queue.Handover{})
		return err
	})
}

func TestAnIDIsAcceptedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.add(queue.Letter{ID: "7", Prompt: "one"})[0]
	again := r.add(queue.Letter{ID: "7", Prompt: "one"}, queue.Letter{ID: "7", Prompt: "another"}, queue.Letter{Prompt: "one"})
	if first.Duplicate || !again[0].Duplicate || again[0].Delivery != first.Delivery || again[0].Differs || !again[1].Differs || again[2].Duplicate {
		t.Fatalf("%+v, %+v", first, again)
	}
	if got := r.drain(); !slices.Equal(got, []string{"one", "one"}) {
		t.Errorf("%q", got)
	}
	// Also once the entry is pruned.
	r.do(func(c *store.Change) error {
		n, err := entries.Prune(c, noon.Add(time.Hour), 200)
		if n != 2 {
			t.Errorf("%d entries pruned", n)
		}
		return err
	})
	if a := r.add(queue.Letter{ID: "7", Prompt: "one"})[0]; !a.Duplicate || a.Delivery != "" {
		t.Errorf("%+v", a)
	}
	// Not in another agent's queue.
	r.do(func(c *store.Change) error {
		a, err := entries.Add(c, "b", 0, noon, queue.Letter{ID: "7", Prompt: "one"})
		if err == nil && (a[0].Duplicate || a[0].Delivery == first.Delivery) {
			t.Errorf("%+v", a)
		}
		return err
	})
}

func TestIDsAreForgottenOnlyWhenNeitherLimitHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(queue.Letter{ID: "7", Prompt: "one"})
	forget := func(at time.Time) (n int64) {
		r.do(func(c *store.Change) (err error) {
			n, err = entries.ForgetIDs(c, at, 200)
			return err
		})
		return n
	}
	r.add(queue.Letter{ID: "8", Prompt: "two"})
	r.acknowledge(r.offer())
	r.do(func(c *store.Change) error { // retries and wakings use up numbers, too
		_, err := c.Do(`UPDATE queues SET seq = seq + 100000`)
		return err
	})
	if n := forget(noon.Add(365 * 24 * time.Hour)); n != 0 {
		t.Errorf("%d of the last 100,000 are forgotten", n)
	}
	r.do(func(c *store.Change) error {
		_, err := c.Do(`INSERT INTO ids (agent, id, seq, at) WITH RECURSIVE more (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM more WHERE n < 100000)
			SELECT 'a', 'more ' || n, 200000 + n, $1 FROM more`, noon.Add(30*24*time.Hour).UnixMilli())
		return err
	})
	if n := forget(noon.Add(6 * 24 * time.Hour)); n != 0 {
		t.Errorf("%d of six days ago are forgotten", n)
	}
	if n := forget(noon.Add(8 * 24 * time.Hour)); n != 1 {
		t.Errorf("%d are forgotten", n)
	}
	if a := r.add(queue.Letter{ID: "8", Prompt: "two"})[0]; !a.Duplicate {
		t.Error("the id of an entry that has not ended is forgotten")
	}
}

func TestALetterIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.prompts("one", "two")
	for _, k := range []struct {
		want error
		l    queue.Letter
	}{
		{entries.ErrFull, queue.Letter{Prompt: "x", Most: 2}},
		{entries.ErrFull, queue.Letter{Prompt: "x", Most: -1}},
		{entries.ErrTooLarge, queue.Letter{Prompt: strings.Repeat("x", queue.MaxLine)}},
	} {
		r.fails(k.want, func(c *store.Change) error {
			_, err := entries.Add(c, "a", 0, noon, queue.Letter{ID: "new", Prompt: "new"}, k.l)
			return err
		})
	}
	for _, bad := range []queue.Letter{{Prompt: " \n"}, {Prompt: "x", ID: "a\nb"}, {Prompt: "x", Source: strings.Repeat("x", 513)}} {
		if err := r.Write(t.Context(), func(c *store.Change) error {
			_, err := entries.Add(c, "a", 0, noon, bad)
			return err
		}); err == nil {
			t.Errorf("%+v is queued", bad)
		}
	}
	if got := r.drain(); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q", got)
	}
}

// What is said of another hand-over than the present one is refused: a hook that comes late, a
// shim that was given up.
func TestWhatIsSaidOfAnotherHandOverIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.prompts("one")
	first := r.offer()
	late := entries.RefOf(&first.Entry)
	r.take(first, queue.Entry.Withdraw)
	again := r.offer()
	if again.Attempt != 1 || again.Handover.N != 2 {
		t.Fatalf("%+v", again)
	}
	r.fails(queue.ErrStale, func(c *store.Change) error {
		_, err := entries.Acknowledge(c, late, queue.Reply{At: noon})
		return err
	})
	r.fails(entries.ErrNotFound, func(c *store.Change) error {
		_, err := entries.Acknowledge(c, entries.Ref{Agent: "a", Delivery: "000000000000", Handover: 1}, queue.Reply{At: noon})
		return err
	})
	r.acknowledge(again)
	r.fails(queue.ErrState, func(c *store.Change) error { // the same said twice
		_, err := entries.Acknowledge(c, entries.RefOf(&again.Entry), queue.Reply{At: noon})
		return err
	})
}

func TestAnotherBindingMovesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.prompts("one")
	var was, now int64
	r.do(func(c *store.Change) (err error) {
		if was, err = entries.Bind(c, "a"); err == nil {
			now, err = entries.Bind(c, "a")
		}
		return err
	})
	r.fails(entries.ErrLate, func(c *store.Change) error { return entries.Hold(c, "a", was) })
	r.do(func(c *store.Change) error { return entries.Hold(c, "a", now) })
}

func TestADamagedTextIsNotHandedOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.prompts("rm the temporary files")
	r.do(func(c *store.Change) error {
		_, err := c.Do(`UPDATE texts SET prompt = 'rm all the files'`)
		return err
	})
	r.fails(entries.ErrDamaged, func(c *store.Change) error {
		_, err := entries.Offer(c, "a", queue.Handover{})
		return err
	})
	if d := get(r, func(v *store.View) (entries.Depth, error) { return entries.DepthOf(v, "a") }); d.Queued != 1 || d.InFlight != "" {
		t.Errorf("%+v", d)
	}
}

func TestWhatWaitsForAPersonComesBackFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 12 {
		r.add(queue.Letter{Prompt: fmt.Sprint(n), Checked: true})
	}
	var asked []queue.Key
	suspend := func() error {
		g := r.offer()
		r.do(func(c *store.Change) error {
			_, err := entries.Claim(c, entries.RefOf(&g.Entry), queue.Reply{Text: "done", At: noon})
			return err
		})
		return r.Write(t.Context(), func(c *store.Change) error {
			e, err := entries.Suspend(c, g.Key, 1, "c", noon)
			if err == nil {
				asked = append(asked, e.Key)
			}
			return err
		})
	}
	for range queue.MostSuspended {
		if err := suspend(); err != nil {
			t.Fatal(err)
		}
	}
	if err := suspend(); !errors.Is(err, entries.ErrNoRoom) {
		t.Errorf("one more: %v", err)
	}
	answer := func(k queue.Key, passed bool, at time.Time) {
		r.do(func(c *store.Change) error {
			_, err := entries.Judge(c, k, entries.Verdict{Verdict: queue.Verdict{Check: 1, Passed: passed}, Shown: queue.Shown{Output: "no"}, By: "ada", At: at})
			return err
		})
	}
	answer(asked[5], false, noon.Add(time.Second))
	answer(asked[2], false, noon.Add(2*time.Second))
	answer(asked[0], true, noon)
	now := get(r, func(v *store.View) (*queue.Entry, error) { return entries.InFlight(v, "a") })
	answer(now.Key, true, noon)
	first := r.offer()
	if first.Key != asked[5] || first.Iteration != 2 || first.Output != "no" || first.Attempt != 1 {
		t.Fatalf("%+v", first)
	}
	d := get(r, func(v *store.View) (entries.Depth, error) { return entries.DepthOf(v, "a") })
	if d != (entries.Depth{Queued: 2, Returning: 1, Suspended: 7, InFlight: queue.Offered}) {
		t.Errorf("%+v", d)
	}
	if all := get(r, entries.Depths); !maps.Equal(all, map[string]entries.Depth{"a": d}) {
		t.Errorf("%+v", all)
	}
}

func TestALaterEntryIsQueuedBehindWhatWasQueuedBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(queue.Letter{Prompt: "later", NotBefore: noon.Add(time.Hour)})
	r.add(queue.Letter{Prompt: "sooner", NotBefore: noon.Add(time.Minute)})
	r.prompts("one", "two")
	if at := get(r, entries.NextDue); !at.Equal(noon.Add(time.Minute)) {
		t.Errorf("%v", at)
	}
	wake := func(at time.Time, want ...string) {
		r.do(func(c *store.Change) error {
			agents, err := entries.WakeDue(c, at, 100)
			if !slices.Equal(agents, want) {
				t.Errorf("%v: %q", at, agents)
			}
			return err
		})
	}
	wake(noon)
	wake(noon.Add(2*time.Hour), "a")
	if got := r.drain(); !slices.Equal(got, []string{"one", "two", "sooner", "later"}) {
		t.Errorf("%q", got)
	}
}

func TestDroppedAndRetried(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(queue.Letter{ID: "x", Prompt: "one"})
	r.prompts("two", "three")
	g := r.offer()
	r.do(func(c *store.Change) error {
		got, refused, err := entries.Drop(c, "a", noon, "x", "nobody")
		if len(got) != 0 || len(refused) != 1 || !errors.Is(refused[0], queue.ErrState) {
			t.Errorf("what is in flight is dropped: %+v, %v", got, refused)
		}
		return err
	})
	r.take(g, queue.Entry.Withdraw)
	r.do(func(c *store.Change) error {
		got, _, err := entries.Drop(c, "a", noon, "x")
		if len(got) != 1 || got[0].Reason != queue.DropByHand {
			t.Errorf("%+v, %v", got, err)
		}
		return err
	})
	if dead := get(r, func(v *store.View) ([]entries.Ended, error) { return entries.Dead(v, "a", 0, 9) }); len(dead) != 1 || dead[0].ID != "x" {
		t.Errorf("%+v", dead)
	}
	r.do(func(c *store.Change) error {
		got, _, err := entries.Retry(c, "a", noon, g.Delivery)
		if len(got) != 1 || got[0].Delivery != g.Delivery || got[0].Attempt != 0 {
			t.Errorf("%+v, %v", got, err)
		}
		return err
	})
	if got := r.drain(); !slices.Equal(got, []string{"two", "three", "one"}) {
		t.Errorf("%q", got)
	}
	r.do(func(c *store.Change) error {
		n, err := entries.Purge(c, "a", noon, 9)
		if n != 0 {
			t.Errorf("%d that are done are purged", n)
		}
		return err
	})
}

func TestAnEntryIsMovedToAnotherAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a := r.add(queue.Letter{ID: "x", Prompt: "one"}, queue.Letter{Prompt: "two"})
	r.do(func(c *store.Change) error {
		_, err := entries.Add(c, "b", 0, noon, queue.Letter{ID: "x", Prompt: "b's"})
		return err
	})
	r.do(func(c *store.Change) error {
		e, err := entries.Transfer(c, a[0].Key, "b")
		if err == nil && (e.Agent != "b" || e.Delivery != a[0].Delivery) {
			t.Errorf("%+v", e)
		}
		return err
	})
	var g *queue.Given
	for _, want := range []string{"b's", "one"} {
		r.do(func(c *store.Change) (err error) {
			if g, err = entries.Offer(c, "b", queue.Handover{At: noon}); err == nil {
				_, err = entries.Acknowledge(c, entries.RefOf(&g.Entry), queue.Reply{At: noon})
			}
			return err
		})
		if g.Prompt != want {
			t.Errorf("%q, want %q", g.Prompt, want)
		}
	}
	if got := r.drain(); !slices.Equal(got, []string{"two"}) {
		t.Errorf("%q", got)
	}
	r.fails(queue.ErrState, func(c *store.Change) error {
		_, err := entries.Transfer(c, queue.Key{Agent: "b", Seq: 1}, "a")
		return err
	})
}

// TestTheStoreGivesBackWhatAStepHasMade takes any steps and compares each row with what the pure
// step says, and the order of what is handed over with that of a queue in memory.
func TestTheStoreGivesBackWhatAStepHasMade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		agent := fmt.Sprintf("agent-%d", n)
		mirror := map[int64]queue.Entry{}
		known := func(e *queue.Entry) {
			if e != nil {
				mirror[e.Seq] = *e
			}
		}
		write := func(act func(*store.Change) error) error { return r.Write(t.Context(), act) }
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			now := get(r, func(v *store.View) (*queue.Entry, error) { return entries.InFlight(v, agent) })
			switch step := rapid.SampledFrom([]string{"add", "add", "offer", "offer", "advance", "ack", "claim", "judge", "suspend", "recover", "withdraw", "drop", "retry"}).Draw(rt, "step"); {
			case step == "add":
				l := queue.Letter{Prompt: "p", Urgent: rapid.Bool().Draw(rt, "urgent"), Checked: rapid.Bool().Draw(rt, "checked")}
				if err := write(func(c *store.Change) error {
					a, err := entries.Add(c, agent, 0, noon, l)
					if err == nil {
						e, getErr := entries.Get(&c.View, a[0].Key)
						err = getErr
						known(e)
					}
					return err
				}); err != nil {
					rt.Fatal(err)
				}
			case step == "offer":
				var first *queue.Entry
				for _, e := range mirror {
					if e.State == queue.Queued && (first == nil || cmp.Or(cmp.Compare(e.Lane, first.Lane), cmp.Compare(e.Place, first.Place)) < 0) {
						first = &e
					}
				}
				var g *queue.Given
				err := write(func(c *store.Change) (err error) {
					g, err = entries.Offer(c, agent, queue.Handover{Session: "s", Via: queue.ViaStop, At: noon})
					return err
				})
				switch {
				case now != nil:
					if !errors.Is(err, entries.ErrInFlight) {
						rt.Fatalf("offered beside %+v: %v", now, err)
					}
				case first == nil:
					if !errors.Is(err, entries.ErrEmpty) {
						rt.Fatalf("offered of nothing: %+v, %v", g, err)
					}
				case err != nil:
					rt.Fatal(err)
				default:
					want, _ := first.Offer(queue.Handover{Session: "s", Via: queue.ViaStop, At: noon})
					if g.Entry != want {
						rt.Fatalf("offered\n%+v, want\n%+v", g.Entry, want)
					}
					known(&g.Entry)
				}
			case now == nil && step != "drop" && step != "retry" && step != "judge":
			default:
				var e *queue.Entry
				err := write(func(c *store.Change) (err error) {
					switch step {
					case "advance":
						e, err = entries.Take(c, entries.RefOf(now), noon, func(e queue.Entry) (queue.Entry, error) { return e.Advance(queue.Started, "p") })
					case "ack":
						e, err = entries.Acknowledge(c, entries.RefOf(now), queue.Reply{Text: "r", At: noon})
					case "claim":
						e, err = entries.Claim(c, entries.RefOf(now), queue.Reply{Text: "r", At: noon})
					case "withdraw":
						e, err = entries.Take(c, entries.RefOf(now), noon, queue.Entry.Withdraw)
					case "suspend":
						e, err = entries.Suspend(c, now.Key, now.Check, "c", noon)
					case "judge":
						k := queue.Key{Agent: agent, Seq: int64(rapid.IntRange(1, 5).Draw(rt, "which"))}
						e, err = entries.Judge(c, k, entries.Verdict{Verdict: queue.Verdict{Check: mirror[k.Seq].Check, Passed: rapid.Bool().Draw(rt, "passed")}, At: noon})
					case "recover":
						_, e, _, err = entries.Recover(c, agent, func(queue.Entry) (queue.Interruption, queue.Reply) {
							return queue.Interruption{
								Policy: rapid.SampledFrom([]queue.OrphanPolicy{queue.RetryOrphan, queue.DeadLetterOrphan, queue.DropOrphan}).Draw(rt, "policy"),
								Counts: true, MaxAttempts: 2, Now: noon, Finished: rapid.Bool().Draw(rt, "finished"),
							}, queue.Reply{Text: "r", At: noon}
						})
					case "drop", "retry":
						var one string
						for _, e := range mirror {
							one = max(one, e.Delivery)
						}
						act := entries.Retry
						if step == "drop" {
							act = entries.Drop
						}
						var all []queue.Entry
						if all, _, err = act(c, agent, noon, one); len(all) > 0 {
							e, err = entries.Get(&c.View, all[0].Key)
						}
					}
					return err
				})
				if err != nil && !errors.Is(err, queue.ErrState) && !errors.Is(err, queue.ErrStale) && !errors.Is(err, queue.ErrUnproven) && !errors.Is(err, entries.ErrNotFound) && !errors.Is(err, entries.ErrNoRoom) {
					rt.Fatalf("%s: %v", step, err)
				}
				if err == nil && e != nil {
					known(e)
				}
			}
			flying := 0
			for seq, want := range mirror {
				got := get(r, func(v *store.View) (*queue.Entry, error) { return entries.Get(v, queue.Key{Agent: agent, Seq: seq}) })
				if got == nil || *got != want {
					rt.Fatalf("entry %d is\n%+v, want\n%+v", seq, got, want)
				}
				if got.State.IsInFlight() {
					flying++
				}
			}
			if flying > 1 {
				rt.Fatalf("%d entries are in flight", flying)
			}
		}
	})
}

// The statements of which there are many take an index: none reads a queue of a million.
func TestNoStatementReadsTheWholeQueue(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, statement := range map[string]string{
		"next":      `SELECT seq FROM entries WHERE agent = 'a' AND state = 'queued' ORDER BY lane, place LIMIT 1`,
		"in flight": `SELECT seq FROM entries WHERE agent = 'a' AND ended = 0 AND state IN ('offered', 'taken', 'started', 'background', 'checking', 'unproven')`,
		"due":       `SELECT seq FROM entries WHERE state = 'later' AND not_before <= 7 ORDER BY not_before, agent, seq LIMIT 5`,
		"next due":  `SELECT not_before FROM entries WHERE state = 'later' ORDER BY not_before LIMIT 1`,
		"depths":    `SELECT agent, state, lane, count(*) FROM entries WHERE ended = 0 GROUP BY agent, state, lane`,
		"depth":     `SELECT state, lane, count(*) FROM entries WHERE agent = 'a' AND ended = 0 GROUP BY state, lane`,
		"dead":      `SELECT seq FROM entries WHERE agent = 'a' AND state = 'dead' AND n > 0 AND n > 3 ORDER BY n LIMIT 5`,
		"done":      `SELECT seq FROM entries WHERE agent = 'a' AND state = 'done' AND n > 0 AND ended >= 7 ORDER BY n DESC LIMIT 5`,
		"purge":     `SELECT seq FROM entries WHERE agent = 'a' AND state = 'dead' AND n > 0 AND ended <= 7 ORDER BY n LIMIT 5`,
		"prune":     `SELECT agent, seq FROM entries WHERE ended > 0 AND ended < 7 AND state <> 'dead' ORDER BY ended LIMIT 5`,
		"delivery":  `SELECT seq FROM entries WHERE agent = 'a' AND delivery = 'x'`,
	} {
		plan := ""
		r.do(func(c *store.Change) error {
			return c.Each(`EXPLAIN QUERY PLAN `+statement, nil, func(row store.Scan) error {
				var a, b, d int
				var detail string
				err := row(&a, &b, &d, &detail)
				plan += detail + "\n"
				return err
			})
		})
		scans := strings.Contains(plan, "SCAN entries") && !strings.Contains(plan, "USING COVERING INDEX") && !strings.Contains(plan, "USING INDEX entries_due")
		if scans || strings.Contains(plan, "TEMP B-TREE") && name != "due" {
			t.Errorf("%s:\n%s", name, plan)
		}
	}
}

// TestEachRowOfAnEntryGoesWithIt: every table that has the columns agent and seq is moved, pruned
// and purged with the entry. A moved entry lost what it had to pass.
func TestEachRowOfAnEntryGoesWithIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	others := []string{"queues", "ids", "behind"} // of a queue, or remembered on their own
	var tables []string
	r.do(func(c *store.Change) error {
		return c.Each(`SELECT m.name FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table' AND p.name IN ('agent', 'seq') GROUP BY m.name HAVING count(*) = 2`, nil, func(row store.Scan) error {
			var name string
			err := row(&name)
			if !slices.Contains(others, name) {
				tables = append(tables, name)
			}
			return err
		})
	})
	if len(tables) < 10 {
		t.Fatalf("%q", tables)
	}
	// rows adds one of the entry to each table that has none.
	rows := func(k queue.Key) {
		for _, table := range tables {
			r.do(func(c *store.Change) error {
				if there, err := c.One(`SELECT seq FROM `+table+` WHERE agent = $1 AND seq = $2`, []any{k.Agent, k.Seq}, new(int64)); there || err != nil {
					return err
				}
				var names, values []string
				err := c.Each(`SELECT name, type FROM pragma_table_info($1)`, []any{table}, func(row store.Scan) error {
					var name, is string
					err := row(&name, &is)
					value := map[string]string{"INTEGER": "1", "TEXT": "'x'", "BLOB": "x''"}[is]
					if name == "agent" || name == "seq" {
						value = map[string]string{"agent": "'" + k.Agent + "'", "seq": fmt.Sprint(k.Seq)}[name]
					}
					names, values = append(names, name), append(values, value)
					return err
				})
				if err == nil {
					_, err = c.Do(`INSERT INTO ` + table + ` (` + strings.Join(names, ", ") + `) VALUES (` + strings.Join(values, ", ") + `)`)
				}
				return err
			})
		}
	}
	count := func(k queue.Key, want int) {
		t.Helper()
		for _, table := range tables {
			n := get(r, func(v *store.View) (n int, err error) {
				_, err = v.One(`SELECT count(*) FROM `+table+` WHERE agent = $1 AND seq = $2`, []any{k.Agent, k.Seq}, &n)
				return n, err
			})
			if n != want {
				t.Errorf("%s has %d rows of entry %d of %s, want %d", table, n, k.Seq, k.Agent, want)
			}
		}
	}
	k := r.add(queue.Letter{Prompt: "moved"})[0].Key
	rows(k)
	var moved *queue.Entry
	r.do(func(c *store.Change) (err error) {
		moved, err = entries.Transfer(c, k, "b")
		return err
	})
	count(k, 0)
	count(moved.Key, 1)
	r.do(func(c *store.Change) error {
		if _, _, err := entries.Drop(c, "b", noon, moved.Delivery); err != nil {
			return err
		}
		_, err := entries.Purge(c, "b", noon, 9)
		return err
	})
	count(moved.Key, 0)
	r.prompts("pruned")
	g := r.offer()
	r.acknowledge(g)
	rows(g.Key)
	r.do(func(c *store.Change) error {
		_, err := entries.Prune(c, noon.Add(time.Hour), 9)
		return err
	})
	count(g.Key, 0)
}

// handovers are how the hand-overs of an entry were over, and when.
func (r rig) handovers(k queue.Key) (all []string) {
	r.Helper()
	r.do(func(c *store.Change) error {
		return c.Each(`SELECT came, outcome, ended FROM handovers WHERE agent = $1 AND seq = $2 ORDER BY n`, []any{k.Agent, k.Seq}, func(row store.Scan) error {
			var came, outcome string
			var ended int64
			err := row(&came, &outcome, &ended)
			if ended != 0 {
				ended = (ended - noon.UnixMilli()) / 1000
			}
			all = append(all, fmt.Sprint(came, " ", outcome, " ", ended))
			return err
		})
	})
	return all
}

// TestEachHandOverTellsHowItWasOver, and when by the caller's clock.
func TestEachHandOverTellsHowItWasOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	now := noon
	take := func(e *queue.Entry, step func(queue.Entry) (queue.Entry, error)) *queue.Entry {
		t.Helper()
		now = now.Add(time.Second)
		r.do(func(c *store.Change) (err error) {
			e, err = entries.TakeBy(c, e.Key, now, step)
			return err
		})
		return e
	}
	again := func(e *queue.Entry) *queue.Entry {
		now = now.Add(time.Second)
		var g *queue.Given
		r.do(func(c *store.Change) (err error) {
			g, err = entries.OfferAgain(c, entries.RefOf(e), queue.Handover{At: now})
			return err
		})
		return &g.Entry
	}
	recovered := func(i queue.Interruption) {
		now = now.Add(time.Second)
		i.Now, i.Policy = now, queue.RetryOrphan
		r.do(func(c *store.Change) error {
			_, _, _, err := entries.Recover(c, "a", func(queue.Entry) (queue.Interruption, queue.Reply) { return i, queue.Reply{Text: "again"} })
			return err
		})
	}
	started := func(e queue.Entry) (queue.Entry, error) { return e.Advance(queue.Started, "p") }
	claim := func(e queue.Entry) (queue.Entry, error) { return e.Claim(now) }

	r.prompts("one")
	e := &r.offer().Entry
	take(e, queue.Entry.Withdraw)
	e = again(&r.offer().Entry)
	take(e, started)
	recovered(queue.Interruption{})
	e = take(take(&r.offer().Entry, started), claim)
	e = take(e, func(e queue.Entry) (queue.Entry, error) { return e.VoidCheck(), nil })
	want := []string{"offered withdrawn 1", "offered again 2", "started requeued 4", "started  0"}
	if got := r.handovers(e.Key); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	e = take(e, claim)
	r.do(func(c *store.Change) error {
		_, err := entries.Judge(c, e.Key, entries.Verdict{Verdict: queue.Verdict{Check: e.Check}, At: now})
		return err
	})
	e = again(take(e, func(e queue.Entry) (queue.Entry, error) { return e, nil }))
	recovered(queue.Interruption{Finished: true}) // it is to be checked
	r.do(func(c *store.Change) error {
		_, err := entries.Judge(c, e.Key, entries.Verdict{Verdict: queue.Verdict{Check: e.Check + 1, Passed: true}, At: now})
		return err
	})
	want = append(want[:3], "started checking 8", "offered checking 11")
	if got := r.handovers(e.Key); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRecoverKeepsTheReplyOfWhatIsChecked: a session's words were replaced by what was looked for
// once more.
func TestRecoverKeepsTheReplyOfWhatIsChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(queue.Letter{Prompt: "one", Checked: true})
	g := r.offer()
	r.do(func(c *store.Change) error {
		_, err := entries.Claim(c, entries.RefOf(&g.Entry), queue.Reply{Text: "its claim", At: noon})
		return err
	})
	r.do(func(c *store.Change) error {
		_, _, _, err := entries.Recover(c, "a", func(queue.Entry) (queue.Interruption, queue.Reply) {
			return queue.Interruption{Finished: true, Now: noon}, queue.Reply{}
		})
		return err
	})
	if reply := get(r, func(v *store.View) (*queue.Reply, error) { return entries.ReplyOf(v, g.Key) }); reply.Text != "its claim" {
		t.Errorf("%+v", reply)
	}
}

// TestWhatIsQueuedAsIfNewShowsNothingOfItsChecks, by a person's retry or cancel.
func TestWhatIsQueuedAsIfNewShowsNothingOfItsChecks(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*store.Change, queue.Entry, entries.Verdict) error{
		"retried": func(c *store.Change, e queue.Entry, v entries.Verdict) error {
			v.GiveUp = queue.NoProgress
			if _, err := entries.Judge(c, e.Key, v); err != nil {
				return err
			}
			_, _, err := entries.Retry(c, "a", noon, e.Delivery)
			return err
		},
		"cancelled": func(c *store.Change, e queue.Entry, v entries.Verdict) error {
			if _, err := entries.TakeBy(c, e.Key, noon, func(e queue.Entry) (queue.Entry, error) { return e.MarkCancelled(queue.CancelAgain) }); err != nil {
				return err
			}
			_, err := entries.Judge(c, e.Key, v)
			return err
		},
	} {
		r := newRig(t)
		r.add(queue.Letter{Prompt: "one", Checked: true}, queue.Letter{Prompt: "two"})
		g := r.offer()
		r.take(g, func(e queue.Entry) (queue.Entry, error) { return e.Claim(noon) })
		r.do(func(c *store.Change) error {
			return end(c, g.Entry, entries.Verdict{Verdict: queue.Verdict{Check: 1}, Shown: queue.Shown{Output: "no"}, Iteration: 1, At: noon})
		})
		if got := r.offer(); got.Prompt != "two" {
			t.Errorf("%s: %q is first", name, got.Prompt)
		} else {
			r.acknowledge(got)
		}
		if got := r.offer(); got.Prompt != "one" || got.Output != "" || got.Iteration != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestAVoidCheckLeavesNoVerdict: one that was recorded and not carried out counted as an iteration.
func TestAVoidCheckLeavesNoVerdict(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.add(queue.Letter{Prompt: "one", Checked: true})
	g := r.offer()
	r.take(g, func(e queue.Entry) (queue.Entry, error) { return e.Claim(noon) })
	r.do(func(c *store.Change) error {
		return entries.Record(c, g.Key, entries.Verdict{Verdict: queue.Verdict{Check: 1}, Iteration: 1, At: noon})
	})
	r.take(g, func(e queue.Entry) (queue.Entry, error) { return e.VoidCheck(), nil })
	if all := get(r, func(v *store.View) ([]entries.Verdict, error) { return entries.VerdictsOf(v, g.Key) }); len(all) > 0 {
		t.Errorf("%+v", all)
	}
}

// TestANameIsOneEntrys: equal lines have one entry id, by which one is not dropped; and what cannot
// be retried keeps back nothing else.
func TestANameIsOneEntrys(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.prompts("same", "same")
	first := get(r, func(v *store.View) ([]queue.Entry, error) { return entries.Queued(v, "a", 1) })[0]
	r.do(func(c *store.Change) error {
		got, _, err := entries.Drop(c, "a", noon, first.EntryID)
		if len(got) != 0 {
			t.Errorf("%d are dropped by their entry id", len(got))
		}
		return err
	})
	r.do(func(c *store.Change) error {
		if _, err := entries.Insert(c, "a", queue.Entry{ID: "lost", State: queue.Dead, Reason: queue.Poison, Accepted: noon, Ended: noon}, queue.Text{}); err != nil {
			return err
		}
		_, _, err := entries.Drop(c, "a", noon, first.Delivery)
		return err
	})
	r.do(func(c *store.Change) error {
		got, refused, err := entries.Retry(c, "a", noon, "lost", first.Delivery)
		if len(got) != 1 || len(refused) != 1 || !errors.Is(refused[0], queue.ErrState) {
			t.Errorf("%+v, %v", got, refused)
		}
		return err
	})
	if got := r.drain(); len(got) != 2 {
		t.Errorf("%q", got)
	}
}

// TestADuplicateIsOneHoweverLong: its id was accepted before the limit was lowered.
func TestADuplicateIsOneHoweverLong(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := queue.Letter{ID: "7", Prompt: strings.Repeat("x", 1000)}
	r.add(l)
	r.do(func(c *store.Change) error {
		a, err := entries.Add(c, "a", 100, noon, l)
		if err == nil && !a[0].Duplicate {
			t.Errorf("%+v", a)
		}
		return err
	})
}
