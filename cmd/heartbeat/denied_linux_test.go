package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heartbeat/internal/testbed"
)

// TestDoctorOfAFolderThatMayNotBeUsed (found by a user: with .heartbeat at
// mode 500 it found nothing, with 000 it said to remove files).
func TestDoctorOfAFolderThatMayNotBeUsed(t *testing.T) {
	t.Parallel()
	w := patient(t)
	w.ok("apply")
	w.ok("send", "triage", "hello")
	as := w.ordinary()
	as("apply") // the hook is another binary
	for mode, want := range map[os.FileMode]string{0o500: "(dr-x------)", 0o000: "(d---------)"} {
		if err := os.Chmod(filepath.Join(w.dir, "agents/triage/.heartbeat"), mode); err != nil {
			t.Fatal(err)
		}
		var e examination
		out := as("doctor", "-o", "json")
		var reply struct{ Data json.RawMessage }
		if err := json.Unmarshal([]byte(out), &reply); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := json.Unmarshal(reply.Data, &e); err != nil {
			t.Fatal(err)
		}
		if e.codes() != "error permission-denied" || !strings.Contains(out, want) || !strings.Contains(out, "chmod u+rwX ") || strings.Contains(out, "rm -r") {
			t.Errorf("mode %o: %s\n%s", mode, e.codes(), out)
		}
	}
	if err := os.Chmod(filepath.Join(w.dir, "agents/triage/.heartbeat"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out := as("doctor", "-o", "json"); strings.Contains(out, "permission-denied") {
		t.Errorf("it may be used: %s", out)
	}
}

// TestAFileOfAQueueThatMayNotBeReadIsNotEmpty: status showed nothing in flight, and replies
// said that there are none.
func TestAFileOfAQueueThatMayNotBeReadIsNotEmpty(t *testing.T) {
	t.Parallel()
	for file, readers := range map[string][]string{
		"outbox.jsonl": {"status", "replies", "history"}, "outbox.1.jsonl": {"status", "replies"}, ".dead-letter.jsonl": {"status", "history", "dead-letter triage"},
		".in-flight": {"status", "history"}, ".waiting.jsonl": {"status", "history", "inbox triage"}, "urgent.jsonl": {"status", "inbox triage"}, "inbox.jsonl": {"status", "inbox triage"},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", simulated)
			w.put("agents/triage/.heartbeat/inbox.jsonl", "")
			w.put("agents/triage/.heartbeat/"+file, "")
			as := w.ordinary()
			if err := os.Chmod(filepath.Join(w.dir, "agents/triage/.heartbeat", file), 0); err != nil {
				t.Fatal(err)
			}
			for _, reader := range readers {
				if out := as(append(strings.Fields(reader), "-o", "json")...); !strings.Contains(out, file) || !strings.Contains(out, "permission denied") {
					t.Errorf("%s: %s", reader, out)
				}
			}
		})
	}
}

// TestDoctorOfAStateThatMayNotBeUsed: a run as root leaves files that others may
// not use, and a state directory may not be there to be made. doctor failed, or
// found nothing.
func TestDoctorOfAStateThatMayNotBeUsed(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]string{
		"a folder of somebody else": "chmod 755 state && mkdir state/fleet && chmod 700 state/fleet",
		"a file of somebody else":   "mkdir -p state/fleet && echo '{}' > state/fleet/paused.json && chmod 600 state/fleet/paused.json && chown 65534 state state/fleet",
		"no place to make it":       "rm -rf state && echo > state",
		"a folder without rights":   "mkdir -p state/fleet/triggers && chown -R 65534 state && chmod 500 state/fleet/triggers",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if os.Geteuid() != 0 && strings.Contains(name, "somebody else") {
				t.Skip("only root makes files of somebody else")
			}
			w := patient(t)
			as := w.ordinary()
			w.shell("rm -rf state; mkdir -p state; " + breaks)
			if out := as("doctor", "-o", "json"); !strings.Contains(out, `"code":"state-directory"`) {
				t.Errorf("doctor: %s", out)
			}
		})
	}
}

// TestARunWhereTheUserMayNotWrite says so in a sentence, with what to type: in somebody
// else's checkout it went on for a minute with three failures of each agent.
func TestARunWhereTheUserMayNotWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent)
	w.put("agents/triage/README", "")
	w.put("home/README", "")
	run := w.ordinary()
	shut := func(dir string) {
		if err := os.Chmod(filepath.Join(w.dir, dir), 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.dir, dir), 0o755) })
	}
	refused := func(message, hint string) {
		t.Helper()
		for _, command := range [][]string{{"run", "--once"}, {"apply"}} {
			e := envelopeOf(t, outcome{status: exitError, stdout: run(append(command, "-o", "json", "--heartbeat-ms", "0")...)}).Error
			if e == nil || !strings.Contains(*e.Message, message) || !strings.Contains(*e.Hint, hint) || strings.Contains(*e.Message, "\n") {
				t.Errorf("%q: %+v", command, e)
			}
		}
	}
	shut("home")
	w.env = append(w.env, "HOME="+filepath.Join(w.dir, "home"), "HEARTBEAT_STATE_DIR=", "XDG_STATE_HOME=")
	refused("cannot keep the fleet's state: cannot make directory", "export HEARTBEAT_STATE_DIR=FOLDER")
	w.env = append(w.env, "HEARTBEAT_STATE_DIR="+filepath.Join(w.dir, "state"))
	shut("agents/triage")
	refused("cannot write into the agents' directories: ", "if it is yours, sudo chown -R $(id -un) "+w.dir+"/agents/triage; otherwise cp -r "+w.dir+" ~/")
	refused(`/agents/triage" belongs to `, ", then the same with -f ~/")
}

// ordinary gives the world to a user who may not everything, and returns how
// to run the program as that one.
func (w *world) ordinary() func(args ...string) string {
	w.t.Helper()
	const nobody = 65534
	root := os.Geteuid() == 0
	program := filepath.Join(w.dir, "heartbeat.test")
	data, err := os.ReadFile(testbed.Program(w.t, "heartbeat")) // its own folder is not for others
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err == nil && root {
		err = os.Chmod(filepath.Dir(w.dir), 0o755)
	}
	if err == nil && root {
		err = filepath.WalkDir(w.dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, nobody, nobody)
		})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return func(args ...string) string {
		for {
			cmd := exec.CommandContext(w.t.Context(), program, args...)
			cmd.Dir, cmd.Env = w.dir, w.env
			if root {
				cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			}
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, io.Discard
			// Errors are findings, but for a child of a parallel test that was
			// forked while the program was written and holds it open still.
			if err := cmd.Run(); !errors.Is(err, syscall.ETXTBSY) {
				return out.String()
			}
		}
	}
}
