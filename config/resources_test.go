package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// An agent's own resources lie over its group's, those over the defaults', key
// by key.
func TestResources(t *testing.T) {
	t.Parallel()
	f := mustLoad(t, write(t, `
version: 1
groups:
  big: {max-sessions: 2, resources: {memory: 4GiB, cpu: 2}}
  plain: {max-sessions: 2}
defaults: {resources: {memory: 512MiB, processes: 200, required: true}}
agents:
  own:    {dir: a, group: big, resources: {cpu: 0.5, required: false}}
  group:  {dir: b, group: big}
  rest:   {dir: c, group: plain}
  number: {dir: d, resources: {memory: 134217728, processes: 0x40}}
  none:   {dir: e, resources: }
`))
	want := map[string]Resources{
		"own":    {Memory: 4 << 30, Processes: 200, CPU: 0.5},
		"group":  {Memory: 4 << 30, Processes: 200, CPU: 2, Required: true},
		"rest":   {Memory: 512 << 20, Processes: 200, Required: true},
		"number": {Memory: 128 << 20, Processes: 64, Required: true},
		"none":   {},
	}
	for name, r := range want {
		if diff := cmp.Diff(r, f.Agent(name).Resources); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestResourceProblems(t *testing.T) {
	t.Parallel()
	tests := []struct{ yaml, want string }{
		{"memory: 4G", `"4G" is not a size`},
		{"memory: 1KiB", `1KiB is out of range (from 64MiB to 64TiB)`},
		{"memory: 999999999999TiB", "out of range"},
		{"processes: 5", "5 is too small (at least 64)"},
		{"cpu: 0", "0 is out of range (from 0.01 to 4096)"},
		{"cpu: 50%", `"50%" is not a number of processor cores (for example 1.5)`},
		{"cpu: '2'", `"2" is not a number of processor cores`},
		{"cpu: .nan", "is not a number of processor cores"},
		{"cpus: 2", "did you mean cpu?"},
		{"pids: 200", "did you mean processes?"},
		{"ram: 2GiB", "did you mean memory?"},
		{"required: yep", "neither true nor false"},
	}
	for _, tt := range tests {
		for _, in := range []string{
			"agents: {a: {dir: a, resources: {" + tt.yaml + "}}}",
			"defaults: {resources: {" + tt.yaml + "}}\nagents: {a: {dir: a}}",
			"groups: {g: {max-sessions: 1, resources: {" + tt.yaml + "}}}\nagents: {a: {dir: a}}",
		} {
			problems := problemsOf(t, write(t, "version: 1\n"+in+"\n"))
			if len(problems) != 1 || !strings.Contains(problems[0], tt.want) {
				t.Errorf("%s: %q", in, problems)
			}
		}
	}
	if p := problemsOf(t, write(t, "version: 1\nagents: {a: {dir: a, resources: 4GiB}}\n")); !slices.ContainsFunc(p, func(p string) bool { return strings.Contains(p, "known keys: memory, processes, cpu, required") }) {
		t.Errorf("%q", p)
	}
}
