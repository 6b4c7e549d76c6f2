package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/hook"
)

// TestWhoIsTakenAtWhichSocket walks all sockets that we open: what a person's process
// may do there, and what a session's.
func TestWhoIsTakenAtWhichSocket(t *testing.T) {
	t.Parallel()
	f := newFleet(t, `{}`, "mode: persist")
	f.put("heartbeat.yaml", strings.Replace(f.get("heartbeat.yaml"), "agents:\n",
		"listen: [{address: \"unix:open.sock\", serve: [page], open: true}, {address: \"unix:closed.sock\", serve: [page]}, {address: \"unix:rest.sock\", serve: [webhooks, metrics]}]\nagents:\n", 1))
	f.start()
	f.ok("send", "triage", "first")
	f.is("it waits", func(r *hook.Record) bool { return r.Acknowledged == 1 && r.Phase == hook.Waiting })
	sockets := map[string]string{}
	_ = filepath.WalkDir(f.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type()&fs.ModeSocket != 0 {
			sockets[e.Name()] = path
		}
		return nil
	})
	notes, err := filepath.Glob(filepath.Join(f.dir, "state", "*", "live", "*.json"))
	if err != nil || len(notes) != 1 {
		t.Fatalf("%v: %q", err, notes)
	}
	var live struct{ Cookie string }
	if text, err := os.ReadFile(notes[0]); err != nil || json.Unmarshal(text, &live) != nil || live.Cookie == "" {
		t.Fatalf("%v: %s", err, text)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	asked := func(socket, text string, env ...string) string {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env, cmd.Stdin = append(env, "PATH="+os.Getenv("PATH"), envAsk+"="+sockets[socket]), strings.NewReader(text)
		out, err := cmd.Output()
		if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
			t.Fatal(err)
		}
		return string(out)
	}
	get := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }
	post := func(path, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	}
	joins := func(guest string) string {
		return "h" + string(binary.BigEndian.AppendUint32(nil, uint32(len(guest)))) + guest
	}
	const ok, refused = "HTTP/1.1 200", "HTTP/1.1 409"
	met := map[string]bool{}
	for _, c := range []struct{ socket, what, text, person, session string }{
		{"control.sock", "look", get("/v1/status"), ok, ok},
		{"control.sock", "resume", post("/v1/resume", `{"agents":["triage"]}`), ok, refused},
		{"control.sock", "fire", post("/v1/trigger", `{"agents":["nobody"]}`), "HTTP/1.1 404", "HTTP/1.1 404"},
		{"triage.tty", "look", joins(`{"read_only":true}`), "w", "w"},
		{"triage.tty", "type", joins(`{}`), "w", "e"},
		{"open.sock", "look", get("/page/"), ok, "HTTP/1.1 403"},
		{"open.sock", "act", post("/page/act", ""), "HTTP/1.1 401", "HTTP/1.1 403"},
		{"closed.sock", "look", get("/page/"), "HTTP/1.1 401", "HTTP/1.1 401"},
		{"rest.sock", "metrics", get("/metrics"), ok, ok},
		{"rest.sock", "webhook", post("/none", ""), "HTTP/1.1 404", "HTTP/1.1 404"},
	} {
		met[c.socket] = true
		if got := asked(c.socket, c.text); !strings.HasPrefix(got, c.person) {
			t.Errorf("%s, %s, a person: %q, want %s", c.socket, c.what, got, c.person)
		}
		if got := asked(c.socket, c.text, "HEARTBEAT_SESSION="+live.Cookie); !strings.HasPrefix(got, c.session) {
			t.Errorf("%s, %s, a session: %q, want %s", c.socket, c.what, got, c.session)
		}
	}
	for name := range sockets {
		if !met[name] {
			t.Errorf("nobody says who is taken at %s", name)
		}
	}
}
