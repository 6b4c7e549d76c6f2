package exports_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"heartbeat/hook/durable"
	"heartbeat/hook/inbox"
	"heartbeat/orchestrator/entries"
	"heartbeat/orchestrator/exports"
	"heartbeat/orchestrator/exports/exportstest"
	"heartbeat/orchestrator/store"
	"heartbeat/queue"
)

var noon = time.UnixMilli(1_796_040_000_000)

// rig is a fleet of one agent, a, with its store and its directory.
type rig struct {
	testing.TB
	*store.Store
	x  *exports.Exporter
	at exports.Place
}

func newRig(t testing.TB) *rig {
	t.Helper()
	dir := t.TempDir()
	home := filepath.Join(dir, ".heartbeat")
	r := &rig{TB: t, Store: exportstest.New(t, t.TempDir()), at: exports.Place{Agent: "a", Dir: dir, Home: home, Inbox: home}}
	r.begin()
	return r
}

// fresh is another agent of the fleet, with a run of its own: a store for each would take longer.
func (r *rig) fresh() *rig {
	r.Helper()
	one := *r
	dir := r.TempDir()
	home := filepath.Join(dir, ".heartbeat")
	one.at = exports.Place{Agent: dir, Dir: dir, Home: home, Inbox: home}
	one.begin()
	return &one
}

// begin begins another run.
func (r *rig) begin() {
	r.Helper()
	var err error
	if r.x, err = exports.New(r.Context(), r.Store); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) do(act func(*store.Change) error) {
	r.Helper()
	if err := r.Write(r.Context(), act); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) add(l queue.Letter) (delivery string) {
	r.Helper()
	r.do(func(c *store.Change) error {
		a, err := entries.Add(c, r.at.Agent, 0, noon, l)
		if err == nil {
			delivery = a[0].Delivery
		}
		return err
	})
	return delivery
}

// done has a prompt handed over and acknowledged.
func (r *rig) done(prompt, reply string) (delivery string) {
	r.Helper()
	delivery = r.add(queue.Letter{ID: "id of " + prompt, Source: "send", Prompt: prompt})
	r.doNext(reply)
	return delivery
}

// doNext has what is first in the queue handed over and acknowledged.
func (r *rig) doNext(reply string) (g *queue.Given) {
	r.Helper()
	r.do(func(c *store.Change) (err error) {
		if g, err = entries.Offer(c, r.at.Agent, queue.Handover{Session: "s1", Via: queue.ViaStop, At: noon}); err == nil {
			_, err = entries.Acknowledge(c, entries.RefOf(&g.Entry), queue.Reply{Session: "s1", Text: reply, At: noon.Add(time.Minute)})
		}
		return err
	})
	return g
}

// dead has a prompt dropped.
func (r *rig) dead(prompt string) (delivery string) {
	r.Helper()
	delivery = r.add(queue.Letter{ID: "id of " + prompt, Prompt: prompt})
	r.drop(delivery)
	return delivery
}

func (r *rig) drop(delivery string) {
	r.Helper()
	r.do(func(c *store.Change) error {
		_, _, err := entries.Drop(c, r.at.Agent, noon, delivery)
		return err
	})
}

func (r *rig) export() {
	r.Helper()
	if err := r.x.Export(r.Context(), r.at, noon); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) settle(now time.Time) {
	r.Helper()
	if err := r.x.Settle(r.Context(), now); err != nil {
		r.Fatal(err)
	}
}

// exported is a line of either file, as a reader sees it.
type exported struct {
	exports.DeadLetter
	Reply string `json:"reply"`
	Store string `json:"store"`
	N     int64  `json:"n"`
	MAC   string `json:"mac"`
}

func (r *rig) path(name string) string { return filepath.Join(r.at.Home, name) }

