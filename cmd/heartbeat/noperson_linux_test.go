package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// acts tries what only a person may, in the ways in which a process hides where it comes
// from: it names no session any more, has a session of the kernel's of its own, or its
// parent is gone.
const acts = `#!/bin/sh
# acts NAME: what becomes of it is in said-NAME
final=WORLD/said-$1 out=WORLD/of-$$
try() { "$@" SELF resume triage; "$@" SELF inbox drop triage x; }
hidden="env -u HEARTBEAT_SESSION -u HEARTBEAT_AGENT -u HEARTBEAT_HOME -u HEARTBEAT_TREE"
{ try env; try setsid -w; try $hidden; try $hidden setsid -w; SELF --host localhost resume triage; } >$out.all 2>&1
( $hidden setsid sh -c "sleep 0.3; { $hidden SELF resume triage; $hidden SELF inbox drop triage x; } >$out.daemon 2>&1; mv $out.daemon $out.left" </dev/null >/dev/null 2>&1 & )
n=0; while ! test -e $out.left && test $n -lt 1200; do sleep 0.1; n=$((n + 1)); done
cat $out.all $out.left >$out.new; mv $out.new $final
`

// TestNoProcessOfAnAgentIsAPerson: neither one of its session, of a hook that its
// project has, of the check of its work, nor of its trigger's command.
func TestNoProcessOfAnAgentIsAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("acts", strings.NewReplacer("WORLD", w.dir, "SELF", testbed.Program(t, "heartbeat")).Replace(acts))
	w.put("script.json", `{"rules": [{"steps": [{"tool": "Bash", "command": "sh ../acts session"}, {"reply": "done"}]}]}`)
	w.put("triage/.claude/settings.json", `{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "test -e ../said-hook || sh ../acts hook"}]}]}}`)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: triage\n    command: [heartbeat, simulate, --script, "+w.dir+"/script.json]\n"+
		"    permissions: {allow: [Bash]}\n    env: {HEARTBEAT_FILE: "+w.dir+"/heartbeat.yaml, HEARTBEAT_STATE_DIR: "+w.dir+"/state}\n"+
		"    until: {check: [sh, ../acts, check], env: {HEARTBEAT_FILE: "+w.dir+"/heartbeat.yaml, HEARTBEAT_STATE_DIR: "+w.dir+"/state}}\n"+
		"    triggers:\n      - {poll: [sh, ../acts, poll], every: 1h}\n")
	r := w.background()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, name := range w.names(".") {
			if strings.HasPrefix(name, "of-") || strings.HasPrefix(name, "said-") {
				t.Logf("%s:\n%s", name, w.get(name))
			}
		}
		out, err := exec.Command("ps", "-eo", "pid,ppid,sid,stat,etimes,wchan:20,args").CombinedOutput()
		t.Logf("processes: %v\n%s", err, out)
	})
	w.ok("send", "triage", "go")
	for name, what := range map[string]string{"session": "session", "hook": "session", "check": "check", "poll": "command"} {
		const want = 11
		until(t, name+" has tried", func() bool { return slices.Contains(w.names("."), "said-"+name) })
		said := w.get("said-" + name)
		n := strings.Count(said, "a "+what+` of agent "triage" asks, and only a person may`)
		// Whose it was is not known of what has left its environment behind, and is in no group.
		n += strings.Count(said, "a process that heartbeat has started asks, and only a person may")
		if n != want {
			t.Errorf("%s: %d of %d acts are refused: %s", name, n, want, said)
		}
	}
	r.stop()
}
