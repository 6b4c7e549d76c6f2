package preflight

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAnswersChangeWithWhatAnswers: each file and variable by which a person can
// answer what the client asks makes other answers, and nothing else does: the
// client writes its own file at each start.
func TestAnswersChangeWithWhatAnswers(t *testing.T) {
	t.Parallel()
	base := map[string]string{
		own: `{"numStartups":1,"projects":{"LAB/work":{}}}`, user: `{}`, project: `{}`, local: `{}`, machine: `{}`,
		"work/.mcp.json": `{}`, "work/CLAUDE.md": "text", "outside.md": "text", "bin/claude": "#!/bin/sh",
	}
	for name, change := range map[string]struct {
		file, text string
		env        string
		same       bool
	}{
		"nothing":         {same: true},
		"another start":   {file: own, text: `{"numStartups":2,"tips":{"x":1},"projects":{"LAB/work":{"lastCost":7}}}`, same: true},
		"trusted":         {file: own, text: `{"projects":{"LAB/work":{"hasTrustDialogAccepted":true}}}`},
		"trusted above":   {file: own, text: `{"projects":{"LAB":{"hasTrustDialogAccepted":true}}}`},
		"another trusted": {file: own, text: `{"projects":{"LAB/other":{"hasTrustDialogAccepted":true}}}`, same: true},
		"onboarded":       {file: own, text: `{"hasCompletedOnboarding":true}`},
		"a key approved":  {file: own, text: `{"customApiKeyResponses":{"approved":["x"]}}`},
		"logged in":       {file: own, text: `{"oauthAccount":{}}`},
		"broken":          {file: own, text: `{`},
		"the user's":      {file: user, text: `{"skipDangerousModePermissionPrompt":true}`},
		"the project's":   {file: project, text: `{"a":1}`},
		"the local file":  {file: local, text: `{"enabledMcpjsonServers":["x"]}`},
		"the machine's":   {file: machine, text: `{"a":1}`},
		"servers":         {file: "work/.mcp.json", text: `{"mcpServers":{"tool":{"command":"true"}}}`},
		"imports":         {file: "work/CLAUDE.md", text: "@../outside.md"},
		"the client":      {file: "bin/claude", text: "#!/bin/sh\n# newer"},
		"a variable":      {env: "CLAUDE_CODE_SANDBOXED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := lab(t, base)
			dir := filepath.Dir(c.Dir)
			c.Program, c.Env["PATH"] = "claude", filepath.Join(dir, "bin")
			if err := os.Chmod(filepath.Join(dir, "bin/claude"), 0o755); err != nil {
				t.Fatal(err)
			}
			before := c.Answers(c.Settings())
			if change.file != "" {
				put(t, dir, change.file, change.text)
				if err := os.Chtimes(filepath.Join(dir, change.file), time.Time{}, time.Now().Add(time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
			if change.env != "" {
				c.Env[change.env] = "1"
			}
			if after := c.Answers(c.Settings()); (after == before) != change.same || before == "" {
				t.Errorf("%q, then %q", before, after)
			}
		})
	}
}
