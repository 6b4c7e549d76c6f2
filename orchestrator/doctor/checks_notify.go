package doctor

import "heartbeat/orchestrator/status"

// checkUntold: people who do not learn what they have to know.
func checkUntold(f *Facts) (found []Finding) {
	for _, u := range f.Untold {
		found = append(found, Finding{
			Severity: Warning, Code: "target-fails", Seen: "notices to " + u.Target + " have failed for " + status.Age(f.Now.Sub(u.Since)) + ": " + u.Why,
			Why: "nobody is told there when something needs a person; notices are kept and sent again",
			Fix: ours(f.ours, u.Do()),
		})
	}
	return found
}

// checkPinged: a watch outside of this machine that gets no sign of life.
func checkPinged(f *Facts) []Finding {
	u := f.Unpinged
	if u == nil {
		return nil
	}
	return []Finding{{
		Severity: Warning, Code: "ping-fails", Seen: "the ping has not arrived for " + status.Age(f.Now.Sub(u.Since)) + ": " + u.Why,
		Why: "the monitor outside takes the fleet for dead, and would not notice when it is", Fix: status.MendPing,
	}}
}

// checkWatched: nobody who would say that the scheduler is gone.
func checkWatched(f *Facts) []Finding {
	if !f.Unwatched {
		return nil
	}
	return []Finding{{
		Severity: Info, Code: "not-watched", Seen: "the fleet's file has targets in notify:, and no ping:",
		Why: "a dead scheduler, or a dead machine, tells nobody",
		Fix: "ping: {url-file: PATH}, with an address of Healthchecks or the like; " + ours("", "help notify"),
	}}
}
