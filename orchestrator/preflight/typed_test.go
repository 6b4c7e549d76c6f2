package preflight

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/config"
)

// homed is an agent whose sessions have a home of their own, typed by a person who has
// another one.
func homed(t *testing.T, mode string) Client {
	t.Helper()
	dir := t.TempDir()
	a := &config.Agent{
		Name: "a", Dir: filepath.Join(dir, "work"), Command: []string{"claude"}, Program: "claude", Settings: config.SettingsProject,
		Env: map[string]string{"HOME": filepath.Join(dir, "home of a"), "ANTHROPIC_API_KEY": "sk-1234567890123456789012"},
	}
	a.Permissions.Mode = mode
	c := ClientOf(a, []string{"HOME=" + filepath.Join(dir, "mine"), "CLAUDE_CONFIG_DIR=" + filepath.Join(dir, "mine"), "PATH=" + os.Getenv("PATH")})
	c.Env["CLAUDE_CONFIG_DIR"] = ""
	c.Root = false
	return c
}

// TestEachCureNamesTheHomeOfTheSessions: "run claude once" answered the client's questions
// for the home of whoever typed it.
func TestEachCureNamesTheHomeOfTheSessions(t *testing.T) {
	t.Parallel()
	c := homed(t, "")
	typed := "HOME='" + c.Env["HOME"] + "' "
	for _, o := range c.dialogs(nil) {
		switch o.Code {
		case NoOnboarding, NotTrusted, KeyNotApproved:
			if !strings.Contains(o.Fix, typed) || strings.Contains(o.Fix, "apply --trust") {
				t.Errorf("%s: %s", o.Code, o.Fix)
			}
		}
	}
	put(t, c.Env["HOME"], ".claude.json", "{}")
	if found := c.trust(c.ownFile()); len(found) != 1 || !strings.HasPrefix(found[0].Fix, "heartbeat apply --trust a, or ") {
		t.Errorf("with the client's file: %+v", found)
	}
	mine := c
	mine.Typed = ""
	if found := mine.onboarding(&ownFile{}); found[0].Fix != "run claude once and go through its first screens" {
		t.Errorf("the person's own home: %+v", found)
	}
}

// TestTheCureOfTheBypassWarningWorks when it is typed, where there is no folder yet.
func TestTheCureOfTheBypassWarningWorks(t *testing.T) {
	t.Parallel()
	c := homed(t, bypassMode)
	found := c.bypass(nil)
	if len(found) != 1 || found[0].Code != BypassDialog {
		t.Fatalf("%+v", found)
	}
	if out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", found[0].Fix).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", found[0].Fix, err, out)
	}
	data, err := os.ReadFile(filepath.Join(c.Env["HOME"], ".claude", "settings.json"))
	if d := ReadDocument(data, err); !d.SkipBypassDialog || !json.Valid(data) {
		t.Errorf("%q: %+v", data, d)
	}
	if fix := c.bypass(nil)[0].Fix; !strings.HasPrefix(fix, `put "skip`) {
		t.Errorf("with a file: %s", fix)
	}
}
