package config

import (
	"slices"
	"strings"
	"testing"
)

// TestATextThatYAMLCutsAtAHashIsSaid: of "Work on issue #12" the agent got "Work on issue".
func TestATextThatYAMLCutsAtAHashIsSaid(t *testing.T) {
	t.Parallel()
	for text, line := range map[string]int{
		"trigger: {cron: '@daily', prompt: 'Work on issue #12'}":                                             0,
		"trigger:\n        cron: '@daily'\n        prompt: Work on issue #12 now":                            6,
		"trigger:\n        cron: '@daily'\n        prompt: Fix #12":                                          6,
		"trigger:\n        cron: '@daily'\n        prompt: Answer in # general":                              6,
		"trigger:\n        cron: '@daily'\n        prompt: Check mail  # each day":                           0,
		"trigger:\n        cron: '@daily'\n        prompt: Check mail\t# each day":                           0,
		"trigger:\n        cron: '@daily'\n        prompt: Check C#":                                         0,
		"trigger:\n        cron: '@daily'\n        prompt: |\n          Work on #12":                         0,
		"trigger:\n        cron: '@daily'\n        prompt: \"Work on #12\" # so":                             0,
		"trigger:\n        cron: '@daily'\n        prompt: Work on\n          issue #12":                     6,
		"trigger:\n        cron: '@daily'\n        prompt: Work on\n          # the newest\n        name: n": 0,
		"kickoff: Read the notes of #general":                                                                4,
		"env: {}\n      timeout: 2h #for now":                                                                0,
		"mode: drain #not persist":                                                                           0,
		"permissions:\n        allow:\n          - Bash(git log *) #1":                                       6,
		"env:\n        GREETING: Look at issue #12":                                                          5,
		"env:\n        GREETING: Look at # that":                                                             0,
	} {
		path := fleetOf(t, map[string]string{"heartbeat.yaml": "version: 1\nagents:\n    a:\n      " + text + "\n      dir: a\n"})
		f, err := Load(path)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		said := slices.DeleteFunc(f.Warnings, func(p Problem) bool { return !strings.Contains(p.Message, "is a comment in YAML") })
		switch {
		case line == 0 && len(said) > 0:
			t.Errorf("%s: %v", text, said)
		case line != 0 && (len(said) != 1 || said[0].Line != line || said[0].Hint == ""):
			t.Errorf("%s: %v, want one with a hint, of line %d", text, said, line)
		}
	}
}
