package exports_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/exports"
	"heartbeat/orchestrator/exports/exportstest"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

// older begins a run with a backup of the store as before has left it, after the exports have gone
// on with what after did.
func older(t testing.TB, before, after func(r *rig)) *rig {
	t.Helper()
	r := newRig(t)
	before(r)
	r.export()
	r.settle(noon)
	state := t.TempDir()
	backup := filepath.Join(state, store.Name)
	if err := r.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	after(r)
	r.export()
	r.settle(noon)
	r.Store = exportstest.New(t, state)
	r.begin()
	return r
}

func (r *rig) compare() []string {
	r.Helper()
	found, err := r.x.Compare(r.Context(), noon, r.at)
	if err != nil {
		r.Fatal(err)
	}
	return found
}

func (r *rig) behind() *exports.Behind {
	r.Helper()
	all := get(r, exports.AllBehind)
	is := get(r, func(v *store.View) (bool, error) { return exports.IsBehind(v, "a") })
	if is != (len(all) == 1) {
		r.Fatalf("%v, %+v", is, all)
	}
	if !is {
		return nil
	}
	return &all[0]
}

func (r *rig) skip() {
	r.Helper()
	r.do(func(c *store.Change) error { return exports.Skip(c, "a", noon) })
}

func (r *rig) goOn() (again []queue.Entry) {
	r.Helper()
	r.do(func(c *store.Change) (err error) {
		again, err = exports.Continue(c, "a", noon)
		return err
	})
	return again
}

// drain has all done that is queued, and returns what was handed over; a repeat is marked.
func (r *rig) drain() (all []string) {
	r.Helper()
	for {
		var g *queue.Given
		err := r.Write(r.Context(), func(c *store.Change) (err error) {
			g, err = entries.Offer(c, "a", queue.Handover{Session: "s9", At: noon})
			switch {
			case err != nil:
			case g.Checked:
				var e *queue.Entry
				if e, err = entries.Claim(c, entries.RefOf(&g.Entry), queue.Reply{Session: "s9", At: noon}); err == nil {
					_, err = entries.Judge(c, e.Key, entries.Verdict{Verdict: queue.Verdict{Check: e.Check, Passed: true}, At: noon})
				}
			default:
				_, err = entries.Acknowledge(c, entries.RefOf(&g.Entry), queue.Reply{Session: "s9", At: noon})
			}
			return err
		})
		if errors.Is(err, entries.ErrEmpty) {
			return all
		}
		if err != nil {
			r.Fatal(err)
		}
		mark := ""
		if g.IsRepeat() {
			mark = " again"
		}
		all = append(all, g.Prompt+mark)
	}
}

// states bring an entry that is queued into each state that has not ended, in the older store; the
// last of the queue is finished from there.
var states = map[queue.State]func(r *rig, delivery string){
	queue.Queued:  func(*rig, string) {},
	queue.Offered: func(r *rig, _ string) { r.offer() },
	queue.Started: func(r *rig, _ string) {
		r.step(r.offer(), func(e queue.Entry) (queue.Entry, error) { return e.Advance(queue.Started, "") })
	},
	queue.Checking: func(r *rig, _ string) {
		r.step(r.offer(), func(e queue.Entry) (queue.Entry, error) { return e.Claim(noon) })
	},
	queue.Unproven: func(r *rig, _ string) {
		g := r.offer()
		r.step(g, func(e queue.Entry) (queue.Entry, error) { return e.Claim(noon) })
		r.step(g, func(e queue.Entry) (queue.Entry, error) { return e.Judge(queue.Verdict{Check: e.Check}, noon) })
	},
	queue.Dead: func(r *rig, delivery string) { r.drop(delivery) },
}

func (r *rig) offer() (g *queue.Given) {
	r.Helper()
	r.do(func(c *store.Change) (err error) {
		g, err = entries.Offer(c, "a", queue.Handover{Session: "s1", At: noon})
		return err
	})
	return g
}

