package e2e

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goodServer is an MCP server with one tool, for sh: the client asks for what it is first.
const goodServer = `while read -r line; do
	id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
	case $line in
	*'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"good","version":"1"}}}\n' "$id";;
	*'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}\n' "$id";;
	*'"id"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id";;
	esac
done`

// TestAServerThatDidNotConnect: its tools were missing, the prompts were done, and nobody was
// told. One that did connect is not named.
func TestAServerThatDidNotConnect(t *testing.T) {
	bothClients(t, func(t *testing.T, c client) {
		if !c.real {
			return // it starts no servers; what is read of their logs has a test of its own
		}
		f := newFleet(t, c, []string{"settings: flag"})
		f.teach(behaviour{match: "one", bash: "until grep -qs Successfully ../home/.cache/claude-cli-nodejs/*/mcp-logs-good/*; do sleep 0.1; done", reply: "done"})
		locked, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		asks := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })}
		go func() { _ = asks.Serve(locked) }()
		defer asks.Close()
		shell := func(script string) map[string]any {
			return map[string]any{"command": "sh", "args": []string{"-c", script}}
		}
		servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
			"good": shell(goodServer), "ends": shell("echo broken >&2; exit 3"), "mute": shell("sleep 1000"), "none": map[string]any{"command": "/no/such/program"},
			"closed": map[string]any{"type": "http", "url": "http://127.0.0.1:9/mcp"}, "locked": map[string]any{"type": "http", "url": "http://" + locked.Addr().String() + "/mcp"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(f.Work, ".claude"), 0o700); err != nil {
			t.Fatal(err)
		}
		f.write(filepath.Join(f.Work, ".mcp.json"), string(servers))
		f.write(filepath.Join(f.Work, ".claude", "settings.json"), `{"enableAllProjectMcpServers":true,"permissions":{"allow":["Bash"]}}`)
		f.send("one")
		f.must("", "run", "--once")
		if out := f.must("", "status"); !strings.Contains(squeezed(out), "! a: in its last session MCP server closed did not connect: ") {
			t.Errorf("status:\n%s", out)
		}
		out, _, _ := f.heartbeat("", "doctor")
		out = squeezed(out)
		for _, server := range []string{"ends", "mute", "none", "closed", "locked"} {
			if !strings.Contains(out, "MCP server "+server+" did not connect: ") {
				t.Errorf("doctor says nothing of %s:\n%s", server, out)
			}
		}
		if strings.Contains(out, "MCP server good") {
			t.Errorf("a server that did connect is named:\n%s", out)
		}
		if events := f.must("", "events"); !strings.Contains(squeezed(events), "MCP server closed did not connect") {
			t.Errorf("events:\n%s", events)
		}
	})
}
