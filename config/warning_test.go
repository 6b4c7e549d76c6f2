package config

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A poison prompt held its agent with the defaults, instead of becoming a dead
// letter.
func TestAnAgentIsNotHeldBeforeItsPoisonPromptIsPutAside(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fields  string
		want    int // max-restarts
		warning string
	}{
		{"", 5, ""},
		{"max-attempts: 2", 5, ""},
		{"max-attempts: 9", 9, ""},
		{"max-attempts: 3, max-restarts: 3", 3, ""},
		{"max-attempts: 9, max-restarts: 5", 5, "2:53: agents.a.max-restarts: a prompt that ends every session holds the agent at failure 6, before max-attempts (9) sets the prompt aside (write at least 9, or a smaller max-attempts)"},
		{"max-restarts: 0", 0, "2:36: agents.a.max-restarts: a prompt that ends every session holds the agent at failure 1, before max-attempts (5) sets the prompt aside (write at least 5, or a smaller max-attempts)"},
	} {
		path := write(t, "version: 1\nagents: {a: {dir: a, "+tt.fields+"}}\n")
		f := mustLoad(t, path)
		if got := f.Agent("a").MaxRestarts; got != tt.want {
			t.Errorf("%q: max-restarts %d, want %d", tt.fields, got, tt.want)
		}
		var warnings []string
		for _, w := range f.Warnings {
			warnings = append(warnings, strings.TrimPrefix(w.String(), path+":"))
		}
		if got := strings.Join(warnings, "\n"); got != tt.warning {
			t.Errorf("%q: warnings %q, want %q", tt.fields, got, tt.warning)
		}
	}
}

// The hint sent people with a whole path to the same path.
func TestAProgramThatIsNotThere(t *testing.T) {
	t.Parallel()
	f := mustLoad(t, write(t, "version: 1\nagents: {a: {dir: a, command: [/nonexistent/client]}}\n"))
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].String(), "client is not there (install it there, or write another path)") {
		t.Errorf("warnings %v", f.Warnings)
	}
}

// TestASecretFileThatCannotBeUsedIsNamed, once, with what to type: validate found nothing,
// and the webhook refused every request.
func TestASecretFileThatCannotBeUsedIsNamed(t *testing.T) {
	t.Parallel()
	path := write(t, `version: 1
agents:
  a: {dir: a, triggers: [{webhook: /x, secret-file: "it's gone", prompt: x}, {webhook: /y, secret-file: "it's gone", prompt: x}]}
  b: {dir: b, triggers: [{webhook: /z, secret-file: open, prompt: x}, {webhook: /u, secret-file: good, prompt: x}]}
listen: [{address: ":1", serve: [webhooks]}, {address: ":2", serve: [metrics], secret-file: short}]
`)
	dir := filepath.Dir(path)
	for name, mode := range map[string]os.FileMode{"open": 0o644, "good": 0o600, "short": 0o600} {
		text := strings.Repeat("0123456789abcdef", 2)
		if name == "short" {
			text = "x"
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"agents.a.triggers[0].secret-file": `(umask 077; openssl rand -hex 32 > '` + dir + `/it'\''s gone'), and give the sender the same secret`,
		"agents.b.triggers[0].secret-file": "chmod 600 " + dir + "/open, or make another secret if somebody may have read it",
		"listen[1].secret-file":            "(umask 077; openssl rand -hex 32 > " + dir + "/short), and give the sender the same secret",
	}
	got := map[string]string{}
	for _, w := range mustLoad(t, path).Warnings {
		got[w.Key] = w.Hint
	}
	if !maps.Equal(got, want) {
		t.Errorf("warnings %q\nwant %q", got, want)
	}
}
