package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"

	"heartbeat/internal/testbed"
)

// TestOnlyWhoHasATokenAnswers (approvals: {by: page}): by a command with a run and without,
// and over the socket. The token is kept nowhere, and an operation needs none.
func TestOnlyWhoHasATokenAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("script.json", fmt.Sprintf(`{"rules": [{"match": "ask", "steps": [{"tool": "Bash", "command": "%s approval ask Deploy?"}, {"reply": "asked"}]}]}`, testbed.Program(t, "heartbeat")))
	w.put("heartbeat.yaml", "version: 1\nname: fleet\napprovals: {by: page}\nagents:\n  triage:\n    dir: triage\n    command: [heartbeat, simulate, --script, "+w.dir+"/script.json]\n    permissions: {allow: [Bash]}\n")
	w.put("triage/README", "")
	var made struct{ Token, Name, ID, Role string }
	w.into(&made, "page", "token", "--name", "laptop")
	if len(made.Token) < 20 || made.Name != "laptop" {
		t.Fatalf("made: %+v", made)
	}
	w.put("mine", made.Token+"\n")
	w.put("wrong", "NOT-"+made.Token)
	r := w.background()
	asks := func() string {
		t.Helper()
		w.done("send", "triage", "ask")
		var list struct{ Approvals []struct{ ID string } }
		until(t, "it asks", func() bool {
			w.into(&list, "approval")
			return len(list.Approvals) == 1
		})
		return list.Approvals[0].ID
	}
	refused := func(id, when string) {
		t.Helper()
		for name, o := range map[string]outcome{
			"no token": w.run("approval", "approve", id), "a wrong token": w.run("approval", "approve", id, "--token-file", "wrong"),
			"a wrong token on stdin": w.feed("x\n", "approval", "reject", id, "--token-file", "-"), "an empty one": w.feed("\n", "approval", "approve", id, "--token-file", "-"),
		} {
			if o.status != exitError || !strings.Contains(o.stderr, "only who has a token may") || !strings.Contains(o.stderr, "heartbeat page token") {
				t.Errorf("%s, %s: %+v", when, name, o)
			}
		}
	}
	id := asks()
	refused(id, "with a run")
	body := fmt.Sprintf(`{"approval":{"id":%q,"state":"approved"}}`, id)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env, cmd.Stdin = append(os.Environ(), envAsk+"="+w.socket("control.sock")), strings.NewReader(fmt.Sprintf("POST /v1/answer-approval HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
	if out, err := cmd.Output(); err != nil || !strings.HasPrefix(string(out), "HTTP/1.1 409") || !strings.Contains(string(out), "only who has a token may") {
		t.Errorf("over the socket: %v, %s", err, out)
	}
	w.done("reload") // an operation asks descent alone
	if o := w.feed(made.Token+"\n", "approval", "approve", id, "--token-file", "-"); o.status != 0 || !strings.Contains(o.stdout, "approved by a person (laptop)") {
		t.Errorf("with the token on stdin: %+v", o)
	}
	until(t, "it is told", func() bool { return w.agent("triage").State != "held" })
	id = asks()
	r.stop()
	refused(id, "without a run")
	w.typesToken(made.Token, "approval", "approve", id)
	if out := w.done("events"); strings.Count(out, "approved by a person (laptop)") != 2 {
		t.Errorf("events: %s", out)
	}
	w.keepsNo(made.Token)
	// Who only passes for a person gives itself no other token.
	for _, args := range [][]string{{"page", "token"}, {"page", "revoke", "--all"}, {"page", "link", "--role", "act"}} {
		if o := w.run(args...); o.status != exitError || !strings.Contains(o.stderr, "only who has a token may") {
			t.Errorf("%v: %+v", args, o)
		}
	}
	if out := w.done("page", "revoke", "laptop", "--token-file", "mine"); !strings.Contains(out, "laptop ("+made.ID+"): revoked") {
		t.Errorf("revoke: %s", out)
	}
	w.done("page", "token")
}

// typesToken runs the program in a terminal, and types a token that the terminal does not
// show.
func (w *world) typesToken(token string, args ...string) {
	w.t.Helper()
	cmd := w.command(args...)
	master, err := pty.Start(cmd)
	if err != nil {
		w.t.Fatal(err)
	}
	defer master.Close()
	out := &testbed.Output{}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		buf := make([]byte, 1024)
		for {
			n, err := master.Read(buf)
			_, _ = out.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	until(w.t, "it asks for the token", func() bool { return strings.Contains(out.String(), "token: ") })
	if _, err := master.WriteString(token + "\n"); err != nil {
		w.t.Fatal(err)
	}
	err = cmd.Wait()
	<-copied
	if text := out.String(); err != nil || strings.Contains(text, token) || !strings.Contains(text, "approved by a person") {
		w.t.Errorf("%v: %s", err, text)
	}
}

// keepsNo checks that no file of the state holds a secret.
func (w *world) keepsNo(secret string) {
	w.t.Helper()
	err := filepath.Walk(filepath.Join(w.dir, "state"), func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			var text []byte
			if text, err = os.ReadFile(path); strings.Contains(string(text), secret) {
				w.t.Errorf("%s holds the token", path)
			}
		}
		return err
	})
	if err != nil {
		w.t.Error(err)
	}
}
