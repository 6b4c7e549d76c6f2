package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"heartbeat/config"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
	"heartbeat/sources"
)

// fatal is a test, also one of rapid's.
type fatal interface {
	Helper()
	Fatal(...any)
}

var now = time.Date(2026, 11, 21, 4, 0, 0, 0, time.UTC)

// list makes triggers of short words: KIND CORE [PROMPT] [=NAME]. Those without
// a name get one as config gives it.
func list(t fatal, words ...string) *config.Agent {
	t.Helper()
	a := &config.Agent{Name: "a", Dir: "/a"}
	count := map[string]int{}
	for _, w := range words {
		f := strings.Fields(w)
		count[f[0]]++
		tr := config.Trigger{Name: fmt.Sprintf("%s-%d", f[0], count[f[0]])}
		if last := f[len(f)-1]; last[0] == '=' {
			tr.Name, tr.Named, f = last[1:], true, f[:len(f)-1]
		}
		prompt := "p"
		if len(f) > 2 {
			prompt = f[2]
		}
		switch f[0] {
		case "cron":
			tr.Cron = &config.CronTrigger{Schedule: schedule(t, f[1]+" * * * *", "Europe/Rome"), Prompt: prompt}
		case "watch":
			tr.Watch = &config.WatchTrigger{Patterns: []string{f[1]}, Prompt: prompt}
		case "poll":
			tr.Poll = &config.PollTrigger{Command: []string{f[1]}, Prompt: prompt, Dedupe: true, Split: sources.SplitLines}
		}
		a.Triggers = append(a.Triggers, tr)
	}
	return a
}

