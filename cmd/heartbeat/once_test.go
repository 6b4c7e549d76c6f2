package main

import (
	"strings"
	"testing"
)

// TestATriggerThatCannotFireIsTheReason (the summary of run --once --fire gave
// none): each kind of trigger, in the table and in the message.
func TestATriggerThatCannotFireIsTheReason(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ trigger, says string }{
		"a poll that fails":     {"{poll: [sh, -c, 'echo no ticket server >&2; exit 3']}", "no ticket server"},
		"a poll without a file": {"{poll: [./gone.sh]}", "gone.sh"},
		"a gate that fails":     {"{cron: '@daily', prompt: x, gate: [sh, -c, 'exit 3']}", "gate"},
		"no env-file":           {"{poll: ['true']}\n    env-file: gone.env", "gone.env"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    command: [heartbeat, simulate]\n    trigger: "+tt.trigger+"\n")
			o := w.run("run", "--once", "--fire")
			_, row, _ := strings.Cut(o.stdout, "\ntriage")
			if o.status != exitError || !strings.Contains(row, "-1: ") || !strings.Contains(row, tt.says) ||
				!strings.Contains(o.stderr, "heartbeat: cannot finish: triage: trigger ") {
				t.Errorf("%+v", o)
			}
		})
	}
}
