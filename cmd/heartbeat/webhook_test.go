package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// testSecret is what webhooks of tests are signed with.
const testSecret = "a secret of tests alone"

// deliver sends a body to a path of a socket as GitHub does, and returns the answer.
func (w *world) deliver(socket, path, body, id string) (code int, answer map[string]string) {
	w.t.Helper()
	mac := hmac.New(sha256.New, []byte(testSecret))
	mac.Write([]byte(body))
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, "http://heartbeat"+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("X-GitHub-Event", "issues")
	r.Header.Set("X-GitHub-Delivery", id)
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(w.dir, socket))
		},
	}}
	res, err := client.Do(r)
	if err != nil {
		return 0, nil // nobody listens
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		w.t.Errorf("%d %s", res.StatusCode, data)
	}
	return res.StatusCode, answer
}

const hooked = `version: 1
name: fleet
listen: [{address: "unix:hooks.sock", serve: [webhooks, metrics]}]
agents:
  triage:
    dir: agents/triage
    command: [heartbeat, simulate]
    trigger:
      name: issues
      webhook: /github
      secret-file: secret
      match: {headers: {X-GitHub-Event: issues}, json: {action: labeled, label.name: agent}}
      prompt: "Work on issue {{.JSON.issue.number}}: {{.JSON.issue.title}}"
`

// TestAnIssueBecomesAPrompt: from the request to the reply; what is said where no
// request arrives, and what a reload does about it.
func TestAnIssueBecomesAPrompt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hooked := strings.Replace(hooked, "      match:", "      key: \"{{.JSON.issue.number}}\"\n      match:", 1)
	w.put("heartbeat.yaml", hooked)
	if o := w.run("doctor"); o.status != exitError || !strings.Contains(o.stdout, "secret-unreadable") {
		t.Errorf("nobody says that there is no secret: %+v", o)
	}
	w.put("secret", testSecret+"\n")
	if err := os.Chmod(filepath.Join(w.dir, "secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := w.ok("next"); !strings.Contains(out, "triage  issues   when a request comes to /github\n") {
		t.Errorf("next says:\n%s", out)
	}
	r := w.background()
	issue := `{"action": "labeled", "issue": {"number": 17, "title": "The \u001b[31mdoor\u202e"}, "label": {"name": "agent"}}`
	until(t, "the address is open", func() bool { code, _ := w.deliver("hooks.sock", "/nowhere", "{}", "x"); return code == 404 })
	if code, answer := w.deliver("hooks.sock", "/github", issue, "d-1"); code != 202 || answer["id"] == "" {
		t.Fatalf("%d %v", code, answer)
	}
	if code, answer := w.deliver("hooks.sock", "/github", issue, "d-1"); code != 200 || answer["status"] != "known" {
		t.Errorf("a redelivery: %d %v", code, answer)
	}
	if code, answer := w.deliver("hooks.sock", "/github", `{"action": "labeled", "label": {"name": "agent"}}`, "d-2"); code != 422 {
		t.Errorf("an issue without a number: %d %v", code, answer)
	}
	until(t, "the issue is worked on", func() bool { return w.agent("triage").Acknowledged == 1 })
	for _, out := range []string{w.ok("status"), w.ok("events"), w.ok("replies", "triage")} {
		if strings.ContainsAny(out, "\x1b\u202e") {
			t.Errorf("what a stranger wrote reaches the terminal: %q", out)
		}
	}
	if out := w.ok("status"); !strings.Contains(out, "webhook issues has refused 1 request of GitHub: no prompt, or no key, can be made of it: cannot make the key: there is no") || !strings.Contains(strings.Join(strings.Fields(out), " "), "there is no .JSON.issue.number") {
		t.Errorf("status does not tell of a request that makes no prompt:\n%s", out)
	}
	// The sender's secret is another one: status, doctor and events said nothing.
	w.put("secret", "another secret than the sender's\n")
	for range 3 {
		if code, _ := w.deliver("hooks.sock", "/github", issue, "d-1"); code != 401 {
			t.Errorf("a wrong secret: %d", code)
		}
	}
	const told = "webhook issues has refused 3 requests of GitHub: signed with another secret than that of secret-file"
	o := w.run("doctor")
	for name, out := range map[string]string{
		"status": w.ok("status"), "doctor": o.stdout, "status -o json": w.ok("status", "-o", "json"), "events": strings.ReplaceAll(w.ok("events"), "1 request of", "3 requests of"),
	} {
		if out = strings.Join(strings.Fields(out), " "); !strings.Contains(out, told) || strings.Contains(out, testSecret) || strings.Contains(out, "sha256=") {
			t.Errorf("%s does not tell of a wrong secret:\n%s", name, out)
		}
	}
	w.put("secret", testSecret+"\n")
	if code, _ := w.deliver("hooks.sock", "/github", issue, "d-1"); code != 200 {
		t.Errorf("put right: %d", code)
	}
	if out := w.ok("status"); strings.Contains(out, "has refused") {
		t.Errorf("status still tells of it:\n%s", out)
	}
	w.put("heartbeat.yaml", strings.Replace(hooked, "unix:hooks.sock", "unix:gone/hooks.sock", 1))
	w.ok("reload")
	until(t, "status tells", func() bool {
		return strings.Contains(w.ok("status"), "! this fleet: webhooks and metrics have been down for")
	})
	if o := w.run("doctor"); !strings.Contains(o.stdout, "not-listening") {
		t.Errorf("doctor does not: %+v", o)
	}
	if code, _ := w.deliver("hooks.sock", "/github", issue, "d-3"); code != 0 {
		t.Errorf("an address that is declared no more answers %d", code)
	}
	w.put("gone/x", "")
	until(t, "the address is open again", func() bool {
		code, _ := w.deliver("gone/hooks.sock", "/github", issue, "d-1")
		return code == 200
	})
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "gone", "hooks.sock")); err == nil {
		t.Error("the socket is left")
	}
}

