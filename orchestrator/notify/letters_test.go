package notify

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"heartbeat/config"
	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/ledger"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/notify/awaited"
	"heartbeat/orchestrator/notify/memo"
	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

var asker = config.Target{Name: "asker", Tier: config.TierReplies}

// changes changes who waits, as a run does, and a command without one.
func (r *rig) changes(o awaited.Order) {
	r.t.Helper()
	do := func(c *store.Change) error { _, err := o.Do(c); return err }
	if r.stop == nil {
		storetest.Write(r.t, r.dir, do)
	} else if err := r.store.Write(r.t.Context(), do); err != nil {
		r.t.Fatal(err)
	}
}

// waitsFor notes that a target waits for the reply to a prompt of agent a.
func (r *rig) waitsFor(id, target string) {
	r.t.Helper()
	r.changes(awaited.Order{Reply: awaited.Reply{Agent: "a", ID: id, Target: target, At: time.Now()}})
}

// append adds a record to a file of agent a.
func (r *rig) append(name, line string) {
	r.t.Helper()
	path := filepath.Join(r.dir, "a", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		r.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		r.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(line + "\n"); err != nil {
		r.t.Fatal(err)
	}
	if r.watch != nil {
		r.watch.Observe(journal.Event{})
	}
}

func (r *rig) replies(id, delivery, source string) {
	r.append("outbox.jsonl", fmt.Sprintf(`{"delivery_id":%q,"id":%q,"source":%q,"acknowledged_at":%q,"reply":"done"}`, delivery, id, source, time.Now().UTC().Format(time.RFC3339Nano)))
}

func (r *rig) givesUp(id, reason string) {
	r.append(".dead-letter.jsonl", fmt.Sprintf(`{"entry_id":"e-%s","delivery_id":"d-%s","id":%q,"reason":%q,"at":%q}`, id, id, id, reason, time.Now().UTC().Format(time.RFC3339Nano)))
}

// Who waits for a reply is told that the agent cannot work, and that it works again:
// once each, also over a restart, as long as a prompt of theirs waits. Who is told of the
// agent anyway is not told twice.
func TestWhoWaitsIsNotLeftWondering(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{desk, asker}, func(t *testing.T, r *rig) {
		r.fleet.Agents[0].DownText = "Ask in the office."
		r.start()
		r.waitsFor("one", "asker")
		r.waitsFor("two", "asker")
		r.waitsFor("one", "desk")
		r.is("a", status.Parked, "usage limit")
		time.Sleep(3 * time.Minute)
		r.expects("asker", "a cannot work on a prompt that waits")
		r.expects("desk", "a is parked")
		r.stop()
		if records, err := Records(r.dir, 1, []string{"asker"}); err != nil || !strings.Contains(records[0].Notices[0].Text, "one, two: parked") && !strings.Contains(records[0].Notices[0].Text, "two, one: parked") ||
			!strings.HasSuffix(records[0].Notices[0].Text, "; Ask in the office.") {
			t.Errorf("%+v, %v", records, err)
		}
		r.start()
		time.Sleep(36 * time.Hour)
		r.expects("asker")
		r.givesUp("one", "dropped")
		time.Sleep(time.Minute)
		r.expects("asker", "a has given up prompts")
		r.takes("desk")
		r.is("a", status.Idle, "")
		time.Sleep(10 * time.Minute)
		r.expects("asker", "a works on its prompts again")
		r.expects("desk", "a is no longer parked")
		r.replies("two", "d2", "send")
		time.Sleep(time.Minute)
		r.expects("asker", "a has replied")
		r.stop()
		if left, err := store.Ask(t.Context(), r.dir, awaited.All); err != nil || len(left) > 0 {
			t.Errorf("%v, %v", left, err)
		}
	})
}

