package usage

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"heartbeat/hook/client"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func asks(s float64) client.Spending { return client.Spending{At: at(s), Asks: true} }

func answers(s float64, id string, in, out int64) client.Spending {
	return client.Spending{At: at(s), Message: id, Tokens: client.Tokens{Input: in, Output: out}}
}

var near = cmpopts.EquateApprox(0, 1e-9)

// TestCounter is one session after the other: what the client tells, and what it has
// cost by entry.
func TestCounter(t *testing.T) {
	t.Parallel()
	one, two, three := Of{Delivery: "1", Source: "send"}, Of{Delivery: "2", Source: "a/nightly@x"}, Of{Delivery: "3"}
	for name, tt := range map[string]struct {
		tell func(c *Counter)
		want []Part
	}{
		"a message counts once, and its last line": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(answers(2, "m", 10, 1), "")
				c.Take(answers(2, "m", 10, 1), "")
				c.Take(answers(2, "m", 10, 7), "")
				c.Told(0.5, at(3))
			},
			[]Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 7), Cost: 0.5}}},
		},
		"rounds of tools are calls, and no turns": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(answers(2, "m1", 10, 1), "")
				c.Take(answers(3, "m2", 11, 2), "")
				c.Told(0.5, at(4))
			},
			[]Part{{one, Sum{Turns: 1, Calls: 2, Tokens: tokens(21, 3), Cost: 0.5}}},
		},
		"a subagent's prompts are no turns": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(asks(1), "aside")
				c.Take(answers(2, "s", 10, 1), "aside")
				c.Take(answers(3, "m", 10, 1), "")
				c.Told(0.5, at(4))
			},
			[]Part{{one, Sum{Turns: 1, Calls: 2, Tokens: tokens(20, 2), Cost: 0.5}}},
		},
		"lines that come late count for the entry of their time": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Works(two, at(5))
				c.Take(answers(4, "m1", 10, 0), "")
				c.Take(asks(5), "")
				c.Take(answers(6, "m2", 30, 0), "")
				c.Told(4, at(7))
			},
			[]Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 0), Cost: 1}}, {two, Sum{Turns: 1, Calls: 1, Tokens: tokens(30, 0), Cost: 3}}},
		},
		"a turn whose answer was not written down": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(asks(2), "")
				c.Take(answers(3, "m", 10, 1), "")
				c.Take(asks(4), "")
			},
			[]Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Unseen: 2, Unpriced: 1}}},
		},
		"a request that was refused": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(client.Spending{At: at(2), Fails: true}, "")
			},
			nil,
		},
		"a conversation that is resumed had cost something": {
			func(c *Counter) {
				c.Base(7)
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(answers(2, "m", 10, 1), "")
				c.Told(7.5, at(3))
			},
			[]Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.5}}},
		},
		"the clock was set back": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(-3600), "")
				c.Take(answers(-3599, "m", 10, 1), "")
				c.Told(0.5, at(-3598))
			},
			[]Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.5}}},
		},
		"the client's figure begins anew": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(answers(2, "m1", 10, 1), "")
				c.Told(0.5, at(3))
				c.Anew()
				c.Take(asks(4), "")
				c.Take(answers(5, "m2", 10, 1), "")
				c.Told(0.25, at(6))
			},
			[]Part{{one, Sum{Turns: 2, Calls: 2, Tokens: tokens(20, 2), Cost: 0.75}}},
		},
		"an older figure comes late": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(answers(2, "m", 10, 1), "")
				c.Told(0.5, at(4))
				c.Told(0.25, at(3))
			},
			[]Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.5}}},
		},
		"what it had cost before is told first": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Told(7, at(0))
				c.Take(asks(1), "")
				c.Take(answers(2, "m", 10, 1), "")
				c.Told(7.5, at(3))
			},
			[]Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.5}}},
		},
		"nobody knows what it had cost before": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(answers(2, "m1", 10, 1), "")
				c.Told(7, at(3))
				c.Take(asks(4), "")
				c.Take(answers(5, "m2", 10, 1), "")
				c.Told(7.5, at(6))
			},
			[]Part{{one, Sum{Turns: 2, Calls: 2, Tokens: tokens(20, 2), Cost: 0.5, Unpriced: 1}}},
		},
		"a figure beyond reason": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(answers(2, "m", 10, 1), "")
				c.Told(900_000, at(3))
				c.Told(0.5, at(4))
			},
			[]Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.5}}},
		},
		"a figure beyond reason of another conversation": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(answers(2, "m", 10, 1), "")
				c.Anew()
				c.Told(5000, at(3))
				c.Told(5001, at(4))
			},
			[]Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 1, Unpriced: 1}}},
		},
		"the clock was set back between two entries": {
			func(c *Counter) {
				c.Works(one, at(5000))
				c.Take(asks(5001), "")
				c.Take(answers(5002, "m1", 10, 1), "")
				c.Told(0.5, at(5003))
				c.Works(two, at(1400))
				c.Take(asks(1401), "")
				c.Take(answers(1402, "m2", 10, 1), "")
				c.Told(0.75, at(1403))
			},
			[]Part{
				{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.5}},
				{two, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.25}},
			},
		},
		"the cost is told before the answer is written down": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Told(0.5, at(3))
				c.Take(answers(2, "m", 10, 1), "")
			},
			[]Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.5}}},
		},
		"the next answer is there when the cost of the one before it is told": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(answers(2, "m1", 10, 1), "")
				c.Works(two, at(3))
				c.Take(asks(4), "")
				c.Take(answers(6, "m2", 10, 1), "")
				c.Told(0.5, at(5))
				c.Works(three, at(7))
				c.Told(0.75, at(8))
				c.Take(asks(9), "")
				c.Take(answers(10, "m3", 10, 1), "")
				c.Told(1.75, at(11))
			},
			[]Part{
				{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.5}},
				{two, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.25}},
				{three, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 1}},
			},
		},
		"no status line, and what the client writes at its end": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Take(asks(1), "")
				c.Take(answers(2, "m", 10, 1), "")
				c.Take(client.Spending{Cost: 0.5}, "")
			},
			[]Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.5}}},
		},
		"a turn of no entry": {
			func(c *Counter) {
				c.Works(one, at(0))
				c.Works(Of{}, at(2))
				c.Take(asks(3), "")
				c.Take(answers(4, "m", 10, 1), "")
				c.Told(0.5, at(5))
			},
			[]Part{{Of{}, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.5}}},
		},
	} {
		c := &Counter{}
		if !strings.Contains(name, "had cost") {
			c.Base(0)
		}
		tt.tell(c)
		c.Close(false)
		all := c.All()
		got := c.Drain()
		if diff := cmp.Diff(tt.want, got, near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		var sum Sum
		for _, p := range got {
			sum = sum.Plus(p.Sum)
		}
		if diff := cmp.Diff(all, sum, near); diff != "" {
			t.Errorf("%s: all of it is not the sum of its parts (-all +parts):\n%s", name, diff)
		}
		if again := c.Drain(); again != nil {
			t.Errorf("%s: drained twice: %+v", name, again)
		}
	}
}

