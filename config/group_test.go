package config

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGroupsAndShutdown(t *testing.T) {
	t.Parallel()
	f := mustLoad(t, write(t, `
version: 1
groups:
  gpu: {max-sessions: 2}
shutdown-grace: none
defaults: {group: gpu}
agents:
  a: {dir: a}
  b: {dir: b}
`))
	if diff := cmp.Diff(map[string]int{"gpu": 2}, f.Groups); diff != "" {
		t.Error(diff)
	}
	if f.Agent("a").Group != "gpu" || f.Agent("b").Group != "gpu" || f.ShutdownGrace != 0 {
		t.Errorf("groups %q and %q, shutdown-grace %v", f.Agent("a").Group, f.Agent("b").Group, f.ShutdownGrace)
	}
	if f := mustLoad(t, write(t, "version: 1\nagents: {a: {dir: a}}\n")); f.ShutdownGrace != 30*time.Second || f.Agent("a").Group != "" {
		t.Errorf("without them: %v, %q", f.ShutdownGrace, f.Agent("a").Group)
	}
}

func TestGroupProblems(t *testing.T) {
	t.Parallel()
	tests := []struct{ yaml, want string }{
		{"agents: {a: {dir: a, group: gpu}}", `agents.a.group: the group "gpu" is not declared (declare it: groups: {gpu: {max-sessions: 1}})`},
		{
			"groups: {cpu: {max-sessions: 1}}\nagents: {a: {dir: a, group: gpu}}",
			`the group "gpu" is not declared (the groups are cpu)`,
		},
		{"groups: {gpu: {}}\nagents: {a: {dir: a, group: gpu}}", `groups.gpu.max-sessions: is missing`},
		{"groups: {gpu: {max-sessions: 0}}\nagents: {a: {dir: a}}", `0 is too small`},
		{"groups: {gpu: {max: 1}}\nagents: {a: {dir: a}}", `unknown key`},
		{"groups: {\"a b\": {max-sessions: 1}}\nagents: {a: {dir: a}}", `"a b" is not a name`},
		{
			"groups: {gpu: {max-sessions: 1}}\nagents: {a: {dir: a, group: gpu, mode: persist, on-idle: tick}}",
			`keep all 1 sessions of the group "gpu" for ever (write max-sessions: 2 for the group, or on-idle: release)`,
		},
		{"shutdown-grace: 5\nagents: {a: {dir: a}}", `has no unit`},
		{"shutdown-grace: 2d\nagents: {a: {dir: a}}", `2d is too long`},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			problems := problemsOf(t, write(t, "version: 1\n"+tt.yaml+"\n"))
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, tt.want) }) {
				t.Errorf("problems %q lack %q", problems, tt.want)
			}
		})
	}
}
