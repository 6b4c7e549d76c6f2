package main

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/ask"
	"heartbeat/internal/testbed"
	"heartbeat/ptyrun"
)

// kills is how many parts TestKill kills:
//
//	go test ./cmd/heartbeat -run TestKill -kills 200
var kills = flag.Int("kills", 12, "how many parts of a fleet TestKill kills")

// The client leaves processes behind that left its session.
const killScript = `{"rules": [{"steps": [
	{"tool": "Bash", "command": "(setsid sleep 300 >/dev/null 2>&1 &); sleep 0.1"}, {"reply": "ok {first}"}]}],
	"ignore-signals": ["TERM"], "think": "20ms"}`

// TestKill kills the client, another process of its tree, the shim, the
// scheduler, or both of them, at random moments. Whenever the next session
// starts nothing of the former ones is left, and no entry is lost.
func TestKill(t *testing.T) {
	t.Parallel()
	const fleets = 4
	for n := range fleets {
		mode := []string{"drain", "persist"}[n%2]
		t.Run(fmt.Sprintf("%s-%d", mode, n), func(t *testing.T) {
			t.Parallel()
			k := killer{
				fleet: newFleet(t, killScript, "mode: "+mode, "end-grace: 300ms", "on-orphan: retry",
					"max-attempts: 1000", "max-restarts: 1000", "start-timeout: 20s"),
				rand: testbed.Chance(t, "kills"), seen: map[string]bool{},
			}
			k.start()
			for round := 0; k.killed < (*kills+fleets-1)/fleets; round++ {
				k.round(round)
			}
			// A scheduler that has just been started is not up yet: the one before it is said to be killed.
			k.world.done("send", "triage", "the last one")
			until(t, "the last one is done", func() bool { k.look(); return strings.Contains(k.outbox(), "the last one") })
			testbed.Played(t, testbed.Kills, k.killed)
			t.Logf("%d killed, %d sessions: %v", k.killed, len(k.seen), k.victims)
		})
	}
}

// killer kills parts of a fleet.
type killer struct {
	*fleet
	rand    *rand.Rand
	killed  int
	seen    map[string]bool // sessions
	victims []string
}

// round queues an entry, kills something while it is worked on, and waits for
// the entry to be done.
func (k *killer) round(n int) {
	k.t.Helper()
	entry := "entry-" + strconv.Itoa(n)
	k.world.done("send", "triage", entry)
	k.is("a session lives", func(r *hook.Record) bool { return r.Session != "" && r.Phase != hook.Ended })
	moment := time.Now().Add(time.Duration(k.rand.Int64N(int64(500 * time.Millisecond))))
	until(k.t, "the moment comes", func() bool { k.look(); return time.Now().After(moment) })
	k.strike()
	until(k.t, entry+" is done", func() bool { k.look(); return strings.Contains(k.outbox(), entry) })
}

// look checks, when a session has just started, that nothing of another one
// is left: its record is written before its client is started.
func (k *killer) look() {
	r := k.record()
	if r.Session == "" || k.seen[r.Session] {
		return
	}
	k.seen[r.Session] = true
	k.environs(func(dir string, env []byte) {
		_, rest, ok := bytes.Cut(append([]byte{0}, env...), []byte("\x00"+ask.EnvSession+"="))
		token, _, _ := bytes.Cut(rest, []byte{0})
		if _, err := hex.DecodeString(string(token)); !ok || err != nil || hook.TokenHash(string(token)) == r.TokenHash {
			return
		}
		if stat, err := os.ReadFile(filepath.Join(dir, "stat")); err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return
		}
		if k.record().Session != r.Session {
			return // it is the next one's
		}
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		k.t.Errorf("after %v: %s (%q) survived its session", k.victims, dir, command)
	})
}

func (k *killer) strike() {
	k.t.Helper()
	r := k.record()
	switch victim := []string{"client", "other", "shim", "scheduler", "both"}[k.rand.IntN(5)]; victim {
	case "client":
		k.kill(victim, r.Client)
	case "other":
		k.kill(victim, k.anyOf(r))
	case "shim":
		k.kill(victim, r.Shim)
	case "both":
		k.kill(victim, r.Shim)
		fallthrough
	case "scheduler":
		start, _ := ptyrun.StartTimeOf(k.cmd.Process.Pid)
		k.kill(victim, hook.Process{PID: k.cmd.Process.Pid, Start: start})
		<-k.done
		k.start()
	}
}

// kill kills a process, if it is still there.
func (k *killer) kill(victim string, p hook.Process) {
	start, err := ptyrun.StartTimeOf(p.PID)
	if p.PID <= 1 || err != nil || start != p.Start || syscall.Kill(p.PID, syscall.SIGKILL) != nil {
		return
	}
	k.killed++
	k.victims = append(k.victims, victim)
}

// anyOf is any process of a session's tree.
func (k *killer) anyOf(r *hook.Record) hook.Process {
	var tree []hook.Process
	k.environs(func(dir string, env []byte) {
		_, rest, ok := bytes.Cut(append([]byte{0}, env...), []byte("\x00"+ask.EnvSession+"="))
		token, _, _ := bytes.Cut(rest, []byte{0})
		pid, _ := strconv.Atoi(filepath.Base(dir))
		if start, err := ptyrun.StartTimeOf(pid); ok && err == nil && hook.TokenHash(string(token)) == r.TokenHash {
			tree = append(tree, hook.Process{PID: pid, Start: start})
		}
	})
	if len(tree) == 0 {
		return hook.Process{}
	}
	return tree[k.rand.IntN(len(tree))]
}
