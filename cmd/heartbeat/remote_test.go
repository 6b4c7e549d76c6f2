package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// fakeSSH runs the command in the folder of the host, as a login there would; it notes
// its options, and fails as ssh does for a host without a folder.
const fakeSSH = `#!/bin/sh
root=$(dirname "$0")/../hosts
options=
while [ "$1" != -- ]; do options="$options $1"; shift; done
echo "$options $2" >> "$root/calls"
[ -d "$root/$2" ] || { echo "ssh: connect to host $2 port 22: Connection refused" >&2; exit 255; }
cd "$root/$2"
HEARTBEAT_STATE_DIR=$PWD/state HOME=$PWD; export HEARTBEAT_STATE_DIR HOME
exec sh -c "$3"
`

// hosts is a world with two other machines, near and far, each with a fleet.
func hosts(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.put("bin/ssh", fakeSSH)
	if err := os.Chmod(filepath.Join(w.dir, "bin/ssh"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+filepath.Join(w.dir, "bin")+":"+filepath.Dir(testbed.Program(t, "heartbeat"))+":"+os.Getenv("PATH"))
	for _, host := range []string{"near", "me@far"} {
		w.put("hosts/"+host+"/heartbeat.yaml", simulated)
		w.put("hosts/"+host+"/agents/triage/README", "")
	}
	return w
}

func (w *world) calls() string {
	w.t.Helper()
	text := w.get("hosts/calls")
	w.put("hosts/calls", "")
	return text
}

func TestACommandOnAnotherMachine(t *testing.T) {
	t.Parallel()
	w := hosts(t)
	for _, step := range []struct {
		args   []string
		in     string
		status int
		out    string // stdout and stderr have it
		ssh    string
	}{
		{[]string{"--host", "me@far", "apply", "triage"}, "", 0, "created", " -T -n me@far"},
		{[]string{"send", "--host=me@far", "triage", "--id", "it's", "say \"$(touch x)\" &\nnow; --host near"}, "", 0, "it's", " -T me@far"},
		{[]string{"send", "triage", "--host", "me@far", "-"}, "from a pipe", 0, "", " -T me@far"},
		{[]string{"inbox", "--host", "me@far"}, "", 0, "from a pipe", " -T -n me@far"},
		{[]string{"inbox", "--host", "me@far", "triage", "show", "it's"}, "", 0, "    say \"$(touch x)\" &\n    now; --host near\n", " -T -n me@far"},
		{[]string{"trigger", "--host", "me@far", "triage"}, "", exitNotRunning, "hint: heartbeat run starts it", " -T -n me@far"},
		{[]string{"validate", "--host", "me@far", "-f", "none.yaml"}, "", exitConfig, "none.yaml", " -T -n me@far"},
		{[]string{"service", "print", "--host", "me@far"}, "", 0, "ExecStart=", " -T -n me@far"},
		{[]string{"send", "--host", "me@far", "triage", "--", "--host stays"}, "", 0, "", " -T me@far"},
		{[]string{"inbox", "--host", "me@far", "-o", "json"}, "", 0, `"prompt":"--host stays"`, " -T -n me@far"},
		{[]string{"status", "--host", "gone"}, "", 255, "Connection refused\nheartbeat: cannot run heartbeat on \"gone\": ssh ended with exit status 255\nhint: try: ssh gone true\n", " -T -n gone"},
		{[]string{"status", "--host", "gone", "-o", "json"}, "", 255, `"message":"cannot run heartbeat on \"gone\"`, " -T -n gone"},
		{[]string{"nothing", "--host", "me@far"}, "", exitUsage, "unexpected argument nothing", ""},
		{[]string{"status", "--host", "-oProxyCommand=x"}, "", exitUsage, "cannot parse", ""},
		{[]string{"status", "--host=-oProxyCommand=x"}, "", exitUsage, "is not a host", ""},
		{[]string{"run", "--host", "me@far"}, "", exitUsage, "--host does not go with run: it stays in the foreground", ""},
		{[]string{"history", "--host", "near", "--host", "me@far"}, "", exitUsage, "only status takes several hosts", ""},
	} {
		w.put("hosts/calls", "")
		o := w.feed(step.in, step.args...)
		if o.status != step.status || !strings.Contains(o.stdout+o.stderr, step.out) {
			t.Errorf("%q: %+v", step.args, o)
		}
		if got := strings.TrimSpace(w.calls()); got != strings.TrimSpace(step.ssh) {
			t.Errorf("%q: ssh%s", step.args, got)
		}
	}
	if slices.Contains(w.names("hosts/me@far"), "x") || slices.Contains(w.names("."), "x") {
		t.Error("a prompt was run by a shell")
	}
	w.env = append(w.env, "HEARTBEAT_REMOTE=/opt/no/heartbeat")
	if o := w.run("status", "--host", "near"); o.status != 127 || !strings.Contains(o.stderr, "hint: install heartbeat there, or name it: HEARTBEAT_REMOTE=") {
		t.Errorf("no heartbeat there: %+v", o)
	}
}

// A host that is dead does not hide the others.
func TestTheStatusOfSeveralHosts(t *testing.T) {
	t.Parallel()
	w := hosts(t)
	w.done("--host", "me@far", "send", "triage", "hello")
	o := w.run("status", "--host", "gone", "--host", "near", "--host", "me@far", "triage")
	if o.status != exitError || !strings.Contains(o.stdout, "    cannot run heartbeat on \"gone\": ssh ended with exit status 255: ssh: connect to host gone port 22: Connection refused\n") {
		t.Errorf("%+v", o)
	}
	sections := []string{"gone\n    cannot run heartbeat on \"gone\"", "\n\nnear\n    1 agent: 1 stopped\n", "\n\nme@far\n    1 agent: 1 stopped · 1 queued\n"}
	at := 0
	for _, section := range sections {
		i := strings.Index(o.stdout[at:], section)
		if i < 0 {
			t.Fatalf("lacks %q:\n%s", section, o.stdout)
		}
		at += i
	}
	o = w.run("status", "--host", "me@far", "--host", "gone", "-o", "json")
	var data []struct {
		Host  string
		Data  *fleetView
		Error *struct{ Code, Message, Hint string }
	}
	if err := json.Unmarshal(envelopeOf(t, o).Data, &data); err != nil {
		t.Fatal(err)
	}
	if len(data) != 2 || data[0].Host != "me@far" || data[0].Data == nil || data[0].Data.Agents[0].Depth.Entries != 1 || data[0].Error != nil ||
		data[1].Host != "gone" || data[1].Data != nil || data[1].Error == nil || data[1].Error.Code != "host" {
		t.Errorf("%+v", data)
	}
	if o := w.run("status", "--host", "near", "--host", "me@far"); o.status != 0 || o.stderr != "" {
		t.Errorf("both are there: %+v", o)
	}
	if got := w.calls(); strings.Count(got, "-T -n -o BatchMode=yes") != 7 {
		t.Errorf("ssh was called by: %s", got)
	}
}

// What follows or is typed into gets a terminal there.
func TestATerminalOnAnotherMachine(t *testing.T) {
	t.Parallel()
	w := hosts(t)
	f := &fleet{world: w}
	child, out := f.sit("status", "--watch", "--host", "near")
	until(t, "it shows the other machine's fleet", func() bool { return strings.Contains(out.String(), "1 agent: 1 stopped") })
	press(t, child, "\x03")
	exited(t, child)
	if got := w.calls(); got != " -t -o LogLevel=ERROR near\n" {
		t.Errorf("ssh%s", got)
	}
}

// Each command either is about this machine alone, or runs on another one.
func TestCommandsThatGoElsewhere(t *testing.T) {
	t.Parallel()
	p, err := newParser(&cli{}, stdio{os.Stdin, os.Stdout, os.Stderr}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, c := range leaves(p.Model.Node) {
		known[c.Name] = true
	}
	w := hosts(t)
	for name := range local {
		if !known[name] {
			t.Errorf("%s is no command", name)
		}
	}
	for _, args := range [][]string{{"schema"}, {"explain", "held"}, {"help", "triggers"}, {"init"}, {"launch", "true"}, {"completion", "bash"}} {
		if o := w.run(append([]string{"--host", "near"}, args...)...); o.status != exitUsage || !strings.Contains(o.stderr, "--host does not go with "+args[0]) {
			t.Errorf("%q: %+v", args, o)
		}
	}
}

// TestCommandLinesAreForWhoAskedThem: what status and hints said to type dropped the
// --host, the -f or both, and would have done nothing or the wrong thing.
func TestCommandLinesAreForWhoAskedThem(t *testing.T) {
	t.Parallel()
	w := hosts(t)
	w.put("hosts/near/other.yaml", "version: 1\nname: other\nagents: {triage: {dir: agents/other, command: [heartbeat, simulate]}}\n")
	w.ok("--host", "near", "apply")
	w.ok("--host", "near", "pause", "triage")
	for line, want := range map[string]string{
		"--host near status":                       "; heartbeat --host near resume triage\n",
		"--host near trigger triage":               "hint: heartbeat run starts it; heartbeat --host near status shows",
		"--host near -f other.yaml trigger triage": "heartbeat --host near -f other.yaml status shows",
		"-f hosts/near/other.yaml trigger triage":  "hint: heartbeat -f hosts/near/other.yaml run starts it; heartbeat -f hosts/near/other.yaml status shows",
	} {
		if o := w.run(strings.Fields(line)...); !strings.Contains(o.stdout+o.stderr, want) {
			t.Errorf("heartbeat %s: %+v", line, o)
		}
	}
}

// TestAHostThatDoesNotAnswerIsSaidOnce: below its name, and again at the end.
func TestAHostThatDoesNotAnswerIsSaidOnce(t *testing.T) {
	t.Parallel()
	w := hosts(t)
	w.ok("--host", "near", "apply")
	o := w.run("--host", "near", "--host", "gone", "status")
	if o.status != exitError || strings.Count(o.stdout+o.stderr, "Connection refused") != 1 || !strings.Contains(o.stderr, "cannot ask 1 of 2 hosts\nhint: ") {
		t.Errorf("%+v", o)
	}
}
