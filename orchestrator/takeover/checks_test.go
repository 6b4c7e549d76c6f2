package takeover

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heartbeat/config"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/approval"
	"heartbeat/orchestrator/check"
	"heartbeat/orchestrator/entries"
	scheduled "heartbeat/orchestrator/later"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/proof/guard"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// asked queues prompts that have to pass a check, and demands that.
func (r *rig) asked(prompts ...string) {
	r.Helper()
	for _, p := range prompts {
		d := ledger.Demand{ID: p, Inbox: r.agent.Inbox, Text: p, Until: config.NewUntil("make", p), Queued: true, At: time.Now()}
		d.Until.Approve = []string{"person"}
		if err := ledger.KeepDemand(r.state, d); err != nil {
			r.Fatal(err)
		}
		r.old(func(h inbox.Orphaned) {
			must[string](r)(h.Append(r.Context(), inbox.Letter{ID: p, Source: "send", Prompt: p, Checked: true}))
		})
	}
}

// claimed hands over the first entry, and has its session say that it is done.
func (r *rig) claimed(reply string) (f *inbox.InFlight) {
	r.Helper()
	r.old(func(h inbox.Orphaned) {
		offerIn(r, h, inbox.Offering{Session: "s", Checked: true})
		must[*inbox.InFlight](r)(h.Advance(inbox.Started, ""))
		f = must[*inbox.InFlight](r)(h.Check(inbox.Acknowledgement{Session: "s", Reply: reply, Now: time.Now()}))
	})
	return f
}

func (r *rig) book(courses ...ledger.Course) {
	r.Helper()
	b := must[*ledger.Book](r)(ledger.Open(r.state, key))
	for _, c := range courses {
		if err := b.Keep(c); err != nil {
			r.Fatal(err)
		}
	}
}

// courseOf is one of a record, with a verdict about its check.
func courseOf(f *inbox.InFlight, past guard.Past, v *ledger.Verdict) ledger.Course {
	c := ledger.Course{Delivery: f.DeliveryID, Entry: f.EntryID, From: ledger.FromEntry, Past: past, Files: "files", Verdict: v}
	if v != nil {
		v.Delivery, v.Entry, v.Check, v.Claimed = f.DeliveryID, f.EntryID, f.Check, f.Claim.Since
	}
	return c
}

var onePast = guard.Past{Iterations: 1, Worked: time.Minute, Last: []guard.Iteration{{Worked: time.Minute, Said: "x", Same: true}}}

// TestAnEntryThatIsCheckedGoesOnBeingChecked, with what it has to pass, what its check said and
// how its iterations went.
func TestAnEntryThatIsCheckedGoesOnBeingChecked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.asked("one", "two")
	f := r.claimed("all done")
	r.old(func(h inbox.Orphaned) { // it has failed once
		must[*inbox.Delivery](t)(h.Verdict(inbox.Verdict{Delivery: f.DeliveryID, Check: f.Check, Output: "fails"}))
		_, _, err := h.Reoffer(inbox.Offering{Session: "s", Checked: true})
		must[int](t)(0, err)
		must[*inbox.InFlight](t)(h.Advance(inbox.Started, ""))
		f = must[*inbox.InFlight](t)(h.Check(inbox.Acknowledgement{Session: "s", Reply: "now it is", Now: time.Now()}))
	})
	v := ledger.Verdict{Check: 1, Iteration: 1, By: "check", Applied: true, At: time.Now()}
	c := courseOf(f, onePast, nil)
	c.Verdict, v.Delivery, v.Entry = &v, f.DeliveryID, f.EntryID
	r.book(c)
	r.take()
	e := r.flight()
	if e == nil || e.State != queue.Checking || e.Check != 2 || e.Iteration != 2 || !e.Checked || !e.Claimed.Equal(f.Claim.Since.Truncate(time.Millisecond)) {
		t.Fatalf("%+v", e)
	}
	reply := read(r, func(v *store.View) (*queue.Reply, error) { return entries.ReplyOf(v, e.Key) })
	if reply == nil || reply.Text != "now it is" || reply.Session != "s" {
		t.Errorf("%+v", reply)
	}
	verdicts := read(r, func(v *store.View) ([]entries.Verdict, error) { return entries.VerdictsOf(v, e.Key) })
	if len(verdicts) != 1 || verdicts[0].Check != 1 || verdicts[0].Iteration != 1 || verdicts[0].Worked != time.Minute || verdicts[0].Files != "files" || verdicts[0].Passed {
		t.Errorf("%+v", verdicts)
	}
	d := read(r, func(v *store.View) (*check.Demand, error) { return check.DemandOf(v, e.Key) })
	if d == nil || d.Until == nil || !slices.Equal(d.Until.Check, []string{"make", "one"}) || !slices.Equal(d.Until.Approve, []string{"person"}) {
		t.Errorf("%+v", d)
	}
	for _, q := range r.all() {
		if d := read(r, func(v *store.View) (*check.Demand, error) { return check.DemandOf(v, q.Key) }); q.ID == "two" && (d == nil || !q.Checked) {
			t.Errorf("%+v of %+v", d, q)
		}
	}
	for _, name := range []string{"proofs/" + key + ".json", "demands", "texts"} {
		_, err := os.Lstat(filepath.Join(r.state, Folder, name))
		if _, gone := os.Lstat(filepath.Join(r.state, name)); name[0] == 'p' && (err != nil || gone == nil) {
			t.Errorf("%s is where it was", name)
		}
	}
}

