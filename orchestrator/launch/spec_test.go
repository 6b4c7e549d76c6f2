package launch

import (
	"testing"

	"heartbeat/config"
)

// TestASpecSaysWhetherItsClientIsTheStandIn: any command with the argument simulate was
// taken for it.
func TestASpecSaysWhetherItsClientIsTheStandIn(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		command []string
		self    bool
		want    bool
	}{
		"the stand-in":                      {[]string{"heartbeat", "simulate"}, true, true},
		"a program with the same argument":  {[]string{"claude", "simulate"}, false, false},
		"heartbeat with another subcommand": {[]string{"heartbeat", "launch"}, true, false},
	} {
		dir := t.TempDir()
		ticket := Ticket{Agent: &config.Agent{Name: "a", Dir: dir, Command: tt.command, Self: tt.self}, Key: "a", StateDir: dir}
		spec, err := ticket.Spec()
		if err != nil || spec.StandsIn != tt.want {
			t.Errorf("%s: %t, %v", name, spec.StandsIn, err)
		}
	}
}
