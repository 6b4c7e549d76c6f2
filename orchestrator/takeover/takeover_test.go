package takeover

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heartbeat/hook/flock"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/intake"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// inFlight are the ways in which an entry can be in flight, by the code of the earlier design.
func inFlight() map[string]func(*rig, inbox.Orphaned) {
	offering := inbox.Offering{Session: "s1", Via: inbox.ViaStop, Transcript: "/t", TranscriptOffset: 7}
	advance := func(to inbox.State) func(*rig, inbox.Orphaned) {
		return func(r *rig, h inbox.Orphaned) {
			offerIn(r, h, offering)
			must[*inbox.InFlight](r)(h.Advance(to, "p1"))
		}
	}
	unwatched := offering
	unwatched.Unwatched = true
	file := offering
	file.File = "/f"
	return map[string]func(*rig, inbox.Orphaned){
		"offered":    func(r *rig, h inbox.Orphaned) { offerIn(r, h, offering) },
		"taken":      advance(inbox.Taken),
		"started":    advance(inbox.Started),
		"background": advance(inbox.Background),
		"unwatched": func(r *rig, h inbox.Orphaned) {
			offerIn(r, h, unwatched)
			must[*inbox.InFlight](r)(h.Advance(inbox.Taken, ""))
		},
		"failed": func(r *rig, h inbox.Orphaned) {
			advance(inbox.Taken)(r, h)
			must[*inbox.InFlight](r)(h.Fail("overloaded"))
		},
		"cancelled": func(r *rig, h inbox.Orphaned) {
			advance(inbox.Started)(r, h)
			must[*inbox.InFlight](r)(h.Cancel(inbox.Cancellation{Delivery: must[*inbox.InFlight](r)(h.InFlight()).DeliveryID}))
		},
		"cancelled, again": func(r *rig, h inbox.Orphaned) {
			advance(inbox.Started)(r, h)
			must[*inbox.InFlight](r)(h.Cancel(inbox.Cancellation{Delivery: must[*inbox.InFlight](r)(h.InFlight()).DeliveryID, Again: true}))
		},
		"unread": func(r *rig, h inbox.Orphaned) {
			offerIn(r, h, file)
			must[*inbox.InFlight](r)(h.Unread())
		},
		"offered again": func(r *rig, h inbox.Orphaned) {
			offerIn(r, h, offering)
			_, _, err := h.Reoffer(offering)
			must[int](r)(0, err)
		},
		"interrupted once": func(r *rig, h inbox.Orphaned) {
			advance(inbox.Taken)(r, h)
			_, _, err := h.Recover(inbox.Interruption{Counts: true})
			must[int](r)(0, err)
			advance(inbox.Taken)(r, h)
		},
	}
}