func (r *rig) read(name string) (all []exported) {
	r.Helper()
	raw, err := os.ReadFile(r.path(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		r.Fatal(err)
	}
	for line := range bytes.Lines(raw) {
		var e exported
		if json.Unmarshal(line, &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

// deliveries are those of the lines of a file.
func (r *rig) deliveries(name string) (all []string) {
	r.Helper()
	for _, e := range r.read(name) {
		all = append(all, e.DeliveryID)
	}
	return all
}

func (r *rig) want(name string, deliveries ...string) {
	r.Helper()
	if got := r.deliveries(name); !slices.Equal(got, deliveries) {
		r.Errorf("%s: %q, want %q", name, got, deliveries)
	}
}

func (r *rig) owed() []exports.Debt {
	r.Helper()
	return get(r, exports.Owed)
}

func get[T any](r *rig, ask func(*store.View) (T, error)) T {
	r.Helper()
	got, err := store.Get(r.Context(), r.Reader, ask)
	if err != nil {
		r.Fatal(err)
	}
	return got
}

func TestEachEndHasALine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one := r.done("one", "it is <done>")
	two := r.add(queue.Letter{Prompt: "two", Checked: true, Urgent: true})
	r.do(func(c *store.Change) error {
		g, err := entries.Offer(c, "a", queue.Handover{Session: "s2", At: noon})
		if err != nil {
			return err
		}
		e, err := entries.Claim(c, entries.RefOf(&g.Entry), queue.Reply{Session: "s2", Text: "checked", At: noon})
		if err != nil {
			return err
		}
		_, err = entries.Judge(c, e.Key, entries.Verdict{Verdict: queue.Verdict{Check: e.Check, Passed: true}, Iteration: 1, By: "check", Took: time.Second, At: noon})
		return err
	})
	three := r.dead("three")
	r.export()
	r.want(exports.Outbox, one, two)
	r.want(exports.DeadLetters, three)
	raw, err := os.ReadFile(r.path(exports.Outbox))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(raw), "\n")
	for i, want := range []string{
		`{"delivery_id":"` + one + `","entry_id":"HASH","id":"id of one","source":"send","session":"s1","attempt":1,"delivered_at":"2026-11-30T12:00:00Z","acknowledged_at":"2026-11-30T12:01:00Z","reply":"it is <done>","store":"` + r.ID() + `","n":1,"mac":"`,
		`{"delivery_id":"` + two + `","entry_id":"HASH","session":"s2","attempt":1,"delivered_at":"2026-11-30T12:00:00Z","acknowledged_at":"2026-11-30T12:00:00Z","reply":"checked","verdict":{"by":"check","iteration":1,"took_ms":1000},"urgent":true,"store":"` + r.ID() + `","n":2,"mac":"`,
	} {
		_, rest, _ := strings.Cut(lines[i], `"entry_id":"`)
		want = strings.ReplaceAll(want, "HASH", rest[:min(64, len(rest))])
		want = strings.ReplaceAll(want, "2026-11-30T12", noon.UTC().Format("2006-01-02T15"))
		if !strings.HasPrefix(lines[i], want) {
			t.Errorf("%s\nwant\n%s", lines[i], want)
		}
	}
	d := r.read(exports.DeadLetters)[0]
	if d.Reason != queue.DropByHand || !strings.Contains(d.RawLine, `"prompt":"three"`) || d.StartOffset != 0 || d.N != 1 || d.Store != r.ID() || len(d.MAC) != 64 {
		t.Errorf("%+v", d)
	}
	if info, err := os.Stat(r.path(exports.Outbox)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// What scripts read stays as it was while the files were the queue.
func TestTheFieldsAreThoseOfTheFilesBefore(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]any{{exports.Delivery{}, inbox.Delivery{}}, {exports.DeadLetter{}, inbox.DeadEntry{}}, {exports.Proven{}, inbox.Proven{}}} {
		is, was := fields(c[0]), fields(c[1])
		if !slices.Equal(is, was) {
			t.Errorf("%q, want %q", is, was)
		}
	}
}

func fields(of any) (all []string) {
	for f := range reflect.TypeOf(of).Fields() {
		all = append(all, f.Tag.Get("json"))
	}
	return all
}

// TestAFileThatSomebodyTookIsBegunAnew, and what was in it is not written again.
func TestAFileThatSomebodyTookIsBegunAnew(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(path string) error{
		"cut":      func(path string) error { return os.Truncate(path, 0) },
		"moved":    func(path string) error { return os.Rename(path, path+".mine") },
		"removed":  os.Remove,
		"replaced": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"folder":   func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.done("one", "1")
			r.export()
			if err := take(r.path(exports.Outbox)); err != nil {
				t.Fatal(err)
			}
			r.settle(noon)
			two := r.done("two", "2")
			r.export()
			r.want(exports.Outbox, two)
			r.settle(noon)
			r.begin()
			r.export()
			r.want(exports.Outbox, two)
			if owed := r.owed(); len(owed) > 0 {
				t.Errorf("%+v", owed)
			}
		})
	}
	r := newRig(t) // a part of a line spoils no other
	r.done("one", "1")
	r.export()
	raw, _ := os.ReadFile(r.path(exports.Outbox))
	if err := os.Truncate(r.path(exports.Outbox), int64(len(raw)/2)); err != nil {
		t.Fatal(err)
	}
	two := r.done("two", "2")
	r.export()
	r.want(exports.Outbox, two)
}

// TestWhatCannotBeWrittenIsOwed with its reason, and is written when it can be; the other file
// does not wait for it.
func TestWhatCannotBeWrittenIsOwed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(r *rig) (mend func() error)
		why   string
	}{
		"link": {func(r *rig) func() error {
			if err := os.Symlink(filepath.Join(r.at.Dir, "elsewhere"), r.path(exports.Outbox)); err != nil {
				r.Fatal(err)
			}
			return func() error { return os.Remove(r.path(exports.Outbox)) }
		}, "not a regular file but a symbolic link"},
		"fifo": {func(r *rig) func() error {
			if err := syscall.Mkfifo(r.path(exports.Outbox), 0o600); err != nil {
				r.Fatal(err)
			}
			return func() error { return os.Remove(r.path(exports.Outbox)) }
		}, "a FIFO"},
		"folder": {func(r *rig) func() error {
			if err := os.Mkdir(r.path(exports.Outbox), 0o700); err != nil {
				r.Fatal(err)
			}
			return func() error { return os.Remove(r.path(exports.Outbox)) }
		}, "a folder"},
		"full": {func(r *rig) func() error {
			r.x.Guard(func(s durable.Step, run func() error) error {
				if s.Name == exports.Outbox && s.Verb == durable.Write {
					return syscall.ENOSPC
				}
				return run()
			})
			return func() error { r.x.Guard(nil); return nil }
		}, "no space left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if err := os.Mkdir(r.at.Home, 0o700); err != nil {
				t.Fatal(err)
			}
			mend := c.spoil(r)
			one, two, three := r.done("one", "1"), r.dead("two"), ""
			r.export()
			r.settle(noon)
			r.want(exports.DeadLetters, two)
			owed := r.owed()
			if len(owed) != 1 || owed[0].File != exports.Outbox || !owed[0].Since.Equal(noon) || !strings.Contains(owed[0].Why, c.why) {
				t.Errorf("%+v", owed)
			}
			three = r.done("three", "3")
			r.export() // it is not tried again at once
			if err := mend(); err != nil {
				t.Fatal(err)
			}
			r.settle(noon.Add(exports.Every))
			r.want(exports.Outbox, one, three)
			if owed := r.owed(); len(owed) > 0 {
				t.Errorf("%+v", owed)
			}
		})
	}
	r := newRig(t)
	one := r.done("one", "1")
	away := r.at.Dir + ".away"
	if err := os.Rename(r.at.Dir, away); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(away) })
	r.export()
	r.settle(noon)
	r.begin() // the next run owes it still
	if owed := r.owed(); len(owed) != 1 || !strings.Contains(owed[0].Why, "no such file") {
		t.Errorf("%+v", owed)
	}
	if err := os.Rename(away, r.at.Dir); err != nil {
		t.Fatal(err)
	}
	r.export()
	r.want(exports.Outbox, one)
}

