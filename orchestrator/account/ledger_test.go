package account

import (
	"slices"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// TestLedger: who is known to work on an account counts there, by name, until it
// leaves; whoever was told to wait for it is named then.
func TestLedger(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	var l Ledger
	if a := l.May("a", now); !a.May || l.Leaves("a") != nil || l.Share("a", "b") {
		t.Errorf("an agent whose account is not known: %+v", a)
	}
	for _, name := range []string{"a", "b", "c"} {
		if ask, anew := l.Joins(name, "one"); ask != nil || !anew {
			t.Errorf("%s joins: %v, %t", name, ask, anew)
		}
	}
	if _, anew := l.Joins("a", "one"); anew || !l.Share("a", "b") {
		t.Error("the same account is another one")
	}
	l.Joins("other", "two")
	for _, name := range []string{"a", "b"} {
		l.Failed(name, Failure{Why: "rate_limit"}, now, 0)
	}
	if a := l.May("c", now); a.May || l.Share("a", "other") || !l.May("other", now).May || l.Parked(now).IsZero() {
		t.Errorf("two have failed: %+v", a)
	}
	// When the time is over one tries it, and the others wait for that one.
	now = now.Add(time.Hour)
	if !l.May("c", now).May || l.May("a", now).May {
		t.Error("not one agent tries the account")
	}
	ask := l.Leaves("c")
	if slices.Sort(ask); !slices.Equal(ask, []string{"a", "b"}) {
		t.Errorf("the one that tries it has left, asked again: %v", ask)
	}
	if !l.May("a", now).May {
		t.Error("nobody tries it any more")
	}
	if ask := l.Works("a", now, now.Add(time.Minute)); !slices.Contains(ask, "b") || !l.May("b", now.Add(time.Minute)).May {
		t.Errorf("it works again, asked: %v", ask)
	}
}

// TestHurryAfterTheAccountsLastFailure: what one agent is sent does not have the account
// tried sooner after another one's failure.
func TestHurryAfterTheAccountsLastFailure(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	until := now.Add(time.Hour)
	c := Account{until: until, source: ByBackOff, failed: now, agents: map[string]*member{
		"a": {failed: now.Add(-30 * time.Minute), until: until, source: ByBackOff}, "b": {failed: now, until: until, source: ByBackOff},
	}}
	c.Hurry("a", time.Minute)
	if got, want := c.Parked(now), now.Add(time.Minute); !got.Equal(want) {
		t.Errorf("parked until %v, want %v", got, want)
	}
}

// TestTheLatestFiguresHold: neither what a client has shown long ago, nor a person who
// resumes an agent, nor a restart has more of the limits be used.
func TestTheLatestFiguresHold(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	shows := func(used float64, resets time.Duration) client.Limits {
		return client.Limits{
			FiveHour: client.Limit{Used: used, Resets: now.Add(resets)}, SevenDay: client.Limit{Used: 10, Resets: now.Add(100 * time.Hour)},
		}
	}
	var l Ledger
	for _, name := range []string{"a", "idle", "b"} {
		l.Joins(name, "one")
	}
	above := func(l *Ledger, when string) {
		t.Helper()
		if until, why := l.Above("b", 90, 90, now); why == "" || !until.Equal(now.Add(time.Hour)) {
			t.Errorf("%s: until %v, %q", when, until, why)
		}
	}
	if !l.Shows("idle", shows(40, time.Hour)) || !l.Shows("a", shows(95, time.Hour)) {
		t.Error("figures are not taken")
	}
	above(&l, "at once")
	if l.Shows("idle", shows(40, time.Hour)) || l.Shows("idle", shows(100, -time.Minute)) || l.Shows("b", client.Limits{}) || l.Shows("a", shows(95, time.Hour)) {
		t.Error("what is old or nothing counts as new")
	}
	above(&l, "after a stale figure")
	l.Clear("a")
	above(&l, "after a person has resumed an agent")
	kept, anew := l.Kept(now)
	if !anew || len(kept) != 1 {
		t.Fatalf("kept: %+v, %t", kept, anew)
	}
	db := storetest.New(t, t.TempDir())
	for range 2 { // what was kept before is replaced
		if err := db.Write(t.Context(), func(c *store.Change) error { return Keep(c, kept) }); err != nil {
			t.Fatal(err)
		}
	}
	read, err := store.Get(t.Context(), db.Reader, Read)
	if err != nil {
		t.Fatal(err)
	}
	var next Ledger
	next.Restore(read, now)
	next.Joins("b", "one")
	above(&next, "in the next run")
	if !next.May("b", now).May || !next.Parked(now).IsZero() {
		t.Error("an account that was not parked is")
	}
	if !l.Shows("a", shows(3, 6*time.Hour)) {
		t.Error("a later window is not taken")
	}
	if _, why := l.Above("b", 90, 90, now); why != "" {
		t.Errorf("in a later window: %s", why)
	}
	var far Ledger
	far.Restore(map[ID]Kept{"one": {Limits: shows(95, 50*time.Hour)}}, now)
	far.Joins("b", "one")
	if _, why := far.Above("b", 90, 90, now); why != "" {
		t.Errorf("by a window that is too far ahead: %s", why)
	}
}
