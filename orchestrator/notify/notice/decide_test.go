package notice

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var began = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

// world follows facts by a clock of its own.
type world struct {
	t      *testing.T
	now    time.Time
	began  time.Time
	memory Memory
	facts  map[string]Fact
	events []Fact
	unseen map[string]bool // agents that the run does not have
	gone   map[string]bool // agents that no longer exist
	told   []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, now: began, began: began.Add(-time.Hour), memory: Memory{}, facts: map[string]Fact{}, unseen: map[string]bool{}, gone: map[string]bool{}}
}

func (w *world) is(key string, urgent bool) {
	agent, kind, _ := strings.Cut(key, "/")
	w.facts[key] = Fact{Key: key, Agent: agent, Kind: Kind(kind), Urgent: urgent, Since: w.now, Text: "why", Do: "do"}
}

func (w *world) not(key string) { delete(w.facts, key) }

func (w *world) happens(key string) {
	agent, kind, _ := strings.Cut(key, "/")
	w.events = append(w.events, Fact{Key: key, Agent: agent, Kind: Kind(kind), Urgent: true, Since: w.now, Text: fmt.Sprint("no. ", len(w.events)+1)})
}

// pass looks every few seconds for a while, and returns what was told, as KEY EVENT.
func (w *world) pass(d time.Duration) []string {
	w.t.Helper()
	first := len(w.told)
	data, err := json.Marshal(w.memory) // it goes through the disk now and then
	if err != nil {
		w.t.Fatal(err)
	}
	if w.memory = nil; json.Unmarshal(data, &w.memory) != nil {
		w.t.Fatal("the memory does not survive")
	}
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(5 * time.Second)
		var facts []Fact
		for _, f := range w.facts {
			if !w.unseen[f.Agent] {
				facts = append(facts, f)
			}
		}
		for _, n := range Decide(View{
			Now: w.now, Began: w.began, Facts: facts, Happened: w.events,
			Sees: func(a string) bool { return !w.unseen[a] }, Knows: func(a string) bool { return !w.gone[a] },
		}, w.memory) {
			if slices.ContainsFunc(w.told, func(s string) bool { return strings.HasSuffix(s, n.Key) }) {
				w.t.Errorf("the key %s is used twice", n.Key)
			}
			w.told = append(w.told, fmt.Sprintf("%s/%s %s %s", n.Agent, n.Kind, n.Event, n.Key))
		}
		w.events = nil
	}
	var short []string
	for _, s := range w.told[first:] {
		short = append(short, strings.Join(strings.Fields(s)[:2], " "))
	}
	return short
}

func (w *world) expects(d time.Duration, want ...string) {
	w.t.Helper()
	if got := w.pass(d); !slices.Equal(got, want) {
		w.t.Errorf("within %s:\ngot  %q\nwant %q", d, got, want)
	}
}

// A fact is told once, again in growing intervals while it lasts, and once when it is
// over.
func TestAFactIsToldOnceRemindedOfAndCleared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.is("a/held", true)
	w.expects(5 * time.Second)
	w.expects(time.Minute, "a/held began")
	w.expects(50 * time.Minute)
	w.expects(20*time.Minute, "a/held lasts")
	w.expects(3 * time.Hour)
	w.expects(20*time.Hour, "a/held lasts", "a/held lasts")
	w.expects(7*24*time.Hour, slices.Repeat([]string{"a/held lasts"}, 7)...)
	w.not("a/held")
	w.expects(time.Minute)
	w.expects(2*time.Minute, "a/held ended")
	w.expects(48 * time.Hour)
	if len(w.memory) != 0 {
		t.Errorf("it is not forgotten: %v", w.memory)
	}
	w.is("a/held", true)
	w.expects(time.Minute, "a/held began")
}

func TestWhatIsNotUrgentTakesItsTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.is("a/parked", false)
	w.expects(50 * time.Second)
	w.expects(time.Minute, "a/parked began")
	w.expects(23 * time.Hour)
	w.expects(2*time.Hour, "a/parked lasts")
}

// What is over before it was told is not told at all.
func TestAMomentIsNotTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.is("a/held", true)
	w.pass(5 * time.Second)
	w.not("a/held")
	w.expects(24 * time.Hour)
}

// A restart in the middle tells nothing again, and no end that the new run has not
// seen.
func TestARestartTellsNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.is("a/held", true)
	w.is("b/stuck", true)
	f := w.facts["b/stuck"]
	f.Slow = true
	w.facts["b/stuck"] = f
	w.expects(time.Minute, "a/held began", "b/stuck began")
	w.began = w.now // a new run: it takes its time to see what is stuck
	stuck := w.facts["b/stuck"]
	w.not("b/stuck")
	w.expects(30 * time.Minute)
	w.facts["b/stuck"] = stuck
	w.expects(10 * time.Minute)
	w.not("a/held")
	w.expects(10*time.Minute, "a/held ended")
}

// An agent that the run does not have is not taken for one in order; one that no longer
// exists is forgotten.
func TestWhatIsNotSeenIsNotOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.is("a/held", true)
	w.is("b/held", true)
	w.expects(time.Minute, "a/held began", "b/held began")
	w.unseen["a"], w.gone["b"] = true, true
	w.not("b/held")
	w.expects(time.Hour)
	if w.memory["b/held"] != nil || w.memory["a/held"] == nil {
		t.Errorf("%v", w.memory)
	}
}

