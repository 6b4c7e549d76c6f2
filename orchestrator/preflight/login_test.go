package preflight

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"heartbeat/config"
)

// TestWhatIsKnownOfALogin: an absence is certain only where nothing is there that
// may log in, as a run starts nothing then.
func TestWhatIsKnownOfALogin(t *testing.T) {
	t.Parallel()
	type files = map[string]string
	const key, saved = "ANTHROPIC_API_KEY", "home/.claude/.credentials.json"
	for name, tt := range map[string]struct {
		env    string
		files  files
		system string
		want   LoginIs
	}{
		"nothing":                 {want: NoLogin},
		"nothing, on a Mac":       {system: "darwin", want: LoginUnsure},
		"a key":                   {env: key + "=sk-0123456789012345678901", want: LoginThere},
		"a key that was refused":  {env: key + "=sk-01234567890123456789", files: files{own: `{"customApiKeyResponses":{"rejected":["01234567890123456789"]}}`}, want: NoLogin},
		"a token":                 {env: "ANTHROPIC_AUTH_TOKEN=x", want: LoginThere},
		"a token for a year":      {env: "CLAUDE_CODE_OAUTH_TOKEN=x", want: LoginThere},
		"an empty one":            {env: "CLAUDE_CODE_OAUTH_TOKEN=", want: NoLogin},
		"a saved login":           {files: files{saved: `{"claudeAiOauth":{"accessToken":"x","refreshToken":"y","expiresAt":1}}`}, want: LoginThere},
		"one for a while":         {files: files{saved: `{"claudeAiOauth":{"accessToken":"x","expiresAt":4102444800000}}`}, want: LoginThere},
		"one without an end":      {files: files{saved: `{"claudeAiOauth":{"accessToken":"x","expiresAt":null}}`}, want: LoginThere},
		"one that cannot renew":   {files: files{saved: `{"claudeAiOauth":{"accessToken":"x","expiresAt":1}}`}, want: NoLogin},
		"nor any more":            {files: files{saved: `{"claudeAiOauth":{"accessToken":"x","refreshToken":"y","expiresAt":1,"refreshTokenExpiresAt":2}}`}, want: NoLogin},
		"one that was ended":      {files: files{saved: `{"claudeAiOauth":{"accessToken":"","refreshToken":"","expiresAt":0,"loginEnded":"time_limit"}}`, own: `{"oauthAccount":{}}`}, want: NoLogin},
		"an empty file":           {files: files{saved: ""}, want: NoLogin},
		"only servers' logins":    {files: files{saved: `{"mcpOAuth":{}}`}, want: NoLogin},
		"ended, and a token":      {env: "CLAUDE_CODE_OAUTH_TOKEN=x", files: files{saved: `{}`}, want: LoginThere},
		"ended, on a Mac":         {files: files{saved: `{}`}, system: "darwin", want: LoginUnsure},
		"an account":              {files: files{own: `{"oauthAccount":{"accountUuid":"x"}}`}, want: LoginUnsure},
		"a key of the settings":   {files: files{user: `{"env":{"ANTHROPIC_API_KEY":"x"}}`}, want: LoginThere},
		"a helper":                {files: files{user: `{"apiKeyHelper":"./key"}`}, want: LoginUnsure},
		"a helper of the machine": {files: files{machine: `{"apiKeyHelper":"./key"}`}, want: LoginUnsure},
		"no helper":               {files: files{user: `{"apiKeyHelper":""}`}, want: NoLogin},
		"Bedrock":                 {env: "CLAUDE_CODE_USE_BEDROCK=1", want: LoginUnsure},
		"Vertex, by the settings": {files: files{user: `{"env":{"CLAUDE_CODE_USE_VERTEX":"1"}}`}, want: LoginUnsure},
		"a profile":               {env: "ANTHROPIC_PROFILE=work", want: LoginUnsure},
		"profiles":                {files: files{"home/.config/anthropic/configs/default.json": "{}"}, want: LoginUnsure},
		"a token from a pipe":     {env: "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR=3", want: LoginUnsure},
		"an address alone":        {env: "ANTHROPIC_BASE_URL=http://127.0.0.1:1", want: NoLogin},
		"a limit of tokens":       {env: "CLAUDE_CODE_MAX_OUTPUT_TOKENS=8000", want: NoLogin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := lab(t, tt.files)
			c.System = tt.system
			if c.System == "" {
				c.System = "linux"
			}
			setenv(c, tt.env)
			all := c.Settings()
			got := c.Login(all)
			if got.Is != tt.want || got.By == "" {
				t.Errorf("%+v, want %d", got, tt.want)
			}
			if held := len(c.loggedOut(all)) == 1; held != (tt.want == NoLogin) {
				t.Errorf("a run holds the agent: %v", held)
			}
		})
	}
}

