package account

import (
	"time"

	"heartbeat/hook/client"
	"heartbeat/orchestrator/deadline"
	"heartbeat/orchestrator/store"
)

// Kept is what the next run has to know about an account, so that it starts no session
// only to be refused again, or to use the share that is left to people.
type Kept struct {
	Until  time.Time // it is parked; zero: it is not
	Since  time.Time
	Source Source
	Reason string
	// Limits say how far they are used, as a client has shown it last.
	Limits client.Limits
}

// Read returns what an earlier run kept.
func Read(v *store.View) (map[ID]Kept, error) {
	kept := map[ID]Kept{}
	err := v.Each(`SELECT account, until, since, source, reason, five_hour_used, five_hour_resets, seven_day_used, seven_day_resets FROM accounts`, nil, func(scan store.Scan) error {
		var id ID
		var k Kept
		var until, since, five, seven int64
		if err := scan(&id, &until, &since, &k.Source, &k.Reason, &k.Limits.FiveHour.Used, &five, &k.Limits.SevenDay.Used, &seven); err != nil {
			return err
		}
		k.Until, k.Since, k.Limits.FiveHour.Resets, k.Limits.SevenDay.Resets = store.Time(until), store.Time(since), store.Time(five), store.Time(seven)
		kept[id] = k
		return nil
	})
	return kept, err
}

// Keep keeps it, in place of what was kept before.
func Keep(c *store.Change, kept map[ID]Kept) error {
	if _, err := c.Do(`DELETE FROM accounts`); err != nil {
		return err
	}
	for id, k := range kept {
		_, err := c.Do(`INSERT INTO accounts (account, until, since, source, reason, five_hour_used, five_hour_resets, seven_day_used, seven_day_resets)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
			string(id), store.Millis(k.Until), store.Millis(k.Since), string(k.Source), k.Reason,
			k.Limits.FiveHour.Used, store.Millis(k.Limits.FiveHour.Resets), k.Limits.SevenDay.Used, store.Millis(k.Limits.SevenDay.Resets))
		if err != nil {
			return err
		}
	}
	return nil
}

// Kept returns the accounts that are parked until a known time, and those whose use of
// their limits is known. changed is true once for each change.
func (l *Ledger) Kept(now time.Time) (kept map[ID]Kept, changed bool) {
	if !l.changed {
		return nil, false
	}
	l.changed, kept = false, map[ID]Kept{}
	for id, c := range l.accounts {
		k := Kept{Limits: standing(c.shown, now)}
		if !c.person && c.known(now) {
			k.Until, k.Since, k.Source, k.Reason = c.until, c.failed, c.source, c.reason
		}
		if k != (Kept{}) {
			kept[id] = k
		}
	}
	return kept, true
}

// Restore takes over what an earlier run kept.
func (l *Ledger) Restore(kept map[ID]Kept, now time.Time) {
	for id, k := range kept {
		if l.accounts == nil {
			l.of, l.accounts = map[string]ID{}, map[ID]*Account{}
		}
		c := &Account{shown: standing(k.Limits, now)}
		longest := Furthest
		if !k.Since.IsZero() {
			longest = min(longest, k.Until.Sub(k.Since))
		}
		if until := deadline.On(k.Until, now, longest); k.Source != "" && k.Source != ByBackOff && !deadline.Over(until, now) {
			c.until, c.source, c.reason, c.parked, c.failed = until, k.Source, k.Reason, 1, now
		}
		l.accounts[id] = c
	}
}

// standing returns what is shown of windows that are not over, and that end no later
// than a window's length from now: others are of another clock.
func standing(l client.Limits, now time.Time) client.Limits {
	for of, length := range map[*client.Limit]time.Duration{&l.FiveHour: client.FiveHours, &l.SevenDay: client.SevenDays} {
		if !now.Before(of.Resets) || of.Resets.After(now.Add(length+toTheMinute)) {
			*of = client.Limit{}
		}
	}
	return l
}