func (r *rig) step(g *queue.Given, step func(queue.Entry) (queue.Entry, error)) {
	r.Helper()
	r.do(func(c *store.Change) error {
		_, err := entries.TakeBy(c, g.Key, noon, step)
		return err
	})
}

// finish has an entry done, whatever state it is in.
func (r *rig) finish(delivery string) {
	r.Helper()
	r.do(func(c *store.Change) error {
		e, err := entries.Find(&c.View, "a", delivery)
		if err != nil {
			return err
		}
		n, err := entries.CountsOf(&c.View, "a")
		if err != nil {
			return err
		}
		return entries.EndAs(c, e.Key, entries.Past{
			N: n.Done + 1, At: noon, Attempt: 1, Handover: queue.Handover{Session: "s2", At: noon}, Reply: queue.Reply{Session: "s2", Text: "finished", At: noon},
		})
	})
}

// TestAStoreThatIsOlderThanItsExports: nothing is given twice in silence, and nothing is lost,
// whatever state an entry has in the older store.
func TestAStoreThatIsOlderThanItsExports(t *testing.T) {
	t.Parallel()
	for state, bring := range states {
		for _, skips := range []bool{true, false} {
			t.Run(fmt.Sprint(state, " skips ", skips), func(t *testing.T) {
				t.Parallel()
				var was, unseen, dead string
				r := older(t, func(r *rig) {
					r.done("before", "b")
					was = r.add(queue.Letter{ID: "w", Prompt: "what  was\nthere"})
					bring(r, was)
				}, func(r *rig) {
					r.finish(was)
					unseen = r.done("unseen", "done unseen")
					dead = r.dead("dead unseen")
				})
				if found := r.compare(); !slices.Equal(found, []string{"a"}) {
					t.Fatalf("%q", found)
				}
				r.begin() // it is kept
				if again := r.compare(); len(again) > 0 {
					t.Errorf("it is found again: %q", again)
				}
				b := r.behind()
				want := exports.Known{Delivery: was, ID: "w", State: state, Begins: "what was there", At: noon}
				list := b.Again
				if state == queue.Dead {
					list = slices.DeleteFunc(slices.Clone(b.Gone), func(k exports.Known) bool { return k.Delivery != was })
				}
				if len(list) != 1 || list[0] != want || b.Hidden != 0 || !b.Since.Equal(noon) {
					t.Errorf("%+v, want %+v", b, want)
				}
				more := r.add(queue.Letter{Prompt: "sent meanwhile"})
				r.add(queue.Letter{ID: "id of unseen", Prompt: "unseen"})
				var handed []string
				if skips {
					r.skip()
					handed = []string{"sent meanwhile"}
				} else {
					again := r.goOn()
					handed = []string{"what  was\nthere again", "sent meanwhile", "unseen again"}
					if state == queue.Dead {
						handed = handed[1:]
					}
					if len(again) != len(handed)-1 {
						t.Errorf("%+v", again)
					}
				}
				if got := r.drain(); !slices.Equal(got, handed) {
					t.Errorf("handed over %q, want %q", got, handed)
				}
				if r.behind() != nil {
					t.Error("it is behind still")
				}
				if skips {
					e := get(r, func(v *store.View) (*queue.Entry, error) { return entries.Find(v, "a", was) })
					d := get(r, func(v *store.View) (*entries.Ended, error) { return entries.EndOf(v, e.Key) })
					if e.State != queue.Done || d.Reply.Text != "finished" || d.N != 2 || d.Handover.Session != "s2" {
						t.Errorf("%+v", d)
					}
					got := get(r, func(v *store.View) (bool, error) { return entries.IsAccepted(v, "a", "id of unseen") })
					if !got {
						t.Error("the id of what this store has not seen is not remembered")
					}
				}
				letters := get(r, func(v *store.View) ([]entries.Ended, error) { return entries.Dead(v, "a", 0, 9) })
				if len(letters) == 0 || letters[len(letters)-1].Delivery != dead || letters[len(letters)-1].Prompt != "dead unseen" {
					t.Errorf("dead letters: %+v", letters)
				}
				r.export()
				r.settle(noon)
				if lines := r.deliveries(exports.Outbox); !slices.Contains(lines, more) || slices.Index(lines, unseen) != 2 {
					t.Errorf("%q", lines)
				}
				r.begin()
				if found := r.compare(); len(found) > 0 {
					t.Errorf("behind again: %q", found)
				}
			})
		}
	}
}

