package entries_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
	"heartbeat/queue/queuetest"
	"heartbeat/queue/wire"
)

// carry carries out a request of a session.
func (r rig) carry(session string, steps ...wire.Step) (a wire.Answer) {
	r.Helper()
	r.do(func(c *store.Change) (err error) {
		a, err = entries.Carry(c, "a", session, noon, wire.Request{N: 1, Steps: steps})
		return err
	})
	return a
}

// TestAStopIsOneRequest: the entry before is done, with what the agent has said, and the next one
// is handed over.
func TestAStopIsOneRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.prompts("one", "two")
	to := queue.Handover{Session: "s1", Via: queue.ViaStop, At: noon}
	first := r.carry("s1", wire.Step{Do: wire.Offer, To: to})
	if first.Err() != nil || first.Text == nil || first.Text.Prompt != "one" || first.Entry.State != queue.Offered {
		t.Fatalf("%+v", first)
	}
	done := wire.Step{Do: wire.Acknowledge, At: wire.RefOf(first.Entry), Reply: queue.Reply{Session: "s1", Text: "did one", At: noon}}
	a := r.carry("s1", done, wire.Step{Do: wire.Offer, To: to})
	if a.Err() != nil || a.Steps != 2 || a.Text == nil || a.Text.Prompt != "two" || a.Entry.Attempt != 1 {
		t.Fatalf("%+v", a)
	}
	said := get(r, func(v *store.View) (*queue.Reply, error) { return entries.ReplyOf(v, first.Entry.Key) })
	if said == nil || said.Text != "did one" {
		t.Errorf("%+v", said)
	}
	if a = r.carry("s1", done); !errors.Is(a.Err(), queue.ErrStale) || a.Entry == nil || a.Steps != 0 {
		t.Errorf("a second time: %+v", a)
	}
	if a = r.carry("s2", wire.Step{Do: wire.Advance, At: wire.RefOf(a.Entry), State: queue.Taken}); a.Code != wire.InFlight {
		t.Errorf("by another session: %+v", a)
	}
}

// TestWhatComesBeforeARefusalStands: the entry before is done, though the next one's text is damaged.
func TestWhatComesBeforeARefusalStands(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.prompts("one", "two")
	first := r.offer()
	r.do(func(c *store.Change) error {
		_, err := c.Do(`UPDATE texts SET prompt = 'another' WHERE prompt = 'two'`)
		return err
	})
	a := r.carry("s1", wire.Step{Do: wire.Acknowledge, At: wire.RefOf(&first.Entry)}, wire.Step{Do: wire.Offer, To: queue.Handover{Session: "s1", At: noon}})
	if a.Steps != 1 || a.Err() == nil || a.Entry != nil {
		t.Errorf("%+v", a)
	}
	if e := get(r, func(v *store.View) (*queue.Entry, error) { return entries.Get(v, first.Key) }); e.State != queue.Done {
		t.Errorf("the first one is %s", e.State)
	}
}

// TestTheStoreAnswersAsTheQueueInMemory whatever a session asks, in any order.
func TestTheStoreAnswersAsTheQueueInMemory(t *testing.T) {
	t.Parallel()
	dos := []wire.Do{
		wire.Look, wire.Offer, wire.Again, wire.Place, wire.Withdraw, wire.Advance, wire.GoOn, wire.Fail, wire.Unread, wire.Void, wire.Claim,
		wire.Acknowledge, wire.Rebind, wire.Cancel,
	}
	r := newRig(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		agent := "agent" + time.Duration(n).String()
		var model queuetest.Queue
		names := map[string]string{"": ""} // :: delivery id in the store → in memory
		for step := range rapid.IntRange(1, 25).Draw(rt, "length") {
			now := noon.Add(time.Duration(step) * time.Second)
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
			case 0:
				l := queue.Letter{Prompt: "do it", Urgent: rapid.Bool().Draw(rt, "urgent"), Checked: rapid.Bool().Draw(rt, "checked")}
				var added []entries.Added
				r.do(func(c *store.Change) (err error) { added, err = entries.Add(c, agent, 0, now, l); return err })
				model.Add(now, l)
				all := model.Items()
				names[added[0].Delivery] = all[len(all)-1].Delivery
			case 1:
				i := model.InFlight()
				if i == nil || i.State != queue.Checking {
					continue
				}
				v := queue.Verdict{Check: i.Check, Passed: rapid.Bool().Draw(rt, "passed")}
				r.do(func(c *store.Change) error {
					_, err := entries.Judge(c, queue.Key{Agent: agent, Seq: i.Seq}, entries.Verdict{Verdict: v, At: now, Iteration: i.Iteration, Shown: queue.Shown{Output: "fails"}})
					return err
				})
				if err := model.Judge(i.Delivery, v, queue.Shown{Output: "fails"}, now); err != nil {
					rt.Fatal(err)
				}
			default:
				session := rapid.SampledFrom([]string{"s1", "s1", "s1", "s2"}).Draw(rt, "session")
				var here, there []wire.Step
				for range rapid.IntRange(1, 2).Draw(rt, "steps") {
					s := wire.Step{
						Do: rapid.SampledFrom(dos).Draw(rt, "do"), State: rapid.SampledFrom([]queue.State{queue.Taken, queue.Started, queue.Background}).Draw(rt, "state"),
						PromptID: "p", Failure: "limit", As: queue.CancelAgain, Next: true, Reply: queue.Reply{Session: session, Text: "said", At: now},
						To: queue.Handover{Session: session, Via: queue.ViaStop, At: now, Transcript: "/t", Offset: int64(step)},
					}
					stored := get(r, func(v *store.View) (*queue.Entry, error) { return entries.InFlight(v, agent) })
					if stored != nil {
						s.At = wire.RefOf(stored)
						s.At.Handover -= int64(rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(rt, "late"))
					}
					here = append(here, s)
					s.At.Delivery = names[s.At.Delivery]
					there = append(there, s)
				}
				var got wire.Answer
				r.do(func(c *store.Change) (err error) {
					got, err = entries.Carry(c, agent, session, now, wire.Request{N: 1, Steps: here})
					return err
				})
				want := model.Carry(session, wire.Request{N: 1, Steps: there})
				got.Why, want.Why = "", ""
				for _, a := range []*wire.Answer{&got, &want} {
					if a.Entry != nil {
						a.Entry.Agent, a.Entry.EntryID = "", ""
					}
				}
				if got.Entry != nil {
					got.Entry.Delivery = names[got.Entry.Delivery]
				}
				if diff := cmp.Diff(want, got); diff != "" {
					rt.Fatalf("%+v, in memory and in the store: %s", here, diff)
				}
			}
		}
	})
}
