package client

import (
	"slices"
	"testing"
)

// TestWhatActsBesideThePromptIsShut unless an allow rule names it, in any form; the
// client's timetable is on only for who asks for one of its tools.
func TestWhatActsBesideThePromptIsShut(t *testing.T) {
	t.Parallel()
	none := []string{"Read", "Bash", "Bash(CronCreate *)", "mcp__cron__CronCreate", "Agent"}
	all, env := Claude.Shut(none)
	if len(all) != len(Claude.Beside) || !slices.Equal(env, []string{"CLAUDE_CODE_DISABLE_CRON=1"}) {
		t.Errorf("without a rule: %q and %q", all, env)
	}
	for _, b := range Claude.Beside {
		if problem := Claude.Settings.CheckRule(b.Tool, false); problem != nil {
			t.Errorf("the rule %s: %+v", b.Tool, problem)
		}
		rules := []string{b.Tool, b.Tool + "(x)"}
		if b.Former != "" {
			rules = append(rules, b.Former)
		}
		for _, rule := range rules {
			deny, env := Claude.Shut(append(slices.Clone(none), rule))
			if want := slices.DeleteFunc(slices.Clone(all), func(tool string) bool { return tool == b.Tool }); !slices.Equal(deny, want) {
				t.Errorf("with %s: %q", rule, deny)
			}
			if (len(env) == 0) != b.Timer {
				t.Errorf("with %s: %q", rule, env)
			}
		}
	}
}