func schedule(t fatal, spec, zone string) sources.Schedule {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sources.ParseSchedule(spec, loc)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEachKindOfEdit walks what a person does to a list of triggers. Memory
// followed the names, so that an unnamed trigger got that of its neighbour, and
// one whose name changed got none.
func TestEachKindOfEdit(t *testing.T) {
	t.Parallel()
	three := []string{"watch A", "watch B", "watch C"}
	tests := []struct {
		name          string
		before, after []string
		keys          []string // of those after
		anew          int
	}{
		{"nothing", three, three, []string{"watch-1", "watch-2", "watch-3"}, 0},
		{"the first is removed", three, []string{"watch B", "watch C"}, []string{"watch-2", "watch-3"}, 0},
		{"one is inserted first", three, []string{"watch N", "watch A", "watch B", "watch C"}, []string{"watch-1~2", "watch-1", "watch-2", "watch-3"}, 0},
		{"one with the same pattern is inserted first", three, []string{"watch A other", "watch A", "watch B", "watch C"}, []string{"watch-1~2", "watch-1", "watch-2", "watch-3"}, 0},
		{"another order", three, []string{"watch C", "watch A", "watch B"}, []string{"watch-3", "watch-1", "watch-2"}, 0},
		{"each gets a name", three, []string{"watch A =a", "watch B =b", "watch C =c"}, []string{"watch-1", "watch-2", "watch-3"}, 0},
		{"a name that another position had", three, []string{"watch A =watch-3", "watch B =watch-1", "watch C =watch-2"}, []string{"watch-1", "watch-2", "watch-3"}, 0},
		{"a name changes", []string{"watch A =a", "watch B =b"}, []string{"watch A =x", "watch B =b"}, []string{"a", "b"}, 0},
		{"names are swapped", []string{"watch A =a", "watch B =b"}, []string{"watch A =b", "watch B =a"}, []string{"a", "b"}, 0},
		{"a name is taken away", []string{"watch A =a", "watch B =b"}, []string{"watch A", "watch B =b"}, []string{"a", "b"}, 0},
		{"the prompt changes", three, []string{"watch A new", "watch B", "watch C"}, []string{"watch-1", "watch-2", "watch-3"}, 0},
		{"the pattern of a named one changes", []string{"watch A =a", "watch B =b"}, []string{"watch N =a", "watch B =b"}, []string{"a", "b"}, 0},
		{"the pattern of an unnamed one changes", []string{"watch A x", "watch B y"}, []string{"watch N x", "watch B y"}, []string{"watch-1", "watch-2"}, 0},
		{"the only one changes all over", []string{"watch A x"}, []string{"watch N y"}, []string{"watch-1"}, 0},
		{"two change all over", []string{"watch A x", "watch B y"}, []string{"watch N v", "watch O w"}, []string{"watch-1~2", "watch-2~2"}, 2},
		{"a poll changes all over", []string{"poll A x"}, []string{"poll N y"}, []string{"poll-1~2"}, 1},
		{"the command of a named poll changes", []string{"poll A x =a"}, []string{"poll N y =a"}, []string{"a"}, 0},
		{"a kind changes", []string{"watch A =a"}, []string{"poll A =a"}, []string{"a~2"}, 0},
		{"another kind comes first", []string{"watch A", "poll A"}, []string{"cron 1", "poll A", "watch A"}, []string{"cron-1", "poll-1", "watch-1"}, 0},
		{"a schedule changes", []string{"cron 1 x", "cron 2 y"}, []string{"cron 3 x", "cron 2 y"}, []string{"cron-1", "cron-2"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kept := storetest.New(t, t.TempDir())
			m := open(t, kept)
			m.Follow(list(t, tt.before...), false, now)
			if err := m.Save(); err != nil {
				t.Fatal(err)
			}
			m = open(t, kept)
			all, anew, _ := m.Follow(list(t, tt.after...), false, now)
			if diff := cmp.Diff(tt.keys, keys(all)); diff != "" {
				t.Error(diff)
			}
			if len(anew) != tt.anew {
				t.Errorf("begin anew: %v, want %d", anew, tt.anew)
			}
			if _, _, changed := m.Follow(list(t, tt.after...), false, now); changed {
				t.Error("the same again is a change")
			}
			// Back again it is as it was, unless its pattern went with it.
			all, _, _ = m.Follow(list(t, tt.before...), false, now)
			if tt.anew == 0 && !strings.HasPrefix(tt.name, "a kind") {
				for i, key := range keys(all) {
					if d := define(&list(t, tt.before...).Triggers[i]); key != d.Name {
						t.Errorf("back again %s has %s", d.Name, key)
					}
				}
			}
		})
	}
}

// open returns what a store has of the triggers of agent a.
func open(t *testing.T, s *store.Store) *Agent {
	t.Helper()
	b := NewBook(s)
	if err := b.Recall(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b.Of("a")
}

func keys(all []*Trigger) (keys []string) {
	for _, t := range all {
		keys = append(keys, t.Key())
	}
	return keys
}

// TestNoEditMixesMemories: whatever is removed, inserted, moved and named,
// what looks at the same as before remembers the same, and no key serves two.
func TestNoEditMixesMemories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newAgent("a")
		known := map[string]string{} // :: kind and core → key
		owner := map[string]string{} // :: key → kind and core
		for range rapid.IntRange(1, 8).Draw(t, "versions") {
			cores := rapid.SliceOfNDistinct(rapid.IntRange(0, 11), 0, 8, rapid.ID).Draw(t, "cores")
			var words []string
			for _, c := range cores {
				w := fmt.Sprintf("%s %d", []string{"cron", "watch", "poll"}[c%3], c)
				w += fmt.Sprintf(" p%d", c) // its own
				if rapid.Bool().Draw(t, "named") {
					w += fmt.Sprintf(" =n%d", c)
				}
				words = append(words, w)
			}
			all, _, _ := m.Follow(list(t, words...), false, now)
			for i, key := range keys(all) {
				what := strings.Join(strings.Fields(words[i])[:2], " ")
				if was, ok := known[what]; ok && was != key && owner[was] == what {
					t.Fatalf("%q had the key %s, and has %s", what, was, key)
				}
				known[what], owner[key] = key, what
			}
			if k := keys(all); len(slices.Compact(slices.Sorted(slices.Values(k)))) != len(k) {
				t.Fatalf("keys %v", k)
			}
		}
	})
}

