package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBudgets: an agent's own lies over the defaults', period by period; a group's and
// the fleet's are their own.
func TestBudgets(t *testing.T) {
	t.Parallel()
	f := mustLoad(t, write(t, `version: 1
budget: {day: {cost: 100}}
groups:
  shared: {max-sessions: 2, budget: {hour: {tokens: 2M}}}
  free: {max-sessions: 2}
defaults: {budget: {hour: {turns: 10}, entry: {cost: 1}}}
agents:
  own:  {dir: a, group: shared, budget: {entry: {tokens: 1.5k}, day: {cost: 5}}}
  same: {dir: b}
  none: {dir: c, budget: }
`))
	if diff := cmp.Diff(Budget{Day: Allowance{Cost: 100}}, f.Budget); diff != "" {
		t.Errorf("the fleet's (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]Budget{"shared": {Hour: Allowance{Tokens: 2_000_000}}}, f.Budgets); diff != "" {
		t.Errorf("the groups' (-want +got):\n%s", diff)
	}
	same := Budget{Hour: Allowance{Turns: 10}, Entry: Allowance{Cost: 1}}
	for name, want := range map[string]Budget{
		"own": {Hour: Allowance{Turns: 10}, Day: Allowance{Cost: 5}, Entry: Allowance{Tokens: 1500}}, "same": same, "none": {},
	} {
		if diff := cmp.Diff(want, f.Agent(name).Budget); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestBudgetsThatAreNone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ yaml, want string }{
		{"cost: 5", "say in which period: day: {cost: …}"},
		{"month: {cost: 5}", "known keys: hour, day, entry"},
		{"day: 5", "must be"},
		{"day: {turns: 0}", "0 is too small"},
		{"day: {tokens: many}", `"many" is not a number of tokens`},
		{"day: {tokens: 5 M}", `"5 M" is not a number of tokens`},
		{"day: {tokens: 1.5}", "out of range"},
		{"day: {tokens: 0}", "out of range"},
		{"day: {cost: $5}", `"$5" is not an amount`},
		{"day: {cost: .nan}", "is not an amount"},
		{"day: {cost: 0}", "out of range"},
		{"day: {cost: -1}", "out of range"},
		{"day: {usd: 5}", "did you mean cost?"},
	} {
		for _, file := range []string{"agents: {a: {dir: a, budget: {" + tt.yaml + "}}}", "defaults: {budget: {" + tt.yaml + "}}\nagents: {a: {dir: a}}"} {
			if p := problemsOf(t, write(t, "version: 1\n"+file+"\n")); !slices.ContainsFunc(p, func(p string) bool { return strings.Contains(p, tt.want) }) {
				t.Errorf("%s: %q, want %q", file, p, tt.want)
			}
		}
	}
	for _, file := range []string{"budget: {entry: {cost: 1}}\nagents: {a: {dir: a}}", "groups: {g: {max-sessions: 1, budget: {entry: {cost: 1}}}}\nagents: {a: {dir: a}}"} {
		if p := problemsOf(t, write(t, "version: 1\n"+file+"\n")); !slices.ContainsFunc(p, func(p string) bool { return strings.Contains(p, "a prompt's limit is the agent's") }) {
			t.Errorf("%s: %q", file, p)
		}
	}
}
