package orchestrator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/queue"
	"heartbeat/orchestrator/session"
)

// forges is a session that calls done what it has not proven: its queue's file does not
// say that it has to be. then is called when that is written.
func forges(then func(f *fakeSession)) act {
	return func(f *fakeSession) session.Outcome {
		time.Sleep(boot)
		o := session.Outcome{Why: hook.EndFinished, Bound: true}
		err := f.queue(func(q *inbox.Held) error {
			e, err := q.Next()
			if err == nil {
				_, err = q.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: f.spec.Session})
			}
			if err == nil {
				_, err = q.Acknowledge(inbox.Acknowledgement{Session: f.spec.Session, Reply: "I am done", Now: time.Now()})
				o.Acknowledged++
			}
			return err
		})
		if err != nil {
			f.r.t.Error(err)
		}
		then(f)
		return o
	}
}

func nothing(*fakeSession) {}

// rewrite puts something else in the place of a file of an agent.
func rewrite(name string, content func(old string) string) func(*fakeSession) {
	return func(f *fakeSession) {
		path := filepath.Join(f.spec.Home, name)
		old, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path+".new", []byte(content(string(old))), 0o600)
		}
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		if err != nil {
			f.r.t.Error(err)
		}
	}
}

// TestWhatIsForgedIsADeadLetter: what the queue's files call done does not count, is
// told once, and can be queued again.
func TestWhatIsForgedIsADeadLetter(t *testing.T) {
	t.Parallel()
	made := `{"delivery_id":"0123456789ab","entry_id":"x","source":"send","attempt":1,"delivered_at":%q,"verdict":{"by":"check","iteration":1}}` + "\n"
	for name, then := range map[string]func(*fakeSession){
		"appended": nothing,
		"replaced": rewrite("outbox.jsonl", func(old string) string { return " " + old }),
		"made up with its id": func(f *fakeSession) {
			rewrite("outbox.jsonl", func(old string) string {
				return strings.ReplaceAll(strings.ReplaceAll(old, `"entry_id":"`, `"entry_id":"x`), `"delivered_at":"2`, `"delivered_at":"1`)
			})(f)
		},
		"made up": rewrite("outbox.jsonl", func(old string) string {
			return fmt.Sprintf(made, time.Now().Add(-time.Hour).Format(time.RFC3339Nano)) + old
		}),
	} {
		for _, entry := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, entry %t", name, entry), func(t *testing.T) {
				t.Parallel()
				inBubble(t, "a", func(t *testing.T, r *rig) {
					u := config.NewUntil("make", "test")
					checks := r.proves(nil, passing)
					a := r.agent("a")
					r.mkdir(a.Home)
					if entry {
						if err := ledger.KeepDemand(filepath.Join(r.dir, "state"), ledger.Demand{ID: "p", Inbox: a.Inbox, Until: u}); err != nil {
							t.Fatal(err)
						}
					} else {
						a.Until = u
					}
					if _, err := queue.Append(t.Context(), a, inbox.Letter{ID: "p", Source: "send", Prompt: "mend it"}); err != nil {
						t.Fatal(err)
					}
					r.set("a", forges(then))
					stop := r.run()
					defer stop()
					r.sleep(time.Hour)
					dead := r.dead("a")
					if len(dead) != 1 || dead[0].Reason != inbox.Forged || dead[0].ID != "p" || !dead[0].Retryable() || checks.n() != 0 {
						t.Fatalf("%+v after %d checks", dead, checks.n())
					}
					if n := len(r.journal(journal.Forged)); n != 1 {
						t.Errorf("told %d times", n)
					}
					r.set("a", claims(time.Minute))
					if _, _, err := queue.Retry(t.Context(), a, []string{dead[0].DeliveryID}, false); err != nil {
						t.Fatal(err)
					}
					r.tell("a")
					r.sleep(time.Hour)
					if all := r.replies("a"); checks.n() != 1 || len(all) == 0 || all[len(all)-1].Verdict == nil || len(r.dead("a")) != 0 {
						t.Errorf("%d checks; %+v", checks.n(), all)
					}
				})
			})
		}
	}
}

