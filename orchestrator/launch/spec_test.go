package launch

import (
	"testing"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/store/storetest"
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
		ticket := Ticket{Agent: &config.Agent{Name: "a", Dir: dir, Command: tt.command, Self: tt.self}, Key: "a", Store: storetest.New(t, dir), StateDir: dir}
		spec, err := ticket.Spec()
		if err != nil || spec.StandsIn != tt.want {
			t.Errorf("%s: %t, %v", name, spec.StandsIn, err)
		}
	}
}

// TestASessionHasNoTimetableOfTheClients, unless the agent's rules name a tool of it.
func TestASessionHasNoTimetableOfTheClients(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{"Read": "1", "CronCreate": "0", "ScheduleWakeup": "0", "SendMessage": "1"} {
		dir := t.TempDir()
		ticket := Ticket{
			Agent: &config.Agent{Name: "a", Dir: dir, Command: []string{"claude"}, Permissions: config.Permissions{Allow: []string{rule}}},
			Key:   "a", Store: storetest.New(t, dir), StateDir: dir, Env: []string{"CLAUDE_CODE_DISABLE_CRON=0"},
		}
		spec, err := ticket.Spec()
		if got := client.In(spec.Env)("CLAUDE_CODE_DISABLE_CRON"); err != nil || got != want {
			t.Errorf("with %s: %q, want %q, %v", rule, got, want, err)
		}
	}
}
