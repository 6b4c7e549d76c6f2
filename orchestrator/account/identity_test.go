package account

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestOneAccountOneID walks what an environment can say: rows with the same
// account have the same id, all others another one, and no id tells a secret.
func TestOneAccountOneID(t *testing.T) {
	t.Parallel()
	const rejected = "sk-ant-api03-rejected-0123456789abcdefghij"
	login := func(uuid, token string) string {
		dir := t.TempDir()
		text := `{"numStartups": 3, "oauthAccount": {"accountUuid": "` + uuid + `", "accessToken": "` + token + `"},
			"customApiKeyResponses": {"rejected": ["` + rejected[len(rejected)-20:] + `"]}}`
		if err := os.WriteFile(filepath.Join(dir, ".claude.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	broken := t.TempDir()
	if err := os.Mkdir(filepath.Join(broken, ".claude.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	one := login("uuid-one", "before")
	rows := []struct {
		account string
		env     []string
	}{
		{"one", []string{"HOME=" + one}},
		{"one", []string{"HOME=" + login("uuid-one", "refreshed")}},
		{"one", []string{"HOME=/nowhere", "CLAUDE_CONFIG_DIR=" + one}},
		{"one", []string{"HOME=" + one, "ANTHROPIC_BASE_URL=https://api.anthropic.com"}},
		{"one", []string{"HOME=" + one, "ANTHROPIC_API_KEY=" + rejected}},
		{"one", []string{"HOME=" + one, "CLAUDE_CODE_USE_BEDROCK=0"}},
		{"two", []string{"HOME=" + login("uuid-two", "before")}},
		{"one, elsewhere", []string{"HOME=" + one, "ANTHROPIC_BASE_URL=https://proxy.example/v1?token=secret-x"}},
		{"key", []string{"HOME=" + one, "ANTHROPIC_API_KEY=secret-key"}},
		{"key", []string{"HOME=/nowhere", "ANTHROPIC_API_KEY=first", "ANTHROPIC_API_KEY=secret-key", "CLAUDE_CODE_OAUTH_TOKEN=x"}},
		{"other key", []string{"HOME=" + one, "ANTHROPIC_API_KEY=other"}},
		{"key and token", []string{"ANTHROPIC_API_KEY=secret-key", "ANTHROPIC_AUTH_TOKEN=secret-token"}},
		{"token", []string{"HOME=" + one, "ANTHROPIC_AUTH_TOKEN=secret-token"}},
		{"unattended", []string{"HOME=" + one, "CLAUDE_CODE_OAUTH_TOKEN=secret-token"}},
		{"bedrock", []string{"HOME=" + one, "CLAUDE_CODE_USE_BEDROCK=1", "AWS_PROFILE=p", "AWS_REGION=eu"}},
		{"bedrock", []string{"HOME=/x", "CLAUDE_CODE_USE_BEDROCK=true", "AWS_PROFILE=p", "AWS_REGION=eu", "ANTHROPIC_API_KEY=k"}},
		{"bedrock, another profile", []string{"CLAUDE_CODE_USE_BEDROCK=1", "AWS_PROFILE=q", "AWS_REGION=eu"}},
		{"vertex", []string{"CLAUDE_CODE_USE_VERTEX=1", "ANTHROPIC_VERTEX_PROJECT_ID=p"}},
		{"nobody here", []string{"HOME=/nowhere"}},
		{"nobody there", []string{"HOME=" + broken}},
	}
	ids := map[string]ID{}
	for _, r := range rows {
		id := Of(r.env)
		if strings.Contains(string(id), "secret") || strings.Contains(string(id), "uuid") {
			t.Errorf("%s: the id %q tells too much", r.account, id)
		}
		if had, ok := ids[r.account]; ok && had != id {
			t.Errorf("%s has the ids %q and %q: %q", r.account, had, id, r.env)
		}
		ids[r.account] = id
	}
	all := slices.Sorted(maps.Values(ids))
	if n := len(slices.Compact(all)); n != len(ids) {
		t.Errorf("%d accounts have %d ids: %q", len(ids), n, ids)
	}
}
