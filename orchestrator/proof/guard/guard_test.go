package guard

import (
	"math/rand/v2"
	"testing"
	"time"

	"heartbeat/hook/inbox"
)

// gives hands over until the rule says something else than "at once", and returns
// what and after how many iterations.
func gives(r Rule, next func(n int) Iteration) (int, Decision) {
	var p Past
	for n := 1; n <= 200; n++ {
		var d Decision
		if p, d = p.After(next(n), r); d != (Decision{}) {
			return n, d
		}
	}
	return 0, Decision{}
}

func TestWhenAnEntryIsGivenUp(t *testing.T) {
	t.Parallel()
	slow := func(n int) Iteration { return Iteration{Worked: time.Minute, Said: string(rune('a' + n%7))} }
	for name, test := range map[string]struct {
		rule Rule
		next func(n int) Iteration
		at   int
		want Decision
	}{
		"as many as allowed":     {Rule{MaxIterations: 10}, slow, 10, Decision{Gone: inbox.MaxIterations}},
		"one is allowed":         {Rule{MaxIterations: 1}, slow, 1, Decision{Gone: inbox.MaxIterations}},
		"no limit":               {Rule{}, slow, 0, Decision{}},
		"the time is over":       {Rule{MaxTime: 2 * time.Hour}, slow, 120, Decision{Gone: inbox.MaxTime}},
		"a clock that went back": {Rule{MaxTime: time.Hour}, func(int) Iteration { return Iteration{Worked: -time.Hour, Said: "x"} }, 5, Decision{Wait: base}},
		"nothing changes": {Rule{}, func(n int) Iteration {
			return Iteration{Worked: time.Minute, Said: "x", Same: n > 1}
		}, 3, Decision{Gone: inbox.NoProgress}},
		"the output stays, the files change": {Rule{MaxIterations: 50}, func(int) Iteration {
			return Iteration{Worked: time.Minute, Said: "x"}
		}, 50, Decision{Gone: inbox.MaxIterations}},
		"the files stay, the output changes": {Rule{MaxIterations: 50}, func(n int) Iteration {
			i := slow(n)
			i.Same = true
			return i
		}, 50, Decision{Gone: inbox.MaxIterations}},
		"the files change once": {Rule{}, func(n int) Iteration {
			return Iteration{Worked: time.Minute, Said: "x", Same: n != 3}
		}, 5, Decision{Gone: inbox.NoProgress}},
		"too fast": {Rule{}, func(n int) Iteration {
			return Iteration{Worked: time.Second, Said: string(rune('a' + n))}
		}, 5, Decision{Wait: base}},
		"fast enough on average": {Rule{MaxIterations: 40}, func(n int) Iteration {
			return Iteration{Worked: []time.Duration{46, 0, 0}[n%3] * time.Second, Said: string(rune('a' + n))}
		}, 40, Decision{Gone: inbox.MaxIterations}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if at, got := gives(test.rule, test.next); at != test.at || got != test.want {
				t.Errorf("after %d iterations %+v, want after %d %+v", at, got, test.at, test.want)
			}
		})
	}
}

// TestTooFastWaitsThreeTimes: it is given up only after the third wait, and work
// that takes time begins the waits anew.
func TestTooFastWaitsThreeTimes(t *testing.T) {
	t.Parallel()
	var p Past
	var waits []time.Duration
	n := 0
	step := func(worked time.Duration) (d Decision) {
		n++
		p, d = p.After(Iteration{Worked: worked, Said: string(rune('a' + n))}, Rule{})
		return d
	}
	for range 4 {
		if d := step(time.Second); d != (Decision{}) {
			t.Fatalf("one of the first four: %+v", d)
		}
	}
	for range 2 {
		waits = append(waits, step(time.Second).Wait)
	}
	if d := step(time.Minute); d != (Decision{}) || p.Waits != 0 {
		t.Fatalf("after a minute of work: %+v, %d waits", d, p.Waits)
	}
	for range 2 {
		step(time.Second)
	}
	for {
		d := step(time.Second)
		if d.Gone != "" {
			if d.Gone != inbox.TooFast {
				t.Errorf("given up for %s", d.Gone)
			}
			break
		}
		waits = append(waits, d.Wait)
	}
	want := []time.Duration{10 * time.Second, 30 * time.Second, 10 * time.Second, 30 * time.Second, 90 * time.Second}
	if len(waits) != len(want) {
		t.Fatalf("waits %v, want %v", waits, want)
	}
	for i := range want {
		if waits[i] != want[i] {
			t.Errorf("waits %v, want %v", waits, want)
			break
		}
	}
}

func TestAgain(t *testing.T) {
	t.Parallel()
	last := time.Duration(0)
	for n := range 100 {
		d := Again(n)
		if d < last || d > 5*time.Minute || d < 10*time.Second {
			t.Fatalf("wait %d takes %s, the one before %s", n, d, last)
		}
		last = d
	}
}

// TestWhatHoldsOfEveryCourse walks courses of an entry at random.
func TestWhatHoldsOfEveryCourse(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		rule := Rule{MaxIterations: rng.IntN(4) * 5, MaxTime: time.Duration(rng.IntN(3)) * 10 * time.Minute}
		var p Past
		var all []Iteration
		var worked time.Duration
		waits := 0
		for {
			i := Iteration{Worked: time.Duration(rng.IntN(40)) * time.Second, Said: string(rune('a' + rng.IntN(2))), Same: rng.IntN(3) > 0}
			all, worked = append(all, i), worked+i.Worked
			var d Decision
			p, d = p.After(i, rule)
			n := len(all)
			last := all[max(0, n-3):]
			same := n >= 3 && last[1].Same && last[2].Same && last[0].Said == last[1].Said && last[1].Said == last[2].Said
			fast := n >= 5 && last[0].Worked+last[1].Worked+last[2].Worked <= 45*time.Second
			want := Decision{}
			switch {
			case rule.MaxIterations > 0 && n >= rule.MaxIterations:
				want.Gone = inbox.MaxIterations
			case rule.MaxTime > 0 && worked >= rule.MaxTime:
				want.Gone = inbox.MaxTime
			case same:
				want.Gone = inbox.NoProgress
			case !fast:
				waits = 0
			case waits == 3:
				want.Gone = inbox.TooFast
			default:
				want.Wait = []time.Duration{10, 30, 90}[waits] * time.Second
				waits++
			}
			if d != want || p.Iterations != n || p.Worked != worked {
				t.Fatalf("after %+v by %+v: %+v, want %+v", all, rule, d, want)
			}
			if d.Gone != "" || n > 100 {
				break
			}
		}
	}
}