// TestAllThatIsRememberedIsThereAgain, and a change writes only the rows that it is about: a
// fire wrote all that 100,000 files were known by.
func TestAllThatIsRememberedIsThereAgain(t *testing.T) {
	t.Parallel()
	kept := storetest.New(t, t.TempDir())
	a := list(t, "cron 1", "watch A", "poll A", "cron 2")
	a.Triggers[3].Webhook, a.Triggers[3].Cron = &config.WebhookTrigger{Path: "/x"}, nil
	m := open(t, kept)
	all, _, _ := m.Follow(a, false, now)
	seen := sources.Seen{}
	for i := range 1000 {
		seen[fmt.Sprint(i)] = sources.Print{Size: 1, ModTime: int64(i), Sum: "aa"}
	}
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	must(all[1].KeepSeen(seen), all[2].Keep([]string{"one", "two"}))
	changes := func() (n int) {
		t.Helper()
		must(kept.Write(t.Context(), func(c *store.Change) error { _, err := c.One(`SELECT total_changes()`, nil, &n); return err }))
		return n
	}
	before := changes()
	seen = maps.Clone(seen)
	seen["0"], seen["new"] = sources.Print{Size: 2}, sources.Print{Size: 3, Changed: 4}
	delete(seen, "1")
	must(all[1].KeepSeen(seen), all[2].Keep([]string{"two", "three"}))
	if n := changes() - before; n != 5 {
		t.Errorf("%d rows were written, want 5", n)
	}
	all[0].NoteFired(now)
	all[2].NotePolled(now)
	all[2].NoteRecent([]time.Time{now, now, now.Add(time.Second)})
	all[3].NoteRefused([]Refused{{Sender: "GitHub", Fault: "late", Since: now, Last: now, Times: 2, Detail: "d"}})
	all[0].Pause(Paused{Since: now, Until: now.Add(time.Hour), By: "b"})
	m.SaveSoon()
	m.book.store.Pay()
	again := open(t, kept)
	if diff := cmp.Diff(m.data, again.data, cmpopts.IgnoreUnexported(Memo{})); diff != "" {
		t.Error(diff)
	}
	all, anew, changed := again.Follow(a, false, now)
	if changed || len(anew) > 0 || len(all[1].Seen()) != 1000 {
		t.Errorf("changed: %v, anew: %v", changed, anew)
	}
	before = changes()
	must(again.Save())
	if n := changes() - before; n != 0 {
		t.Errorf("%d rows were written although nothing has changed", n)
	}
	a.Triggers = a.Triggers[:1] // the others are gone, and 90 days later forgotten
	again.Follow(a, false, now)
	again.Follow(a, false, now.Add(goneFor+time.Hour))
	must(again.Save())
	for _, table := range []string{"seen_files", "fired_keys", "recent_fires", "refused_requests"} {
		var n int
		must(kept.Read(t.Context(), func(v *store.View) error { _, err := v.One(`SELECT COUNT(*) FROM `+table, nil, &n); return err }))
		if n > 0 {
			t.Errorf("%d rows are left in %s", n, table)
		}
	}
}