// TestTheInnocentForgeNothing: what was done before nobody had to prove, and what the
// outbox is read again for is not done again.
func TestTheInnocentForgeNothing(t *testing.T) {
	t.Parallel()
	again := func(old string) string { return old + old }
	for name, then := range map[string]func(*fakeSession){
		"nothing happens":     nothing,
		"a copy":              rewrite("outbox.jsonl", func(old string) string { return old }),
		"read again":          rewrite("outbox.jsonl", func(old string) string { return "\n" + old }),
		"twice":               rewrite("outbox.jsonl", func(old string) string { return "\n" + again(old) }),
		"the outbox is gone":  func(f *fakeSession) { _ = os.Remove(filepath.Join(f.spec.Home, "outbox.jsonl")) },
		"the outbox is empty": rewrite("outbox.jsonl", func(string) string { return "" }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				r.proves(nil, passing)
				r.set("a", forges(nothing)) // nothing is demanded
				r.send("a", 3)
				stop := r.run()
				defer stop()
				r.sleep(time.Hour)
				r.set("a", func(f *fakeSession) session.Outcome {
					o := claims(time.Minute)(f)
					then(f)
					return o
				})
				next := r.declare("a")
				next.Until = config.NewUntil("make", "test")
				if _, err := r.s.Reload(r.with(next)); err != nil {
					t.Fatal(err)
				}
				r.send("a", 2)
				r.sleep(time.Hour)
				if got, dead := r.journal(journal.Forged), r.dead("a"); len(got) > 0 || len(dead) > 0 {
					t.Errorf("%+v %+v", got, dead)
				}
				if n := len(r.journal(journal.Checked)); n != 2 {
					t.Errorf("%d checks", n)
				}
			})
		})
	}
}

// TestWhatIsDemandedDoesNotLeaveUnseen: an entry whose id was changed in the inbox, or
// that was passed in cursor and sidecar, was gone with what it had to pass; and what
// nobody needs any more stayed for ever.
func TestWhatIsDemandedDoesNotLeaveUnseen(t *testing.T) {
	t.Parallel()
	inPlace := func(f *fakeSession) { // as no rename would be, it is not noticed
		path := filepath.Join(f.spec.Home, "inbox.jsonl")
		text, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.Replace(string(text), `"id":"p"`, `"id":"q"`, 1)), 0o600)
		}
		if err != nil {
			f.r.t.Error(err)
		}
	}
	for name, c := range map[string]struct {
		act    act
		checks int // that were made
	}{
		"called done by another id": {func(f *fakeSession) session.Outcome { inPlace(f); return forges(nothing)(f) }, 0},
		"known by its text":         {func(f *fakeSession) session.Outcome { inPlace(f); return claims(time.Minute)(f) }, 1},
		"proven":                    {claims(time.Minute), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				checks := r.proves(nil, passing)
				a, state := r.agent("a"), filepath.Join(r.dir, "state")
				r.mkdir(a.Home)
				demand := ledger.Demand{ID: "p", Inbox: a.Inbox, Text: "mend it", Until: config.NewUntil("make", "test"), Queued: true, At: time.Now().Add(-time.Hour)}
				if err := ledger.KeepDemand(state, demand); err != nil {
					t.Fatal(err)
				}
				for _, id := range []string{"p", "z"} {
					if _, err := queue.Append(t.Context(), a, inbox.Letter{ID: id, Source: "send", Prompt: map[string]string{"p": "mend it", "z": "another"}[id]}); err != nil {
						t.Fatal(err)
					}
				}
				r.set("a", c.act)
				stop := r.run()
				defer stop()
				r.sleep(3 * time.Minute)
				r.set("a", drains)
				r.tell("a")
				r.sleep(time.Hour)
				dead, told := r.dead("a"), r.journal(journal.Forged)
				if c.checks > 0 {
					if len(dead) != 0 || len(told) != 0 || checks.n() != c.checks {
						t.Errorf("%+v %+v after %d checks", dead, told, checks.n())
					}
				} else if len(dead) != 1 || dead[0].ID != "p" || dead[0].Reason != inbox.Forged || !dead[0].Retryable() || len(told) != 1 {
					t.Errorf("%+v %+v", dead, told)
				}
				if len(dead) > 0 {
					if _, err := queue.Purge(t.Context(), a, nil, true); err != nil {
						t.Fatal(err)
					}
					r.send("a", 1)
					r.sleep(time.Hour)
				}
				if all, err := ledger.Demands(state, a.Inbox); len(all) != 0 || err != nil {
					t.Errorf("what was demanded stays: %+v, %v", all, err)
				}
			})
		})
	}
}

