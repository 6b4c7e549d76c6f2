package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(testbed.Run(m)) }

// book is a store, whose records have numbers of their own.
type book struct {
	testing.TB
	*store.Store
	number int64
}

func newBook(t testing.TB) *book { return &book{TB: t, Store: storetest.New(t, t.TempDir())} }

func (b *book) add(records ...Record) (added int) {
	b.Helper()
	err := b.Write(b.Context(), func(c *store.Change) error {
		for _, r := range records {
			if r.Number == 0 {
				b.number++
				r.Number = b.number
			}
			a, err := Add(c, r)
			if added += len(a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return added
}

func (b *book) settle(session string, now time.Time) {
	b.Helper()
	rest, err := Rest(b.Context(), b.Reader, session, now, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.add(rest...)
}

func (b *book) since(agent string, since time.Time) (all []Record) {
	b.Helper()
	if err := b.Read(b.Context(), func(v *store.View) error { return Each(v, agent, since, func(r Record) { all = append(all, r) }) }); err != nil {
		b.Fatal(err)
	}
	return all
}

func (b *book) sum(agent string) (sum Sum) {
	b.Helper()
	for _, r := range b.since(agent, time.Time{}) {
		sum = sum.Plus(r.Sum)
	}
	return sum
}

func record(second int, delivery string, turns int64) Record {
	return Record{At: at(float64(second)), Agent: "a", Session: "s", Of: Of{Delivery: delivery}, Sum: Sum{Turns: turns}}
}

// TestARecordIsWrittenOnce, however often it is sent: one that was not answered is sent again.
func TestARecordIsWrittenOnce(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	whole := Record{
		At: at(1), Agent: "a", Session: "s", Number: 1, Account: "account", Group: "group", Of: Of{"delivery", "entry", "source", 2},
		Sum:  Sum{1, 2, tokens(3, 4), 0.5, 5, 6, 7},
		Kept: Kept{Began: at(0), Transcript: "/t", From: 8, Total: 9.5, Unknown: true},
	}
	other := whole
	other.Number, other.Kept = 2, Kept{}
	for i, want := range []int{2, 0, 0} {
		if n := b.add(whole, other); n != want {
			t.Errorf("the %d. time %d were written, want %d", i+1, n, want)
		}
	}
	whole.Key, other.Key = "a", "a"
	if got := b.since("a", time.Time{}); len(got) != 2 || !cmp.Equal(got[0], whole) {
		t.Errorf("(-want +got):\n%s", cmp.Diff([]Record{whole, other}, got))
	}
	for name, ask := range map[string]func(*store.View) (Sum, error){
		"since": func(v *store.View) (Sum, error) { return Since(v, "a", at(1)) },
		"on":    func(v *store.View) (Sum, error) { return On(v, "delivery", "another session") },
		"in":    func(v *store.View) (Sum, error) { return In(v, "s") },
		"later": func(v *store.View) (Sum, error) {
			s, err := Since(v, "a", at(2))
			return s.Plus(whole.Sum).Plus(whole.Sum), err
		},
		"in it": func(v *store.View) (Sum, error) {
			s, err := On(v, "delivery", "s")
			return s.Plus(whole.Sum).Plus(whole.Sum), err
		},
		"another": func(v *store.View) (Sum, error) { s, err := In(v, "?"); return s.Plus(whole.Sum).Plus(whole.Sum), err },
	} {
		if got, err := store.Get(t.Context(), b.Reader, ask); err != nil || got != whole.Sum.Plus(whole.Sum) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	names, err := store.Get(t.Context(), b.Reader, Agents)
	if err != nil || len(names) != 1 || names[0] != "a" {
		t.Errorf("agents: %q, %v", names, err)
	}
}

// TestAFigureBeyondReasonSpoilsNoOther: an agent can write its own transcripts, and no sum of
// them is too large to be one.
func TestAFigureBeyondReasonSpoilsNoOther(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for _, cost := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e308} {
		r := record(1, "1", math.MaxInt64)
		r.Sum = Sum{math.MaxInt64, math.MinInt64, tokens(math.MaxInt64, math.MaxInt64), cost, math.MaxInt64, 0, 1}
		b.add(r)
	}
	got, err := store.Get(t.Context(), b.Reader, func(v *store.View) (Sum, error) { return Since(v, "a", at(0)) })
	if want := (Sum{4 * most, -4 * most, tokens(4*most, 4*most), most, 4 * most, 0, 4}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRecordsAreBounded: the oldest go, an agent's own first where it has more than its share.
func TestRecordsAreBounded(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	for i := range 500 {
		b.add(record(i, "", 1))
	}
	few := record(-1, "", 1)
	for _, few.Agent = range []string{"b", "c"} {
		b.add(few, few)
	}
	if err := prune(t.Context(), b.Store, at(-1), 100); err != nil {
		t.Fatal(err)
	}
	if got := b.since("a", time.Time{}); len(got) != 96 || !got[0].At.Equal(at(404)) {
		t.Errorf("%d records are left, from %v on", len(got), got[0].At)
	}
	if err := prune(t.Context(), b.Store, at(450), 100); err != nil {
		t.Fatal(err)
	}
	if got, others := b.since("a", time.Time{}), len(b.since("b", time.Time{})); len(got) != 50 || others != 0 {
		t.Errorf("%d and %d records are left, want 50 and none", len(got), others)
	}
	if oldest, err := store.Get(t.Context(), b.Reader, func(v *store.View) (time.Time, error) { return Oldest(v, "a") }); err != nil || !oldest.Equal(at(450)) {
		t.Errorf("the oldest is of %v, %v", oldest, err)
	}
	if oldest, err := store.Get(t.Context(), b.Reader, func(v *store.View) (time.Time, error) { return Oldest(v, "b") }); err != nil || !oldest.IsZero() {
		t.Errorf("of nobody: %v, %v", oldest, err)
	}
}

// TestNoQuestionReadsAllRecords: each has an index, and sorts no more than a session's.
func TestNoQuestionReadsAllRecords(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	all := []string{sumOfAgent, sumOn, sumIn, oldest, newest, agents}
	for _, which := range []string{ofAgent, ofAll, afterMark, ofSession} {
		all = append(all, `SELECT `+columns+` FROM usage `+which)
	}
	for _, q := range all {
		var plan strings.Builder
		err := b.Read(t.Context(), func(v *store.View) error {
			return v.Each(`EXPLAIN QUERY PLAN `+q, []any{"a", "b", "c"}[:strings.Count(q, "$")], func(scan store.Scan) error {
				var detail string
				err := scan(new(int), new(int), new(int), &detail)
				fmt.Fprintln(&plan, detail)
				return err
			})
		})
		if s := plan.String(); err != nil || strings.Contains(s, "SCAN usage") || strings.Contains(s, "TEMP B-TREE") && !strings.Contains(q, ofSession) || !strings.Contains(s, "SEARCH usage") {
			t.Errorf("%s: %v\n%s", q, err, s)
		}
	}
}

// TestSettledAfterAKill: wherever a session's shim is killed, what its transcripts
// say is counted, once, however often it is settled; also what subagents cost, and
// not what a resumed conversation had cost before.
func TestSettledAfterAKill(t *testing.T) {
	t.Parallel()
	base, b := t.TempDir(), newBook(t)
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		session := fmt.Sprint("s", n)
		path := filepath.Join(dir, "c.jsonl")
		aside := filepath.Join(dir, "c", "subagents", "agent-1.jsonl")
		write := func(path string, fields map[string]any) {
			data, _ := json.Marshal(fields)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Write(append(data, '\n'))
			if err := errors.Join(err, f.Close()); err != nil {
				t.Fatal(err)
			}
		}
		say := func(path, kind, id string, second, tokens int) {
			message := map[string]any{"role": kind, "content": "x"}
			if kind == "assistant" {
				message["id"], message["model"], message["usage"] = id, "m", map[string]int{"input_tokens": tokens, "output_tokens": 1}
			}
			write(path, map[string]any{"type": kind, "message": message, "timestamp": at(float64(second)).Format(time.RFC3339Nano)})
		}
		say(path, "user", "", -3, 0)
		say(path, "assistant", "old", -2, 99)
		write(path, map[string]any{"type": "cost-state", "totalCostUSD": 5})
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		goesOn := Kept{Began: noon, Transcript: path, From: info.Size()}
		c, r := &Counter{}, &Reader{Began: noon}
		r.From(path, info.Size())
		if total, _, ok := Base(path, info.Size()); !ok || total != 5 {
			t.Fatalf("the conversation had cost %v, %v", total, ok)
		}
		c.Base(5)
		c.Works(Of{Delivery: "1"}, noon)
		var want Sum
		record := func() {
			parts := c.Drain()
			goesOn.Total = c.Total()
			if parts == nil {
				parts = []Part{{}}
			}
			for _, p := range parts {
				b.add(Record{At: at(1), Agent: session, Session: session, Of: p.Of, Sum: p.Sum, Kept: goesOn})
			}
			goesOn.Transcript, goesOn.From = "", 0
		}
		record() // the first, when it is known where the client writes
		total := 5.0
		for i := range rapid.IntRange(0, 30).Draw(t, "lines") {
			switch rapid.IntRange(0, 5).Draw(t, "line") {
			case 0, 1:
				say(path, "user", "", i, 0)
				say(path, "assistant", fmt.Sprint("m", i), i, 2)
				say(path, "assistant", fmt.Sprint("m", i), i, 3)
				want = want.Plus(Sum{Turns: 1, Calls: 1})
				want.Input, want.Output = want.Input+3, want.Output+1
			case 2:
				say(aside, "user", "", i, 0)
				say(aside, "assistant", fmt.Sprint("s", i), i, 7)
				want.Calls++
				want.Input, want.Output = want.Input+7, want.Output+1
			case 3:
				r.LookAgain()
				if err := r.Look(path, at(float64(i)), c); err != nil {
					t.Fatal(err)
				}
				record()
			case 4:
				total += 0.25
				c.Told(total, at(float64(i)))
			case 5:
				c.Works(Of{Delivery: fmt.Sprint(i)}, at(float64(i)))
			}
		}
		// Killed; the client ends by itself.
		write(path, map[string]any{"type": "cost-state", "totalCostUSD": total})
		want.Cost = total - 5
		for range 2 {
			b.settle(session, at(100))
			got := b.sum(session)
			if got.Unpriced = 0; !cmp.Equal(got, want, near) {
				t.Fatalf("(-want +got):\n%s", cmp.Diff(want, got))
			}
		}
	})
}

// TestRestOfWhatIsUnknown: a session of which nothing was recorded, or whose
// transcript has gone, is no error.
func TestRestOfWhatIsUnknown(t *testing.T) {
	t.Parallel()
	b := newBook(t)
	b.settle("s", noon)
	gone := record(1, "1", 1)
	gone.Kept = Kept{Began: noon, Transcript: filepath.Join(t.TempDir(), "gone.jsonl")}
	b.add(gone)
	b.settle("s", noon)
	if got := b.since("a", time.Time{}); len(got) != 1 {
		t.Errorf("%+v", got)
	}
}

// TestRestBelievesNoFigureBeyondReason: of a killed session, too, nor charges it
// what an older conversation had cost of which nobody knows the figure.
func TestRestBelievesNoFigureBeyondReason(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		total   float64
		unknown bool
		want    float64
	}{
		"the client's own":        {5.5, false, 0.5},
		"forged":                  {900_000, false, 0},
		"of what nobody knows of": {5.5, true, 0},
	} {
		b, dir := newBook(t), t.TempDir()
		r := record(1, "1", 0)
		r.Kept = Kept{Transcript: filepath.Join(dir, "c.jsonl"), Total: 5, Unknown: tt.unknown}
		if tt.unknown {
			r.Kept.Total = 0
		}
		line := fmt.Sprintf("{\"type\":\"cost-state\",\"totalCostUSD\":%v}\n", tt.total)
		b.add(r)
		if err := appendTo(r.Kept.Transcript, answerLine("m", 5)+line); err != nil {
			t.Fatal(err)
		}
		b.settle("s", at(9))
		if got := b.sum("a"); got.Calls != 1 || got.Input != 5 || got.Cost != tt.want {
			t.Errorf("%s: %+v, want $%v", name, got, tt.want)
		}
	}
}
