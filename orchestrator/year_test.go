package orchestrator

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the zones, wherever the tests run

	"heartbeat/config"
	"heartbeat/hook"
	"heartbeat/hook/client"
	"heartbeat/hook/inbox"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/account"
	"heartbeat/orchestrator/session"
	"heartbeat/orchestrator/status"
	"heartbeat/orchestrator/usage"
	"heartbeat/orchestrator/usage/usagetest"
)

// year is a fleet with all that may keep an agent from working, and what a judge knows
// of it: what was spent, what the accounts' limits are, who has work.
type year struct {
	*rig
	random *rand.Rand
	zones  map[string]*time.Location // of agents

	mu     sync.Mutex
	spent  []spentAt
	limits map[string]limitOf // by account
	left   map[string]int     // entries by agent
	live   map[string]bool
	since  map[string]time.Time // since when nothing keeps an agent that has work
	// most is what was spent beyond an allowance, in entries' worth.
	most                           float64
	entries, refused, parked, held int
}

type spentAt struct {
	at    time.Time
	agent string
	usage.Sum
}

// limitOf is an account's limit: it has fallen until resets, and some agent knows it
// since known. Shown is how much of a window that ends at ends a client has shown; since
// full that is more than the polite may use.
type limitOf struct {
	resets, known, ends, full time.Time
	used, shown               float64
}

// An entry of the year costs at most maxEntryCost.
const (
	maxEntryCost = 2.0
	ownHour      = 4
	ownDay       = 20.0
	groupDay     = 15.0
	fleetDay     = 45.0
	politeShare  = 90
)

func newYear(t *testing.T) *year {
	t.Helper()
	y := &year{
		rig: newRig(t, "own", "east", "west", "limited", "polite", "held"), random: testbed.Chance(t, "what happens"),
		zones: map[string]*time.Location{}, limits: map[string]limitOf{}, left: map[string]int{}, live: map[string]bool{}, since: map[string]time.Time{},
	}
	f := y.fleet
	f.MaxSessions, f.Groups = len(f.Agents), map[string]int{"g": 2}
	f.Budgets = map[string]config.Budget{"g": {Day: config.Allowance{Cost: groupDay}}}
	f.Budget = config.Budget{Day: config.Allowance{Cost: fleetDay}}
	y.agent("own").Budget = config.Budget{Hour: config.Allowance{Turns: ownHour}, Day: config.Allowance{Cost: ownDay}}
	y.agent("east").Group, y.agent("west").Group = "g", "g"
	y.agent("polite").Limits = config.Limits{FiveHour: politeShare, Active: config.Hours{Days: [7]bool{1: true, true, true, true, true}, From: 9 * 60, To: 18 * 60}}
	y.agent("held").OnLimit = config.LimitHolds
	for _, a := range f.Agents {
		name := cmp.Or(map[string]string{"east": "Asia/Kathmandu", "west": "America/Havana"}[a.Name], "Europe/Rome")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		a.Zone, y.zones[a.Name] = zone, zone
		a.Env = map[string]string{"ANTHROPIC_API_KEY": accountIn(a.Name)}
	}
	y.acts[""] = y.works
	return y
}

// accountIn is the account of an agent.
func accountIn(agent string) string {
	return cmp.Or(map[string]string{"limited": "one", "polite": "one", "held": "two"}[agent], "three")
}

// purseOf is something that an agent spends from, by the judge's own reckoning.
type purseOf struct {
	name  string
	of    []string
	hour  bool
	turns int64
	cost  float64
}

func (y *year) pursesOf(agent string) []purseOf {
	all := []purseOf{{"the fleet's day", nil, false, 0, fleetDay}}
	switch agent {
	case "own":
		all = append(all, purseOf{"own's hour", []string{"own"}, true, ownHour, 0}, purseOf{"own's day", []string{"own"}, false, 0, ownDay})
	case "east", "west":
		all = append(all, purseOf{"the group's day", []string{"east", "west"}, false, 0, groupDay})
	}
	return all
}

// used is what was spent from a purse in the period that a moment is in, in a zone, by
// what a clock shows there.
func (y *year) used(p purseOf, zone *time.Location, at, until time.Time) (sum usage.Sum) {
	form := time.DateOnly
	if p.hour {
		form += " 15 -0700"
	}
	for _, s := range slices.Backward(y.spent) {
		if at.Sub(s.at) > 26*time.Hour {
			break
		}
		if !s.at.After(until) && s.at.In(zone).Format(form) == at.In(zone).Format(form) && (p.of == nil || slices.Contains(p.of, s.agent)) {
			sum = sum.Plus(s.Sum)
		}
	}
	return sum
}