// TestAVerdictThatWasNotCarriedOutStands: the check is not made again, and the entry is not handed
// over though it has passed.
func TestAVerdictThatWasNotCarriedOutStands(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]ledger.Verdict{
		"passed":     {Passed: true, By: "check"},
		"not passed": {By: "check", Output: "fails"},
		"given up":   {By: "check", GiveUp: inbox.MaxIterations},
		"told":       {By: "people", Answers: "yes", Told: []string{"q"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.asked("one")
			f := r.claimed("done")
			d := must[*ledger.Demand](t)(ledger.DemandOf(r.state, r.agent.Inbox, "one"))
			v.Definition = ledger.Definition(d.Until)
			v.Iteration = 1
			past := onePast
			if v.Passed || v.Answers != "" {
				past = guard.Past{}
			}
			c := courseOf(f, past, &v)
			if v.Answers != "" {
				c.Asks = 1
			}
			r.book(c)
			r.take()
			e := r.flight()
			verdicts := read(r, func(v *store.View) ([]entries.Verdict, error) { return entries.VerdictsOf(v, e.Key) })
			if len(verdicts) != 1 || e.Check != f.Check || verdicts[0].Check != e.Check || verdicts[0].Passed != v.Passed || string(verdicts[0].GiveUp) != string(v.GiveUp) ||
				verdicts[0].Told != (v.Answers != "") || e.Iteration != 1 {
				t.Errorf("%+v of %+v", verdicts, e)
			}
			shown := read(r, func(v *store.View) (queue.Shown, error) { return entries.ShownOf(v, e.Key) })
			if shown.Output != v.Output || shown.Answers != v.Answers {
				t.Errorf("%+v", shown)
			}
		})
	}
}

