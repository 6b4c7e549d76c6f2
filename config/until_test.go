package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heartbeat/hook"
)

func TestUntil(t *testing.T) {
	t.Parallel()
	path := write(t, `
version: 1
max-checks: 3
defaults: {until: {check: [make, test]}}
agents:
  rest: {dir: a}
  none: {dir: b, until: }
  own:
    dir: c
    until:
      check: [./check.sh, ""]
      check-timeout: 20m
      approve: [release]
      aside: true
      promise: "ALL  DONE"
      max-iterations: 0
      max-time: none
      env: {CI: true}
      hold: 1m
    triggers:
      - {cron: "@daily", prompt: x, until: {check: [true], check-timeout: 1h}}
      - {cron: "@weekly", prompt: x}
`)
	f := mustLoad(t, path)
	if f.MaxChecks != 3 {
		t.Errorf("max-checks is %d", f.MaxChecks)
	}
	if diff := cmp.Diff(NewUntil("make", "test"), f.Agent("rest").Until); diff != "" {
		t.Error(diff)
	}
	if u := f.Agent("none").Until; u != nil || f.Agent("none").LongestCheck() != 0 {
		t.Errorf("none has %+v", u)
	}
	own := f.Agent("own")
	want := &Until{
		Check: []string{"./check.sh", ""}, Program: filepath.Join(filepath.Dir(f.Path), "check.sh"), CheckTimeout: 20 * time.Minute, Approve: []string{"release"}, Aside: true, Promise: "ALL  DONE",
		Env: map[string]string{"CI": "true"}, Hold: time.Minute,
	}
	if diff := cmp.Diff(want, own.Until); diff != "" {
		t.Error(diff)
	}
	if argv := strings.Join(own.Until.Argv(), " "); !filepath.IsAbs(argv) {
		t.Errorf("it runs %q", argv)
	}
	if u := own.Triggers[0].Until; u.CheckTimeout != time.Hour || own.LongestCheck() != time.Hour+hook.LongestPause {
		t.Errorf("the trigger's is %+v, the longest %s", u, own.LongestCheck())
	}
	if own.Triggers[1].Until != nil {
		t.Error("a trigger without one has the agent's")
	}
}

func TestPromises(t *testing.T) {
	t.Parallel()
	u := NewUntil("true")
	if !u.Promises("whatever") {
		t.Error("a claim is asked for")
	}
	u.Promise = "ALL DONE"
	for reply, want := range map[string]bool{
		"":                                    false,
		"ALL DONE":                            false,
		"<promise>ALL DONE</promise>":         true,
		"so: <promise>\nALL\tDONE </promise>": true,
		"<promise>ALL DONE":                   false,
		"<promise>all done</promise>":         false,
		"<promise>NOT ALL DONE</promise>":     false,
		"<promise>x</promise> <promise>ALL DONE</promise>": true,
	} {
		if got := u.Promises(reply); got != want {
			t.Errorf("%q: %t", reply, got)
		}
	}
}

func TestUntilProblems(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ yaml, want string }{
		{"{}", "until.check: is missing"},
		{"{promise: DONE}", "until.check: is missing"},
		{"{check: make test}", `until.check: must be a list of words, not "make test" (write [make, test])`},
		{"{check: []}", "until.check: is empty"},
		{`{check: ["", x]}`, "until.check[0]: is blank"},
		{`{check: [" "]}`, "until.check[0]: is blank"},
		{"{check: [true], timeout: 1m}", "did you mean check-timeout?"},
		{"{check: [true], check-timeout: 0s}", "0s is too short"},
		{"{check: [true], check-timeout: 48h}", "48h is too long"},
		{"{check: [true], max-iterations: -1}", "-1 is too small"},
		{"{check: [true], promise: ''}", "until.promise: is blank"},
		{"{check: [true], promise: <promise>x</promise>}", "has the tags"},
		{"{check: [true], env: {HEARTBEAT_SESSION: x}}", "is set by heartbeat itself"},
		{"{check: [true], aside: true}", "until.aside: needs approve"},
		{"{check: [true], approve: [], aside: true}", "until.aside: needs approve"},
		{"{check: [true], approve: [release], aside: yes please}", "is neither true nor false"},
		{"make test", "until: must be a mapping"},
	} {
		for where, text := range map[string]string{
			"an agent":  "agents: {a: {dir: a, until: " + tt.yaml + "}}",
			"a trigger": `agents: {a: {dir: a, trigger: {cron: "@daily", prompt: x, until: ` + tt.yaml + "}}}",
		} {
			_, err := Load(write(t, "version: 1\n"+text+"\n"))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %s: %v, want %q", where, tt.yaml, err, tt.want)
			}
		}
	}
	_, err := Load(write(t, "version: 1\nagents: {a: {dir: a, max-iterations: 3}}\n"))
	if err == nil || !strings.Contains(err.Error(), "it belongs below until:") {
		t.Errorf("got %v", err)
	}
}
