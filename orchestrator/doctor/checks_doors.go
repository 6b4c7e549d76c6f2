package doctor

import (
	"cmp"

	"heartbeat/config"
)

// checkDoors: addresses at which nobody is heard.
func checkDoors(f *Facts) (found []Finding) {
	for _, d := range f.Doors {
		if d.Problem == "" {
			continue
		}
		why := "a run is not reached there; it tries again every second"
		if f.Scheduler != nil {
			why = "what is sent there is refused, and not everybody sends it again (GitHub does not); it is tried again every second"
		}
		found = append(found, Finding{
			Severity: Error, Code: "not-listening", Seen: d.Problem, Why: why,
			Fix: d.Mend(cmp.Or(f.ours, "heartbeat")),
		})
	}
	return found
}

// checkSecrets: webhooks that refuse every request.
func checkSecrets(_ *Facts, a *Agent) (found []Finding) {
	for _, p := range a.SecretProblems {
		found = append(found, Finding{
			Severity: Error, Code: "secret-unreadable", Seen: "trigger " + p.Trigger + ": " + p.Err.Error(),
			Why: "every request to the webhook is refused until it can be read",
			Fix: config.SecretCure(p.File, p.Err) + "; no reload is needed",
		})
	}
	return found
}