// TestEachStateOfAnEntryInFlightIsRecoveredAsBefore: what the earlier design's own recovery makes
// of a record, package queue makes of its row, by each policy.
func TestEachStateOfAnEntryInFlightIsRecoveredAsBefore(t *testing.T) {
	t.Parallel()
	for name, do := range inFlight() {
		for _, policy := range []inbox.OrphanPolicy{"retry", "deadletter", "drop"} {
			t.Run(fmt.Sprint(name, " ", policy), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				r.agent.OnOrphan = policy
				r.send("one", "two", "three")
				var was *inbox.InFlight
				r.old(func(h inbox.Orphaned) {
					do(r, h)
					was = must[*inbox.InFlight](r)(h.InFlight())
				})
				old := r.copied()
				r.take()
				e := r.flight()
				if e == nil || e.Delivery != was.DeliveryID || e.Attempt != was.Attempt || e.Repeats != was.Repeats || e.Failure != was.Failure || e.Handover.Session != was.Session ||
					e.Handover.Transcript != was.Transcript || e.Handover.Offset != was.TranscriptOffset || e.Handover.PromptID != was.PromptID || e.Handover.File != was.File ||
					string(e.Handover.Via) != string(was.Via) || !e.Handover.At.Equal(was.DeliveredAt.Truncate(time.Millisecond)) || string(e.Cancel) != string(was.Cancel) {
					t.Fatalf("%+v\nwas %+v", e, was)
				}
				var outcome inbox.Outcome
				old.old(func(h inbox.Orphaned) {
					var err error
					outcome, _, err = h.Recover(inbox.Interruption{Policy: policy, Counts: true, Passes: func(string) bool { return true }, Begins: func(inbox.InFlight) bool { return true }})
					must[int](t)(0, err)
				})
				var got queue.Outcome
				if err := r.store.Write(t.Context(), func(c *store.Change) (err error) {
					_, _, got, err = entries.Recover(c, key, func(queue.Entry) (queue.Interruption, queue.Reply) {
						return queue.Interruption{Policy: queue.OrphanPolicy(policy), Counts: true, Passes: true, Begins: true, Now: time.Now()}, queue.Reply{}
					})
					return err
				}); err != nil {
					t.Fatal(err)
				}
				if string(got) != string(outcome) {
					t.Fatalf("%s, was %s", got, outcome)
				}
				if outcome == inbox.Kept {
					return
				}
				now, before := r.drain(), old.drainOld()
				if outcome == inbox.QueuedAgain { // it has a new line there
					now, before = withoutNames(now), withoutNames(before)
				}
				if !slices.Equal(now, before) {
					t.Errorf("%+v\nwas %+v", now, before)
				}
			})
		}
	}
}

func withoutNames(all []given) []given {
	for i := range all {
		all[i].Delivery, all[i].EntryID = "", ""
	}
	return all
}

// TestBothQueuesHandOverTheSame: whatever was done with the queue of the earlier design, what is
// left in it is handed over from the store in the same order, with the same delivery ids.
func TestBothQueuesHandOverTheSame(t *testing.T) {
	t.Parallel()
	one := newRig(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := one.another()
		r.send("first") // so that a copy is known as one
		r.done("")
		r.old(func(h inbox.Orphaned) {
			must[string](t)(h.Append(t.Context(), inbox.Letter{ID: "hurry", Prompt: "hurry", Urgent: true}))
		})
		r.done("")
		n := 0
		steps := rapid.SliceOfN(rapid.SampledFrom([]string{"send", "urgent", "echo", "same", "torn", "done", "interrupted", "drop", "dead", "retry"}), 0, 25).Draw(rt, "steps")
		for _, step := range steps {
			n++
			name := fmt.Sprint(step, n)
			r.old(func(h inbox.Orphaned) {
				switch step {
				case "send", "urgent":
					must[string](t)(h.Append(t.Context(), inbox.Letter{ID: name, Prompt: name, Urgent: step == "urgent"}))
				case "echo":
					r.echo(name + "\n")
				case "same":
					r.echo("the same\n")
				case "torn":
					r.echo("\"torn\n\n")
				case "done", "interrupted", "dead":
					e, err := h.Next()
					if err != nil {
						return
					}
					must[*inbox.InFlight](t)(h.Offer(e, inbox.Offering{}))
					must[*inbox.InFlight](t)(h.Advance(inbox.Started, ""))
					if step == "done" {
						must[*inbox.Delivery](t)(h.Acknowledge(inbox.Acknowledgement{}))
						return
					}
					policy := map[string]inbox.OrphanPolicy{"interrupted": "retry", "dead": "deadletter"}[step]
					_, _, err = h.Recover(inbox.Interruption{Policy: policy, Counts: true})
					must[int](t)(0, err)
				case "drop":
					must[int](t)(h.DropQueued(fmt.Sprint("send", n-1), fmt.Sprint("urgent", n-2)))
				case "retry":
					for d, err := range h.DeadLetters() {
						if err == nil && d.Retryable() {
							must[int](t)(h.RetryDead(d.DeliveryID))
							break
						}
					}
				}
			})
		}
		old := r.copied()
		got := r.take()
		var dead []string
		for _, e := range r.all() {
			if e.State == queue.Dead {
				dead = append(dead, string(e.Reason)+" "+e.Delivery)
			}
		}
		before := old.drainOld()
		if now := r.drain(); !slices.Equal(now, before) {
			rt.Fatalf("%v: %+v\nwas %+v", steps, now, before)
		}
		if got.Live != len(before) {
			rt.Fatalf("%+v: %d were queued", got, len(before))
		}
		var was []string
		old.old(func(h inbox.Orphaned) {
			for d, err := range h.DeadLetters() {
				if err == nil {
					was = append(was, string(d.Reason)+" "+d.DeliveryID)
				}
			}
		})
		slices.Sort(dead)
		slices.Sort(was)
		if !slices.Equal(dead, was) {
			rt.Fatalf("%v: dead %q\nwas %q", steps, dead, was)
		}
	})
}