// TestNoDeliveryIsLostOrDoubled: many senders at once, each sending its deliveries
// again until one is accepted and once more after that, while the scheduler is killed
// and started again. What was answered with 202 is in the queue; nothing is there
// twice.
func TestNoDeliveryIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	senders, each := 20, 5
	if *testbed.Full {
		senders, each = 100, 30
	}
	w := newWorld(t)
	w.put("heartbeat.yaml", hooked)
	w.put("secret", testSecret)
	if err := os.Chmod(filepath.Join(w.dir, "secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.ok("pause", "triage") // the queue keeps all that was accepted
	r := w.background()
	issue := `{"action": "labeled", "issue": {"number": 17, "title": "x"}, "label": {"name": "agent"}}`
	var accepted atomic.Int64
	var all sync.WaitGroup
	for s := range senders {
		all.Go(func() {
			for n := range each {
				id := fmt.Sprintf("d-%d-%d", s, n)
				for done := 0; done < 2; {
					switch code, answer := w.deliver("hooks.sock", "/github", issue, id); code {
					case http.StatusAccepted:
						accepted.Add(1)
						done++
					case http.StatusOK:
						done++
					case 0, http.StatusServiceUnavailable, http.StatusNotFound: // killed, or not ready again
						time.Sleep(10 * time.Millisecond)
					default:
						t.Errorf("%d %v", code, answer)
						return
					}
				}
			}
		})
	}
	for kill := int64(1); kill <= 2; kill++ {
		part := kill * int64(senders*each) / 3
		until(t, "a part is accepted", func() bool { return accepted.Load() >= part })
		if err := r.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		r.ended()
		r = w.background()
	}
	all.Wait()
	queued := map[string]int{}
	for line := range strings.Lines(w.get("agents/triage/.heartbeat/inbox.jsonl")) {
		var entry struct{ ID, Prompt string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Prompt != "Work on issue 17: x" {
			t.Errorf("a line is %q, %v", line, err)
		}
		queued[entry.ID]++
	}
	for s := range senders {
		for n := range each {
			if id := fmt.Sprintf("triage/issues@d-%d-%d", s, n); queued[id] != 1 {
				t.Errorf("%s is there %d times", id, queued[id])
			}
		}
	}
	if len(queued) != senders*each {
		t.Errorf("%d of %d deliveries are queued", len(queued), senders*each)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}