// TestWhatIsForgedIsCountedNowhere: neither by status, nor by the session's end, nor by what
// its Stops say; what is proven beside it is.
func TestWhatIsForgedIsCountedNowhere(t *testing.T) {
	t.Parallel()
	for _, entry := range []bool{false, true} {
		t.Run(fmt.Sprintf("entry %t", entry), func(t *testing.T) {
			t.Parallel()
			inBubble(t, "a", func(t *testing.T, r *rig) {
				u := config.NewUntil("make", "test")
				r.proves(nil, passing)
				a := r.agent("a")
				r.mkdir(a.Home)
				if entry {
					if err := ledger.KeepDemand(filepath.Join(r.dir, "state"), ledger.Demand{ID: "p", Inbox: a.Inbox, Until: u}); err != nil {
						t.Fatal(err)
					}
				} else {
					a.Until = u
				}
				if _, err := queue.Append(t.Context(), a, inbox.Letter{ID: "p", Source: "send", Prompt: "mend it"}); err != nil {
					t.Fatal(err)
				}
				r.set("a", forges(func(f *fakeSession) {
					f.acknowledged = 1
					f.reports <- session.Report{
						At: time.Now(), Phase: hook.Turn, Acknowledged: 1,
						Answers: []hook.Answered{{At: time.Now(), Answer: hook.LetGo, Done: r.outbox("a")[0].DeliveryID}},
					}
					time.Sleep(time.Minute)
				}))
				stop := r.run()
				defer stop()
				r.sleep(time.Hour)
				if n := r.state("a").Acknowledged; n != 0 {
					t.Errorf("status counts %d", n)
				}
				for _, e := range r.journal(journal.Ended) {
					if e.Acknowledged != 0 {
						t.Errorf("its session has done %d", e.Acknowledged)
					}
				}
				stops := r.journal(journal.Stopped)
				for _, e := range stops {
					if e.Done != "" {
						t.Errorf("a Stop calls %s done", e.Done)
					}
				}
				if len(stops) == 0 {
					t.Error("its Stop is not in the journal")
				}
				if n := r.state("a").DeadLettered; n != 1 {
					t.Errorf("%d dead letters are counted", n)
				}
			})
		})
	}
}

// TestWhatIsProvenInASessionIsCounted, once, with its Stop.
func TestWhatIsProvenInASessionIsCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, "a", func(t *testing.T, r *rig) {
		r.proves(config.NewUntil("make", "test"), passing)
		r.send("a", 1)
		r.set("a", func(f *fakeSession) session.Outcome {
			o := claims(time.Minute)(f)
			f.reports <- session.Report{At: time.Now(), Phase: hook.Checking, Checking: &session.Checking{Delivery: o.Delivery, Iteration: 1, Check: 1}}
			time.Sleep(time.Minute)
			f.reports <- session.Report{At: time.Now(), Phase: hook.Turn, Acknowledged: 1, Answers: []hook.Answered{{At: time.Now(), Answer: hook.LetGo, Done: o.Delivery}}}
			time.Sleep(time.Second)
			f.acknowledged = 1
			return o
		})
		stop := r.run()
		defer stop()
		r.sleep(time.Hour)
		ended, stops := r.journal(journal.Ended), r.journal(journal.Stopped)
		if n := r.state("a").Acknowledged; n != 1 || len(ended) != 1 || ended[0].Acknowledged != 1 || len(stops) != 1 || stops[0].Done == "" {
			t.Errorf("status counts %d; ended %+v; stops %+v", n, ended, stops)
		}
	})
}