// TestQueuesOfHeartbeatRsAreTaken, as its states are recovered by the hand-wired form.
func TestQueuesOfHeartbeatRsAreTaken(t *testing.T) {
	t.Parallel()
	all, err := filepath.Glob("../../internal/crash/testdata/rs-*")
	if err != nil || len(all) != 9 {
		t.Fatalf("%d, %v", len(all), err)
	}
	for _, from := range all {
		t.Run(filepath.Base(from), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if err := os.CopyFS(r.agent.Home, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			var want struct {
				Policy        string
				Prompts, Dead []string
			}
			data := must[[]byte](t)(os.ReadFile(filepath.Join(from, "expect.json")))
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			r.take()
			if f := r.flight(); want.Policy == "" && f != nil { // its next call acknowledges
				want.Policy, want.Prompts = "drop", slices.Clone(want.Prompts)
			}
			if err := r.store.Write(t.Context(), func(c *store.Change) error {
				_, _, _, err := entries.Recover(c, key, func(queue.Entry) (queue.Interruption, queue.Reply) {
					return queue.Interruption{Policy: queue.OrphanPolicy(want.Policy), Now: time.Now()}, queue.Reply{}
				})
				return err
			}); err != nil {
				t.Fatal(err)
			}
			var dead []string
			for _, e := range r.all() {
				if e.State == queue.Dead {
					dead = append(dead, string(e.Reason)+" "+e.Prompt)
				}
			}
			if !slices.Equal(dead, want.Dead) && filepath.Base(from) != "rs-torn-dead-letters" {
				t.Errorf("dead %q, want %q", dead, want.Dead)
			}
			var prompts []string
			for _, g := range r.drain() {
				prompts = append(prompts, g.Prompt)
				if g.Repeat {
					prompts[len(prompts)-1] += "\n\n[heartbeat: attempt 2 of this entry; an earlier one was interrupted. Check what is already done before acting.]"
				}
			}
			if !slices.Equal(prompts, want.Prompts) {
				t.Errorf("prompts %q, want %q", prompts, want.Prompts)
			}
			for _, name := range markers {
				if r.exists(name) {
					t.Errorf("%s is still there", name)
				}
			}
		})
	}
}

// TestIDsAreAcceptedOnce, also those of entries that were done.
func TestIDsAreAcceptedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("one", "two", "three")
	r.done("yes")
	r.take()
	for _, id := range []string{"one", "two", "three", "four"} {
		is := read(r, func(v *store.View) (bool, error) { return entries.IsAccepted(v, key, id) })
		if is != (id != "four") {
			t.Errorf("%s is accepted: %v", id, is)
		}
	}
}