// TestTheEndIsToldOnce: a reply says that the agent works again, and that the last prompt
// was given up that nobody waits any more.
func TestTheEndIsToldOnce(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]struct {
		is   func(r *rig)
		told string
	}{
		"a reply, before it is calm": {func(r *rig) { r.is("a", status.Idle, ""); r.replies("x", "d1", "send") }, "a has replied"},
		"a reply to another prompt":  {func(r *rig) { r.is("a", status.Idle, ""); r.waitsFor("y", "asker"); r.replies("x", "d1", "send") }, "a has replied"},
		"the last one is given up":   {func(r *rig) { r.givesUp("x", "poison") }, "a has given up prompts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, targets{asker}, func(t *testing.T, r *rig) {
				r.start()
				defer r.stop()
				r.waitsFor("x", "asker")
				r.is("a", status.Parked, "usage limit")
				time.Sleep(10 * time.Minute)
				r.expects("asker", "a cannot work on a prompt that waits")
				ends.is(r)
				time.Sleep(10 * time.Minute)
				r.expects("asker", ends.told)
				r.is("a", status.Idle, "")
				time.Sleep(10 * time.Minute)
				r.expects("asker")
				r.waitsFor("z", "asker")
				r.is("a", status.Parked, "usage limit")
				time.Sleep(10 * time.Minute)
				r.expects("asker", "a cannot work on a prompt that waits")
			})
		})
	}
}

// Nothing that an agent writes hides dead letters: replies that cannot be read, which kept
// them from being looked at, or a dead letter of a time that is far ahead.
func TestDeadLettersAreNotHidden(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, t.TempDir(), desk)
		r.fleet.Agents[0].Triggers = []config.Trigger{{Name: "new", ReplyTo: "desk"}}
		r.start()
		replies := filepath.Join(r.dir, "a", "outbox.jsonl")
		if err := os.MkdirAll(replies, 0o700); err != nil {
			t.Fatal(err)
		}
		r.givesUp("one", "poison")
		time.Sleep(time.Minute)
		r.expects("desk", "a has given up prompts")
		if err := os.Remove(replies); err != nil {
			t.Fatal(err)
		}
		r.append(".dead-letter.jsonl", `{"entry_id":"e","delivery_id":"d","id":"ahead","reason":"poison","at":"2999-01-01T00:00:00Z"}`)
		time.Sleep(48 * time.Hour)
		r.takes("desk")
		r.givesUp("two", "poison")
		time.Sleep(time.Hour)
		if told := r.takes("desk"); len(told) == 0 {
			t.Error("a dead letter behind one from the future is not told")
		}
		r.stop()
	})
}

// A reply comes once, over restarts, also one that was there before somebody asked for
// it; nobody gets a reply that nobody asked for.
func TestARepliesWay(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{asker}, func(t *testing.T, r *rig) {
		r.fleet.Agents[0].Triggers = []config.Trigger{{Name: "new", ReplyTo: "asker"}, {Name: "other"}}
		r.replies("old", "d0", "a/new@0") // before the first run that could tell it
		time.Sleep(time.Minute)
		r.start()
		r.replies("early", "d1", "send")
		r.replies("x", "d2", "a/new@1")
		r.replies("y", "d3", "a/other@1")
		r.replies("z", "d4", "a/newer@1")
		time.Sleep(time.Minute)
		r.expects("asker", "a has replied")
		r.waitsFor("early", "asker")
		r.waitsFor("late", "asker")
		time.Sleep(time.Minute)
		r.expects("asker", "a has replied")
		r.stop()
		r.replies("late", "d5", "send")
		r.replies("w", "d6", "a/new@2")
		r.start()
		time.Sleep(time.Minute)
		r.expects("asker", "a has replied", "a has replied")
		r.stop()
		r.start()
		time.Sleep(time.Hour)
		r.expects("asker")
		r.stop()
	})
}

// Dead letters are told by their cause, what a person has dropped is not, and what was
// there before is not either.
func TestPromptsThatAreGivenUp(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{phone}, func(t *testing.T, r *rig) {
		r.givesUp("old", "poison")
		time.Sleep(time.Minute)
		r.start()
		time.Sleep(time.Minute)
		r.expects("phone")
		r.givesUp("one", "dropped")
		r.givesUp("two", "interrupted")
		time.Sleep(time.Minute)
		r.expects("phone", "a has given up prompts")
		r.stop()
		r.givesUp("three", "poison") // by whoever recovers while no run is there
		r.start()
		time.Sleep(5 * time.Minute)
		r.expects("phone", "a has given up prompts")
		r.stop()
		records, err := Records(r.dir, 10, []string{"phone"})
		if err != nil || len(records) != 2 || records[0].Notices[0].Text != "two: interrupted" || records[1].Notices[0].Text != "three: poison" {
			t.Errorf("%+v, %v", records, err)
		}
	})
}