func (p purseOf) empty(s usage.Sum) bool {
	return p.turns > 0 && s.Turns >= p.turns || p.cost > 0 && s.Cost >= p.cost-1e-9
}

// no says what keeps an agent from being handed anything at a time, by what its
// scheduler has been told by another one, and until when at the latest.
func (y *year) no(agent string, now, told time.Time) (why string, until time.Time) {
	zone := y.zones[agent]
	add := func(reason string, end time.Time) {
		if why = reason; end.After(until) {
			until = end
		}
	}
	for _, p := range y.pursesOf(agent) {
		if p.empty(y.used(p, zone, now, told)) {
			end := now.In(zone)
			for form := map[bool]string{true: "2006-01-02 15 -0700", false: time.DateOnly}[p.hour]; end.Format(form) == now.In(zone).Format(form); {
				end = end.Add(5 * time.Minute)
			}
			add(p.name+" is spent", end)
		}
	}
	l := y.limits[accountIn(agent)]
	// The client's words omit the seconds: it is tried late in the minute that they name.
	tried := l.resets.Truncate(time.Minute).Add(55 * time.Second)
	if now.Before(l.resets) && now.Before(tried) && !l.known.IsZero() && !l.known.After(told) {
		add("its account is limited", l.resets.Add(time.Minute))
	}
	active := func(at time.Time) bool {
		at = at.In(zone)
		return at.Weekday() >= time.Monday && at.Weekday() <= time.Friday && at.Hour() >= 9 && at.Hour() < 18
	}
	// Live sessions are looked at now and then: nobody tells that the hours have begun.
	if agent == "polite" && active(now) && active(told.Add(-sweepEvery)) && l.shown >= politeShare && !l.full.After(told) && now.Before(l.ends) {
		add("the rest of its account's limit is people's", l.ends)
	}
	return why, until
}

// begins judges that an agent is handed an entry.
func (y *year) begins(agent string) {
	now := time.Now()
	y.mu.Lock()
	defer y.mu.Unlock()
	if why, _ := y.no(agent, now, now.Add(-time.Second)); why != "" {
		y.t.Errorf("%v: %s is handed an entry although %s", now, agent, why)
	}
}

// refuses is a call of the model: false when it is let through.
func (y *year) refuses(agent string) (resets time.Time, no bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	l := y.limits[accountIn(agent)]
	if no = time.Now().Before(l.resets); no {
		if y.refused++; l.known.IsZero() {
			l.known = time.Now()
			y.limits[accountIn(agent)] = l
		}
	}
	return l.resets, no
}

// costs is what an entry has cost that is done now.
func (y *year) costs(f *fakeSession) {
	y.mu.Lock()
	defer y.mu.Unlock()
	now, agent := time.Now(), f.spec.Agent
	sum := usage.Sum{Turns: 1, Cost: float64(1+y.random.IntN(maxEntryCost*100)) / 100}
	for _, p := range y.pursesOf(agent) {
		before := y.used(p, y.zones[agent], now, now)
		over := (before.Cost + sum.Cost - p.cost) / maxEntryCost
		if p.turns > 0 {
			over = float64(before.Turns + 1 - p.turns)
		}
		sharing := max(1, len(p.of))
		if p.of == nil {
			sharing = len(y.fleet.Agents)
		}
		if y.most = max(y.most, over); over > float64(sharing) {
			y.t.Errorf("%v: %s is exceeded by %.2f entries' worth, and %d share it", now, p.name, over, sharing)
		}
	}
	y.spent = append(y.spent, spentAt{now, agent, sum})
	y.entries++
	y.left[agent]--
	f.spent = f.spent.Plus(sum)
	f.acknowledged++
	usagetest.Write(y.t, y.opt.Store, usage.Record{At: now, Agent: agent, Session: f.spec.Session, Group: f.spec.Group, Sum: sum})
}

// shows is what the client's status line shows of the account's five-hour limit.
func (y *year) shows(agent string) *client.StatusLine {
	y.mu.Lock()
	defer y.mu.Unlock()
	l := y.limits[accountIn(agent)]
	if !time.Now().Before(l.ends) || accountIn(agent) != "one" {
		return nil
	}
	if l.used >= politeShare && l.shown < politeShare {
		l.full = time.Now()
	}
	l.shown = l.used
	y.limits["one"] = l
	return &client.StatusLine{Limits: client.Limits{FiveHour: client.Limit{Used: l.used, Resets: l.ends}}}
}