// TestTheInboxGoesOn: what comes later into the file at its name is taken in by package intake,
// the rest of a line that was not whole too, and nothing that was taken.
func TestTheInboxGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("one", "two")
	r.done("")
	r.echo("three\nfo")
	r.take()
	r.echo("ur\nfive\n")
	p := intake.Place{Agent: key, Dir: r.agent.Dir, Inbox: r.agent.Inbox}
	must[intake.Taken](t)(intake.Take(t.Context(), r.store, p, time.Now()))
	if got := r.is(queue.Queued); !slices.Equal(got, []string{"two", "three", "four", "five"}) {
		t.Errorf("%q", got)
	}
	r.take()
	if got := r.is(queue.Queued); len(got) != 4 {
		t.Errorf("%q", got)
	}
}

// TestAQueueThatAsksAPersonIsNotTaken, until a person has said how far it is done.
func TestAQueueThatAsksAPersonIsNotTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("one", "two")
	r.done("")
	if err := os.Remove(filepath.Join(r.agent.Home, ".inbox-meta")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.agent.Home, ".inbox-offset"), []byte("what"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := must[Report](t)(Take(t.Context(), r.store, r.state, r.agent, key))
	if got.Asks == nil || !strings.Contains(got.Asks.Error(), ".inbox-offset") || len(r.all()) != 0 || !r.exists(".inbox-offset") {
		t.Fatalf("%+v", got)
	}
	if err := os.WriteFile(filepath.Join(r.agent.Home, ".inbox-offset"), []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.take()
	if got := r.is(queue.Queued); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("%q", got)
	}
}

