package config

import (
	"strings"
	"testing"
)

// TestTimesThatContradict: each pair of which one time takes away what the other is for is
// said where it is written; the defaults, and pairs that are no contradiction, are not.
func TestTimesThatContradict(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"": "", "mode: persist": "",
		"mode: persist, timeout: 30m":                           "timeout (30m) is not longer than idle-interval (30m)",
		"mode: persist, timeout: 31m":                           "",
		"mode: persist, timeout: none, idle-interval: 2h":       "",
		"mode: persist, idle-interval: 2h":                      "timeout (1h) is not longer than idle-interval (2h)",
		"timeout: 10m":                                          "", // no session waits
		"timeout: 10m, idle-interval: 20m":                      "timeout (10m) is not longer than idle-interval (20m)",
		"mode: persist, session-timeout: 20m":                   "session-timeout (20m) is not longer than idle-interval (30m)",
		"mode: persist, session-timeout: 40m":                   "",
		"session-timeout: 30s":                                  "session-timeout (30s) is not longer than start-timeout (30s)",
		"session-timeout: 2h, start-timeout: 3h":                "session-timeout (2h) is not longer than start-timeout (3h)",
		"session-timeout: 1m":                                   "",
		"timeout: 10m, stall-timeout: 10m":                      "timeout (10m) is not longer than stall-timeout (10m)",
		"timeout: 10m, stall-timeout: none":                     "",
		"stall-timeout: 2h":                                     "timeout (1h) is not longer than stall-timeout (2h)",
		"tool-timeout: 1h":                                      "timeout (1h) is not longer than tool-timeout (1h)",
		"tool-timeouts: {Bash: 90m}":                            "timeout (1h) is not longer than this (1h30m)",
		"tool-timeouts: {Bash: 50m}":                            "",
		"timeout: 5m, background-timeout: 10m":                  "timeout (5m) is not longer than background-timeout (10m)",
		"timeout: 5m":                                           "",
		"session-timeout: 10m, timeout: 20m, end-grace: 2m":     "", // a session ends between prompts
		"until: {check: [x], check-timeout: 20m, hold: 1m}":     "",
		"trigger: {poll: [/bin/true], every: 10s, timeout: 1m}": "",
	} {
		f, err := Load(write(t, "version: 1\nagents:\n  a: {dir: a, "+keys+"}\n"))
		if err != nil {
			t.Errorf("%s: %v", keys, err)
			continue
		}
		var said []string
		for _, w := range f.Warnings {
			if strings.Contains(w.Message, "is not longer than") {
				if w.Line != 3 || w.Column < 12 {
					t.Errorf("%s: at %d:%d", keys, w.Line, w.Column)
				}
				said = append(said, w.Message)
			}
		}
		switch {
		case want == "" && len(said) > 0:
			t.Errorf("%s: %q", keys, said)
		case want != "" && (len(said) != 1 || !strings.Contains(said[0], want)):
			t.Errorf("%s: %q, want %q", keys, said, want)
		}
	}
}
