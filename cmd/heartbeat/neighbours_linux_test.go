package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// TestNeighboursOfBusyAgents: 13,000 prompts in one inbox, 17,000 watched files
// (50,000 with -full) of another agent that all change, more than inotify queues, and a
// third one's tool with hundreds of processes keep nobody else waiting. How long a neighbour's prompt takes is
// logged (go test -v), not judged: the machine of a test is busy, too.
func TestNeighboursOfBusyAgents(t *testing.T) {
	t.Parallel()
	const prompts, processes = 13_000, 300
	files := 17_000
	if *testbed.Full {
		files = 50_000
	}
	w := newWorld(t)
	crowd := fmt.Sprintf("i=0; while [ $i -lt %d ]; do sleep 60 & i=$((i+1)); done; wait", processes)
	command, err := json.Marshal(crowd)
	if err != nil {
		t.Fatal(err)
	}
	w.put("quick.json", `{"think": "1ms"}`)
	w.put("crowd.json", `{"think": "1ms", "rules": [{"match": "crowd", "steps": [{"tool": "Bash", "command": `+string(command)+`}]}]}`)
	simulate := func(script string) string {
		return "    command: [heartbeat, simulate, --script, " + filepath.Join(w.dir, script) + "]\n    mode: persist\n    permissions: {allow: [Bash]}\n"
	}
	w.put("heartbeat.yaml", "version: 1\nname: fleet\nshutdown-grace: none\nmax-sessions: 4\nagents:\n"+
		"  good:\n    dir: agents/good\n"+simulate("quick.json")+
		"  full:\n    dir: agents/full\n"+simulate("quick.json")+
		"  files:\n    dir: agents/files\n"+simulate("quick.json")+
		"    triggers:\n      - {watch: [\"in/**\"], prompt: \"Look at {{.Path}}\"}\n"+
		"  crowd:\n    dir: agents/crowd\n"+simulate("crowd.json"))
	w.ok("apply")
	for i := range files / 1000 {
		if err := os.MkdirAll(filepath.Join(w.dir, "agents/files/in", fmt.Sprint(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	r := w.background()
	longest := time.Duration(0)
	served := func(when string, times int) {
		t.Helper()
		for i := range times {
			prompt := fmt.Sprintf("%s %d", when, i)
			began := time.Now()
			o := w.run("send", "good", "--wait", "--timeout", "50s", prompt)
			took := time.Since(began)
			if o.status != 0 || o.stdout != "done: "+prompt+"\n" {
				t.Fatalf("the neighbour: %+v", o)
			}
			if i > 0 { // the first one may start the session
				longest = max(longest, took)
			}
		}
		t.Logf("%s: the longest took %v", when, longest)
		longest = 0
	}
	served("alone", 5)

	w.put("agents/full/.heartbeat/inbox.jsonl", strings.Repeat("a prompt among many\n", prompts))
	served("13,000 prompts", 5)
	for i := range files {
		name := filepath.Join(w.dir, "agents/files/in", fmt.Sprint(i%(files/1000)), fmt.Sprint(i))
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if i%10_000 == 5_000 {
			served(fmt.Sprintf("%d files", i), 3)
		}
	}
	served("all files", 5)
	w.ok("send", "crowd", "a crowd")
	until(t, "there is a crowd", func() bool { return w.sleepers() >= processes })
	served("a crowd of processes", 5)

	for _, args := range [][]string{{"status"}, {"inbox", "full"}, {"history"}, {"doctor"}} {
		began := time.Now()
		w.run(args...)
		t.Logf("heartbeat %s: %v", strings.Join(args, " "), time.Since(began))
	}
	if left := strings.Count(w.ok("inbox", "full", "--limit", "2000"), "a prompt among many"); left < 1000 {
		t.Errorf("%d prompts are left in the full inbox: it was no load", left)
	}
	if status := r.stop(); status != 0 {
		t.Errorf("run: status %d", status)
	}
	until(t, "the crowd is gone", func() bool { return w.sleepers() == 0 })
}

// sleepers counts the processes of this world that sleep.
func (w *world) sleepers() (n int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		if name, _ := os.ReadFile(filepath.Join(dir, "comm")); string(name) != "sleep\n" {
			continue
		}
		if env, _ := os.ReadFile(filepath.Join(dir, "environ")); strings.Contains(string(env), filepath.Join(w.dir, "state")) {
			n++
		}
	}
	return n
}