// TestACostCountsWhereFileTimesAreWholeSeconds: an answer came after the figure that is
// about it, by their times. Budgets had its cost only when the next one came.
func TestACostCountsWhereFileTimesAreWholeSeconds(t *testing.T) {
	t.Parallel()
	c := &Counter{}
	c.Base(0)
	c.Works(Of{Delivery: "1"}, at(0))
	c.Take(asks(1), "")
	c.Take(answers(2.4, "m", 10, 7), "")
	c.Told(0.5, at(2))
	if parts := c.Drain(); len(parts) != 1 || parts[0].Cost != 0.5 {
		t.Errorf("the parts are %+v", parts)
	}
}

// TestCounterLosesNothing: whenever it is drained, and however late lines come, the
// parts add up to what the model has answered, and to what the client has told.
func TestCounterLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := &Counter{}
		c.Base(0)
		c.Took(client.Tokens{Input: 1000})
		var want, got Sum
		var told float64
		drain := func() {
			for _, p := range c.Drain() {
				if p.Calls < 0 || p.Cost < -1e-9 || p.Turns < 0 {
					t.Fatalf("a part is less than nothing: %+v", p)
				}
				got = got.Plus(p.Sum)
			}
		}
		for i := range rapid.IntRange(1, 400).Draw(t, "steps") {
			now := float64(i)
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 6: // the client asks something itself, and has counted it at its end
				hidden := rapid.Int64Range(0, 9).Draw(t, "hidden")
				if rapid.Bool().Draw(t, "compacts") {
					c.Take(client.Spending{At: at(now), Compacts: true}, "")
					want.Calls++
				}
				want.Input += hidden
			case 0:
				c.Works(Of{Delivery: fmt.Sprint(i)}, at(now))
			case 1:
				c.Take(asks(now), "")
			case 2, 3:
				id := fmt.Sprint("m", i)
				late := max(0, now-float64(rapid.IntRange(0, 3).Draw(t, "late")))
				c.Take(answers(late, id, 3, 1), "")
				c.Take(answers(late, id, 3, 2), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "subagent"))
				want.Calls++
				want.Input, want.Output = want.Input+3, want.Output+2
			case 4:
				more := float64(rapid.IntRange(0, 9).Draw(t, "cents")) / 100
				told += more
				c.Told(told, at(now))
			case 5:
				drain()
			}
		}
		told += 0.5
		c.Take(client.Spending{Cost: told, Whole: want.Tokens.Plus(client.Tokens{Input: 1000})}, "")
		c.Close(false)
		drain()
		if got.Calls != want.Calls || got.Tokens != want.Tokens || got.Unpriced > got.Turns || math.Abs(got.Cost-told) > 1e-6 {
			t.Fatalf("counted %+v, want %+v and $%v", got, want, told)
		}
	})
}

