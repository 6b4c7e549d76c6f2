package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"heartbeat/internal/testbed"
)

// people are persons, as the processes come about that ask for them: what a shell does. ACT
// resumes an agent, and notes that it may.
var people = map[string]string{
	"a shell":                      `ACT`,
	"a pipeline":                   `echo y | (ACT)`,
	"without a terminal":           `setsid -w ACT </dev/null >/dev/null 2>&1`,
	"in a terminal":                `script -qec "ACT" /dev/null </dev/null`,
	"in tmux":                      `setsid -f script -qec "ACT" /dev/null </dev/null >/dev/null 2>&1`,
	"by ssh, without a terminal":   `setsid -f sh -c 'setsid -w env -i PATH=/usr/bin:/bin sh -c "ACT"' </dev/null >/dev/null 2>&1`,
	"by --host":                    `PATH=WORLD/bin:$PATH SELF --host near resume triage && touch WORLD/did/$NAME`,
	"by cron":                      `setsid -f sh -c '(exec env -i PATH=/usr/bin:/bin setsid -w sh -c "ACT" </dev/null) & wait' </dev/null >/dev/null 2>&1`,
	"a runner of CI":               `setsid -f sh -c 'sh -c "ACT; true"; true' </dev/null >/dev/null 2>&1`,
	"nohup, from before the run":   `(setsid sh -c '(while ! test -e WORLD/runs; do sleep 0.1; done; ACT) &' </dev/null >/dev/null 2>&1 &)`,
	"in the background of a shell": `(nohup ACT </dev/null >/dev/null 2>&1 &)`,
	"the reload of our service":    `setsid -f sh -c 'setsid -w env -i PATH=/usr/bin:/bin HEARTBEAT_STATE_DIR=WORLD/state SELF -f WORLD/heartbeat.yaml reload && touch WORLD/did/NAME' </dev/null >/dev/null 2>&1`,
}

// act NAME resumes an agent by a command, and over the socket itself.
const act = `#!/bin/sh
export HEARTBEAT_STATE_DIR=WORLD/state
SELF -f WORLD/heartbeat.yaml resume triage && printf 'POST /v1/resume HTTP/1.1\r\nHost: localhost\r\nContent-Length: 21\r\n\r\n{"agents":["triage"]}' |
	HEARTBEAT_TEST_ASK=$(cat WORLD/control) TESTS | grep '^HTTP/1.1 200' && touch "WORLD/did/$1"
`

// sshd is ssh and the daemon on the other side: a process that is none of the caller's runs
// the command, without its environment.
const sshd = `#!/bin/sh
while [ "$1" != -- ]; do shift; done
exec setsid -w env -i PATH=/usr/bin:/bin HEARTBEAT_FILE=WORLD/heartbeat.yaml HEARTBEAT_STATE_DIR=WORLD/state PATH=HERE:/usr/bin:/bin sh -c "$3" </dev/null
`

// TestEverybodyElseIsAPerson: whatever the user does by itself may act, with or without a
// terminal.
func TestEverybodyElseIsAPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("agents/triage/README", "")
	w.put("did/README", "")
	self := testbed.Program(t, "heartbeat")
	fill := strings.NewReplacer("WORLD", w.dir, "SELF", self, "TESTS", os.Args[0], "HERE", filepath.Dir(self))
	w.put("act", fill.Replace(act))
	w.put("bin/ssh", fill.Replace(sshd))
	if err := os.Chmod(filepath.Join(w.dir, "bin/ssh"), 0o755); err != nil {
		t.Fatal(err)
	}
	begins := func(who string) {
		t.Helper()
		name := strings.ReplaceAll(who, " ", "-")
		does := fill.Replace(strings.NewReplacer("ACT", "sh WORLD/act "+name, "NAME", name, "$NAME", name).Replace(people[who]))
		cmd := exec.CommandContext(t.Context(), "sh", "-c", does)
		cmd.Dir, cmd.Env = w.dir, w.env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", who, err, out)
		}
	}
	const before = "nohup, from before the run"
	begins(before)
	w.background()
	w.put("control", w.socket("control.sock"))
	w.put("runs", "")
	for who := range people {
		if who != before {
			begins(who)
		}
	}
	for who := range people {
		until(t, who+" may act", func() bool { return slices.Contains(w.names("did"), strings.ReplaceAll(who, " ", "-")) })
	}
}

// TestAPersonInAContainer: docker exec, podman exec and kubectl exec start a process in the
// container whose parent nobody sees there. What an agent does there is no person.
func TestAPersonInAContainer(t *testing.T) {
	t.Parallel()
	as := []string{}
	if os.Getuid() != 0 {
		as = []string{"-Ur"}
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", append(as, "-pf", "--mount-proc", "true")...).CombinedOutput(); err != nil {
		t.Skipf("no container can be made here: %s", out)
	}
	w := newWorld(t)
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nagents:\n  triage:\n    dir: agents/triage\n    command: [heartbeat, simulate, --script, "+w.dir+"/script.json]\n    permissions: {allow: [Bash]}\n")
	self := testbed.Program(t, "heartbeat")
	w.put("script.json", `{"rules": [{"steps": [{"tool": "Bash", "command": "env -i `+self+` -f `+w.dir+`/heartbeat.yaml resume triage >`+w.dir+`/said.new 2>&1; mv `+w.dir+`/said.new `+w.dir+`/said"}, {"reply": "done"}]}]}`)
	w.put("agents/triage/README", "")
	container := exec.CommandContext(t.Context(), "unshare", append(as, "-pf", "--mount-proc", "--kill-child", self, "-f", w.dir+"/heartbeat.yaml", "run")...)
	container.Dir, container.Env = w.dir, w.env
	container.Cancel = func() error { return container.Process.Signal(syscall.SIGKILL) }
	out := &testbed.Output{}
	container.Stdout, container.Stderr = out, out
	if err := container.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = container.Process.Kill()
		_ = container.Wait()
		if t.Failed() {
			t.Logf("the container: %s", out)
		}
	})
	until(t, "it runs", func() bool { return strings.Contains(out.String(), "heartbeat runs") && w.socket("control.sock") != "" })
	children, err := os.ReadFile("/proc/" + strconv.Itoa(container.Process.Pid) + "/task/" + strconv.Itoa(container.Process.Pid) + "/children")
	first := strings.TrimSpace(string(children))
	if err != nil || first == "" {
		t.Fatalf("%v: %q", err, children)
	}
	enter := []string{"-t", first, "-p", "-m"}
	if len(as) > 0 {
		enter = append(enter, "-U", "--preserve-credentials")
	}
	enters := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "nsenter", append(append(enter, self, "-f", w.dir+"/heartbeat.yaml"), args...)...)
		cmd.Dir, cmd.Env = w.dir, w.env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("heartbeat %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	enters("resume", "triage")
	enters("send", "triage", "go")
	until(t, "the agent has tried", func() bool { return slices.Contains(w.names("."), "said") })
	if said := w.get("said"); !strings.Contains(said, "only a person may") {
		t.Errorf("the agent: %s", said)
	}
	if pid, err := strconv.Atoi(first); err == nil { // with it all in the container end, before unshare does
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = container.Wait()
}
