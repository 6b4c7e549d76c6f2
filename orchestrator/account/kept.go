package account

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"heartbeat/hook/client"
	"heartbeat/orchestrator/state"
)

// Kept is what the next run has to know about an account, so that it starts no session
// only to be refused again, or to use the share that is left to people.
type Kept struct {
	Until  time.Time `json:"until,omitzero"` // it is parked; zero: it is not
	Source Source    `json:"source,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Limits say how far they are used, as a client has shown it last.
	Limits client.Limits `json:"limits,omitzero"`
}

// Path is where a fleet keeps it: accounts.json in the state directory.
func Path(stateDir string) string { return filepath.Join(stateDir, "accounts.json") }

// Read returns what an earlier run kept.
func Read(stateDir string) (kept map[ID]Kept, err error) {
	if err := state.Load(Path(stateDir), &kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return kept, nil
}

// Keep keeps it.
func Keep(stateDir string, kept map[ID]Kept) error { return state.Save(Path(stateDir), kept) }

// Kept returns the accounts that are parked until a known time, and those whose use of
// their limits is known. anew is true once for each change.
func (l *Ledger) Kept(now time.Time) (kept map[ID]Kept, anew bool) {
	if !l.changed {
		return nil, false
	}
	l.changed, kept = false, map[ID]Kept{}
	for id, c := range l.accounts {
		k := Kept{Limits: standing(c.shown, now)}
		if !c.person && c.known(now) {
			k.Until, k.Source, k.Reason = c.until, c.source, c.reason
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
		if k.Source != "" && k.Source != ByBackOff && now.Before(k.Until) && !k.Until.After(now.Add(Longest+toTheMinute)) {
			c.until, c.source, c.reason, c.parked, c.failed = k.Until, k.Source, k.Reason, 1, now
		}
		l.accounts[id] = c
	}
}

// standing returns what is shown of windows that are not over, and that end no later
// than a window's length from now.
func standing(l client.Limits, now time.Time) client.Limits {
	for of, length := range map[*client.Limit]time.Duration{&l.FiveHour: client.FiveHours, &l.SevenDay: client.SevenDays} {
		if !now.Before(of.Resets) || of.Resets.After(now.Add(length+toTheMinute)) {
			*of = client.Limit{}
		}
	}
	return l
}
