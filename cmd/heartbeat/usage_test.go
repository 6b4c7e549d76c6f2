package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/hook/client"
	"heartbeat/orchestrator/usage"
	"heartbeat/orchestrator/usage/usagetest"
)

// TestUsage is what a person reads of a session's cost, of each row's kind, and of
// what could not be seen.
func TestUsage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	if out := w.ok("usage"); !strings.HasPrefix(out, "nothing was spent since ") {
		t.Errorf("before anything has happened:\n%s", out)
	}
	w.ok("apply")
	w.ok("send", "triage", "hello")
	w.done("run", "--once")
	var spent spending
	for _, by := range []string{"agent", "day", "trigger", "entry", "account", "session"} {
		w.into(&spent, "usage", "--by", by)
		if len(spent.Rows) != 1 || spent.Rows[0].Turns != 1 || spent.Total.Calls != 1 || spent.Total.Cost <= 0 || spent.Total.Output == 0 {
			t.Errorf("by %s: %+v", by, spent)
		}
	}
	if out := w.ok("usage", "triage"); !strings.Contains(out, "triage") || !strings.Contains(out, "$0.00") || !strings.Contains(out, "list price") {
		t.Errorf("usage:\n%s", out)
	}
	if out := w.ok("usage", "--by", "account"); !strings.Contains(out, ": used by triage\n") {
		t.Errorf("usage --by account:\n%s", out)
	}
	if out := w.ok("status"); !strings.Contains(out, "TODAY") || !strings.Contains(out, "$0.00") {
		t.Errorf("status:\n%s", out)
	}
	if a := w.agent("triage"); a.Today.Turns != 1 || a.Today.Cost <= 0 {
		t.Errorf("today: %+v", a.Today)
	}
	if out := w.ok("usage", "--since", "0s"); !strings.HasPrefix(out, "nothing was spent since ") {
		t.Errorf("since now:\n%s", out)
	}
	if o := w.run("usage", "--by", "colour"); o.status != exitUsage {
		t.Errorf("by what there is not: status %d", o.status)
	}
	if o := w.run("usage", "nobody"); o.status == 0 {
		t.Errorf("of nobody: %s", o.stdout)
	}
}

// TestUsageNamesWhatWasNotSeen, also of an agent that is not declared any more.
func TestUsageNamesWhatWasNotSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.ok("apply")
	names := slices.DeleteFunc(w.names("state"), func(name string) bool { return name[0] == '.' })
	dir := filepath.Join(w.dir, "state", names[0])
	for agent, s := range map[string]usage.Sum{
		"triage": {Turns: 1200, Calls: 2000, Tokens: client.Tokens{Input: 1234, Output: 56789, CacheRead: 1234567, CacheWrite: 7}, Cost: 12.5, Unseen: 3},
		"gone":   {Turns: 1, Calls: 1, Unpriced: 1, Guessed: 1},
	} {
		usagetest.Add(t, dir, usage.Record{At: time.Now(), Agent: agent, Session: "s", Sum: s})
	}
	out := w.ok("usage")
	for _, want := range []string{"1.23k", "56.8k", "1.23M", "$12.50+", "gone", "?", "3 turns without figures", "1 turn without a cost", "1 turn of a model whose price the client does not know"} {
		if !strings.Contains(out, want) {
			t.Errorf("usage lacks %q:\n%s", want, out)
		}
	}
}

// TestUsageSaysListPriceOfSubscriptionsOnly: a key is billed by these dollars.
func TestUsageSaysListPriceOfSubscriptionsOnly(t *testing.T) {
	t.Parallel()
	for account, want := range map[string]bool{
		"anthropic key 0a1b": false, "bedrock 0a1b": false, "anthropic token 0a1b": true, "anthropic login 0a1b": true, "anthropic unknown 0a1b": true,
	} {
		w := newWorld(t)
		w.put("heartbeat.yaml", simulated)
		w.ok("apply")
		names := slices.DeleteFunc(w.names("state"), func(name string) bool { return name[0] == '.' })
		rec := usage.Record{At: time.Now(), Agent: "triage", Session: "s", Account: account, Sum: usage.Sum{Turns: 1, Calls: 1, Cost: 0.25}}
		usagetest.Add(t, filepath.Join(w.dir, "state", names[0]), rec)
		if out := w.ok("usage"); strings.Contains(out, "list price") != want {
			t.Errorf("%s:\n%s", account, out)
		}
	}
}