// works is a session of the year: it does what it is handed until nothing is queued, a
// limit falls, or it is told to end.
func (y *year) works(f *fakeSession) session.Outcome {
	agent := f.spec.Agent
	y.lives(agent, true)
	defer y.lives(agent, false)
	time.Sleep(boot)
	for first := true; ; first = false {
		if o := f.told(); o.Stop || o.Finish != "" {
			return finished(o)
		}
		err := f.queue(func(q *inbox.Held) (err error) {
			if first && f.spec.GoOn != "" {
				if _, err = q.Rebind(f.spec.GoOn, inbox.Offering{Session: f.spec.Session}); err == nil {
					_, err = q.GoesOn("P")
				}
				return err
			}
			e, err := q.Next()
			if err == nil {
				_, err = q.Offer(e, inbox.Offering{Via: inbox.ViaKickoff, Session: f.spec.Session})
			}
			if err == nil {
				_, err = q.Advance(inbox.Started, "P")
			}
			return err
		})
		if errors.Is(err, inbox.ErrEmpty) {
			return session.Outcome{Why: hook.EndDrained, Bound: true}
		}
		if err != nil {
			y.t.Error(err)
			return session.Outcome{Why: hook.EndCrashed, Bound: true}
		}
		y.begins(agent)
		f.say(hook.Turn)
		if o, ended := y.turn(f); ended {
			return o
		}
	}
}

// turn is one turn of a session: two calls of the model, with a tool between them.
func (y *year) turn(f *fakeSession) (o session.Outcome, ended bool) {
	for range 2 {
		if at, no := y.refuses(f.spec.Agent); no {
			if err := f.queue(func(q *inbox.Held) error { _, err := q.Fail("rate_limit"); return err }); err != nil {
				y.t.Error(err)
			}
			return session.Outcome{Why: hook.EndAPIFailure, Detail: "rate_limit", Bound: true, Refused: saidWithDay(at)}, true
		}
		f.reports <- session.Report{At: time.Now(), Phase: hook.Turn, Acknowledged: f.acknowledged, Spent: f.spent, Answered: true}
		time.Sleep(10*time.Second + time.Duration(y.chance(300))*time.Second)
	}
	err := f.queue(func(q *inbox.Held) error {
		_, err := q.Acknowledge(inbox.Acknowledgement{Session: f.spec.Session, Now: time.Now()})
		return err
	})
	if err != nil {
		y.t.Error(err)
	}
	y.costs(f)
	f.reports <- session.Report{At: time.Now(), Phase: hook.Turn, Acknowledged: f.acknowledged, Spent: f.spent, Told: y.shows(f.spec.Agent)}
	time.Sleep(2 * time.Second)
	return o, false
}

// saidWithDay is what the client says of a limit, with the day where it is far.
func saidWithDay(at time.Time) *session.Refused {
	words := "You've hit your weekly limit · resets " + at.UTC().Format("Jan 2, 2006, ") + strings.ToLower(at.UTC().Format("3:04PM")) + " (UTC)"
	return &session.Refused{Told: words, Written: &client.Refusal{Status: 429, Kind: "rate_limit", Text: words}}
}

func (y *year) lives(agent string, is bool) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.live[agent] = is
}

func (y *year) chance(n int) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.random.IntN(n)
}

// happens has something happen, or not, in ten minutes.
func (y *year) happens() {
	now := time.Now()
	for _, a := range y.fleet.Agents {
		if y.chance(24) == 0 {
			n := 1 + y.chance(4)
			y.send(a.Name, n)
			y.mu.Lock()
			y.left[a.Name] += n
			y.mu.Unlock()
		}
	}
	for _, id := range []string{"one", "two"} {
		y.mu.Lock()
		l := y.limits[id]
		switch {
		case now.Before(l.resets):
		case y.random.IntN(100) == 0: // more than once a day, for hours
			l.resets, l.known = now.Add(time.Duration(1+y.random.IntN(5*3600))*time.Second).Truncate(time.Second), time.Time{}
		case y.random.IntN(2000) == 0: // every other week, for days
			l.resets, l.known = now.Add(time.Duration(1+y.random.IntN(7*24*3600-60))*time.Second).Truncate(time.Second), time.Time{}
		}
		if !now.Before(l.ends) {
			l.ends, l.shown, l.used = now.Add(5*time.Hour).Truncate(time.Second), 0, 0
		}
		l.used = min(99, l.used+float64(y.random.IntN(8)))
		y.limits[id] = l
		y.mu.Unlock()
	}
	if y.chance(100) == 0 && y.state("held").State == Held {
		y.mu.Lock() // a person knows better: what was known of the account is forgotten
		l := y.limits[accountIn("held")]
		l.known = time.Time{}
		y.limits[accountIn("held")] = l
		y.mu.Unlock()
		if _, err := y.s.Resume("held"); err != nil {
			y.t.Error(err)
		}
	}
}

