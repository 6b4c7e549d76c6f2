package config

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestListenProblems: who may ask is settled before a run, at the place in the file.
func TestListenProblems(t *testing.T) {
	t.Parallel()
	const (
		hook   = "agents: {a: {dir: a, trigger: {webhook: /x, prompt: x}}}\n"
		secret = "agents: {a: {dir: a, trigger: {webhook: /x, secret-file: s, prompt: x}}}\n"
		plain  = "agents: {a: {dir: a}}\n"
	)
	tests := []struct{ yaml, want string }{
		{hook, "2:41: agents.a.trigger.webhook: no address serves webhooks (write, at the top of the file, listen:"},
		{hook + `listen: [{address: ":8321", serve: [metrics]}]`, "no address serves webhooks"},
		{hook + `listen: [{address: "0.0.0.0:8321", serve: [webhooks]}]`, "2:31: agents.a.trigger.secret-file: is missing: everybody who reaches 0.0.0.0:8321 could queue prompts"},
		{hook + `listen: [{address: "[::]:8321", serve: [webhooks]}]`, "is missing: everybody who reaches"},
		{hook + `listen: [{address: "10.0.0.7:8321", serve: [webhooks]}, {address: ":1", serve: [webhooks]}]`, "is missing: everybody who reaches 10.0.0.7:8321"},
		{plain + `listen: [{address: "0.0.0.0:1", serve: [metrics]}]`, `3:20: listen[0].address: metrics and the agents' names could be read by everybody who reaches 0.0.0.0:1 (write secret-file: FILE beside it, or address: ":1")`},
		{plain + `listen: [{address: "example.org:1", serve: [metrics]}]`, `"example.org" is not an address of this machine`},
		{plain + `listen: [{address: "8321", serve: [metrics]}]`, `"8321" is not HOST:PORT, :PORT or unix:PATH`},
		{plain + `listen: [{address: ":0", serve: [metrics]}]`, `":0" is not HOST:PORT`},
		{plain + `listen: [{address: ":99999", serve: [metrics]}]`, `is not HOST:PORT`},
		{plain + `listen: [{address: "unix:` + strings.Repeat("x", 200) + `", serve: [metrics]}]`, `the path of a socket is at most 103 bytes long`},
		{plain + `listen: [{address: unix:a/x.sock, serve: [metrics]}]`, `a/x.sock lies in the directory of agent "a", which could rewrite it`},
		{plain + `listen: [{address: ":1", serve: [metrics]}, {address: "127.0.0.1:1", serve: [metrics]}]`, `3:55: listen[1].address: 127.0.0.1:1 is given twice, first on line 3`},
		{plain + `listen: [{address: ":1", serve: [pages]}]`, `listen[0].serve[0]: "pages" is not served (allowed: webhooks, metrics, page)`},
		{plain + `listen: [{address: ":1", serve: []}]`, `listen[0].serve: is empty`},
		{plain + `listen: [{address: ":1"}]`, `listen[0].serve: is missing`},
		{plain + `listen: [{serve: [metrics]}]`, `listen[0].address: is missing`},
		{plain + `listen: {address: ":1", serve: [metrics]}`, `listen: must be a list, not a mapping`},
		{plain + `listen: [{address: ":1", serve: [metrics], access: group}]`, `access: is for sockets`},
		{secret + `listen: [{address: ":1", serve: [webhooks], secret-file: s}]`, `secret-file: is for metrics`},
		{"agents: {a: {dir: a, trigger: {webhook: x, prompt: x}}}\n", `"x" is not a path`},
		{"agents: {a: {dir: a, trigger: {webhook: /a/../b, prompt: x}}}\n", `is not a path`},
		{"agents: {a: {dir: a, trigger: {webhook: /a/, prompt: x}}}\n", `is not a path`},
		{"agents: {a: {dir: a, trigger: {webhook: /metrics, prompt: x}}}\n", `/metrics is served by metrics`},
		{"agents: {a: {dir: a, trigger: {webhook: /x, prompt: \"{{.Jason}}\"}}}\n", `there is no {{.Jason}} (known are {{.JSON}}, {{.Body}} and {{.Header "NAME"}})`},
		{"agents: {a: {dir: a, trigger: {webhook: /x, prompt: x, match: {action: labeled}}}}\n", `unknown key (write match: {json: {action: …}}, or headers: instead of json:)`},
		{"agents: {a: {dir: a, trigger: {webhook: /x, prompt: x, secret-file: a/s}}}\n", `a/s lies in the directory of agent "a"`},
		{hook[:len(hook)-2] + ", b: {dir: b, trigger: {webhook: /x, prompt: x}}}\nlisten: [{address: \":1\", serve: [webhooks]}]", `the path /x is taken by agent "a", on line 2`},
		{"defaults: {trigger: {webhook: /x, prompt: x}}\nagents: {a: {dir: a}, b: {dir: b}}\nlisten: [{address: \":1\", serve: [webhooks]}]", `the path /x is taken by agent "a"`},
		{"agents: {a: {dir: a, trigger: {poll: [x], split: json, dedupe: key, key: \"{{.JSON.id}}\", backs-up: hook}}}\n", `trigger.backs-up: the agent has no webhook with the name "hook"`},
		{"agents: {a: {dir: a, triggers: [{webhook: /x, prompt: x}, {poll: [x], split: json, dedupe: key, key: \"{{.JSON.id}}\", backs-up: webhook-1}]}}\n", `triggers[1].backs-up: needs a key on both sides`},
	}
	for i, tt := range tests {
		t.Run(strconv.Itoa(i), func(t *testing.T) { // the path of a socket is short
			t.Parallel()
			problems := problemsOf(t, write(t, "version: 1\n"+tt.yaml+"\n"))
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, tt.want) }) {
				t.Errorf("problems %q lack %q", problems, tt.want)
			}
		})
	}
	for _, fine := range []string{
		hook + `listen: [{address: ":1", serve: [webhooks, metrics]}]`,
		hook + `listen: [{address: unix:x.sock, serve: [webhooks]}, {address: "localhost:1", serve: [webhooks]}]`,
		secret + `listen: [{address: "0.0.0.0:1", serve: [webhooks]}]`,
		plain + `listen: [{address: "0.0.0.0:1", serve: [metrics], secret-file: s}]`,
		plain + "listen:",
		"agents: {a: {dir: a, triggers: [{webhook: /x, prompt: x, key: \"{{.JSON.id}}\"}, {poll: [x], split: json, dedupe: key, key: \"{{.JSON.id}}\", backs-up: webhook-1}]}}\nlisten: [{address: \":1\", serve: [webhooks]}]",
	} {
		mustLoad(t, write(t, "version: 1\n"+fine+"\n"))
	}
}
