package usage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"heartbeat/hook/durable"
	"heartbeat/internal/testbed"
)

func TestMain(m *testing.M) { os.Exit(testbed.Run(m)) }

func read(t testing.TB, stateDir, agent string, since time.Time) []Record {
	t.Helper()
	var all []Record
	if err := Read(stateDir, agent, since, func(r Record) { all = append(all, r) }); err != nil {
		t.Fatal(err)
	}
	return all
}

func record(second int, delivery string, turns int64) Record {
	return Record{At: at(float64(second)), Agent: "a", Session: "s", Of: Of{Delivery: delivery}, Sum: Sum{Turns: turns}}
}

// TestRecordsAreKept: what was torn, by a power cut say, spoils no other; what is
// older than what was asked for is left out.
func TestRecordsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if got := read(t, dir, "a", time.Time{}); got != nil {
		t.Errorf("without a file: %+v", got)
	}
	if agents, err := Agents(dir); agents != nil || err != nil {
		t.Errorf("agents: %v, %v", agents, err)
	}
	if err := Append(dir, "a", record(1, "1", 1), record(2, "2", 2)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, folderName, "a.jsonl")
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(`{"at":"2026-11-22T12:00:03Z","turns":3`)
	if err := errors.Join(err, file.Close(), Append(dir, "a", record(4, "4", 4))); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range read(t, dir, "a", at(2)) {
		got = append(got, fmt.Sprint(r.Delivery, " ", r.Turns))
	}
	if diff := cmp.Diff([]string{"2 2", "4 4"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if agents, err := Agents(dir); err != nil || len(agents) != 1 || agents[0] != "a" {
		t.Errorf("agents: %v, %v", agents, err)
	}
}

// TestTheTimeOfTheFileHidesNoRecord: where a file's time was older than what stood in it, as
// where times have whole seconds, nothing had been spent, and a record that could not be
// read back was written twice.
func TestTheTimeOfTheFileHidesNoRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Append(dir, "a", record(1, "1", 1), record(2, "2", 2)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, folderName, "a.jsonl")
	for _, torn := range []string{"", `{"at":"2026-11-22T12:00:03Z","turns":3`} {
		file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = file.WriteString(torn)
		if err := errors.Join(err, file.Close(), os.Chtimes(path, at(0), at(0))); err != nil {
			t.Fatal(err)
		}
		if got := read(t, dir, "a", at(2)); len(got) != 1 || got[0].Delivery != "2" {
			t.Errorf("from the last record on: %+v", got)
		}
		if got := read(t, dir, "a", at(3)); len(got) != 0 {
			t.Errorf("after it: %+v", got)
		}
	}
}

// TestRecordsAreBounded: the older half goes when there is too much of it.
func TestRecordsAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Append(dir, "a", record(1, "first", 1)); err != nil {
		t.Fatal(err)
	}
	fill := func() {
		if err := os.Truncate(filepath.Join(dir, folderName, "a.jsonl"), maxLog+1); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int{2, 2, 2} {
		fill()
		if err := Append(dir, "a", record(2+i, "more", 1)); err != nil {
			t.Fatal(err)
		}
		if got := read(t, dir, "a", time.Time{}); len(got) != want || got[len(got)-1].At != at(float64(2+i)) {
			t.Errorf("after %d: %d records, the last %v", i, len(got), got[len(got)-1].At)
		}
	}
	if agents, err := Agents(dir); err != nil || len(agents) != 1 {
		t.Errorf("agents: %v, %v", agents, err)
	}
}