// TestOnceSettledNothingAsks, and the numbers that the lost store gave are not given again.
func TestOnceSettledNothingAsks(t *testing.T) {
	t.Parallel()
	r := older(t, func(r *rig) { r.done("one", "") }, func(r *rig) { r.done("two", "") })
	two := r.deliveries(exports.Outbox)[1]
	err := r.Write(t.Context(), func(c *store.Change) error { return exports.Skip(c, "a", noon) })
	if !errors.Is(err, exports.ErrNotBehind) {
		t.Errorf("%v", err)
	}
	r.compare()
	if three := r.done("three", ""); three == two {
		t.Error("a delivery id is given twice")
	}
	r.skip()
	r.export()
	if lines := r.read(exports.Outbox); len(lines) != 3 || lines[2].N != 3 {
		t.Errorf("%+v", lines)
	}
}

// TestWhatWasPerhapsInFlightIsMarked: no line tells of it, and as many as are hidden have ended.
func TestWhatWasPerhapsInFlightIsMarked(t *testing.T) {
	t.Parallel()
	r := older(t, func(r *rig) {
		for i := range 5 {
			r.add(queue.Letter{Prompt: fmt.Sprint("p", i)})
		}
	}, func(r *rig) {
		r.doNext("")
		r.export()
		if err := os.Remove(r.path(exports.Outbox)); err != nil {
			r.Fatal(err)
		}
		r.doNext("")
	})
	r.compare()
	if b := r.behind(); b.Hidden != 1 {
		t.Errorf("%+v", b)
	}
	r.skip()
	if got := r.drain(); !slices.Equal(got, []string{"p0 again", "p2 again", "p3", "p4"}) {
		t.Errorf("%q", got)
	}
}

// TestAnEntryThatWasMovedAfterTheBackupIsFound with the agent that had it then.
func TestAnEntryThatWasMovedAfterTheBackupIsFound(t *testing.T) {
	t.Parallel()
	r := older(t, func(r *rig) {
		r.at.Agent = "b"
		r.add(queue.Letter{Prompt: "moved"})
		r.at.Agent = "a"
	}, func(r *rig) {
		r.do(func(c *store.Change) error {
			_, err := entries.Transfer(c, queue.Key{Agent: "b", Seq: 1}, "a")
			return err
		})
		r.doNext("")
	})
	r.compare()
	if b := r.behind(); len(b.Again) != 1 || b.Again[0].Begins != "moved" {
		t.Errorf("%+v", b)
	}
	r.skip()
	r.at.Agent = "b"
	r.do(func(c *store.Change) error {
		if _, err := entries.Offer(c, "b", queue.Handover{At: noon}); !errors.Is(err, entries.ErrEmpty) {
			t.Errorf("%v", err)
		}
		return nil
	})
}