// A week of a fleet that comes and goes does not flood anybody: each of its troubles
// is told a few times.
func TestAWeekOfAFlappingFleet(t *testing.T) {
	t.Parallel()
	const week = 7 * 24 * time.Hour
	for _, tt := range []struct {
		on, off time.Duration
		most    int
	}{
		{30 * time.Second, 30 * time.Second, 12},
		{5 * time.Minute, 5 * time.Minute, 18},
		{20 * time.Minute, time.Hour, 24},
		{2 * time.Hour, 2 * time.Hour, 40},
		{6 * time.Hour, 10 * time.Hour, 60},
	} {
		w := newWorld(t)
		var told []string
		flaps := 0
		for end := w.now.Add(week); w.now.Before(end); flaps++ {
			w.is("a/held", true)
			told = append(told, w.pass(tt.on)...)
			w.not("a/held")
			told = append(told, w.pass(tt.off)...)
		}
		began, ended := 0, 0
		for _, s := range told {
			began += strings.Count(s, "began")
			ended += strings.Count(s, "ended")
		}
		t.Logf("%s on, %s off: %d times in a week, %d notices: %d began, %d ended", tt.on, tt.off, flaps, len(told), began, ended)
		if len(told) > tt.most || began == 0 {
			t.Errorf("%s on, %s off: %d notices, at most %d are bearable", tt.on, tt.off, len(told), tt.most)
		}
		told = append(told, w.pass(48*time.Hour)...)
		if last := told[len(told)-1]; last != "a/held ended" {
			t.Errorf("the last notice is %q: who was told is not told of the end", last)
		}
	}
}

// What happens a thousand times is told some ten times, and nothing of it is lost.
func TestWhatHappensAgainAndAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.happens("a/given-up")
	w.expects(10*time.Second, "a/given-up happened")
	told, total := 0, 0
	for range 1000 {
		w.happens("a/given-up")
		told += len(w.pass(30 * time.Second))
		total++
	}
	if told < 8 || told > 20 {
		t.Errorf("%d notices for %d times in eight hours", told, total)
	}
	w.expects(2*time.Hour, "a/given-up happened")
	w.expects(48 * time.Hour)
	if len(w.memory) != 0 {
		t.Errorf("%v", w.memory)
	}
}

func TestSeveralAtOnceAreOneNotice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 7 {
		w.happens("a/given-up")
	}
	all := Decide(View{Now: w.now, Began: w.began, Happened: w.events, Sees: func(string) bool { return true }, Knows: func(string) bool { return true }}, w.memory)
	if len(all) != 1 || all[0].Times != 7 || all[0].Text != "2 more; no. 3; no. 4; no. 5; no. 6; no. 7" {
		t.Errorf("%+v", all)
	}
}

// TestWhereAllThatIsNamedWasUndoneTheOthersAreCounted: the texts of the last ones are kept;
// when those were undone, a notice said "15 more; " of nothing.
func TestWhereAllThatIsNamedWasUndoneTheOthersAreCounted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		undone int // of the last ones, of 20
		want   string
	}{
		{0, "15 more; no. 16; no. 17; no. 18; no. 19; no. 20"},
		{4, "15 more; no. 16"},
		{5, "15 prompts"},
		{19, "1 prompt"},
	} {
		w := newWorld(t)
		for i := range 20 {
			w.happens("a/given-up")
			w.events[i].Of = fmt.Sprint(i)
		}
		stands := func(_, of string) bool { n, _ := strconv.Atoi(of); return n < 20-tt.undone }
		all := Decide(View{Now: w.now, Began: w.began, Happened: w.events, Stands: stands, Sees: func(string) bool { return true }, Knows: func(string) bool { return true }}, w.memory)
		if len(all) != 1 || all[0].Text != tt.want {
			t.Errorf("%d undone: %+v", tt.undone, all)
		}
	}
}

// A clock that was wrong for a while is not waited for.
func TestAWrongClock(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	right := w.now
	w.now = w.now.AddDate(30, 0, 0)
	w.is("a/held", true)
	w.happens("a/given-up")
	w.pass(time.Minute)
	w.now = right.Add(time.Minute)
	w.not("a/held")
	w.expects(10*time.Minute, "a/held ended")
	w.happens("a/given-up")
	w.expects(2*time.Minute, "a/given-up happened")
}

// TestAnAllClearSaysHowLongItLasted: from the first time that it was so, although it was
// not for a moment, until it was over; not until that was told.
func TestAnAllClearSaysHowLongItLasted(t *testing.T) {
	t.Parallel()
	m, now := Memory{}, began
	var all []Notice
	look := func(d time.Duration, facts ...Fact) {
		for end := now.Add(d); now.Before(end); now = now.Add(5 * time.Second) {
			all = append(all, Decide(View{Now: now, Began: began.Add(-time.Hour), Facts: facts, Sees: func(string) bool { return true }, Knows: func(string) bool { return true }}, m)...)
		}
	}
	held := Fact{Key: "a/held", Agent: "a", Kind: "held", Urgent: true, Since: now}
	look(time.Minute, held)
	look(5 * time.Second)
	held.Since = now // the agent counts from its last try
	look(time.Minute, held)
	look(10 * time.Minute)
	if len(all) != 2 || all[1].Event != Ended || !strings.Contains(Text(all[1:], 1000), "(after 2m; ") || all[1].At.Sub(all[1].Over) < calm {
		t.Errorf("%+v", all)
	}
	held.Since = now
	look(30*time.Second, held)
	look(10 * time.Minute)
	if len(all) != 4 || !strings.Contains(Text(all[3:], 1000), "(after 30s; ") {
		t.Errorf("what was over counts: %+v", all)
	}
}
