package usage

import (
	"slices"
	"testing"
	"time"
)

// TestWhatAnAgentSpendsFrom: its own budget, its group's and the fleet's, in this order.
func TestWhatAnAgentSpendsFrom(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	spent := Meters{}
	spent.Add("a", "g", Sum{Turns: 1}, now, now)
	spent.Add("b", "g", Sum{Turns: 2}, now, now)
	spent.Add("g", "", Sum{Turns: 4}, now, now) // an agent with the group's name
	for name, tt := range map[string]struct {
		agent, group string
		names        []string
		turns        []int64
	}{
		"of a group": {"a", "g", []string{"its budget", "the budget of group g", "the fleet's budget"}, []int64{1, 3, 7}},
		"of none":    {"g", "", []string{"its budget", "the fleet's budget"}, []int64{4, 7}},
	} {
		var names []string
		var turns []int64
		for _, p := range Purses(tt.agent, tt.group) {
			names, turns = append(names, p.Name()), append(turns, turnsOf(spent[p].Within(now.Add(-time.Hour), now.Add(time.Hour), now)))
		}
		if !slices.Equal(names, tt.names) || !slices.Equal(turns, tt.turns) {
			t.Errorf("%s: %q have spent %v turns", name, names, turns)
		}
	}
}
