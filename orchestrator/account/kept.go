package account

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"heartbeat/orchestrator/state"
)

// Kept is what the next run is to know of an account: no session is started only to
// be refused again.
type Kept struct {
	Until  time.Time `json:"until"`
	Source Source    `json:"source"`
	Reason string    `json:"reason"`
}

// Path is where a fleet keeps it: accounts.json in the state directory.
func Path(stateDir string) string { return filepath.Join(stateDir, "accounts.json") }

// Read returns what an earlier run has kept.
func Read(stateDir string) (kept map[ID]Kept, err error) {
	if err := state.Load(Path(stateDir), &kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return kept, nil
}

// Keep keeps it.
func Keep(stateDir string, kept map[ID]Kept) error { return state.Save(Path(stateDir), kept) }

// Kept are the accounts that are parked until a time that is known. It is anew once
// for each change.
func (l *Ledger) Kept(now time.Time) (kept map[ID]Kept, anew bool) {
	if !l.changed {
		return nil, false
	}
	l.changed, kept = false, map[ID]Kept{}
	for id, c := range l.accounts {
		if !c.person && c.known(now) {
			kept[id] = Kept{Until: c.until, Source: c.source, Reason: c.reason}
		}
	}
	return kept, true
}

// Restore takes over what an earlier run has kept.
func (l *Ledger) Restore(kept map[ID]Kept, now time.Time) {
	for id, k := range kept {
		if k.Source == "" || k.Source == ByBackOff || !now.Before(k.Until) || k.Until.After(now.Add(Longest+toTheMinute)) {
			continue
		}
		if l.accounts == nil {
			l.of, l.accounts = map[string]ID{}, map[ID]*Account{}
		}
		l.accounts[id] = &Account{until: k.Until, source: k.Source, reason: k.Reason, parked: 1, failed: now}
	}
}
