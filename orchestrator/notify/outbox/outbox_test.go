package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"heartbeat/config"
	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/notify/notice"
)

var begin = time.Date(2026, 11, 4, 12, 0, 0, 0, time.UTC) // a Wednesday

func note(key string, urgent bool) notice.Notice {
	return notice.Notice{Key: key, Agent: "a", Kind: "held", Event: notice.Began, Urgent: urgent, At: begin, Since: begin}
}

func TestWho(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tier   config.Tier
		urgent bool
		agent  string
		told   []string
		to     string
		not    string
		want   bool
	}{
		{tier: config.TierUrgent, urgent: true, agent: "a", want: true},
		{tier: config.TierUrgent, agent: "a"},
		{tier: config.TierInfo, agent: "a", want: true},
		{tier: config.TierInfo, urgent: true, agent: "a", want: true},
		{tier: config.TierReplies, urgent: true, agent: "a"},
		{tier: config.TierReplies, to: "phone", want: true},
		{tier: config.TierInfo, to: "other"},
		{tier: config.TierInfo, urgent: true, not: "phone"},
		{tier: config.TierInfo, urgent: true, agent: "a", told: []string{}},
		{tier: config.TierInfo, urgent: true, agent: "a", told: []string{"other"}},
		{tier: config.TierInfo, urgent: true, agent: "a", told: []string{"phone"}, want: true},
		{tier: config.TierInfo, urgent: true, told: []string{}, want: true}, // it is about the fleet
	} {
		n := notice.Notice{Urgent: tt.urgent, Agent: tt.agent, To: tt.to, Not: tt.not}
		if got := Wants(&config.Target{Name: "phone", Tier: tt.tier}, n, tt.told); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

// Urgent notices go at once, what belongs to one moment together; the others wait for
// the end of the digest and of the quiet hours.
func TestWhenItIsSent(t *testing.T) {
	t.Parallel()
	night := config.Hours{Days: [7]bool{true, true, true, true, true, true, true}, From: 22 * 60, To: 7 * 60}
	weekend := config.Hours{Days: [7]bool{0: true, 6: true}, From: 0, To: 24 * 60}
	for name, tt := range map[string]struct {
		to   config.Target
		n    notice.Notice
		at   time.Time
		want time.Time
	}{
		"urgent":             {config.Target{Quiet: &night, Digest: time.Hour}, note("x", true), begin, begin.Add(gather)},
		"info":               {config.Target{}, note("x", false), begin, begin.Add(gatherInfo)},
		"a digest":           {config.Target{Digest: time.Hour}, note("x", false), begin, begin.Add(time.Hour)},
		"at night":           {config.Target{Quiet: &night, Zone: time.UTC}, note("x", false), begin.Add(11 * time.Hour), begin.Add(19 * time.Hour)},
		"a digest at night":  {config.Target{Quiet: &night, Digest: 10 * time.Hour, Zone: time.UTC}, note("x", false), begin, begin.Add(19 * time.Hour)},
		"elsewhere at night": {config.Target{Quiet: &night, Zone: time.FixedZone("x", -12*3600)}, note("x", false), begin, begin.Add(7 * time.Hour)},
		"a whole weekend":    {config.Target{Quiet: &weekend, Zone: time.UTC}, note("x", false), begin.AddDate(0, 0, 3), begin.AddDate(0, 0, 5).Add(-12 * time.Hour)},
		"a reply":            {config.Target{Quiet: &night, Zone: time.UTC}, notice.Notice{Key: "x", To: "me"}, begin.Add(11 * time.Hour), begin.Add(11*time.Hour + gather)},
	} {
		var b Box
		b.Put(&tt.to, tt.n, tt.at)
		if due := b.NextDue(); !due.Equal(tt.want) {
			t.Errorf("%s: due %s, want %s", name, due, tt.want)
		}
	}
}

// A message stays the same until it has arrived: what comes meanwhile is another one.
func TestAMessageIsTriedUntilItArrives(t *testing.T) {
	t.Parallel()
	var b Box
	to := &config.Target{Name: "phone"}
	now := begin
	b.Put(to, note("1", true), now)
	b.Put(to, note("2", true), now)
	b.Put(to, note("1", true), now) // again
	now = now.Add(time.Minute)
	first := b.Compose(now)
	if first == nil || len(first.Notices) != 2 || first.Key != "1+1" {
		t.Fatalf("%+v", first)
	}
	b.Put(to, note("3", true), now)
	waited := time.Duration(0)
	for attempt := 1; attempt <= 20; attempt++ {
		if o := b.Answered(Verdict{Why: "500"}, now); o != Failed {
			t.Fatalf("attempt %d: %s", attempt, o)
		}
		data, err := json.Marshal(b) // a restart
		if err != nil {
			t.Fatal(err)
		}
		if b = (Box{}); json.Unmarshal(data, &b) != nil {
			t.Fatal("it does not survive")
		}
		if b.Compose(now) != nil {
			t.Error("it is sent again at once")
		}
		wait := b.NextDue().Sub(now)
		if wait < waited && wait < longest || wait > longest {
			t.Errorf("attempt %d: waits %s after %s", attempt, wait, waited)
		}
		waited = wait
		now = now.Add(wait)
		if m := b.Compose(now); m == nil || m.Key != first.Key || len(m.Notices) != 2 || m.Attempts != attempt {
			t.Fatalf("attempt %d: %+v", attempt, m)
		}
	}
	if !b.Fails(now) {
		t.Error("nobody is told that the target fails")
	}
	if b.Answered(Verdict{}, now) != Sent || b.Fails(now) {
		t.Error("it has arrived")
	}
	if m := b.Compose(now); m == nil || m.Key != "3" {
		t.Errorf("the next one is %+v", m)
	}
}

func TestTheServerSaysWhen(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 2 * time.Minute: 2 * time.Minute, 100 * time.Hour: longest} {
		var b Box
		b.Put(&config.Target{}, note("1", true), begin)
		b.Compose(begin.Add(time.Minute))
		b.Answered(Verdict{Why: "429", After: after}, begin)
		if wait := b.NextDue().Sub(begin); wait != want {
			t.Errorf("after %s: waits %s, want %s", after, wait, want)
		}
	}
}

