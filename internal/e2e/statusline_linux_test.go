package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/config"
)

// TestStatusLineIsOursInEachForm: the client tells our status line what it costs,
// wherever our hooks stand and whatever the directory and the command say of one;
// theirs is not run while nobody has joined, and what else the command passes by
// --settings counts.
func TestStatusLineIsOursInEachForm(t *testing.T) {
	t.Parallel()
	for _, form := range []config.SettingsTarget{config.SettingsProject, config.SettingsLocal, config.SettingsFlag, config.SettingsOnly} {
		t.Run(string(form), func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, []string{"settings: " + string(form)})
				f.teach(behaviour{match: "use a tool", bash: "echo $PASSED > passed", reply: "done"})
				ran := filepath.Join(f.Dir, "ran")
				theirs := fmt.Sprintf(`"statusLine":{"type":"command","command":%q}`, "touch "+ran)
				f.write(filepath.Join(f.Work, ".claude", "settings.json"), "{"+theirs+"}")
				f.argue("--settings", `{"env":{"PASSED":"by the command"},`+theirs+`}`)
				f.send("use a tool")
				f.must("", "run", "--once")
				if data, _ := os.ReadFile(filepath.Join(f.Work, "passed")); string(data) != "by the command\n" {
					t.Errorf("what the command passes by --settings did not count: %q", data)
				}
				if costs := f.must("", "status"); !strings.Contains(costs, "$") {
					t.Errorf("nothing tells what it costs:\n%s", costs)
				}
				if _, err := os.Stat(ran); err == nil {
					t.Error("their own status line ran, and nobody had joined")
				}
			})
		})
	}
}
