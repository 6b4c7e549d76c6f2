package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/ask"
	"heartbeat/internal/testbed"
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
	sockets := f.sockets()
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
	post := func(path, body string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
	}
	// A hook is answered if the session's client has called it, whoever has its token.
	hooks := ""
	for name := range sockets {
		if strings.HasPrefix(filepath.Base(filepath.Dir(sockets[name])), "hooks") {
			hooks = name
		}
	}
	stops := string(ask.Encode(live.Cookie, ask.Event, []byte(`{"hook_event_name":"Stop","session_id":"x"}`)))
	const ok, refused = "HTTP/1.1 200", "HTTP/1.1 409"
	met := map[string]bool{}
	for _, c := range []struct{ socket, what, text, person, session string }{
		{hooks, "stop", stops, "0 0", "0 0"},
		{"control.sock", "look", getOf("/v1/status"), ok, ok},
		{"control.sock", "resume", post("/v1/resume", `{"agents":["triage"]}`), ok, refused},
		{"control.sock", "fire", post("/v1/trigger", `{"agents":["nobody"]}`), "HTTP/1.1 404", "HTTP/1.1 404"},
		{"triage.tty", "look", joinOf(`{"read_only":true}`), "w", "w"},
		{"triage.tty", "type", joinOf(`{}`), "w", "e"},
		{"open.sock", "look", getOf("/page/"), ok, "HTTP/1.1 403"},
		{"open.sock", "act", post("/page/act", ""), "HTTP/1.1 401", "HTTP/1.1 403"},
		{"closed.sock", "look", getOf("/page/"), "HTTP/1.1 401", "HTTP/1.1 401"},
		{"rest.sock", "metrics", getOf("/metrics"), ok, ok},
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

// sockets returns the paths of all that the fleet has opened, by their names.
func (f *fleet) sockets() map[string]string {
	all := map[string]string{}
	_ = filepath.WalkDir(f.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type()&fs.ModeSocket != 0 {
			all[e.Name()] = path
		}
		return nil
	})
	return all
}

func getOf(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }

// joinOf is how a guest says who it is to a session's terminal.
func joinOf(guest string) string {
	return "h" + string(binary.BigEndian.AppendUint32(nil, uint32(len(guest)))) + guest
}

// TestSilentConnectionsKeepNobodyOut walks all that we listen at: 700 connections that say
// nothing, and one beside them that is answered. They take no more of the scheduler's
// descriptors than they have room for.
func TestSilentConnectionsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	const silent = 700
	f := newFleet(t, `{}`, "mode: persist")
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tcp := port.Addr().String()
	if err := port.Close(); err != nil {
		t.Fatal(err)
	}
	f.put("heartbeat.yaml", strings.Replace(f.get("heartbeat.yaml"), "agents:\n",
		"listen: [{address: \""+tcp+"\", serve: [page, metrics]}, {address: \"unix:rest.sock\", serve: [page, webhooks, metrics]}]\nagents:\n", 1))
	f.start()
	f.ok("send", "triage", "first")
	f.is("it waits", func(r *hook.Record) bool { return r.Acknowledged == 1 && r.Phase == hook.Waiting })
	at := map[string][2]string{"tcp": {"tcp", tcp}}
	for name, path := range f.sockets() {
		if strings.HasPrefix(filepath.Base(filepath.Dir(path)), "hooks") {
			name = "hooks"
		}
		at[name] = [2]string{"unix", path}
	}
	asks := map[string]struct{ text, want string }{
		"control.sock": {getOf("/v1/status"), "HTTP/1.1 200"},
		"triage.tty":   {joinOf(`{}`), "w"},
		"hooks":        {string(ask.Encode("x", ask.Event, []byte(`{"hook_event_name":"Stop","session_id":"x"}`))), "0 0"},
		"rest.sock":    {getOf("/readyz"), "HTTP/1.1 200"},
		"tcp":          {getOf("/page/"), "HTTP/1.1 401"},
	}
	for name, where := range at {
		asked, known := asks[name]
		if !known {
			t.Errorf("nobody says who is answered at %s", name)
			continue
		}
		before := f.descriptors()
		var all []net.Conn
		for range silent {
			conn, err := net.DialTimeout(where[0], where[1], testbed.Patience)
			if err != nil {
				t.Fatalf("%s, after %d: %v", name, len(all), err)
			}
			all = append(all, conn)
		}
		one, err := net.DialTimeout(where[0], where[1], testbed.Patience)
		if err == nil {
			err = one.SetDeadline(time.Now().Add(testbed.Patience))
		}
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(asked.want))
		_, err = one.Write([]byte(asked.text))
		if err == nil {
			_, err = io.ReadFull(one, got)
		}
		if err != nil || string(got) != asked.want {
			t.Errorf("%s: %q, %v, want %s", name, got, err, asked.want)
		}
		if n := f.descriptors(); n > before+silent*2/3 {
			t.Errorf("%s: the scheduler has %d descriptors, and had %d", name, n, before)
		}
		for _, conn := range append(all, one) {
			_ = conn.Close()
		}
	}
}

// descriptors is how many the scheduler has.
func (f *fleet) descriptors() int {
	f.t.Helper()
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", f.cmd.Process.Pid))
	if err != nil {
		f.t.Fatal(err)
	}
	return len(all)
}