// TestAHostileExportMeansNothing: what is not ours makes no entry done, holds nobody and is not
// read whole; what is ours and behind it is hidden at most.
func TestAHostileExportMeansNothing(t *testing.T) {
	t.Parallel()
	other := newRig(t)
	other.done("x", "")
	other.done("y", "")
	other.export()
	foreign, err := os.ReadFile(other.path(exports.Outbox))
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(r *rig, ours []byte) error{
		"forged": func(r *rig, ours []byte) error {
			return r.put(bytes.ReplaceAll(ours, []byte(`"n":2`), []byte(`"n":3`)))
		},
		"its verdict": func(r *rig, ours []byte) error {
			return r.put(bytes.ReplaceAll(ours, []byte("id of two"), []byte("id of one")))
		},
		"no mac": func(r *rig, ours []byte) error {
			return r.put(bytes.ReplaceAll(ours, []byte(`,"mac":"`), []byte(`,"MAC":"`)))
		},
		"no newline":  func(r *rig, ours []byte) error { return r.put(bytes.TrimSuffix(ours, []byte("\n"))) },
		"other store": func(r *rig, _ []byte) error { return r.put(foreign) },
		"other file":  func(r *rig, _ []byte) error { return os.Rename(r.path(exports.Outbox), r.path(exports.DeadLetters)) },
		"other agent": func(r *rig, _ []byte) error { r.at.Agent = "b"; return nil },
		"link":        func(r *rig, ours []byte) error { return r.link(ours) },
		"folder": func(r *rig, _ []byte) error {
			return errors.Join(os.Remove(r.path(exports.Outbox)), os.Mkdir(r.path(exports.Outbox), 0o700))
		},
		"removed":      func(r *rig, _ []byte) error { return os.RemoveAll(r.at.Home) },
		"junk behind":  func(r *rig, _ []byte) error { return r.grow(1 << 30) },
		"binary":       func(r *rig, _ []byte) error { return r.put(bytes.Repeat([]byte{0, 1, '\n', '"'}, 1<<20)) },
		"only its own": func(r *rig, ours []byte) error { return r.put(ours[:bytes.IndexByte(ours, '\n')+1]) },
	} {
		t.Run(name, func(t *testing.T) {
			r := older(t, func(r *rig) { r.done("one", "") }, func(r *rig) { r.done("two", "") })
			ours, err := os.ReadFile(r.path(exports.Outbox))
			if err != nil {
				t.Fatal(err)
			}
			if err := spoil(r, ours); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if found := r.compare(); len(found) > 0 || time.Since(began) > 5*time.Second {
				t.Errorf("%q after %s", found, time.Since(began))
			}
		})
	}
	r := older(t, func(r *rig) { r.done("one", "") }, func(r *rig) { r.done("two", "") })
	if err := r.grow(1 << 20); err != nil {
		t.Fatal(err)
	}
	if found := r.compare(); len(found) != 1 {
		t.Error("a line before some junk is not found")
	}
}

func (r *rig) put(data []byte) error { return os.WriteFile(r.path(exports.Outbox), data, 0o600) }

func (r *rig) link(data []byte) error {
	elsewhere := filepath.Join(r.at.Dir, "elsewhere")
	return errors.Join(os.Remove(r.path(exports.Outbox)), os.WriteFile(elsewhere, data, 0o600), os.Symlink(elsewhere, r.path(exports.Outbox)))
}

