package config

import (
	"strings"
	"testing"
)

// A poison prompt held its agent with the defaults, instead of becoming a dead
// letter.
func TestAnAgentIsNotHeldBeforeItsPoisonPromptIsPutAside(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fields  string
		want    int // max-restarts
		warning string
	}{
		{"", 5, ""},
		{"max-attempts: 2", 5, ""},
		{"max-attempts: 9", 9, ""},
		{"max-attempts: 3, max-restarts: 3", 3, ""},
		{"max-attempts: 9, max-restarts: 5", 5, "2:53: agents.a.max-restarts: a prompt that ends every session holds the agent at failure 6, before max-attempts (9) sets the prompt aside (write at least 9, or a smaller max-attempts)"},
		{"max-restarts: 0", 0, "2:36: agents.a.max-restarts: a prompt that ends every session holds the agent at failure 1, before max-attempts (5) sets the prompt aside (write at least 5, or a smaller max-attempts)"},
	} {
		path := write(t, "version: 1\nagents: {a: {dir: a, "+tt.fields+"}}\n")
		f := mustLoad(t, path)
		if got := f.Agent("a").MaxRestarts; got != tt.want {
			t.Errorf("%q: max-restarts %d, want %d", tt.fields, got, tt.want)
		}
		var warnings []string
		for _, w := range f.Warnings {
			warnings = append(warnings, strings.TrimPrefix(w.String(), path+":"))
		}
		if got := strings.Join(warnings, "\n"); got != tt.warning {
			t.Errorf("%q: warnings %q, want %q", tt.fields, got, tt.warning)
		}
	}
}

// The hint sent people with a whole path to the same path.
func TestAProgramThatIsNotThere(t *testing.T) {
	t.Parallel()
	gone := t.TempDir() + "/client"
	f := mustLoad(t, write(t, "version: 1\nagents: {a: {dir: a, command: ["+gone+"]}}\n"))
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].String(), "client is not there (install it there, or write another path)") {
		t.Errorf("warnings %v", f.Warnings)
	}
}
