package main

import (
	"strings"
	"testing"
)

// TestAnEditedPromptIsForgedIfItHasACheck, and is worked on as it stands otherwise, as the
// topics proof and queue say (they said forged of both).
func TestAnEditedPromptIsForgedIfItHasACheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags  []string
		forged bool
	}{
		"no check": {nil, false},
		"a check":  {[]string{"--until-check", "true"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, `{}`)
			f.ok("pause", "triage")
			f.ok(append([]string{"send", "triage", "say three"}, c.flags...)...)
			inbox := f.get("agents/triage/.heartbeat/inbox.jsonl")
			f.put("agents/triage/.heartbeat/inbox.jsonl", strings.Replace(inbox, "say three", "say other", 1))
			f.ok("resume", "triage")
			dead := ""
			until(t, "it has ended", func() bool {
				dead = f.ok("dead-letter", "triage")
				return f.agent("triage").Acknowledged == 1 || strings.Contains(dead, "forged")
			})
			if forged := strings.Contains(dead, "forged") && strings.Contains(dead, "say three"); forged != c.forged {
				t.Errorf("forged: %t\n%s", forged, dead)
			}
			if out := f.ok("replies", "triage"); strings.Contains(out, "say other") == c.forged {
				t.Errorf("replies: %s", out)
			}
		})
	}
}
