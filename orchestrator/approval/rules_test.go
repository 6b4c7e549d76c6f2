package approval

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	rules := config.Approvals{Always: []string{"read", "destroy"}, Never: []string{"destroy", "auth"}, After: map[string]int{"write": 2, "auth": 1}}
	at := time.Now()
	past := func(states ...State) (all []Request) {
		for i, s := range states {
			all = append(all, Request{Category: "write", State: s, Person: true, AnsweredAt: at.Add(time.Duration(i) * time.Second)})
		}
		slices.Reverse(all)
		return all
	}
	byRule := past(Approved, Approved, Approved)
	for i := range byRule {
		byRule[i].Person = false
	}
	for _, c := range []struct {
		name, category string
		past           []Request
		want           State
	}{
		{"always", "read", nil, Approved},
		{"never beats always", "destroy", nil, Rejected},
		{"never beats after", "auth", []Request{{Category: "auth", State: Approved, Person: true}}, Rejected},
		{"no rule", "network", nil, ""},
		{"no category", "", past(Approved, Approved), ""},
		{"too few", "write", past(Approved), ""},
		{"enough", "write", past(Approved, Approved), Approved},
		{"a rejection begins anew", "write", past(Approved, Approved, Rejected, Approved), ""},
		{"rejected long ago", "write", past(Rejected, Approved, Approved), Approved},
		{"what rules have approved", "write", byRule, ""},
		{"what was withdrawn or expired", "write", append(past(Approved), Request{Category: "write", State: Expired}), ""},
	} {
		got := State("")
		if a := decide(rules, Request{Category: c.category, At: at.Add(time.Hour)}, c.past); a != nil {
			if got = a.State; a.Person || !strings.HasPrefix(a.By, "a rule (approvals: ") {
				t.Errorf("%s: %+v", c.name, a)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestDecideByChance: whatever the rules and the past are, never beats always, always
// beats after, and without a rule for one of its words a person is asked.
func TestDecideByChance(t *testing.T) {
	t.Parallel()
	const seed = 1
	dice := rand.New(rand.NewPCG(seed, seed))
	words, at := append([]string{"", "release"}, config.ApprovalCategories...), time.Now()
	some := func() (all []string) {
		for range dice.IntN(4) {
			all = append(all, words[dice.IntN(len(words))])
		}
		return all
	}
	for i := range 5000 {
		rules := config.Approvals{Always: some(), Never: some(), After: map[string]int{}}
		for _, w := range some() {
			rules.After[w] = dice.IntN(4)
		}
		var past []Request // the latest first
		for j := range dice.IntN(6) {
			past = append(past, Request{
				Category: words[dice.IntN(len(words))], State: []State{Approved, Rejected, Expired, Withdrawn}[dice.IntN(4)],
				Person: dice.IntN(2) == 0, AnsweredAt: at.Add(-time.Duration(j) * time.Hour),
			})
		}
		r := Request{Category: words[dice.IntN(len(words))], At: at}
		want, yes := State(""), 0
		for _, p := range past {
			if p.Person && p.Category == r.Category {
				if p.State != Approved {
					break
				}
				yes++
			}
		}
		switch n := rules.After[r.Category]; {
		case r.Category == "": // no rule can name it
		case slices.Contains(rules.Never, r.Category):
			want = Rejected
		case slices.Contains(rules.Always, r.Category), n > 0 && yes >= n:
			want = Approved
		}
		dice.Shuffle(len(past), func(x, y int) { past[x], past[y] = past[y], past[x] })
		got := State("")
		if a := decide(rules, r, past); a != nil {
			got = a.State
		}
		if got != want {
			t.Fatalf("%d (seed %d): %q, want %q: %+v of %+v after %+v", i, seed, got, want, r, rules, past)
		}
	}
}

// TestAfterCountsOneAgent: what a person has said to another one, also to an earlier one
// of its name, is nothing to it, and neither is what a wrong clock has dated.
func TestAfterCountsOneAgent(t *testing.T) {
	t.Parallel()
	l, now := newRegister(t), clock()
	rules := config.Approvals{After: map[string]int{"write": 2}}
	ask := func(key string) Request {
		t.Helper()
		r, err := l.ask(Request{Agent: "a", Key: key, Question: "q", Category: "write"}, rules, now)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	say := func(key string, s State, at time.Time) {
		t.Helper()
		if _, err := l.give(ask(key).ID, ByPerson(s, ""), at); err != nil {
			t.Fatal(err)
		}
	}
	say("earlier", Approved, now)
	say("earlier", Approved, now)
	say("later", Approved, now.Add(-time.Minute))
	say("later", Approved, now.Add(time.Hour)) // its clock was wrong
	if r := ask("later"); !r.Waits() {
		t.Errorf("a rule answers: %+v", r)
	}
	say("later", Approved, now)
	if r := ask("later"); !r.Yes() || r.Person {
		t.Errorf("no rule answers: %+v", r)
	}
	if r := ask("earlier"); !r.Yes() {
		t.Errorf("the other one: %+v", r)
	}
}

// TestSevenDaysByAnyClock walks what a machine's clock does while a request waits: it is
// never a yes, ends after seven days by the clock, and waits for no more than seven days
// from when the clock was set right.
func TestSevenDaysByAnyClock(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		asked time.Duration   // when it was asked, by a clock that differs from now
		looks []time.Duration // from now
		want  State           // at the last look
	}{
		"it goes":                         {0, []time.Duration{0, 6*day + 23*time.Hour}, Asked},
		"seven days":                      {0, []time.Duration{0, 6 * day, 7 * day}, Expired},
		"it was suspended":                {0, []time.Duration{0, 30 * day}, Expired},
		"nobody has looked":               {0, []time.Duration{300 * day}, Expired},
		"forward, and back":               {0, []time.Duration{0, 6 * day, day}, Asked},
		"an hour back":                    {0, []time.Duration{-time.Hour, 6 * day}, Asked},
		"an hour back, seven days":        {0, []time.Duration{-time.Hour, 7*day - time.Hour}, Expired},
		"asked in the year 2099":          {73 * 365 * day, []time.Duration{0, 6 * day}, Asked},
		"asked then, and seven days":      {73 * 365 * day, []time.Duration{0, 7 * day}, Expired},
		"asked in 1970, and then righted": {-56 * 365 * day, []time.Duration{0}, Expired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, now := newRegister(t), clock()
			r, err := l.ask(Request{Agent: "a", Key: "a", Question: "q"}, noRules, now.Add(c.asked))
			for _, at := range c.looks {
				_, failed := l.settle(func(Request) string { return "" }, now.Add(at))
				err = errors.Join(err, failed)
			}
			if got, found := l.find(r.ID); errors.Join(err, found) != nil || got.State != c.want || got.Yes() {
				t.Errorf("%+v, %v, want %s", got, err, c.want)
			}
		})
	}
}

// TestTheSecondAnswerIsToldOfTheFirst: who has answered, and when, also where that was a rule.
func TestTheSecondAnswerIsToldOfTheFirst(t *testing.T) {
	t.Parallel()
	l, now := newRegister(t), clock()
	for by, answer := range map[string]func() Request{
		"approved by a rule (approvals: always: read)": func() Request {
			r, err := l.ask(Request{Agent: "a", Key: "a", Question: "q", Category: "read"}, config.Approvals{Always: []string{"read"}}, now)
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
		"approved by a person (phone)": func() Request {
			r, err := l.give(l.asked(Request{}, now).ID, Answer{State: Approved, By: "a person (phone)", Person: true}, now)
			if err != nil {
				t.Fatal(err)
			}
			return r
		},
		"not answered within 7 days": func() Request {
			r := l.asked(Request{}, now.Add(-Lasts))
			if _, err := l.settle(func(Request) string { return "" }, now); err != nil {
				t.Fatal(err)
			}
			return r
		},
	} {
		r := answer()
		_, err := l.give(r.ID, ByPerson(Rejected, ""), now.Add(time.Hour))
		if !errors.Is(err, ErrAnswered) || !strings.Contains(err.Error(), by) || !strings.HasSuffix(err.Error(), ", "+now.Local().Format(time.RFC3339)) {
			t.Errorf("%s: %v", by, err)
		}
	}
}