// BenchmarkLook is a look at 10,000 agents of which one in a hundred has a trouble.
func BenchmarkLook(b *testing.B) {
	r := &rig{dir: b.TempDir(), agents: map[string]status.AgentState{}}
	var text strings.Builder
	text.WriteString("version: 1\nnotify: {phone: {command: [cat]}}\nagents:\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "  agent-%d: {dir: agent-%d}\n", i, i)
	}
	path := filepath.Join(r.dir, "heartbeat.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	var err error
	if r.fleet, err = config.Load(path); err != nil {
		b.Fatal(err)
	}
	for i, a := range r.fleet.Agents {
		name := a.Name
		s := status.AgentState{Agent: name, State: status.Idle}
		if i%100 == 0 {
			s.State, s.Reason = status.Held, "x"
		}
		r.agents[name] = s
	}
	w := New(Options{Fleet: r.fleet, StateDir: r.dir, Store: storetest.New(b, r.dir), Ours: "heartbeat", Log: slog.New(slog.DiscardHandler)})
	w.begin(b.Context())
	for b.Loop() {
		now := time.Now()
		facts := w.look(r, now)
		for _, a := range w.fleet.Agents {
			if _, err := w.letters.look(b.Context(), a, w.kept, "heartbeat"); err != nil {
				b.Fatal(err)
			}
		}
		notice.Decide(notice.View{Now: now, Began: w.began, Facts: facts, Sees: func(string) bool { return true }, Knows: func(string) bool { return true }}, w.kept.Told)
	}
}

// TestAWaiterHasOneAgentReadAnew: what others have was read, whoever waits for one.
func TestAWaiterHasOneAgentReadAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t, t.TempDir(), asker)
	r.store, r.stop = storetest.New(t, r.dir), func() {}
	l := letters{store: r.store, began: time.Now()}
	k := memo.New()
	look := func() (reads []string) {
		t.Helper()
		if err := l.refresh(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		for _, a := range r.fleet.Agents {
			before := l.read[inbox.DeadLetterFile(a.Inbox)]
			if l.anew[a.Name] || before == (durable.Stamp{}) {
				reads = append(reads, a.Name)
			}
			if _, err := l.look(t.Context(), a, k, "heartbeat"); err != nil {
				t.Fatal(err)
			}
		}
		return reads
	}
	for _, name := range []string{"a", "b"} {
		if err := os.MkdirAll(filepath.Join(r.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(inbox.DeadLetterFile(filepath.Join(r.dir, name, "inbox.jsonl")), []byte(`{"entry_id":"e","reason":"poison"}`+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"a b", ""} {
		if got := strings.Join(look(), " "); got != want {
			t.Errorf("read of %q, want %q", got, want)
		}
	}
	r.waitsFor("one", "asker")
	for _, want := range []string{"a", ""} {
		if got := strings.Join(look(), " "); got != want {
			t.Errorf("read of %q, want %q", got, want)
		}
	}
}

// TestAReplyThatCannotBeToldYetIsNotLost: while nobody can read whether it is proven, it
// waits.
func TestAReplyThatCannotBeToldYetIsNotLost(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{asker}, func(t *testing.T, r *rig) {
		r.fleet.Agents[0].Triggers = []config.Trigger{{Name: "new", ReplyTo: "asker"}}
		r.knowsAgents()
		unread := filepath.Join(r.dir, "proofs", "a.json")
		if err := os.MkdirAll(unread, 0o700); err != nil {
			t.Fatal(err)
		}
		r.start()
		defer r.stop()
		r.waitsFor("one", "asker")
		r.replies("one", "d1", "send")
		r.replies("two", "d2", "a/new@1")
		time.Sleep(time.Minute)
		r.expects("asker")
		if err := os.Remove(unread); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.expects("asker", "a has replied", "a has replied")
	})
}

// knowsAgents has the fleet's store know its agents, as a run does.
func (r *rig) knowsAgents() {
	r.t.Helper()
	storetest.Write(r.t, r.dir, func(c *store.Change) error {
		_, err := memory.Note(c, r.dir, r.fleet.Agents, nil, time.Now())
		return err
	})
}

// TestAForgedReplyIsSentToNobody: who waits gets the one that is proven.
func TestAForgedReplyIsSentToNobody(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{asker}, func(t *testing.T, r *rig) {
		a := r.fleet.Agents[0]
		a.Triggers = []config.Trigger{{Name: "new", ReplyTo: "asker"}}
		r.knowsAgents()
		book, err := ledger.Open(r.dir, a.Name)
		if err == nil {
			err = book.Begins(true)
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r.start()
		r.waitsFor("one", "asker")
		r.replies("one", "d1", "send")
		r.replies("two", "d2", "a/new@1")
		time.Sleep(time.Minute)
		r.expects("asker")
		if err := book.Keep(ledger.Course{Delivery: "d3", Verdict: &ledger.Verdict{Delivery: "d3", Passed: true}}); err != nil {
			t.Fatal(err)
		}
		r.replies("one", "d3", "send")
		time.Sleep(time.Minute)
		r.expects("asker", "a has replied")
		r.stop()
	})
}

// TestTheReplyToATimedPromptIsWaitedForFromItsTimeOn: what came under its id before is
// nobody's, nobody is told that it waits before it does, and it is waited for as long as
// for any other.
func TestTheReplyToATimedPromptIsWaitedForFromItsTimeOn(t *testing.T) {
	t.Parallel()
	inBubble(t, targets{asker}, func(t *testing.T, r *rig) {
		r.start()
		defer r.stop()
		now := time.Now()
		r.changes(awaited.Order{Reply: awaited.Reply{Agent: "a", ID: "x", Target: "asker", At: now.Add(-40 * 24 * time.Hour), Due: now.Add(time.Hour)}})
		r.is("a", status.Parked, "usage limit")
		r.replies("x", "d1", "echo")
		r.givesUp("x", "poison")
		time.Sleep(50 * time.Minute)
		r.expects("asker")
		time.Sleep(20 * time.Minute)
		r.expects("asker", "a cannot work on a prompt that waits")
		r.is("a", status.Idle, "")
		r.waitsFor("another", "asker") // has the list read anew
		time.Sleep(time.Hour)
		r.expects("asker", "a works on its prompts again")
		r.replies("x", "d2", "send")
		time.Sleep(time.Minute)
		r.expects("asker", "a has replied")
	})
}

// TestAReplyWaitsForATargetThatIsNotInTheFile: it was lost without a word. The others are
// told once, over restarts, and what comes is kept for a week, for that target alone.
func TestAReplyWaitsForATargetThatIsNotInTheFile(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]time.Duration{"put back": 2 * 24 * time.Hour, "put back too late": 8 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, targets{desk, asker}, func(t *testing.T, r *rig) {
				r.start()
				r.waitsFor("x", "asker")
				r.waitsFor("y", "asker")
				r.failing("asker", "connection refused")
				r.replies("y", "d1", "send") // which is on its way
				time.Sleep(time.Minute)
				with := r.fleet
				without := *with
				without.Targets = map[string]*config.Target{"desk": &desk}
				r.use(&without)
				if owed, err := Unnamed(r.dir, &without, time.Now()); err != nil || len(owed) != 1 || owed[0].String() != "2 replies are waited for at asker, which notify: does not name; what comes is kept for a week, until it does" {
					t.Errorf("%v, %v", owed, err)
				}
				r.replies("x", "d2", "send")
				time.Sleep(10 * time.Minute)
				r.expects("desk", "the scheduler cannot tell asker")
				if u, _ := Untold(r.dir, time.Now()); len(u) != 1 || !u[0].Unnamed || u[0].Why != "notify: does not name it; what is for it alone waits until it does (2)" {
					t.Errorf("%+v", u)
				}
				r.stop()
				r.start()
				r.failing("asker", "")
				time.Sleep(30 * time.Minute)
				r.expects("desk")
				time.Sleep(away)
				r.takes("desk")
				r.use(with)
				time.Sleep(time.Minute)
				if away < 7*24*time.Hour {
					r.expects("asker", "a has replied", "a has replied")
				} else {
					r.expects("asker")
				}
				time.Sleep(40 * time.Minute)
				if u, _ := Untold(r.dir, time.Now()); len(u) > 0 {
					t.Errorf("%+v", u)
				}
				r.stop()
				if owed, err := Unnamed(r.dir, &without, time.Now()); err != nil || len(owed) > 0 {
					t.Errorf("%v, %v", owed, err)
				}
			})
		})
	}
}