// TestWhatWaitsForAPersonGoesOnWaiting: the state directory's copy counts, and what was asked of
// people, or answered, is about the same.
func TestWhatWaitsForAPersonGoesOnWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.asked("one", "two", "three")
	var courses []ledger.Course
	for _, p := range []string{"one", "two"} {
		f := r.claimed("did " + p)
		d := must[*ledger.Demand](t)(ledger.DemandOf(r.state, r.agent.Inbox, p))
		c := courseOf(f, guard.Past{}, nil)
		c.Answered = &ledger.Answered{Check: f.Check, Claimed: f.Claim.Since, Definition: ledger.Definition(d.Until), Output: "ok", At: time.Now()}
		courses = append(courses, c)
		now := time.Now()
		if err := ledger.KeepAside(r.state, key, ledger.Aside{Flight: f.AsideSince(now), Conversation: "talk " + p}); err != nil {
			t.Fatal(err)
		}
		r.old(func(h inbox.Orphaned) { must[*inbox.InFlight](t)(h.SetAside(f.DeliveryID, f.Check, now)) })
	}
	r.book(courses...)
	r.old(func(h inbox.Orphaned) { // "two" is answered, and returns
		f := must[[]inbox.InFlight](t)(h.Waiting())[1]
		v := inbox.Verdict{Delivery: f.DeliveryID, Check: f.Check, Output: "Rejected", Now: time.Now()}
		if err := ledger.KeepAside(r.state, key, ledger.Aside{Flight: f.Again(v), Conversation: "talk two"}); err != nil {
			t.Fatal(err)
		}
	})
	if err := os.Remove(filepath.Join(r.agent.Home, ".waiting.jsonl")); err != nil { // somebody has
		t.Fatal(err)
	}
	about := func() string {
		var c course
		data, _ := json.Marshal(courses[0])
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		return c.about("one", &queue.Reply{Text: "did one"})
	}()
	if err := r.store.Write(t.Context(), func(c *store.Change) error {
		return approval.Put(c, approval.Request{ID: "q1", Key: key, Agent: "a", Name: "person", Entry: courses[0].Delivery, About: about, State: approval.Asked, At: time.Now(), Until: time.Now().Add(time.Hour)})
	}); err != nil {
		t.Fatal(err)
	}
	r.take()
	waits := read(r, func(v *store.View) ([]queue.Entry, error) { return entries.Suspended(v, key) })
	if len(waits) != 1 || waits[0].ID != "one" || waits[0].Conversation != "talk one" || waits[0].Check != 1 || !waits[0].Checked || waits[0].Delivery != courses[0].Delivery {
		t.Fatalf("%+v", waits)
	}
	now := read(r, func(v *store.View) (string, error) { return check.About(v, r.agent, waits[0]) })
	requests := read(r, func(v *store.View) ([]approval.Request, error) { return approval.For(v, key, waits[0].Delivery, now) })
	if len(requests) != 1 {
		t.Errorf("nobody was asked about what is shown now")
	}
	first := read(r, func(v *store.View) ([]queue.Entry, error) { return entries.Queued(v, key, 5) })
	if len(first) != 2 || first[0].ID != "two" || first[0].Lane != queue.Returning || first[0].Iteration != 2 || first[0].Conversation != "talk two" || first[1].ID != "three" {
		t.Errorf("%+v", first)
	}
}

// TestTheFormOfAPassIsThatOfRequests: their hash is made of it.
func TestTheFormOfAPassIsThatOfRequests(t *testing.T) {
	t.Parallel()
	was := ledger.Answered{Check: 3, Claimed: time.Now().UTC(), Definition: "d", Output: "o", Took: time.Second, At: time.Now().UTC()}
	is := answered(was)
	for _, empty := range []bool{false, true} {
		if empty {
			was, is = ledger.Answered{}, answered{}
		}
		x, err := json.Marshal(was)
		y, other := json.Marshal(is)
		if err := errors.Join(err, other); err != nil || string(x) != string(y) {
			t.Errorf("%s, was %s (%v)", y, x, err)
		}
	}
}

// TestWhatOnlyTheAgentSaysCountsForNothing: an outbox that calls a checked entry done, a record
// that calls it unproven, another text than was queued, a check that nobody knows.
func TestWhatOnlyTheAgentSaysCountsForNothing(t *testing.T) {
	t.Parallel()
	t.Run("done", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.asked("one")
		f := r.claimed("done")
		r.book(courseOf(f, guard.Past{}, nil))
		data, _ := json.Marshal(inbox.Delivery{DeliveryID: f.DeliveryID, EntryID: f.EntryID, ID: "one", Attempt: 1, AcknowledgedAt: time.Now()})
		if err := os.WriteFile(filepath.Join(r.agent.Home, "outbox.jsonl"), append(data, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := r.take(); r.flight() == nil || len(got.Notes) == 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("unproven", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.asked("one")
		f := r.claimed("done")
		r.old(func(h inbox.Orphaned) {
			must[*inbox.Delivery](t)(h.Verdict(inbox.Verdict{Delivery: f.DeliveryID, Check: f.Check, Output: "no check said that"}))
		})
		r.book(courseOf(f, guard.Past{}, nil))
		r.take()
		if e := r.flight(); e == nil || e.State != queue.Started {
			t.Errorf("%+v", e)
		}
	})
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.asked("one")
		data := must[[]byte](t)(os.ReadFile(r.agent.Inbox))
		other := slices.Concat([]byte(`{"heartbeat":1,"id":"one","source":"send","checked":true,"prompt":"easy"}`), []byte{'\n'})
		_ = data
		if err := os.WriteFile(r.agent.Inbox, other, 0o600); err != nil {
			t.Fatal(err)
		}
		if r.take(); !slices.Equal(r.is(queue.Queued), []string{"one"}) {
			t.Errorf("%q", r.is(queue.Queued))
		}
	})
	t.Run("removed", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.asked("one", "two")
		if err := os.WriteFile(r.agent.Inbox, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if r.take(); !slices.Equal(r.is(queue.Dead), []string{"one", "two"}) {
			t.Errorf("%q", r.is(queue.Dead))
		}
	})
	t.Run("no check", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		r.echo(`{"heartbeat":1,"id":"x","source":"send","checked":true,"prompt":"x"}` + "\n")
		r.take()
		if all := r.all(); len(all) != 1 || all[0].Reason != queue.NoCheck || all[0].Prompt != "x" {
			t.Errorf("%+v", all)
		}
	})
}