// patienceOfAYear is how long an agent that nothing keeps may go without a session: while
// another one tries the account, and has its answer.
const patienceOfAYear = 30 * time.Minute

// judges what each agent does: none waits longer than its reason lasts, and none that
// has work and no reason goes without a session.
func (y *year) judges() {
	now := time.Now()
	for _, s := range y.s.Snapshot() {
		y.mu.Lock()
		why, until := y.no(s.Agent, now, now)
		latest := now.Add(account.Patience + time.Minute)
		if until.After(latest) {
			latest = until
		}
		free := why == "" && s.State != Held && y.left[s.Agent] > 0 && !y.live[s.Agent] && !now.Before(y.limits[accountIn(s.Agent)].resets)
		if !free || y.since[s.Agent].IsZero() {
			y.since[s.Agent] = now
		}
		since := y.since[s.Agent]
		y.mu.Unlock()
		switch s.State {
		case Parked:
			y.parked++
			if s.Until.Before(now.Add(-5*time.Second)) || s.Until.After(latest.Add(time.Second)) {
				y.t.Errorf("%v: %s is parked until %v (%s), and %q lasts until %v", now, s.Agent, s.Until, s.Reason, why, until)
			}
		case Held:
			if y.held++; s.Agent != "held" || !strings.Contains(s.Reason.String(), "on-limit: hold") {
				y.t.Errorf("%v: %s is held: %s", now, s.Agent, s.Reason)
			}
		case Idle, Waiting, Starting, Running, status.Ending:
		default:
			y.t.Errorf("%v: %s is %s: %s", now, s.Agent, s.State, s.Reason)
		}
		if now.Sub(since) > patienceOfAYear {
			y.t.Errorf("%v: %s has %d entries since %v, nothing keeps it, and it is %s (%s)", now, s.Agent, y.left[s.Agent], since, s.State, s.Reason)
		}
	}
}

// passes lets days pass, and begins another run now and then.
func (y *year) passes(days int) {
	stop := y.run()
	for step := range days * 24 * 6 {
		y.sleep(10*time.Minute - 2*time.Second)
		y.judges()
		y.happens()
		if y.sleep(2 * time.Second); y.t.Failed() {
			break
		}
		if step%1000 == 999 {
			stop()
			stop = y.run()
		}
	}
	stop()
	y.t.Logf("%d days until %v: %d entries, %d refused calls; %d times an agent was seen parked, %d held; budgets exceeded by %.2f entries' worth at most",
		days, time.Now().UTC().Format(time.DateOnly), y.entries, y.refused, y.parked, y.held, y.most)
	if y.entries < 20*days || days >= 7 && (y.refused == 0 || y.parked == 0) {
		y.t.Error("too little has happened")
	}
}

// TestAYearOfDecisions, with random work, spending, limits and people: nothing is handed
// over while a gate says no, nothing waits longer than its reason lasts, and what is
// spent exceeds no budget by more than one entry of each that shares it. With -full it
// is each week of a leap year; otherwise every fourth of the days on which clocks change,
// or the calendar does something else, by the sample.
func TestAYearOfDecisions(t *testing.T) {
	t.Parallel()
	type part struct {
		day  int // of the year in which the bubble's clock begins, 2000
		days int
	}
	parts := []part{{59, 1}, {85, 1}, {91, 2}, {302, 1}, {365, 1}} // leap day, Rome, Havana, both, the year's end
	if *testbed.Full {
		parts = nil
		for day := 0; day < 366; day += 7 {
			parts = append(parts, part{day, 7})
		}
	}
	if !*testbed.Full {
		parts = testbed.SampleOf(t, parts, 4)
	}
	for _, p := range parts {
		t.Run(fmt.Sprintf("day %d", p.day), func(t *testing.T) {
			t.Parallel()
			y := newYear(t)
			synctest.Test(t, func(t *testing.T) {
				y.t = t
				time.Sleep(time.Duration(p.day)*24*time.Hour + 7*time.Minute)
				y.passes(p.days)
			})
		})
	}
}