// use makes another file count, for later runs as well.
func (r *rig) use(f *config.Fleet) {
	r.fleet = f
	r.watch.Use(f)
}

// undone takes a dead letter out, as a person does who queues it again or deletes it.
func (r *rig) undone(id string) {
	r.t.Helper()
	path := filepath.Join(r.dir, "a", ".dead-letter.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	var left []string
	for line := range strings.Lines(string(data)) {
		if !strings.Contains(line, fmt.Sprintf("%q", "d-"+id)) {
			left = append(left, line)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(left, "")), 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.watch.Observe(journal.Event{})
}

// TestADeadLetterThatIsGoneIsNotToldAsOneThatStands: its notice waited for five minutes, as
// others had come before it, and came after its retry was done.
func TestADeadLetterThatIsGoneIsNotToldAsOneThatStands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, dir, desk)
		r.start()
		for _, id := range []string{"one", "two"} { // the next ones wait: a minute, then five
			r.givesUp(id, "poison")
			time.Sleep(90 * time.Second)
		}
		r.expects("desk", "a has given up prompts", "a has given up prompts")
		r.givesUp("three", "poison")
		time.Sleep(time.Minute)
		r.undone("three")
		time.Sleep(time.Hour)
		r.expects("desk")
		r.givesUp("four", "poison") // told at once
		time.Sleep(30 * time.Second)
		r.givesUp("five", "poison")
		r.givesUp("six", "poison")
		time.Sleep(time.Minute)
		r.undone("five")
		time.Sleep(20 * time.Minute)
		r.takes("desk")
		texts := r.texts()["desk"]
		r.stop()
		if want := []string{"one: poison", "two: poison", "four: poison", "six: poison"}; !slices.Equal(texts, want) {
			t.Errorf("%q, want %q", texts, want)
		}
	})
}