// grow appends junk without a newline: a hole takes no room.
func (r *rig) grow(size int64) error {
	f, err := os.OpenFile(r.path(exports.Outbox), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	end, err := f.Seek(0, io.SeekEnd)
	return errors.Join(err, f.Truncate(end+size), f.Close())
}

// TestManyEndsAreFound across the file before the present one, however long they are.
func TestManyEndsAreFound(t *testing.T) {
	t.Parallel()
	var want int
	r := older(t, func(r *rig) { r.done("one", "") }, func(r *rig) {
		r.x.SetMost(3 << 20)
		for i := range 60 {
			r.done(fmt.Sprint("p", i), strings.Repeat("\x01", 60<<10)) // six bytes each in JSON
			want++
		}
	})
	r.compare()
	b := r.behind()
	if got := len(b.Gone) + int(b.Hidden); got != want || len(b.Gone) < 10 {
		t.Errorf("%d found and %d hidden, want %d", len(b.Gone), b.Hidden, want)
	}
	r.skip()
	if replies := get(r, func(v *store.View) ([]entries.Ended, error) { return entries.Done(v, "a", time.Time{}, 3) }); len(replies) != 3 || replies[0].N != 61 || len(replies[0].Reply.Text) != 60<<10 {
		t.Errorf("%d replies", len(replies))
	}
}

// TestACloneFindsWhatTheOtherHasDone in a directory that both have in turn: each prompt that both
// had is done once.
func TestACloneFindsWhatTheOtherHasDone(t *testing.T) {
	t.Parallel()
	var was *rig
	r := older(t, func(r *rig) {
		for i := range 4 {
			r.add(queue.Letter{Prompt: fmt.Sprint("p", i)})
		}
	}, func(r *rig) {
		one := *r
		was = &one
	})
	done := map[string]int{}
	for turn, one := range []*rig{was, r, was, r} {
		one.begin()
		if found := one.compare(); (turn > 0) != (len(found) == 1) {
			t.Errorf("turn %d: %q", turn, found)
		}
		if turn > 0 {
			one.skip()
		}
		done[one.doNext("").Prompt]++
		one.export()
		one.settle(noon)
	}
	if len(done) != 4 {
		t.Errorf("%v", done)
	}
}

// TestABackupFromBeforeTheKeyGetsIt from the store in whose place it comes, if that is the same.
func TestABackupFromBeforeTheKeyGetsIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, same := range []bool{true, false} {
		state := t.TempDir()
		if same {
			if err := r.Backup(t.Context(), filepath.Join(state, store.Name)); err != nil {
				t.Fatal(err)
			}
		}
		s := exportstest.New(t, state)
		err := s.Write(t.Context(), func(c *store.Change) error {
			if _, err := c.Do(`DELETE FROM export_key`); err != nil {
				return err
			}
			if err := r.Read(t.Context(), func(was *store.View) error { return exports.Carry(was, c) }); err != nil {
				return err
			}
			if there, err := c.One(`SELECT 1 FROM export_key`, nil, new(int)); there != same || err != nil {
				t.Errorf("same %v: there %v, %v", same, there, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatIsOwedStaysOwedWhereOnlyTheOtherFileIsAhead: dead letters that had no line yet were
// passed over after a restore.
func TestWhatIsOwedStaysOwedWhereOnlyTheOtherFileIsAhead(t *testing.T) {
	t.Parallel()
	var dead string
	r := older(t, func(r *rig) {
		if err := os.MkdirAll(r.path(exports.DeadLetters), 0o700); err != nil {
			t.Fatal(err)
		}
		dead = r.dead("owed")
	}, func(r *rig) { r.done("done unseen", "") })
	if err := os.Remove(r.path(exports.DeadLetters)); err != nil {
		t.Fatal(err)
	}
	if found := r.compare(); len(found) != 1 {
		t.Fatalf("%q", found)
	}
	r.begin()
	r.skip()
	r.settle(noon.Add(exports.Every))
	r.export()
	r.want(exports.DeadLetters, dead)
}

// TestWhatWaitsForAPersonGoesOnWaiting, and is not listed as what is given again.
func TestWhatWaitsForAPersonGoesOnWaiting(t *testing.T) {
	t.Parallel()
	var was string
	r := older(t, func(r *rig) {
		was = r.add(queue.Letter{Prompt: "asks", Checked: true})
		g := r.offer()
		r.step(g, func(e queue.Entry) (queue.Entry, error) { return e.Claim(noon) })
		r.step(g, func(e queue.Entry) (queue.Entry, error) { return e.Suspend(e.Check, "c", noon) })
	}, func(r *rig) { r.finish(was) })
	r.compare()
	if b := r.behind(); len(b.Again) != 0 || len(b.Gone) != 0 || len(b.Waiting) != 1 || b.Waiting[0].Delivery != was {
		t.Errorf("%+v", b)
	}
	if again := r.goOn(); len(again) != 0 {
		t.Errorf("%+v", again)
	}
	if waits := get(r, func(v *store.View) ([]queue.Entry, error) { return entries.Suspended(v, "a") }); len(waits) != 1 {
		t.Errorf("%+v", waits)
	}
}

// TestAStoreThatCannotBeReadIsNotOneThatIsNotBehind.
func TestAStoreThatCannotBeReadIsNotOneThatIsNotBehind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	err := r.Write(t.Context(), func(c *store.Change) error {
		if _, err := c.Do(`DROP TABLE behind`); err != nil {
			return err
		}
		return exports.Skip(c, "a", noon)
	})
	if err == nil || errors.Is(err, exports.ErrNotBehind) {
		t.Errorf("%v", err)
	}
}