// TestAgentsWhoseNamesAreAlike: the older records of one are not those of another.
func TestAgentsWhoseNamesAreAlike(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	names := []string{"a", "a.1", "a.jsonl", "a.jsonl.1", "a.1.jsonl"}
	for round := range 3 {
		for _, name := range names {
			r := record(round, name, 1)
			r.Agent = name
			if err := Append(dir, name, r); err != nil {
				t.Fatal(err)
			}
			if round == 0 {
				if err := os.Truncate(filepath.Join(dir, folderName, fileOf(name)), maxLog+1); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, name := range names {
		got := read(t, dir, name, time.Time{})
		if len(got) != 3 {
			t.Errorf("%s: %d records, want 3", name, len(got))
		}
		for _, r := range got {
			if r.Delivery != name {
				t.Errorf("%s has a record of %s", name, r.Delivery)
			}
		}
	}
	agents, err := Agents(dir)
	slices.Sort(agents)
	slices.Sort(names)
	if err != nil || !slices.Equal(agents, names) {
		t.Errorf("agents: %q, %v", agents, err)
	}
	if err := os.Rename(filepath.Join(dir, folderName, "a.jsonl"), filepath.Join(dir, folderName, "b.jsonl")); err != nil {
		t.Fatal(err)
	}
	if got := read(t, dir, "b", time.Time{}); got != nil {
		t.Errorf("in a file with another's name: %+v", got)
	}
}

// TestRecordsThatMoveAsideMeanwhile are read once each.
func TestRecordsThatMoveAsideMeanwhile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Append(dir, "a", record(1, "1", 1)); err != nil {
		t.Fatal(err)
	}
	newer, older := filepath.Join(dir, folderName, fileOf("a")), filepath.Join(dir, folderName, olderOf("a"))
	for range 1000 {
		var moves sync.WaitGroup
		moves.Go(func() {
			if err := os.Rename(newer, older); err != nil { // as Append does
				t.Error(err)
			}
		})
		n := 0
		err := Read(dir, "a", time.Time{}, func(Record) { n++ })
		moves.Wait()
		if err := errors.Join(err, os.Rename(older, newer)); err != nil || n != 1 {
			t.Fatalf("%d records, %v", n, err)
		}
	}
}

// TestSettledAfterAKill: wherever a session's shim is killed, what its transcripts
// say is counted, once, however often it is settled; also what subagents cost, and
// not what a resumed conversation had cost before.
func TestSettledAfterAKill(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
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
		kept := Kept{Began: noon, Transcript: path, From: info.Size()}
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
			kept.Total = c.Total()
			if parts == nil {
				parts = []Part{{}}
			}
			for _, p := range parts {
				if err := Append(dir, "a", Record{At: at(1), Agent: "a", Session: "s", Of: p.Of, Sum: p.Sum, Kept: kept}); err != nil {
					t.Fatal(err)
				}
			}
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
			if err := Settle(dir, "a", "s", at(100), nil); err != nil {
				t.Fatal(err)
			}
			var got Sum
			err := Read(dir, "a", time.Time{}, func(r Record) { got = got.Plus(r.Sum) })
			if err != nil {
				t.Fatal(err)
			}
			if got.Unpriced = 0; !cmp.Equal(got, want, near) {
				t.Fatalf("(-want +got):\n%s", cmp.Diff(want, got))
			}
		}
	})
}

// TestSettleOfWhatIsUnknown: a session of which nothing was recorded, or whose
// transcript has gone, is no error.
func TestSettleOfWhatIsUnknown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Settle(dir, "a", "s", noon, nil); err != nil {
		t.Error(err)
	}
	gone := record(1, "1", 1)
	gone.Kept = Kept{Began: noon, Transcript: filepath.Join(dir, "gone.jsonl")}
	if err := Append(dir, "a", gone); err != nil {
		t.Fatal(err)
	}
	if err := Settle(dir, "a", "s", noon, nil); err != nil {
		t.Error(err)
	}
	if got := read(t, dir, "a", time.Time{}); len(got) != 1 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(dir, folderName)); errors.Is(err, fs.ErrNotExist) {
		t.Error("there is no folder")
	}
}

// TestReadOfLate reads what is of a time, wherever that begins in a large file.
func TestReadOfLate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all []Record
	const n = 20_000
	for i := range n {
		all = append(all, record(i-n, fmt.Sprintf("%012d", i), 1))
	}
	if err := Append(dir, "a", all...); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int{0, 1, n / 3, n - 3000, n - 1000, n - 2, n} {
		got := read(t, dir, "a", at(float64(from-n)))
		if len(got) != n-from || len(got) > 0 && !got[0].At.Equal(at(float64(from-n))) {
			t.Errorf("from %d: %d records", from, len(got))
		}
	}
}

// TestSettleBelievesNoFigureBeyondReason: of a killed session, too, nor charges it
// what an older conversation had cost of which nobody knows the figure.
func TestSettleBelievesNoFigureBeyondReason(t *testing.T) {
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
		dir := t.TempDir()
		r := record(1, "1", 0)
		r.Kept = Kept{Transcript: filepath.Join(dir, "c.jsonl"), Total: 5, Unknown: tt.unknown}
		if tt.unknown {
			r.Kept.Total = 0
		}
		line := fmt.Sprintf("{\"type\":\"cost-state\",\"totalCostUSD\":%v}\n", tt.total)
		err := errors.Join(Append(dir, "a", r), appendTo(r.Kept.Transcript, answerLine("m", 5)+line), Settle(dir, "a", "s", at(9), nil))
		if err != nil {
			t.Fatal(err)
		}
		var got Sum
		for _, r := range read(t, dir, "a", time.Time{}) {
			got = got.Plus(r.Sum)
		}
		if got.Calls != 1 || got.Input != 5 || got.Cost != tt.want {
			t.Errorf("%s: %+v, want $%v", name, got, tt.want)
		}
	}
}

// TestAgentsOfALargeFleet are all found: beyond 10,000 names some were left out.
func TestAgentsOfALargeFleet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, folderName)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	const many = durable.MaxEntries + 1
	for i := range many {
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("a%d.jsonl", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := Agents(dir); err != nil || len(all) != many {
		t.Errorf("%d of %d, %v", len(all), many, err)
	}
}