// TestARunThatIsKilledLeavesEachLine kills it at each step that changes a file, and fails the step
// once: each line stands there, in order, at most twice, and what the store says to be there was
// synced.
func TestARunThatIsKilledLeavesEachLine(t *testing.T) {
	t.Parallel()
	all := newRig(t)
	for _, dies := range []bool{true, false} {
		for at := 1; ; at++ {
			r := all.fresh()
			want := []string{r.done("one", "1"), r.done("two", "2")}
			r.export()
			want = append(want, r.done("three", "3"))
			gone := r.dead("gone")
			step, synced := 0, false
			r.x.Guard(func(s durable.Step, run func() error) error {
				if step++; step == at || dies && step > at {
					return errors.New("killed")
				}
				synced = synced || s.Verb == durable.Sync
				return run()
			})
			r.export()
			r.do(func(c *store.Change) error {
				_, _, err := entries.Retry(c, r.at.Agent, noon, gone)
				return err
			})
			r.export()
			r.settle(noon)
			if reached := get(r, func(v *store.View) (n int64, err error) {
				_, err = v.One(`SELECT n FROM exports WHERE agent = $1 AND state = 'done'`, []any{r.at.Agent}, &n)
				return n, err
			}); reached > 0 && !synced {
				t.Errorf("step %d: %d lines are said to be on the disk", at, reached)
			}
			finished := step < at
			r.begin()
			r.drop(gone)
			r.export()
			r.settle(noon.Add(exports.Every))
			r.settle(noon.Add(2 * exports.Every))
			seen := map[string]int{}
			var order []string
			for _, d := range r.deliveries(exports.Outbox) {
				if seen[d]++; seen[d] == 1 {
					order = append(order, d)
				} else if seen[d] > 2 {
					t.Errorf("step %d: %s stands there %d times", at, d, seen[d])
				}
			}
			if !slices.Equal(order, want) {
				t.Errorf("step %d: %q, want %q", at, order, want)
			}
			if got := r.deliveries(exports.DeadLetters); len(got) == 0 || got[len(got)-1] != gone {
				t.Errorf("step %d: dead letters %q, want %q", at, got, gone)
			}
			if finished {
				break
			}
		}
	}
}