// TestAWriteThatFailedIsMadeUpFor by the next one: what the store has was thought to be known.
func TestAWriteThatFailedIsMadeUpFor(t *testing.T) {
	t.Parallel()
	kept := storetest.New(t, t.TempDir())
	m := open(t, kept)
	all, _, _ := m.Follow(list(t, "watch A"), false, now)
	var renamed bool
	rename := func() {
		t.Helper()
		from, to := "triggers", "hidden"
		if renamed {
			from, to = to, from
		}
		renamed = !renamed
		if err := kept.Write(t.Context(), func(c *store.Change) error { _, err := c.Do(`ALTER TABLE ` + from + ` RENAME TO ` + to); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if err := all[0].KeepSeen(sources.Seen{"a": {Size: 1}, "b": {Size: 1}}); err != nil {
		t.Fatal(err)
	}
	rename()
	all[0].NoteFired(now)
	if err := all[0].KeepSeen(sources.Seen{"a": {Size: 2}}); err == nil {
		t.Fatal("it did not fail")
	}
	rename()
	if err := m.Save(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.data, open(t, kept).data, cmpopts.IgnoreUnexported(Memo{})); diff != "" {
		t.Error(diff)
	}
}

// TestWhatTellsOutputApart: keys of another kind are no memory, and that is said.
func TestWhatTellsOutputApart(t *testing.T) {
	t.Parallel()
	m := open(t, storetest.New(t, t.TempDir()))
	a := list(t, "poll A")
	all, _, _ := m.Follow(a, false, now)
	if err := all[0].Keep([]string{"k"}); err != nil {
		t.Fatal(err)
	}
	b := list(t, "poll A")
	b.Triggers[0].Poll.Key = "{{.JSON.number}}"
	all, anew, _ := m.Follow(b, false, now)
	if kept, _ := all[0].Kept(); len(kept) != 0 || len(anew) != 1 || anew[0].Why != whySieve || all[0].Key() != "poll-1" {
		t.Errorf("kept %v, anew %v, key %s", kept, anew, all[0].Key())
	}
}

// TestAgentsAreKnownAgain walks what a person does to the agents of a file.
func TestAgentsAreKnownAgain(t *testing.T) {
	t.Parallel()
	agents := func(words ...string) (all []*config.Agent) { // NAME:DIR
		for _, w := range words {
			name, dir, _ := strings.Cut(w, ":")
			all = append(all, &config.Agent{Name: name, Dir: "/" + dir})
		}
		return all
	}
	tests := []struct {
		name          string
		before, after []string
		keys          []string
	}{
		{"nothing", []string{"a:1", "b:2"}, []string{"a:1", "b:2"}, []string{"a", "b"}},
		{"another order", []string{"a:1", "b:2"}, []string{"b:2", "a:1"}, []string{"b", "a"}},
		{"a name changes", []string{"a:1", "b:2"}, []string{"x:1", "b:2"}, []string{"a", "b"}},
		{"a directory changes", []string{"a:1", "b:2"}, []string{"a:9", "b:2"}, []string{"a", "b"}},
		{"names are swapped", []string{"a:1", "b:2"}, []string{"b:1", "a:2"}, []string{"a", "b"}},
		{"a name that was another's", []string{"a:1", "b:2"}, []string{"b:1"}, []string{"a"}},
		{"a new one takes the name", []string{"a:1"}, []string{"b:1", "a:2"}, []string{"a", "a~2"}},
		{"a new one takes the name of one that moves", []string{"a:1"}, []string{"a:2", "b:1"}, []string{"a~2", "a"}},
		{"all is new", []string{"a:1"}, []string{"b:2"}, []string{"b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			kept := storetest.New(t, t.TempDir())
			before, after := agents(tt.before...), agents(tt.after...)
			if _, err := note(t, kept, before...); err != nil {
				t.Fatal(err)
			}
			next, err := note(t, kept, after...)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range after {
				got = append(got, next.Declared()[a.Name].Key)
			}
			if diff := cmp.Diff(tt.keys, got); diff != "" {
				t.Error(diff)
			}
			back, err := note(t, kept, before...)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range before {
				who := back.Declared()[a.Name]
				if comes := !slices.Contains(keysOf(next.Declared()), a.Name); who.Key != a.Name || who.Comes() != comes {
					t.Errorf("back again %s is %+v", a.Name, who)
				}
			}
		})
	}
}

func keysOf(all map[string]Identity) (keys []string) {
	for _, i := range all {
		keys = append(keys, i.Key)
	}
	return keys
}

// TestPreviewOpensOnlyWhatChanged, and says what begins anew.
func TestPreviewOpensOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept := storetest.New(t, dir)
	a := list(t, "watch A x", "watch B y")
	m := open(t, kept)
	m.Follow(a, false, now)
	if err := m.Save(); err != nil {
		t.Fatal(err)
	}
	if _, err := note(t, kept, a); err != nil {
		t.Fatal(err)
	}
	anew, err := Preview(dir, []*config.Agent{list(t, "watch N v", "watch O w")}, now)
	if err != nil || len(anew) != 2 {
		t.Errorf("preview: %v, %v", anew, err)
	}
	if err := kept.Write(t.Context(), func(c *store.Change) error { _, err := c.Do(`DROP TABLE triggers`); return err }); err != nil {
		t.Fatal(err) // cannot be read
	}
	if err := m.book.Recall(t.Context()); err == nil {
		t.Error("a run begins without it: it would fire again what has fired")
	}
	if anew, err := Preview(dir, []*config.Agent{a}, now); err != nil || len(anew) != 0 {
		t.Errorf("preview of the same: %v, %v", anew, err)
	}
}
