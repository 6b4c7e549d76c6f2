package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"heartbeat/internal/fakeapi"
)

// TestWhatTheClientSaysOfItsLogin: `claude auth status` says which login there is, takes an
// expired one for a login, and with a saved login it connects, whatever ANTHROPIC_BASE_URL
// says: it is not asked in a person's home. The commands that could tell more do not
// without a call of the model. Nothing but a prompt shows that an account works again.
func TestWhatTheClientSaysOfItsLogin(t *testing.T) {
	t.Parallel()
	c := realClient(t)
	saved := func(expires time.Duration) map[string]any {
		return map[string]any{"claudeAiOauth": map[string]any{
			"accessToken": "sk-ant-oat01-made-up", "refreshToken": "sk-ant-ort01-made-up", "expiresAt": time.Now().Add(expires).UnixMilli(),
			"scopes": []string{"user:inference", "user:profile"}, "subscriptionType": "max",
		}}
	}
	cases := map[string]struct {
		env   []string
		file  any
		args  []string
		in    bool
		how   string
		calls int
		// leaves is true if it connects to others than the API.
		leaves bool
	}{
		"a key":             {nil, nil, []string{"auth", "status"}, true, "api_key", 0, false},
		"a token":           {[]string{"ANTHROPIC_API_KEY=", "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-made-up-0123456789"}, nil, []string{"auth", "status"}, true, "oauth_token", 0, false},
		"a fresh login":     {[]string{"ANTHROPIC_API_KEY="}, saved(time.Hour), []string{"auth", "status"}, true, "claude.ai", 0, true},
		"an expired login":  {[]string{"ANTHROPIC_API_KEY="}, saved(-time.Hour), []string{"auth", "status"}, true, "claude.ai", 0, true},
		"no login":          {[]string{"ANTHROPIC_API_KEY="}, nil, []string{"auth", "status"}, false, "none", 0, false},
		"its version":       {[]string{"ANTHROPIC_API_KEY="}, saved(-time.Hour), []string{"--version"}, false, "", 0, false},
		"its usage":         {nil, nil, []string{"-p", "/usage"}, false, "", 0, false},
		"no turn, and yet":  {nil, nil, []string{"-p", "--max-turns", "0", "hi"}, false, "", 1, false},
		"a prompt, refused": {nil, nil, []string{"-p", "hi"}, false, "", 1, false},
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
			proxy := newWayOut(t)
			l.Setenv("HTTPS_PROXY="+proxy.url, "HTTP_PROXY="+proxy.url, "NO_PROXY=127.0.0.1,localhost")
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
			if asked := proxy.asked(); (len(asked) > 0) != tt.leaves {
				t.Errorf("it connects to %q", asked)
			} else {
				t.Logf("it connects to %q", asked)
			}
		})
	}
}

// wayOut is a proxy that lets nothing through, and keeps what was to be reached.
type wayOut struct {
	url string
	mu  sync.Mutex
	to  []string
}

func newWayOut(t *testing.T) *wayOut {
	t.Helper()
	w := &wayOut{}
	s := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.to = append(w.to, r.Host)
		answer.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

func (w *wayOut) asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Compact(slices.Sorted(slices.Values(w.to)))
}
