package config

import "testing"

// TestWhoAnswersApprovals: the fleet's word lies below that of defaults and agents.
func TestWhoAnswersApprovals(t *testing.T) {
	t.Parallel()
	f := mustLoad(t, write(t, `version: 1
approvals: {by: page, always: [read]}
defaults: {approvals: {never: [destroy]}}
agents:
  same: {dir: a}
  own: {dir: b, approvals: {by: person}}
`))
	for name, want := range map[string]bool{"same": true, "own": false} {
		if a := f.Agent(name).Approvals; a.ByPage != want || len(a.Always) != 1 || len(a.Never) != 1 {
			t.Errorf("%s: %+v", name, a)
		}
	}
}
