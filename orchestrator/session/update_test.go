package session

import (
	"slices"
	"testing"

	"heartbeat/hook/client"
)

// TestSessionsDoNotUpdateTheClient, unless auto-update says so; what the agent's own
// environment says stays.
func TestSessionsDoNotUpdateTheClient(t *testing.T) {
	t.Parallel()
	const name = "DISABLE_AUTOUPDATER"
	for what, tt := range map[string]struct {
		spec Spec
		want string
	}{
		"by default":                   {Spec{}, "1"},
		"with a key, too":              {Spec{Env: []string{"ANTHROPIC_API_KEY=x"}}, "1"},
		"auto-update":                  {Spec{AutoUpdate: true}, ""},
		"the environment says no":      {Spec{Env: []string{name + "=0"}}, "0"},
		"auto-update, but it says yes": {Spec{AutoUpdate: true, Env: []string{name + "=1"}}, "1"},
	} {
		env := tt.spec.environ()
		if got := client.In(env)(name); got != tt.want {
			t.Errorf("%s: %s is %q, want %q", what, name, got, tt.want)
		}
		if n := len(slices.DeleteFunc(env, func(kv string) bool { return kv[:min(len(kv), len(name))] != name })); n > 1 {
			t.Errorf("%s: it is there %d times", what, n)
		}
	}
}
