package main

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/store/storetest"
)

// TestThePagesOfAnAgent show what it does now, over a socket that needs no token: what was
// said, its screen, its queue, what is given up, what it has done and changed. No part of
// a past that there is not yet fails.
func TestThePagesOfAnAgent(t *testing.T) {
	t.Parallel()
	f := newFleet(t, `{"rules": [{"match": "slow", "steps": [{"delay": "600s"}]}]}`, "mode: persist", `triggers: [{name: morning, cron: "0 9 * * *", prompt: "What is new?"}, {name: pager, watch: ["in/*"], urgent: true, prompt: "Look."}]`)
	f.put("heartbeat.yaml", strings.Replace(f.get("heartbeat.yaml"), "agents:\n", "listen: [{address: \"unix:page.sock\", serve: [page], open: true}]\nagents:\n", 1))
	f.start()
	f.ok("send", "triage", "say <b>this</b>")
	f.is("it is done", func(r *hook.Record) bool { return r.Acknowledged == 1 })
	f.ok("send", "triage", "slow one")
	f.is("a turn", func(r *hook.Record) bool { return r.Phase == hook.Turn })
	f.ok("send", "triage", "later: <script>")
	f.ok("send", "--urgent", "triage", "soon")
	f.ok("send", "triage", "never")
	f.ok("inbox", "drop", f.queued("never"))
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(f.dir, "page.sock"))
	}}}
	get := func(path string) (int, string) {
		res, err := client.Get("http://localhost/page/" + path)
		if err != nil {
			return 0, err.Error()
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Error(err)
		}
		return res.StatusCode, string(body)
	}
	until(t, "the page shows its screen", func() bool {
		_, body := get("agents/triage")
		return strings.Contains(body, `aria-label="Terminal of triage"`) && strings.Contains(body, "esc to interrupt")
	})
	for path, wants := range map[string][]string{
		"agents/triage": {
			"say &lt;b&gt;this&lt;/b&gt;", "done: say", "in flight: ", "later: &lt;script&gt;", "<strong class=\"bad\">dropped</strong>", "never", "<strong>morning</strong>", `#agent-dead">Read<`,
			`<strong>pager</strong> <span class="muted">when in/* change, urgent</span>`, "from send, urgent</span>", "<span>2 (1 urgent) queued</span>", // nothing marked these
		},
		"agents/triage/record":       {"done: say &lt;b&gt;this&lt;/b&gt;", " · send", " · took "},
		"agents/triage/plots?of=90d": {"Queue depth", "not watched"},
		"plots":                      {"Lateness of fires"},
		"agents/triage/changes":      {"is in no git repository"},
	} {
		code, body := get(path)
		for _, want := range wants {
			if code != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s: status %d, without %q:\n%s", path, code, want, body)
			}
		}
		if strings.Contains(body, "<button class") || strings.Contains(body, "<textarea") {
			t.Errorf("%s: who may only look has buttons:\n%s", path, body)
		}
	}
	for _, path := range []string{"agents/none", "agents/none/plots", "agents/triage/none"} {
		if code, _ := get(path); code != http.StatusNotFound {
			t.Errorf("%s: status %d", path, code)
		}
	}
	if left, err := filepath.Glob(filepath.Join(f.dir, "state", "*", "diff-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// queued is the id of the entry whose prompt is queued.
func (f *fleet) queued(prompt string) string {
	f.t.Helper()
	var list queueList
	f.into(&list, "inbox", "triage")
	for _, e := range list.Entries {
		if e.Prompt.Raw() == prompt {
			return e.DeliveryID
		}
	}
	f.t.Fatalf("%q is not queued: %+v", prompt, list)
	return ""
}

// TestTheRecordHasChecks: what history shows of checks, the page shows.
func TestTheRecordHasChecks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j := journal.New(storetest.New(t, dir), slog.New(slog.DiscardHandler), nil)
	now := time.Now()
	for _, e := range []journal.Event{
		{At: now, Started: now.Add(-time.Minute), Kind: journal.Checked, Agent: "a", Entry: "e1", Verdict: "failed", Iteration: 2},
		{At: now.Add(time.Second), Kind: journal.Ended, Agent: "a", Reason: "its queue is empty", Acknowledged: 1},
	} {
		j.Add(e)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	var past journalPast
	all, err := past.of(t.Context(), dir, "a")
	if err != nil || len(all) != 2 || all[0].Check || !all[1].Check || all[1].Why != "failed, iteration 2" || all[1].Lasted() != "1m0s" {
		t.Errorf("%+v, %v", all, err)
	}
}