// TestWhoAsksNobodyMustSaySo: as the client itself refuses or asks at its start.
func TestWhoAsksNobodyMustSaySo(t *testing.T) {
	t.Parallel()
	const skips = `{"skipDangerousModePermissionPrompt":true}`
	type files = map[string]string
	for name, tt := range map[string]struct {
		mode, flag, env string
		root            bool
		files           files
		want            []Code
	}{
		"who asks":             {mode: "dontAsk", root: true},
		"root":                 {mode: bypassMode, root: true, files: files{user: skips}, want: []Code{RootBypass}},
		"root in a sandbox":    {mode: bypassMode, root: true, env: "IS_SANDBOX=1", files: files{user: skips}},
		"not answered":         {mode: bypassMode, want: []Code{BypassDialog}},
		"by the flag":          {flag: skipPermissions, want: []Code{BypassDialog}},
		"answered":             {mode: bypassMode, files: files{user: skips}},
		"the project's answer": {mode: bypassMode, files: files{project: skips}, want: []Code{BypassDialog}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := lab(t, tt.files)
			c.Mode, c.Root = tt.mode, tt.root
			if tt.flag != "" {
				c.Command = append(c.Command, tt.flag)
			}
			setenv(c, tt.env)
			var got []Code
			for _, o := range c.bypass(c.Settings()) {
				got = append(got, o.Code)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestALoginThatEndsIsToldTwoDaysBefore, once for all agents that have it, and not where
// something else comes before it or renews it.
func TestALoginThatEndsIsToldTwoDaysBefore(t *testing.T) {
	t.Parallel()
	now := time.Now()
	login := func(access, renewal time.Duration) string {
		at := func(d time.Duration) int64 { return now.Add(d).UnixMilli() }
		return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"x","refreshToken":"y","expiresAt":%d,"refreshTokenExpiresAt":%d}}`, at(access), at(renewal))
	}
	const saved = "home/.claude/.credentials.json"
	for name, tt := range map[string]struct {
		env, file string
		in        time.Duration // 0: nothing is told
	}{
		"in 3 days":            {"", login(time.Hour, 72*time.Hour), 0},
		"in 47 hours":          {"", login(time.Hour, 47*time.Hour), 47 * time.Hour},
		"a token that renews":  {"", `{"claudeAiOauth":{"accessToken":"x","refreshToken":"y","expiresAt":1}}`, 0},
		"renewed until soon":   {"", login(-time.Hour, time.Hour), time.Hour},
		"a key instead":        {"ANTHROPIC_API_KEY=sk-0123456789012345678901", login(time.Hour, time.Hour), 0},
		"a token instead":      {"CLAUDE_CODE_OAUTH_TOKEN=x", login(time.Hour, time.Hour), 0},
		"a provider instead":   {"CLAUDE_CODE_USE_BEDROCK=1", login(time.Hour, time.Hour), 0},
		"nothing":              {"", "{}", 0},
		"it has ended already": {"", login(-time.Hour, -time.Minute), 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := lab(t, map[string]string{saved: tt.file})
			agents := []*config.Agent{{Name: "a", Dir: c.Dir, Command: []string{"claude"}}, {Name: "b", Dir: c.Dir, Command: []string{"claude"}}}
			found := EndingLogins(agents, []string{"HOME=" + c.Env["HOME"], "PATH=/bin", tt.env}, now)
			if len(found) != min(1, int(tt.in)) || len(found) == 1 && (found[0].At.Sub(now).Round(time.Second) != tt.in || !strings.Contains(found[0].Fix, "/login")) {
				t.Errorf("%+v", found)
			}
		})
	}
}
