package e2e

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestWhoseAccountTheClientUses: which of several credentials the client sends.
// orchestrator/account goes by it. The stand-in sends none.
func TestWhoseAccountTheClientUses(t *testing.T) {
	c := realClient(t)
	const key, rejected = "ANTHROPIC_API_KEY=" + apiKey, "ANTHROPIC_API_KEY=sk-ant-api03-rejected-0123456789abcdefghijklmno"
	const bearer, unattended = "ANTHROPIC_AUTH_TOKEN=auth-token", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-unattended"
	cases := map[string]struct {
		env         []string // beside a login
		key, bearer string
	}{
		"the login":                  {nil, "", "sk-ant-oat01-login"},
		"a key before the login":     {[]string{key}, apiKey, ""},
		"not a key that was refused": {[]string{rejected}, "", "sk-ant-oat01-login"},
		"unattended, before a login": {[]string{unattended}, "", "sk-ant-oat01-unattended"},
		"a key before unattended":    {[]string{key, unattended}, apiKey, ""},
		"a key and a token":          {[]string{key, bearer, unattended}, apiKey, "auth-token"},
		"a token before unattended":  {[]string{bearer, unattended}, "", "auth-token"},
	}
	for _, name := range factsOf(t, c, slices.Sorted(maps.Keys(cases)), 3) {
		tt := cases[name]
		t.Run(name, func(t *testing.T) {
			l := newLab(t, c, nil)
			l.Model()
			l.WriteJSON(filepath.Join(l.Home, ".claude.json"), map[string]any{
				"hasCompletedOnboarding": true, "theme": "dark",
				"customApiKeyResponses": map[string]any{"approved": []string{key[len(key)-20:]}, "rejected": []string{rejected[len(rejected)-20:]}},
				"projects":              map[string]any{l.Work: map[string]any{"hasTrustDialogAccepted": true}},
				"oauthAccount":          map[string]any{"accountUuid": "11111111-2222-3333-4444-555555555555"},
			})
			if err := os.MkdirAll(filepath.Join(l.Home, ".claude"), 0o700); err != nil {
				t.Fatal(err)
			}
			l.WriteJSON(filepath.Join(l.Home, ".claude", ".credentials.json"), map[string]any{"claudeAiOauth": map[string]any{
				"accessToken": "sk-ant-oat01-login", "refreshToken": "sk-ant-ort01-made-up", "subscriptionType": "max",
				"expiresAt": time.Now().Add(24 * time.Hour).UnixMilli(), "scopes": []string{"user:inference", "user:profile"},
			}})
			cmd := exec.Command(c.path, "hello")
			cmd.Dir = l.Work
			cmd.Env = slices.DeleteFunc(l.Env(), func(kv string) bool { return strings.HasPrefix(kv, "ANTHROPIC_API_KEY=") })
			cmd.Env = append(cmd.Env, tt.env...)
			l.started = append(l.started, startTerminal(t, cmd))
			l.Until("a model call", func() bool { return len(l.API.Requests()) > 0 })
			if r := l.API.Requests()[0]; r.Key != tt.key || r.Bearer != tt.bearer {
				t.Errorf("it sent the key %q and the token %q, want %q and %q", r.Key, r.Bearer, tt.key, tt.bearer)
			}
		})
	}
}