// TestTheExportsAreTheEndsOfTheStore, whatever happens between: they are read as a follower reads
// them, the older file first.
func TestTheExportsAreTheEndsOfTheStore(t *testing.T) {
	t.Parallel()
	all := newRig(t)
	rapid.Check(t, func(rt *rapid.T) {
		r := all.fresh()
		if rapid.Bool().Draw(rt, "rotates") {
			r.x.SetMost(4000)
		}
		var done, dead []string
		kills, now := 0, noon
		export := func() {
			if err := r.x.Export(t.Context(), r.at, now); err != nil {
				rt.Fatal(err)
			}
		}
		for i := range rapid.IntRange(1, 25).Draw(rt, "steps") {
			now = now.Add(exports.Every)
			switch rapid.SampledFrom([]string{"done", "done", "dead", "retry", "export", "export", "settle", "kill", "fails"}).Draw(rt, "step") {
			case "done":
				done = append(done, r.done(fmt.Sprint("done ", i), "ok"))
			case "dead":
				dead = append(dead, r.dead(fmt.Sprint("dead ", i)))
			case "retry":
				if len(dead) > 0 {
					one := rapid.IntRange(0, len(dead)-1).Draw(rt, "which")
					r.do(func(c *store.Change) error {
						_, _, err := entries.Retry(c, r.at.Agent, noon, dead[one])
						return err
					})
					done = append(done, r.doNext("retried").Delivery)
					dead = slices.Delete(dead, one, one+1)
				}
			case "export":
				export()
			case "settle":
				r.settle(now)
			case "kill":
				kills++
				r.begin()
			case "fails":
				n := rapid.IntRange(0, 9).Draw(rt, "at")
				r.x.Guard(func(_ durable.Step, run func() error) error {
					if n--; n == 0 {
						kills++ // a failed sync counts as one: what it was about is written again
						return syscall.EIO
					}
					return run()
				})
			}
		}
		r.x.Guard(nil)
		export()
		for range 3 {
			now = now.Add(2 * exports.Every)
			r.settle(now)
		}
		seen := map[string]int{}
		var order []string
		for _, name := range []string{exports.OlderOutbox, exports.Outbox} {
			for _, d := range r.deliveries(name) {
				if seen[d]++; seen[d] == 1 {
					order = append(order, d)
				} else if seen[d] > 1+kills {
					rt.Fatalf("%s stands there %d times after %d kills", d, seen[d], kills)
				}
			}
		}
		if missing := len(done) - len(order); missing < 0 || !slices.Equal(done[missing:], order) || missing > 0 && len(r.deliveries(exports.OlderOutbox)) == 0 {
			rt.Fatalf("outbox %q, want %q", order, done)
		}
		if got := slices.Compact(r.deliveries(exports.DeadLetters)); kills == 0 && !slices.Equal(got, dead) {
			rt.Fatalf("dead letters %q, want %q", got, dead)
		}
	})
}

func TestTheOutboxIsRotated(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.x.SetMost(1000)
	one := r.done("one", strings.Repeat("x", 2000))
	r.export()
	two := r.done("two", strings.Repeat("x", 2000))
	r.export()
	r.want(exports.OlderOutbox, one)
	r.want(exports.Outbox, two)
}

// TestADeadLetterThatIsDeadNoMoreLeavesItsFile, and of too many the last ones are written anew.
func TestADeadLetterThatIsDeadNoMoreLeavesItsFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, two, three := r.dead("one"), r.dead("two"), r.dead("three")
	r.export()
	r.settle(noon)
	r.do(func(c *store.Change) error {
		_, _, err := entries.Retry(c, "a", noon, two)
		return err
	})
	four := r.dead("four")
	r.export()
	r.settle(noon)
	r.want(exports.DeadLetters, one, three, four)
	r.x.SetMost(9)
	r.do(func(c *store.Change) error {
		_, _, err := entries.Retry(c, "a", noon, one)
		return err
	})
	r.export()
	r.settle(noon)
	r.want(exports.DeadLetters, three, four)
	r.do(func(c *store.Change) error {
		_, err := entries.Purge(c, "a", noon, 99)
		return err
	})
	r.export()
	r.settle(noon)
	r.want(exports.DeadLetters)
	five := r.dead("five")
	r.export()
	r.want(exports.DeadLetters, five)
}