// TestPromptsForLaterAreTakenOnce, with what they have to pass, also those that an earlier version
// puts there afterwards.
func TestPromptsForLaterAreTakenOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	put := func(id string) {
		must[scheduled.Prompt](t)(scheduled.Put(t.Context(), r.agent, scheduled.Prompt{ID: id, At: at, Text: "text of " + id, Urgent: id == "b"}))
	}
	put("a")
	put("b")
	d := ledger.Demand{ID: "a", Inbox: r.agent.Inbox, Text: "text of a", Until: config.NewUntil("make"), At: time.Now(), Due: at}
	if err := ledger.KeepDemand(r.state, d); err != nil {
		t.Fatal(err)
	}
	r.send("sent")
	must[scheduled.Prompt](t)(scheduled.Put(t.Context(), r.agent, scheduled.Prompt{ID: "sent", At: at, Text: "sent"})) // killed before it was removed
	r.take()
	put("c")
	r.take()
	r.take()
	waits := read(r, func(v *store.View) ([]queue.Entry, error) { return entries.Later(v, key) })
	if len(waits) != 3 || !waits[0].NotBefore.Equal(at) || !waits[0].Checked || waits[1].Lane != queue.Urgent || waits[2].ID != "c" || len(r.is(queue.Queued)) != 1 {
		t.Errorf("%+v", waits)
	}
	if d := read(r, func(v *store.View) (*check.Demand, error) { return check.DemandOf(v, waits[0].Key) }); d == nil || d.Until == nil {
		t.Errorf("%+v", d)
	}
}

// TestAReplyThatIsAwaitedIsTaken, and no other.
func TestAReplyThatIsAwaitedIsTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.store.Write(context.Background(), func(c *store.Change) error {
		_, err := awaited.Order{Reply: awaited.Reply{Agent: "a", ID: "one", Target: "t", At: time.Now().Add(-time.Minute)}}.Do(c)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r.send("one", "two")
	r.done("the reply")
	r.done("another")
	r.take()
	done := read(r, func(v *store.View) ([]entries.Ended, error) { return entries.Done(v, key, time.Time{}, 5) })
	if len(done) != 1 || done[0].ID != "one" || done[0].Reply == nil || done[0].Reply.Text != "the reply" {
		t.Errorf("%+v", done)
	}
	if !r.exists("outbox.jsonl") {
		t.Error("the outbox is gone")
	}
}

// TestIterationsMakeThePastThatTheyCameFrom: what guard decides next is what it would have.
func TestIterationsMakeThePastThatTheyCameFrom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(rt, "n")
		var was guard.Past
		for range n {
			i := guard.Iteration{
				Worked: time.Duration(rapid.IntRange(0, 60).Draw(rt, "worked")) * time.Second,
				Said:   rapid.SampledFrom([]string{"x", "y"}).Draw(rt, "said"), Same: rapid.Bool().Draw(rt, "same"),
			}
			next, d := was.After(i, guard.Rule{})
			if d.Gone != "" {
				break
			}
			was = next
		}
		var is guard.Past
		for _, i := range iterationsOf(was) {
			is, _ = is.After(i, guard.Rule{})
		}
		if is.Iterations != was.Iterations || is.Worked != was.Worked || is.Waits != was.Waits || !slices.Equal(is.Last, was.Last) {
			rt.Fatalf("%+v, was %+v", is, was)
		}
	})
}
