package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// TestWhatToDoAboutARefusedLoginIsThatOfTheAgent (every agent was told to type claude and
// /login: with a home of its own that is another one's login, and with a key in a variable
// it changes nothing).
func TestWhatToDoAboutARefusedLoginIsThatOfTheAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ env, do string }{
		"a token in a variable": {"ANTHROPIC_AUTH_TOKEN: dead", "replace ANTHROPIC_AUTH_TOKEN"},
		"a home of its own":     {"HOME: /its/own", "HOME=/its/own "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFleet(t, `{"rules": [{"steps": [{"fail": "authentication_failed"}]}]}`, "env: {"+c.env+"}")
			f.ok("send", "triage", "hello")
			until(t, "it is held", func() bool { return f.agent("triage").State == "held" })
			o := f.run("doctor", "triage")
			for _, out := range []string{f.ok("status"), strings.Join(strings.Fields(o.stdout), " ")} {
				if !strings.Contains(out, c.do) || !strings.Contains(out, "heartbeat resume triage") {
					t.Errorf("%q is not in\n%s", c.do, out)
				}
			}
		})
	}
}

// onceItFails runs the fleet in "$0" whose agent has a disk of its own with nothing left on
// it, and prints what status and doctor say once a session of it has failed.
const onceItFails = `cd "$0" && hb=$1 && mkdir agents && mount -t tmpfs -o size=1m none agents && mkdir agents/triage && "$hb" apply && "$hb" send triage hello &&
{ cat /dev/zero > agents/filler 2> /dev/null
"$hb" run & i=0; until "$hb" status | grep "backing off" || [ $i = 300 ]; do i=$((i+1)); done; "$hb" status; "$hb" doctor triage; "$hb" stop --now; wait; }`

// TestWhatToDoAboutAFullDiskIsSaidOfASession (status and doctor named the terminal of a
// session before it, and a session that cannot be started has none).
func TestWhatToDoAboutAFullDiskIsSaidOfASession(t *testing.T) {
	t.Parallel()
	unshare, err := exec.LookPath("unshare")
	if err != nil || os.Getuid() != 0 {
		t.Skip("needs root and unshare(1): ", err)
	}
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	cmd := w.command("run")
	cmd.Path, cmd.Args = unshare, []string{"unshare", "-m", "sh", "-c", onceItFails, w.dir, cmd.Path}
	out := &testbed.Output{}
	cmd.Stdout, cmd.Stderr = out, out
	_ = cmd.Run() // what it prints says it
	do := "do    free room where Avail is 0: df -h " + filepath.Join(w.dir, "agents/triage")
	if got := out.String(); !strings.Contains(got, "no space left on device") || !strings.Contains(got, do) {
		t.Errorf("%q is not in\n%s", do, got)
	}
}
