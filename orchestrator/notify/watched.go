package notify

import (
	"fmt"
	"path/filepath"
	"time"

	"heartbeat/orchestrator/notify/notice"
	"heartbeat/orchestrator/state"
)

// watched is when a run last looked at the fleet.
type watched struct {
	Since time.Time `json:"since"`
	Last  time.Time `json:"last"`
	// Ended is true if the run ended in order.
	Ended bool `json:"ended"`
}

const (
	watchedFile = "watched.json"
	// watchedEvery is how often it is written, without a sync.
	watchedEvery = time.Minute
)

// Seen returns when a run of a fleet that has not ended in order was last there, up to a
// minute early; zero: not known.
func Seen(stateDir string) time.Time {
	var last watched
	if state.Load(filepath.Join(stateDir, watchedFile), &last) != nil || last.Ended {
		return time.Time{}
	}
	return last.Last
}

// crashed returns the fact that the run before this one did not end in order, or nil.
func (w *Watch) crashed() []notice.Fact {
	before := Seen(w.opt.StateDir)
	if before.IsZero() {
		return nil
	}
	return []notice.Fact{{
		Key: "/" + string(notice.Crashed), Kind: notice.Crashed, Urgent: true, Since: before,
		Text: fmt.Sprintf("the one before it was last seen at %s: nobody watched for about %s", before.Local().Format("Mon 2006-01-02 15:04"), about(w.began.Sub(before))),
		Do:   w.opt.Ours + " status; " + w.opt.Ours + " events",
	}}
}

// about rounds a duration to minutes, because watchedFile is written once a minute.
func about(d time.Duration) string {
	if d < time.Minute {
		return "a minute"
	}
	d = d.Truncate(time.Minute)
	return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
}

// watches records that this run looks at the fleet.
func (w *Watch) watches(now time.Time, ended bool) {
	if !ended && now.Sub(w.noted).Abs() < watchedEvery {
		return
	}
	w.noted = now
	if err := state.Put(filepath.Join(w.opt.StateDir, watchedFile), watched{w.began, now, ended}); err != nil {
		w.opt.Log.Warn("cannot note that somebody watches", "err", err)
	}
}
