package doctor

import (
	"testing"

	"heartbeat/config"
)

// TestWhatTheFileAloneDecides: validate says it, too.
func TestWhatTheFileAloneDecides(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		agent config.Agent
		code  string
	}{
		"nothing":                       {config.Agent{Command: []string{"claude"}}, ""},
		"a flag that turns hooks off":   {config.Agent{Command: []string{"claude", "--bare"}}, "hooks-disabled"},
		"sources without our settings":  {config.Agent{Command: []string{"claude", "--setting-sources", "user"}, Settings: config.SettingsProject}, "hooks-disabled"},
		"the same, where they are none": {config.Agent{Command: []string{"claude", "--setting-sources", "user"}, Settings: config.SettingsFlag}, ""},
		"a variable that does":          {config.Agent{Command: []string{"claude"}, Env: map[string]string{"CLAUDE_CODE_SIMPLE": "1"}}, "hooks-disabled"},
		"another session's mark":        {config.Agent{Command: []string{"claude"}, Env: map[string]string{"CLAUDECODE": "1"}}, "nested-session"},
	} {
		tt.agent.Name = "a"
		found := OfFile([]*config.Agent{&tt.agent})
		switch {
		case tt.code == "" && len(found) > 0, tt.code != "" && (len(found) != 1 || found[0].Code != tt.code || found[0].Agent != "a"):
			t.Errorf("%s: %+v", name, found)
		}
	}
}
