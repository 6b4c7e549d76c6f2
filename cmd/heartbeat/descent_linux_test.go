package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// attempt NAME tries what only a person may: over the control socket, on the page, by a
// command. What becomes of it is in tried/NAME.
const attempt = `#!/bin/sh
ask() { printf '%s' "$2" | HEARTBEAT_TEST_ASK="$1" TESTS; echo; }
{
	ask CONTROL 'POST /v1/answer-approval HTTP/1.1
Host: localhost
Content-Length: LENGTH

BODY'
	ask WORLD/page.sock 'GET /page/ HTTP/1.1
Host: localhost

'
	HEARTBEAT_STATE_DIR=WORLD/state SELF -f WORLD/heartbeat.yaml approval approve ID
} >WORLD/tried/$1.new 2>&1
mv WORLD/tried/$1.new WORLD/tried/$1
`

// late NAME waits until the scheduler has been killed, and approves without one.
const late = `#!/bin/sh
echo $$ >WORLD/waits/$1
while ! test -e WORLD/killed; do sleep 0.2; test -d WORLD || exit; done
HEARTBEAT_STATE_DIR=WORLD/state SELF -f WORLD/heartbeat.yaml approval approve ID >WORLD/tried/$1-late.new 2>&1
mv WORLD/tried/$1-late.new WORLD/tried/$1-late
`

// killsShim NAME PID... kills the shim among some processes, and tries again.
const killsShim = `#!/bin/sh
who=$1; echo $$ >WORLD/waits/$who; shift
for pid; do tr '\0' '\n' </proc/$pid/cmdline | grep -qx -e --shim && kill -9 $pid; done
exec sh WORLD/attempt $who
`

// tries WHO tries it once in each way in which a process hides what it descends from, and
// returns when all are done. It waits for its turn first: a poll begins with the run.
const tries = `#!/bin/sh
mkdir WORLD/began/$1 || exit 0
while ! test -e WORLD/go; do sleep 0.1; test -d WORLD || exit; done
far="env -i PATH=$PATH setsid -f"
apart='for g in /sys/fs/cgroup/unified/t$$ /sys/fs/cgroup/t$$; do mkdir $g && echo $$ >$g/cgroup.procs; done 2>/dev/null'
sh WORLD/attempt $1-as-it-is
$far sh -c "setsid -f sh WORLD/attempt $1-orphaned" </dev/null >/dev/null 2>&1
$far sh -c "$apart; setsid -f sh WORLD/attempt $1-moved" </dev/null >/dev/null 2>&1
$far script -qec "sh WORLD/attempt $1-in-a-terminal" /dev/null </dev/null >/dev/null 2>&1
$far sh -c "unshare -Ur true && exec unshare -Ur sh WORLD/attempt $1-in-a-namespace; exec sh WORLD/attempt $1-in-a-namespace" </dev/null >/dev/null 2>&1
$far sh -c "$apart; setsid -f sh WORLD/late $1" </dev/null >/dev/null 2>&1
for how in as-it-is orphaned moved in-a-terminal in-a-namespace; do
	while ! test -e WORLD/tried/$1-$how; do sleep 0.1; test -d WORLD || exit; done
done
while ! test -e WORLD/waits/$1; do sleep 0.1; test -d WORLD || exit; done
touch WORLD/hid/$1
if test "$1" = session; then
	p=$$ above=; while test $p -gt 1; do above="$above $p"; p=$(sed 's/.*) . //; s/ .*//' /proc/$p/stat); done
	$far sh -c "$apart; setsid -f sh WORLD/killer session-without-its-shim $above" </dev/null >/dev/null 2>&1
	sleep 1000
fi
`

// whos are what a fleet has started, of which each tries it.
var whos = []string{"session", "check", "poll", "gate", "notice", "another-fleet"}

// putTries puts the scripts into the world, and returns what they do not know yet.
func (w *world) putTries() (begin func(id string)) {
	fill := func(id string) {
		body := fmt.Sprintf(`{"approval":{"id":%q,"state":"approved"}}`, id)
		with := strings.NewReplacer("WORLD", w.dir, "SELF", testbed.Program(w.t, "heartbeat"), "TESTS", os.Args[0],
			"ID", id, "BODY", body, "LENGTH", strconv.Itoa(len(body)), "CONTROL", w.socket("control.sock"))
		for name, text := range map[string]string{"attempt": attempt, "late": late, "killer": killsShim, "tries": tries} {
			w.put(name, with.Replace(text))
		}
	}
	fill("")
	return func(id string) {
		fill(id)
		w.put("go", "")
	}
}

