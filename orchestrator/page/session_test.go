package page

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"heartbeat/internal/testbed"
	"heartbeat/orchestrator/page/access"
	"heartbeat/orchestrator/person"
	"heartbeat/orchestrator/session"
	"heartbeat/ptyrun/peer"
)

// envAsks makes the test binary a program that reads questions from its stdin, asks
// them, and writes the status of each answer.
const envAsks = "HEARTBEAT_TEST_ASKS"

func TestMain(m *testing.M) {
	if os.Getenv(envAsks) == "" {
		os.Exit(testbed.Run(m))
	}
	if err := asks(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// question is a request as it is sent.
type question struct{ Network, Address, Text string }

func asks(in io.Reader, out io.Writer) error {
	var all []question
	if err := json.NewDecoder(in).Decode(&all); err != nil {
		return err
	}
	var codes []int
	for _, q := range all {
		conn, err := net.Dial(q.Network, q.Address)
		if err != nil {
			return err
		}
		_, _ = io.WriteString(conn, q.Text)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		codes = append(codes, res.StatusCode)
		_ = conn.Close()
	}
	return json.NewEncoder(out).Encode(codes)
}

// askedBy asks in a process of its own, with these in its environment.
func (l *lab) askedBy(all []question, env ...string) (codes []int) {
	l.t.Helper()
	in, err := json.Marshal(all)
	l.must(err)
	self, err := os.Executable()
	l.must(err)
	cmd := exec.CommandContext(l.t.Context(), self)
	cmd.Env, cmd.Stdin, cmd.Stderr = append(env, envAsks+"=1"), bytes.NewReader(in), l.t.Output()
	out, err := cmd.Output()
	l.must(err)
	l.must(json.Unmarshal(out, &codes))
	return codes
}

// TestASessionDoesNotAct: whatever token a process of a session has, and however it
// comes, each act is refused. A person's process that sends the same acts.
func TestASessionDoesNotAct(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	live, err := json.Marshal(session.Leftover{Agent: "a", Session: "s", Cookie: "token-of-a-session"})
	l.must(err)
	l.must(os.Mkdir(filepath.Join(l.dir, "live"), 0o700))
	l.must(os.WriteFile(filepath.Join(l.dir, "live", "s.json"), live, 0o600))
	acts := l.enter(access.Act)
	form := l.form(acts)
	l.mu.Lock()
	l.checks = func(pid int) error { return person.Check(pid, l.dir) }
	l.mu.Unlock()
	proxied := "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nForwarded: for=192.0.2.7\r\nVia: 1.1 proxy\r\n"
	var all []question
	for _, d := range deeds {
		body := with(form, "do", d.value(), "text-a", "hello").Encode()
		for _, way := range [][3]string{{"tcp", l.port}, {"tcp", l.port, proxied}, {"unix", l.socket}, {"unix", l.socket, proxied}} {
			head := fmt.Sprintf("POST %sact HTTP/1.1\r\nHost: %s\r\nOrigin: http://%[2]s\r\nSec-Fetch-Site: same-origin\r\nCookie: %s=%s\r\n%sContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n",
				Root, l.port, acts.cookies[0].Name, acts.cookies[0].Value, way[2], len(body))
			all = append(all, question{way[0], way[1], head + body})
		}
	}
	marked := "HEARTBEAT_SESSION=token-of-a-session"
	if codes := l.askedBy(all, marked); len(codes) != len(all) || slices.ContainsFunc(codes, func(code int) bool { return code != http.StatusForbidden }) || len(l.did) > 0 || len(l.noted) > 0 {
		t.Errorf("a session: %v, done %q", codes, l.did)
	}
	if codes := l.askedBy(all); slices.ContainsFunc(codes, func(code int) bool { return code != http.StatusSeeOther && code != http.StatusOK }) || len(l.did) != len(deeds) {
		t.Errorf("a person: %v, done %q", codes, l.did)
	}
	// Nor does a session get a token, or look over the open socket without one.
	link, _, err := l.keeper.Link(l.t.Context(), "phone", access.Act)
	l.must(err)
	entry := url.Values{"link": {link}}.Encode()
	others := []question{
		{"tcp", l.port, fmt.Sprintf("POST %senter HTTP/1.1\r\nHost: %s\r\nOrigin: http://%[2]s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", Root, l.port, len(entry), entry)},
		{"unix", l.socket, "GET " + Root + " HTTP/1.1\r\nHost: localhost\r\n\r\n"},
	}
	if codes := l.askedBy(others, marked); !slices.Equal(codes, []int{403, 403}) {
		t.Errorf("a session: %v", codes)
	}
	if codes := l.askedBy(others); !slices.Equal(codes, []int{303, 200}) {
		t.Errorf("a person: %v", codes)
	}
}

// TestWhoNobodyCanTellMayLook, as a browser beside the fleet on macOS: a link that lets look
// is good, and one that lets act is not used up.
func TestWhoNobodyCanTellMayLook(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.mu.Lock()
	l.checks = func(int) error { return peer.ErrUnseen }
	l.mu.Unlock()
	for role, want := range map[access.Role]int{access.Look: http.StatusSeeOther, access.Act: http.StatusForbidden} {
		link, _, err := l.keeper.Link(l.t.Context(), "phone", role)
		l.must(err)
		entry := url.Values{"link": {link}}.Encode()
		asks := fmt.Sprintf("POST %senter HTTP/1.1\r\nHost: %s\r\nOrigin: http://%[2]s\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n%s", Root, l.port, len(entry), entry)
		if codes := l.askedBy([]question{{"tcp", l.port, asks}}); !slices.Equal(codes, []int{want}) {
			t.Errorf("%s: %v", role, codes)
		}
	}
}