// TestNobodyWaitsForAnAgentsFiles but that agent: the file system under a directory may answer
// never.
func TestNobodyWaitsForAnAgentsFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	other := *r
	dir := t.TempDir()
	other.at = exports.Place{Agent: "b", Dir: dir, Home: filepath.Join(dir, ".heartbeat"), Inbox: dir}
	stuck, free := make(chan struct{}), make(chan struct{})
	first := true
	r.x.Guard(func(_ durable.Step, run func() error) error {
		if first {
			first = false
			close(stuck)
			<-free
		}
		return run()
	})
	one, two := r.done("one", "1"), other.done("two", "2")
	ended := make(chan error)
	go func() { ended <- r.x.Export(t.Context(), r.at, noon) }()
	<-stuck
	other.export()
	r.settle(noon)
	other.want(exports.Outbox, two)
	close(free)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	r.want(exports.Outbox, one)
}

// The statements of which there are many take an index.
func TestNoStatementReadsAllEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, statement := range map[string]string{
		"before": `SELECT e.n, octet_length(t.prompt) FROM entries e, texts t WHERE e.agent = 'a' AND e.state = 'dead' AND e.n > 0 AND t.agent = e.agent AND t.seq = e.seq ORDER BY e.n DESC`,
		"owed":   `SELECT agent, state, owed, why FROM exports WHERE owed > 0`,
		"behind": `SELECT delivery FROM behind_ends WHERE agent = 'a' ORDER BY ended, n`,
	} {
		var plan []string
		err := r.Read(t.Context(), func(v *store.View) error {
			return v.Each(`EXPLAIN QUERY PLAN `+statement, nil, func(row store.Scan) error {
				plan = append(plan, "")
				var a, b, d int
				return row(&a, &b, &d, &plan[len(plan)-1])
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(plan, func(s string) bool {
			return strings.HasPrefix(s, "SCAN") && !strings.Contains(s, "USING INDEX exports_owed")
		}) {
			t.Errorf("%s: %q", name, plan)
		}
	}
}

// TestWhatIsSaidToBeOnTheDiskIs: the name of a new file that was extended twice before it was
// synced was not, and what stood in an outbox that was rotated was not.
func TestWhatIsSaidToBeOnTheDiskIs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.x.SetMost(600)
	var steps []durable.Verb
	r.x.Guard(func(s durable.Step, run func() error) error {
		steps = append(steps, s.Verb)
		return run()
	})
	for _, prompt := range []string{"zero", "one"} {
		r.done(prompt, "1")
		r.export()
	}
	r.settle(noon)
	for _, prompt := range []string{"two", "three", "four"} {
		r.done(prompt, "2")
		r.export()
	}
	r.settle(noon)
	want := []durable.Verb{
		durable.Create, durable.Write, durable.Create, durable.Write, durable.Sync, durable.SyncFolder,
		durable.Rename, durable.Create, durable.Write, durable.Create, durable.Write,
		durable.Sync, durable.SyncFolder, durable.Rename, durable.Create, durable.Write, durable.Sync, durable.SyncFolder,
	}
	if !slices.Equal(steps, want) {
		t.Errorf("%q, want %q", steps, want)
	}
}

// TestSettleTakesOutWhatIsDeadNoMore, though nothing has ended since.
func TestSettleTakesOutWhatIsDeadNoMore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, two := r.dead("one"), r.dead("two")
	r.export()
	r.settle(noon)
	r.do(func(c *store.Change) error {
		_, _, err := entries.Retry(c, "a", noon, one)
		return err
	})
	r.settle(noon)
	r.want(exports.DeadLetters, two)
}

// TestADeadLetterTellsHowLongItsLineWas where that is not there whole.
func TestADeadLetterTellsHowLongItsLineWas(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.do(func(c *store.Change) error {
		_, err := entries.Insert(c, "a", queue.Entry{State: queue.Dead, Reason: queue.TooLarge, Accepted: noon, Ended: noon}, queue.Text{Prompt: "its beginning", Length: 5 << 20})
		return err
	})
	r.export()
	if all := r.read(exports.DeadLetters); len(all) != 1 || all[0].Length != 5<<20 || all[0].Excerpt != "its beginning" || all[0].RawLine != "" {
		t.Errorf("%+v", all)
	}
}