// A message that its target refuses does not keep the others for ever, and one for a
// target that is gone for good is given up after a week.
func TestWhatIsGivenUp(t *testing.T) {
	t.Parallel()
	var refused, dead Box
	for _, b := range []*Box{&refused, &dead} {
		b.Put(&config.Target{}, note("1", true), begin)
	}
	now, tries := begin.Add(time.Minute), 0
	for refused.Compose(now) != nil {
		tries++
		if refused.Answered(Verdict{Why: "400", Refused: true}, now) == GivenUp {
			break
		}
		now = refused.NextDue()
	}
	if tries != refusals || refused.Pending() != 0 {
		t.Errorf("%d attempts, %d pending", tries, refused.Pending())
	}
	now = begin.Add(time.Minute)
	for dead.Compose(now) != nil && dead.Answered(Verdict{Why: "gone"}, now) != GivenUp {
		now = dead.NextDue()
	}
	if d := now.Sub(begin); d < patience || d > patience+time.Hour {
		t.Errorf("given up after %s", d)
	}
}

// What is over before it was said is not said; urgent things are, and so is what
// stands in a message already.
func TestWhatIsOverBeforeItWasSaid(t *testing.T) {
	t.Parallel()
	to := &config.Target{Digest: time.Hour}
	var b Box
	b.Put(to, note("1", false), begin)
	over := note("2", false)
	over.Event = notice.Ended
	if b.Put(to, over, begin); b.Pending() != 0 {
		t.Errorf("%+v", b.Waiting)
	}
	b.Put(to, note("3", true), begin)
	over.Key, over.Urgent = "4", true
	if b.Put(to, over, begin); b.Pending() != 2 {
		t.Errorf("%+v", b.Waiting)
	}
}

// An urgent notice at night does not bring the others along, and a reply is a message
// of its own.
func TestWhatGoesTogether(t *testing.T) {
	t.Parallel()
	var b Box
	to := &config.Target{Name: "me"}
	b.Put(to, note("i1", false), begin)
	b.Put(to, note("u1", true), begin)
	b.Put(to, note("i2", false), begin)
	for i := range 2 {
		b.Put(to, notice.Notice{Key: fmt.Sprint("r", i), To: "me", Reply: "x"}, begin)
	}
	now := begin.Add(time.Hour)
	for _, want := range []string{"i1+1", "u1", "r0", "r1"} {
		if m := b.Compose(now); m == nil || m.Key != want {
			t.Fatalf("%+v, want %s", m, want)
		}
		b.Answered(Verdict{}, now)
	}
}

// However much there is to say to a target that is dead, it has an end; what needs a
// person stays longest.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	var b Box
	to := &config.Target{Name: "me"}
	for i := range 3 * mostWaiting {
		b.Put(to, note(fmt.Sprint(i), i%3 == 0), begin)
	}
	if len(b.Waiting) != mostWaiting || b.Dropped != 2*mostWaiting {
		t.Errorf("%d wait, %d dropped", len(b.Waiting), b.Dropped)
	}
	urgent := 0
	for _, i := range b.Waiting {
		if i.Urgent {
			urgent++
		}
	}
	if urgent < mostWaiting/2 {
		t.Errorf("%d of them are urgent", urgent)
	}
}

// TestAWrongClockDelaysNothing: neither what waits in this run while the clock is set, nor
// what a run with another clock has left: a first message, a digest, a second attempt.
func TestAWrongClockDelaysNothing(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{-10 * 365 * 24 * time.Hour, -5 * 24 * time.Hour, -time.Hour, 0, time.Hour, 10 * 365 * 24 * time.Hour} {
		for name, c := range map[string]struct {
			to     config.Target
			urgent bool
			fails  bool
			within time.Duration
		}{
			"first":          {config.Target{}, true, false, gather},
			"digest":         {config.Target{Digest: time.Hour}, false, false, time.Hour},
			"second attempt": {config.Target{}, true, true, gather + longest},
		} {
			for _, again := range []bool{false, true} {
				clock := testbed.NewClock()
				b := new(Box)
				n := note("1", c.urgent)
				n.At = clock.Now()
				b.Put(&c.to, n, clock.Now())
				if c.fails {
					b.Compose(clock.Now().Add(gather))
					b.Answered(Verdict{Why: "500", After: longest}, clock.Now())
				}
				clock.Set(by)
				if again {
					text, err := json.Marshal(b)
					b = new(Box)
					if err = errors.Join(err, json.Unmarshal(text, b)); err != nil {
						t.Fatal(err)
					}
					b.Recall(clock.Now())
				}
				if b.Compose(clock.Now().Add(c.within)) == nil {
					t.Errorf("%s, set by %v, another run: %v: after %v it is not sent, but in %v", name, by, again, c.within, b.NextDue().Sub(clock.Now()))
				}
			}
		}
	}
}