// TestOldFilesThatAppearLaterAreSetAside, with their inbox, until a person has them taken: then
// each entry comes once.
func TestOldFilesThatAppearLaterAreSetAside(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("one", "two", "three")
	r.offer(inbox.Offering{Session: "s"})
	backup := t.TempDir()
	if err := os.CopyFS(backup, os.DirFS(r.agent.Home)); err != nil {
		t.Fatal(err)
	}
	r.take()
	if got := r.take(); got.SetAside != nil || got.Live != 0 {
		t.Fatalf("%+v", got)
	}
	if err := os.RemoveAll(r.agent.Home); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(r.agent.Home, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	r.echo("four\n")
	got := r.take()
	if len(got.SetAside) != 1 || r.exists("inbox.jsonl") || r.exists(".in-flight") || len(r.all()) != 3 {
		t.Fatalf("%+v, %d entries", got, len(r.all()))
	}
	if waits := must[[]string](t)(Waiting(r.agent)); !slices.Equal(waits, got.SetAside) {
		t.Errorf("%q wait", waits)
	}
	if got := r.take(); got.SetAside != nil {
		t.Errorf("%+v", got)
	}
	report := must[Report](t)(Adopt(t.Context(), r.store, r.state, r.agent, key))
	if got := r.is(queue.Queued); report.Live != 1 || !slices.Equal(got, []string{"two", "three", "four"}) || r.flight() == nil {
		t.Errorf("%+v: queued %q", report, got)
	}
	if again := must[Report](t)(Adopt(t.Context(), r.store, r.state, r.agent, key)); again.Live != 0 || len(must[[]string](t)(Waiting(r.agent))) != 0 {
		t.Errorf("%+v", again)
	}
}

// TestADamagedRecordLeavesTheFirstEntryInFlight: it may have been handed over.
func TestADamagedRecordLeavesTheFirstEntryInFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("one", "two")
	r.offer(inbox.Offering{})
	if err := os.WriteFile(filepath.Join(r.agent.Home, ".in-flight"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.take()
	if f := r.flight(); f == nil || f.State != queue.Offered || f.ID != "one" || f.Attempt != 1 {
		t.Errorf("%+v", f)
	}
	if got := r.is(queue.Queued); !slices.Equal(got, []string{"two"}) {
		t.Errorf("%q", got)
	}
}

// TestWhatPeopleHadBegunIsFinished: dropping queued entries, and queueing dead letters again.
func TestWhatPeopleHadBegunIsFinished(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("one", "two", "three")
	r.old(func(h inbox.Orphaned) { must[int](t)(h.DropQueued("one")) })
	var ids [2]string
	r.old(func(h inbox.Orphaned) {
		for d := range h.DeadLetters() {
			ids[0] = d.DeliveryID
		}
		for _, e := range must[[]inbox.Entry](t)(h.List(10)) {
			if e.ID == "two" {
				ids[1] = e.DeliveryID
			}
		}
	})
	data, _ := json.Marshal(map[string][]string{"drop": {ids[1]}, "retry": {ids[0]}})
	if err := os.WriteFile(filepath.Join(r.agent.Home, ".inbox.jsonl.begun"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	r.take()
	if queued, dead := r.is(queue.Queued), r.is(queue.Dead); !slices.Equal(queued, []string{"three", "one"}) || !slices.Equal(dead, []string{"two"}) {
		t.Errorf("queued %q, dead %q", queued, dead)
	}
}

// TestWhatWasTakenOutOfTheInboxIsDead, with its text: another file took its place.
func TestWhatWasTakenOutOfTheInboxIsDead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("one", "two", "three")
	r.done("")
	if err := os.Remove(r.agent.Inbox); err != nil {
		t.Fatal(err)
	}
	r.echo(`{"heartbeat":1,"id":"three","source":"send","prompt":"three"}` + "\nfour\n")
	r.take()
	if queued, dead := r.is(queue.Queued), r.is(queue.Dead); !slices.Equal(queued, []string{"three", "four"}) || !slices.Equal(dead, []string{"two"}) {
		t.Errorf("queued %q, dead %q", queued, dead)
	}
	for _, e := range r.all() {
		if e.State == queue.Dead && e.Reason != queue.Lost {
			t.Errorf("%+v", e)
		}
	}
	r.retry("two")
	if queued := r.is(queue.Queued); len(queued) != 3 {
		t.Errorf("queued %q", queued)
	}
}

func (r *rig) retry(id string) (refused []error) {
	r.Helper()
	if err := r.store.Write(r.Context(), func(c *store.Change) (err error) {
		_, refused, err = entries.Retry(c, r.key, time.Now(), id)
		return err
	}); err != nil {
		r.Fatal(err)
	}
	return refused
}

// TestWhatIsLostWithoutItsTextStaysDead: the inbox was cut, and how much of it is known.
func TestWhatIsLostWithoutItsTextStaysDead(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("one", "two")
	r.done("")
	r.echo("three, by hand\n")
	r.old(func(h inbox.Orphaned) { must[*inbox.Entry](t)(h.Next()) })
	r.done("")
	if err := os.WriteFile(r.agent.Inbox, []byte("four\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.take()
	var lost *entries.New
	for _, e := range r.all() {
		if e.Reason == queue.Lost {
			lost = &e
		}
	}
	if lost == nil || lost.Length < 15 || !slices.Equal(r.is(queue.Queued), []string{"four"}) {
		t.Fatalf("%+v; queued %q", lost, r.is(queue.Queued))
	}
	if refused := r.retry(lost.Delivery); len(refused) != 1 {
		t.Errorf("%v", refused)
	}
}

// TestAQueueThatIsUsedIsNotTaken: a session of an earlier version lives, or one of its hooks does
// something.
func TestAQueueThatIsUsedIsNotTaken(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".session-lock", ".hook-lock"} {
		r := newRig(t)
		r.send("one")
		unlock := must[func() error](t)(flock.TryLock(filepath.Join(r.agent.Home, name)))
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if got, err := Take(ctx, r.store, r.state, r.agent, key); err == nil || len(r.all()) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
		cancel()
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		if got := r.take(); got.Live != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestARecordThatIsGoneLeavesItsEntryStarted: the last session worked on it, by its own record.
func TestARecordThatIsGoneLeavesItsEntryStarted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("done", "one", "two")
	r.done("")
	f := r.offer(inbox.Offering{})
	session := fmt.Sprintf(`{"version":1,"work":{"delivery_id":%q,"attempt":2}}`, f.DeliveryID)
	if err := os.WriteFile(filepath.Join(r.agent.Home, "session.json"), []byte(session), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(r.agent.Home, ".in-flight")); err != nil {
		t.Fatal(err)
	}
	r.take()
	if e := r.flight(); e == nil || e.State != queue.Started || e.Delivery != f.DeliveryID || e.Attempt != 2 {
		t.Errorf("%+v", e)
	}
}

// TestOneEntryIsInFlight, though each lane has a record: the other one may have been given.
func TestOneEntryIsInFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("one", "two")
	r.offer(inbox.Offering{})
	record := must[[]byte](t)(os.ReadFile(filepath.Join(r.agent.Home, ".in-flight")))
	r.old(func(h inbox.Orphaned) {
		must[string](t)(h.Append(t.Context(), inbox.Letter{ID: "urgent", Prompt: "urgent", Urgent: true}))
		must[int](t)(0, h.Withdraw())
	})
	r.offer(inbox.Offering{})
	if err := os.WriteFile(filepath.Join(r.agent.Home, ".in-flight"), record, 0o600); err != nil {
		t.Fatal(err)
	}
	r.take()
	if e := r.flight(); e == nil || e.ID != "one" {
		t.Fatalf("%+v", e)
	}
	first := read(r, func(v *store.View) ([]queue.Entry, error) { return entries.Queued(v, key, 5) })
	if len(first) != 2 || first[0].ID != "urgent" || first[0].Attempt != 1 || first[0].Untouched || first[1].ID != "two" {
		t.Errorf("%+v", first)
	}
}

// TestLinesThatCameTooLateAreTaken: the drained inbox had been moved aside, where no holes can be
// punched, and somebody still had it open.
func TestLinesThatCameTooLateAreTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.send("one")
	r.done("")
	if err := os.Rename(r.agent.Inbox, filepath.Join(r.agent.Home, "inbox.7.jsonl")); err != nil {
		t.Fatal(err)
	}
	size := must[os.FileInfo](t)(os.Stat(filepath.Join(r.agent.Home, "inbox.7.jsonl"))).Size()
	path := filepath.Join(r.agent.Home, ".inbox-meta")
	var meta map[string]any
	if err := json.Unmarshal(must[[]byte](t)(os.ReadFile(path)), &meta); err != nil {
		t.Fatal(err)
	}
	meta["archive"] = map[string]any{"name": "inbox.7.jsonl", "size": size, "at": time.Now().Unix()}
	data, _ := json.Marshal(meta)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(r.agent.Home, ".inbox.jsonl.kept")); err != nil {
		t.Fatal(err)
	}
	late := must[*os.File](t)(os.OpenFile(filepath.Join(r.agent.Home, "inbox.7.jsonl"), os.O_APPEND|os.O_WRONLY, 0))
	must[int](t)(late.WriteString("late\nand cut"))
	late.Close()
	r.echo("new\n")
	r.take()
	if got := r.is(queue.Queued); !slices.Equal(got, []string{"new", "late", "and cut"}) || r.exists("inbox.7.jsonl") {
		t.Errorf("%q", got)
	}
}

// TestADirectoryWithoutAQueueIsTaken, and its inbox is package intake's.
func TestADirectoryWithoutAQueueIsTaken(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := os.RemoveAll(r.agent.Dir); err != nil {
		t.Fatal(err)
	}
	r.take()
	if err := os.MkdirAll(r.agent.Home, 0o700); err != nil {
		t.Fatal(err)
	}
	r.echo("one\n")
	r.take()
	must[intake.Taken](t)(intake.Take(t.Context(), r.store, intake.Place{Agent: key, Dir: r.agent.Dir, Inbox: r.agent.Inbox}, time.Now()))
	if got := r.is(queue.Queued); !slices.Equal(got, []string{"one"}) {
		t.Errorf("%q", got)
	}
}