// TestNobodyActsForAPerson: whatever of a fleet tries it, however it hides, over each way
// to say yes. It is one table: who (a session, a check, a poll, a gate, a notice, a session
// of another fleet), how it hid, and what it tries.
func TestNobodyActsForAPerson(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t), newWorld(t)
	put := func(w *world, name, does, more string) string {
		w.put(name+".json", fmt.Sprintf(`{"rules": [{"steps": [{"tool": "Bash", "command": %q}, {"reply": "done"}]}]}`, does))
		w.put(name+"/README", "")
		return "  " + name + ":\n    dir: " + name + "\n    command: [heartbeat, simulate, --script, " + w.dir + "/" + name + ".json]\n    permissions: {allow: [Bash]}\n" + more
	}
	sh := func(who string) string { return "[sh, " + w.dir + "/tries, " + who + "]" }
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nlisten: [{address: \"unix:page.sock\", serve: [page], open: true}]\n"+
		"notify: {told: {command: "+sh("notice")+"}}\nagents:\n"+
		put(w, "asks", testbed.Program(t, "heartbeat")+" approval ask Deploy?", "")+put(w, "acts", "sh "+w.dir+"/tries session", "")+
		put(w, "checked", "true", "    until: {check: "+sh("check")+"}\n    triggers:\n"+
			"      - {poll: "+sh("poll")+", every: 1h}\n"+
			"      - {poll: [echo, x], every: 1h, gate: "+sh("gate")+"}\n"))
	other.put("heartbeat.yaml", "version: 1\nname: other\nagents:\n"+put(other, "acts", "sh "+w.dir+"/tries another-fleet", ""))
	for _, name := range []string{"began", "hid", "tried", "waits"} {
		w.put(name+"/README", "")
	}
	begin := w.putTries()
	r := w.background()
	other.background()
	w.ok("send", "asks", "ask")
	var id string
	until(t, "it asks", func() bool {
		var list struct{ Approvals []struct{ ID string } }
		w.into(&list, "approval")
		if len(list.Approvals) == 1 {
			id = list.Approvals[0].ID
		}
		return id != ""
	})
	begin(id)
	w.ok("send", "acts", "go")
	w.ok("send", "checked", "go")
	other.ok("send", "acts", "go")
	for _, who := range whos {
		until(t, who+" has tried", func() bool { return slices.Contains(w.names("hid"), who) })
		for _, how := range []string{"as-it-is", "orphaned", "moved", "in-a-terminal", "in-a-namespace"} {
			w.refusedAll(who + "-" + how)
		}
	}
	if w.waitsFor("session-without-its-shim") {
		w.refusedAll("session-without-its-shim")
	}
	w.triesWithoutARun(r)
	if out := w.done("approval", "approve", id); !strings.Contains(out, "approved by a person") {
		t.Errorf("a person: %s", out)
	}
}

// refusedAll checks what became of an attempt.
func (w *world) refusedAll(name string) {
	w.t.Helper()
	said := w.get("tried/" + name)
	if strings.Count(said, "only a person may") != 3 || !strings.Contains(said, "HTTP/1.1 409") || !strings.Contains(said, "HTTP/1.1 403") {
		w.t.Errorf("%s: %s", name, said)
	}
}

// waitsFor waits until a process that hides has tried it, or has been ended; false: it has
// been.
func (w *world) waitsFor(name string) (tried bool) {
	w.t.Helper()
	pid := ""
	until(w.t, name+" has tried, or has ended", func() bool {
		tried = slices.Contains(w.names("tried"), name)
		if pid == "" && slices.Contains(w.names("waits"), name) {
			pid = strings.TrimSpace(w.get("waits/" + name))
		}
		_, err := os.Stat("/proc/" + pid)
		return tried || pid != "" && err != nil
	})
	return tried || slices.Contains(w.names("tried"), name)
}

// triesWithoutARun kills the scheduler. What it and others have left tries it then.
func (w *world) triesWithoutARun(r *running) {
	w.t.Helper()
	_ = r.cmd.Process.Kill()
	r.ended()
	living := map[string]bool{}
	for _, who := range whos {
		_, err := os.Stat("/proc/" + strings.TrimSpace(w.get("waits/"+who)))
		living[who] = err == nil
	}
	if !living["poll"] || !living["gate"] || !living["notice"] {
		w.t.Errorf("left behind by the scheduler: %v", living)
	}
	w.put("killed", "")
	for who, lives := range living {
		if !lives {
			continue
		}
		name := who + "-late"
		until(w.t, name+" has tried", func() bool { return slices.Contains(w.names("tried"), name) })
		if said := w.get("tried/" + name); !strings.Contains(said, "only a person may") {
			w.t.Errorf("%s: %s", name, said)
		}
	}
}
