package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"heartbeat/internal/fakeapi"
)

// TestTheClientAsksNobodyAboutItsLogin: `claude auth status` says which login there is
// without a request, so it says nothing of whether the service accepts it, and takes an
// expired one for a login; the commands that could tell more do not without a call of the
// model. Nothing but a prompt shows that an account works again.
func TestTheClientAsksNobodyAboutItsLogin(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	expired := map[string]any{"claudeAiOauth": map[string]any{
		"accessToken": "sk-ant-oat01-made-up", "refreshToken": "sk-ant-ort01-made-up", "expiresAt": time.Now().Add(-time.Hour).UnixMilli(),
		"scopes": []string{"user:inference", "user:profile"}, "subscriptionType": "max",
	}}
	cases := map[string]struct {
		env   []string
		file  any
		args  []string
		in    bool
		how   string
		calls int
	}{
		"a key":             {nil, nil, []string{"auth", "status"}, true, "api_key", 0},
		"a token":           {[]string{"ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-made-up-0123456789"}, nil, []string{"auth", "status"}, true, "oauth_token", 0},
		"an expired login":  {[]string{"ANTHROPIC_API_KEY="}, expired, []string{"auth", "status"}, true, "claude.ai", 0},
		"no login":          {[]string{"ANTHROPIC_API_KEY="}, nil, []string{"auth", "status"}, false, "none", 0},
		"its usage":         {nil, nil, []string{"-p", "/usage"}, false, "", 0},
		"no turn, and yet":  {nil, nil, []string{"-p", "--max-turns", "0", "hi"}, false, "", 1},
		"a prompt, refused": {nil, nil, []string{"-p", "hi"}, false, "", 1},
	}
	for _, name := range factsOf(t, c, slices.Sorted(maps.Keys(cases)), 3) {
		tt := cases[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, c, nil, fakeapi.Rule{Answer: fakeapi.Answer{Status: 401, ErrorType: "authentication_error", Message: "invalid x-api-key"}})
			l.Setenv(append(tt.env, "CLAUDE_CODE_MAX_RETRIES=0")...)
			if tt.file != nil {
				path := filepath.Join(l.Home, ".claude", ".credentials.json")
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				l.WriteJSON(path, tt.file)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, c.path, tt.args...)
			cmd.Dir, cmd.Env = l.Work, l.Env()
			out, err := cmd.Output()
			var said struct {
				LoggedIn   bool
				AuthMethod string
			}
			if tt.how != "" && (json.Unmarshal(out, &said) != nil || said.LoggedIn != tt.in || said.AuthMethod != tt.how) {
				t.Errorf("it says %s (%v), want %s", out, err, tt.how)
			}
			if n := len(l.API.Requests()); n != tt.calls || len(l.API.Others()) != 0 {
				t.Errorf("%d calls of the model, %d other requests", n, len(l.API.Others()))
			}
		})
	}
}