// TestANoticeOfADeadLetterThatIsGoneSaysSo, where it is on its way to a target that does not
// answer, or to somebody who waits for the reply; a new one is not sent.
func TestANoticeOfADeadLetterThatIsGoneSaysSo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, dir, desk, asker)
		r.start()
		r.failing("desk", "it is off")
		r.failing("asker", "it is off")
		r.waitsFor("one", "asker")
		time.Sleep(time.Minute)
		r.givesUp("one", "poison")
		time.Sleep(time.Minute) // it is tried
		r.undone("one")
		time.Sleep(3 * time.Minute)
		r.givesUp("two", "poison")
		time.Sleep(time.Second)
		r.undone("two")
		r.failing("desk", "")
		r.failing("asker", "")
		time.Sleep(2 * time.Hour)
		r.takes("desk")
		r.takes("asker")
		texts := r.texts()
		r.stop()
		if want := []string{"one: poison; queued again or deleted since"}; !slices.Equal(texts["desk"], want) || !slices.Equal(texts["asker"], want) {
			t.Errorf("%q", texts)
		}
	})
}

// TestWhatANoticeSaysToTypeIsAPlainWord, whatever the id of a prompt is.
func TestWhatANoticeSaysToTypeIsAPlainWord(t *testing.T) {
	t.Parallel()
	n := givenUp(&config.Agent{Name: "triage"}, inbox.DeadEntry{ID: "$(reboot)", DeliveryID: "5cc7c8c23e8e"}, "heartbeat")
	if n.Do != "heartbeat dead-letter triage show 5cc7c8c23e8e" {
		t.Errorf("it says %q", n.Do)
	}
}
