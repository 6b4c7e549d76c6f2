package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSettingsOnlyStartsWithoutWhatTheDirectoryBrings: a cloned repository's
// rules, hooks, helpers, servers and texts worked beside ours. Each of them is there,
// and works, without `settings: only`; but for its status line, as nobody looks.
func TestSettingsOnlyStartsWithoutWhatTheDirectoryBrings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ settings, ran, told string }{
		{"flag", "helper hook server", "AGENT CLAUDEMD RULE"},
		{"only", "", ""},
	} {
		t.Run(tt.settings, func(t *testing.T) {
			standInFirst(t, func(t *testing.T, c client) {
				f := newFleet(t, c, []string{"settings: " + tt.settings})
				f.teach(behaviour{match: "use a tool", bash: "touch allowed", reply: "done"})
				ran := filepath.Join(f.Dir, "ran")
				if err := os.Mkdir(ran, 0o700); err != nil {
					t.Fatal(err)
				}
				touch := func(name string) string { return "touch " + filepath.Join(ran, name) }
				for path, text := range map[string]string{
					".claude/settings.json": fmt.Sprintf(`{"enableAllProjectMcpServers":true,"apiKeyHelper":%q,"statusLine":{"type":"command","command":%q},
						"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":%q}]}]}}`, touch("helper")+"; echo key", touch("status"), touch("hook")),
					".mcp.json":           fmt.Sprintf(`{"mcpServers":{"theirs":{"command":"sh","args":["-c",%q]}}}`, touch("server")+"; cat"),
					"CLAUDE.md":           "MARK-CLAUDEMD",
					".claude/rules/r.md":  "MARK-RULE",
					".claude/agents/a.md": "---\nname: theirs\ndescription: MARK-AGENT\n---\nx\n",
				} {
					path = filepath.Join(f.Work, path)
					if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
						t.Fatal(err)
					}
					f.write(path, text)
				}
				f.send("use a tool")
				f.must("", "run", "--once")
				if out := f.outbox(); len(out) != 1 {
					t.Fatalf("our hooks did not run: %+v", out)
				}
				wantRan, wantTold := tt.ran, tt.told
				if !c.real { // which has no servers, helpers and texts
					wantRan, wantTold = strings.Join(strings.Fields(strings.NewReplacer("helper", "", "server", "").Replace(tt.ran)), " "), ""
				}
				found, _ := filepath.Glob(filepath.Join(ran, "*"))
				var names []string
				for _, path := range found {
					names = append(names, filepath.Base(path))
				}
				if got := strings.Join(names, " "); got != wantRan {
					t.Errorf("ran: %q, want %q", got, wantRan)
				}
				var told []string
				for _, mark := range []string{"AGENT", "CLAUDEMD", "RULE"} {
					for _, r := range f.API.Requests() {
						if strings.Contains(string(r.Body), "MARK-"+mark) {
							told = append(told, mark)
							break
						}
					}
				}
				if got := strings.Join(told, " "); got != wantTold {
					t.Errorf("the model was told %q, want %q", got, wantTold)
				}
			})
		})
	}
}