// TestCounterOfALongSession holds no more than what may still change.
func TestCounterOfALongSession(t *testing.T) {
	t.Parallel()
	c := &Counter{}
	for i := range 3 * maxSeen {
		now := float64(i)
		c.Works(Of{Delivery: fmt.Sprint(i)}, at(now))
		c.Take(asks(now), "")
		c.Take(answers(now, fmt.Sprint("m", i), 1, 1), "")
		c.Told(now, at(now))
		c.Drain()
	}
	if len(c.shares) > maxWorks+2 || len(c.seen) > maxSeen || len(c.works) > maxWorks {
		t.Errorf("it holds %d shares, %d answers, %d entries", len(c.shares), len(c.seen), len(c.works))
	}
}

// TestWhatTheClientAsksItselfIsCounted: a compaction and a title are calls of the model
// whose answers no transcript has. They were missing from the tokens; the client's own
// count at its end has them. Where that does not come, a compaction is said to be
// unseen; a count that comes late, or that an agent makes up, takes nothing away.
func TestWhatTheClientAsksItselfIsCounted(t *testing.T) {
	t.Parallel()
	one, two := Of{Delivery: "1"}, Of{Delivery: "2"}
	compacts := client.Spending{At: at(3), Compacts: true}
	whole := func(cost float64, in, out int64) client.Spending {
		return client.Spending{Cost: cost, Whole: client.Tokens{Input: in, Output: out}}
	}
	for name, tt := range map[string]struct {
		base client.Tokens
		ends []client.Spending
		want []Part
	}{
		"summed up": {
			ends: []client.Spending{whole(2, 70, 9), whole(2, 70, 9)},
			want: []Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 2.0 / 2}}, {two, Sum{Turns: 1, Calls: 2, Tokens: tokens(60, 8), Cost: 2.0 / 2}}},
		},
		"of a conversation that goes on": {
			base: client.Tokens{Input: 1000, Output: 100},
			ends: []client.Spending{whole(2, 1070, 109)},
			want: []Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 2.0 / 2}}, {two, Sum{Turns: 1, Calls: 2, Tokens: tokens(60, 8), Cost: 2.0 / 2}}},
		},
		"nothing is told": {
			want: []Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Unpriced: 1}}, {two, Sum{Turns: 1, Calls: 2, Tokens: tokens(10, 1), Unseen: 1, Unpriced: 1}}},
		},
		"less than the transcript has": {
			ends: []client.Spending{whole(2, 5, 0)},
			want: []Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 1}}, {two, Sum{Turns: 1, Calls: 2, Tokens: tokens(10, 1), Cost: 1}}},
		},
	} {
		c := &Counter{}
		c.Base(0)
		c.Took(tt.base)
		c.Works(one, at(0))
		c.Take(asks(0), "")
		c.Take(answers(1, "a", 10, 1), "")
		c.Works(two, at(2))
		c.Take(compacts, "")
		c.Take(asks(4), "")
		c.Take(answers(5, "b", 10, 1), "")
		for _, s := range tt.ends {
			c.Take(s, "")
		}
		c.Close(false)
		if diff := cmp.Diff(tt.want, c.Drain(), near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAnAnswerThatWasCutOffIsUnseen: of a client that was killed while the model worked
// on a tool's result nothing said that a call is missing.
func TestAnAnswerThatWasCutOffIsUnseen(t *testing.T) {
	t.Parallel()
	again, calls := client.Spending{AsksAgain: true}, answers(2, "b", 1, 1)
	calls.Calls = true
	for name, tt := range map[string]struct {
		then   []client.Spending
		unseen int64
	}{
		"killed":          {[]client.Spending{again}, 1},
		"answered":        {[]client.Spending{again, answers(3, "b", 1, 1)}, 0},
		"refused":         {[]client.Spending{again, {At: at(3), Fails: true}}, 0},
		"a next prompt":   {[]client.Spending{again, asks(3), answers(4, "b", 1, 1)}, 1},
		"one more line":   {[]client.Spending{answers(2, "a", 10, 2), again, answers(2, "a", 10, 3)}, 1},
		"a call":          {[]client.Spending{calls}, 1},
		"its result":      {[]client.Spending{calls, again}, 1},
		"both":            {[]client.Spending{calls, again, calls, again}, 1},
		"its answer":      {[]client.Spending{calls, again, answers(4, "c", 1, 1)}, 0},
		"a call cut":      {[]client.Spending{calls, {Cut: true}}, 0},
		"ended":           {[]client.Spending{calls, {Cost: 1}}, 0},
		"what was copied": {[]client.Spending{{Cost: 0.5}, calls}, 1},
	} {
		c := &Counter{}
		c.Base(0)
		c.Works(Of{Delivery: "1"}, at(0))
		for _, s := range append([]client.Spending{asks(0), answers(1, "a", 10, 1)}, tt.then...) {
			c.Take(s, "")
		}
		c.Close(false)
		if got := c.All().Unseen; got != tt.unseen {
			t.Errorf("%s: %d unseen, want %d", name, got, tt.unseen)
		}
	}
}

// TestASubagentReadBehindTheClientsCountCountsOnce: the client's own count was taken for
// what no transcript has, and then a subagent's was read.
func TestASubagentReadBehindTheClientsCountCountsOnce(t *testing.T) {
	t.Parallel()
	c := &Counter{}
	c.Base(0)
	c.Took(client.Tokens{})
	c.Works(Of{Delivery: "1"}, at(0))
	c.Take(asks(0), "")
	c.Take(answers(1, "a", 10, 1), "")
	c.Take(client.Spending{Cost: 1, Whole: tokens(17, 2)}, "")
	c.Take(answers(1, "sub", 7, 1), "aside")
	c.Close(false)
	if got := c.All(); got.Tokens != tokens(17, 2) {
		t.Errorf("%+v", got)
	}
}

// TestATurnThatIsInNoTranscriptIsUnseen: a client was killed before it had written the
// prompt that the model was answering, and nothing said that the turn was not counted.
func TestATurnThatIsInNoTranscriptIsUnseen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		lines  []client.Spending
		inTurn bool
		unseen int64
	}{
		"killed before it wrote the prompt":   {nil, true, 1},
		"ended without a turn":                {nil, false, 0},
		"killed before it wrote the answer":   {[]client.Spending{asks(1)}, true, 1},
		"killed when it had written all":      {[]client.Spending{asks(1), answers(2, "a", 10, 1)}, true, 0},
		"killed after a request that failed":  {[]client.Spending{asks(1), {Fails: true}}, true, 0},
		"ended when it had written an answer": {[]client.Spending{asks(1), answers(2, "a", 10, 1)}, false, 0},
	} {
		c := &Counter{}
		c.Base(0)
		c.Works(Of{Delivery: "1"}, at(0))
		for _, line := range tt.lines {
			c.Take(line, "")
		}
		c.Close(tt.inTurn)
		if got := c.All(); got.Unseen != tt.unseen {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestTurnsThatWereNotWrittenAreUnseen, each with its entry, as far as that is known. A
// client that has ended in order has written everything.
func TestTurnsThatWereNotWrittenAreUnseen(t *testing.T) {
	t.Parallel()
	one, two := Of{Delivery: "1"}, Of{Delivery: "2"}
	lost := []Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Unseen: 1, Unpriced: 1}}, {two, Sum{Unseen: 2}}}
	for name, tt := range map[string]struct {
		before, after float64 // what the client has written of the whole cost
		want          []Part
	}{
		"killed":         {0, 0, lost},
		"a copy":         {5, 0, lost}, // of an older conversation
		"ended in order": {0, 5.5, []Part{{one, Sum{Turns: 1, Calls: 1, Tokens: tokens(10, 1), Cost: 0.5}}}},
	} {
		c := &Counter{}
		c.Base(5)
		c.Take(client.Spending{Cost: tt.before}, "")
		c.Works(one, at(0))
		c.Take(asks(1), "")
		c.Take(answers(2, "m", 10, 1), "")
		c.Works(two, at(3))
		c.Take(client.Spending{Cost: tt.after}, "")
		if end := c.Tail(); !end.At.Equal(at(2)) || end.Asking {
			t.Errorf("%s: it ends with %+v", name, end)
		}
		c.Close(true, "1", "2", "nobody knows")
		if diff := cmp.Diff(tt.want, c.Drain(), near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAGuessedPriceIsSaid: the client reckons a model that it does not know at another
// one's price, and says so at its end.
func TestAGuessedPriceIsSaid(t *testing.T) {
	t.Parallel()
	c := &Counter{}
	c.Base(0)
	c.Works(Of{Delivery: "1"}, at(0))
	c.Take(asks(0), "")
	c.Take(answers(1, "a", 10, 1), "")
	c.Take(client.Spending{Cost: 1, Guessed: true}, "")
	c.Close(false)
	if got := c.All(); got.Guessed != 1 || got.Cost != 1 {
		t.Errorf("%+v", got)
	}
}

func tokens(in, out int64) client.Tokens { return client.Tokens{Input: in, Output: out} }

// TestSubagentsThatAskAreKnown: of one whose client was killed in a turn before the answer
// was written, nothing said that a call is missing from the bill.
func TestSubagentsThatAskAreKnown(t *testing.T) {
	t.Parallel()
	c := &Counter{}
	for i, step := range []struct {
		of   string
		line client.Spending
		want int
	}{
		{"", asks(1), 0},
		{"a", asks(2), 1},
		{"b", asks(3), 2},
		{"a", answers(4, "m1", 10, 1), 1},
		{"a", client.Spending{At: at(5), AsksAgain: true}, 2},
		{"b", client.Spending{At: at(6), Fails: true}, 1},
		{"a", answers(7, "m2", 10, 1), 0},
	} {
		c.Take(step.line, step.of)
		if end := c.Tail(); end.Asides != step.want || !end.Asking {
			t.Errorf("step %d: %+v, want %d", i, end, step.want)
		}
	}
}
