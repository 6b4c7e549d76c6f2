package preflight

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heartbeat/config"
)

// lab is a machine with files by name: work/ is the agent's directory, home/
// the user's, etc/ the administrator's.
func lab(t *testing.T, files map[string]string) Client {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		put(t, dir, name, text)
	}
	return Client{
		Dir: filepath.Join(dir, "work"), Command: []string{"claude"}, Target: config.SettingsProject,
		Env: map[string]string{"HOME": filepath.Join(dir, "home")}, Managed: filepath.Join(dir, "etc"),
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "LAB", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// setenv sets NAME=VALUE, or nothing.
func setenv(c Client, kv string) {
	if k, v, ok := strings.Cut(kv, "="); ok {
		c.Env[k] = v
	}
}

const (
	own     = "home/.claude.json"
	user    = "home/.claude/settings.json"
	project = "work/.claude/settings.json"
	local   = "work/.claude/settings.local.json"
	machine = "etc/managed-settings.json"
	off     = `{"disableAllHooks":true}`
	on      = `{"disableAllHooks":false}`
	only    = `{"allowManagedHooksOnly":true}`
	simple  = `{"env":{"CLAUDE_CODE_SIMPLE":"1"}}`
)

// TestWhatKeepsHooksFromRunning: each row was measured in 2.1.329, where the
// model worked on the prompt and no hook was called, or all were (want "").
func TestWhatKeepsHooksFromRunning(t *testing.T) {
	t.Parallel()
	type files = map[string]string
	for name, tt := range map[string]struct {
		args  string
		env   string
		files files
		flag  bool // our hooks come by --settings
		want  Code
	}{
		"nothing":                          {},
		"--bare":                           {args: "--bare", want: HooksDisabled},
		"--bare, hooks by flag":            {args: "--bare", flag: true, want: HooksDisabled},
		"--safe-mode, hooks by flag":       {args: "--safe-mode", flag: true, want: HooksDisabled},
		"--restricted":                     {args: "--restricted", want: HooksDisabled},
		"--restricted, hooks by flag":      {args: "--restricted", flag: true},
		"behind --":                        {args: "-- --bare"},
		"simple 1":                         {env: "CLAUDE_CODE_SIMPLE=1", want: HooksDisabled},
		"simple TRUE":                      {env: "CLAUDE_CODE_SIMPLE=TRUE", want: HooksDisabled},
		"simple yes":                       {env: "CLAUDE_CODE_SIMPLE=yes", want: HooksDisabled},
		"simple 0":                         {env: "CLAUDE_CODE_SIMPLE=0"},
		"simple x":                         {env: "CLAUDE_CODE_SIMPLE=x"},
		"safe mode":                        {env: "CLAUDE_CODE_SAFE_MODE=1", want: HooksDisabled},
		"simple by the user":               {files: files{user: simple}, want: HooksDisabled},
		"simple by the command":            {args: "--settings " + simple, want: HooksDisabled},
		"simple by the machine":            {files: files{machine: simple}, want: HooksDisabled},
		"simple by the project":            {files: files{project: simple}},
		"simple by the local file":         {files: files{local: simple}},
		"simple, taken back by the user":   {env: "CLAUDE_CODE_SIMPLE=1", files: files{user: `{"env":{"CLAUDE_CODE_SIMPLE":"0"}}`}},
		"sources without project":          {args: "--setting-sources user", want: HooksDisabled},
		"sources with project":             {args: "--setting-sources=user,project"},
		"no sources":                       {args: "--setting-sources=", want: HooksDisabled},
		"no sources, hooks by flag":        {args: "--setting-sources=", flag: true},
		"the last sources count":           {args: "--setting-sources user --setting-sources project"},
		"off by the user":                  {files: files{user: off}, want: HooksDisabled},
		"off by the local file":            {files: files{local: off}, want: HooksDisabled},
		"off by the command":               {args: "--settings " + off, want: HooksDisabled},
		"off by the command=":              {args: "--settings=" + off, want: HooksDisabled},
		"off by the command's file":        {args: "--settings x.json", files: files{"work/x.json": off}, want: HooksDisabled},
		"off by --managed-settings":        {args: "--managed-settings " + off, want: HooksDisabled},
		"off by the machine":               {files: files{machine: off}, want: HooksDisabled},
		"off by a file that is not read":   {args: "--setting-sources project", files: files{user: off}},
		"off, on by the local file":        {files: files{user: off, local: on}},
		"off, on by the command":           {args: "--settings " + on, files: files{local: off}},
		"off, on by the machine":           {files: files{local: off, machine: on}},
		"the last --settings counts":       {args: "--settings " + off + " --settings {}"},
		"managed only":                     {files: files{machine: only}, want: HooksDisabled},
		"managed only, in a drop-in":       {files: files{"etc/managed-settings.d/10.json": only}, want: HooksDisabled},
		"managed only, no drop-in":         {files: files{"etc/managed-settings.d/10.txt": only}},
		"managed only, taken back":         {files: files{machine: only, "etc/managed-settings.d/10.json": `{"allowManagedHooksOnly":false}`}},
		"managed only, by the user":        {files: files{user: only}},
		"plugins only":                     {files: files{machine: `{"strictPluginOnlyCustomization":true}`}, want: HooksDisabled},
		"plugins only, hooks":              {files: files{machine: `{"strictPluginOnlyCustomization":["hooks"]}`}, flag: true, want: HooksDisabled},
		"plugins only, skills":             {files: files{machine: `{"strictPluginOnlyCustomization":["skills"]}`}},
		"plugins only, by the user":        {files: files{user: `{"strictPluginOnlyCustomization":true}`}},
		"a session of its own":             {files: files{local: `{"env":{"HEARTBEAT_SESSION":"x"}}`}, want: SettingsEnv},
		"a home of its own":                {args: `--settings {"env":{"HEARTBEAT_HOME":"/x"}}`, want: SettingsEnv},
		"a cap":                            {files: files{user: `{"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"20"}}`}, want: BlockCap},
		"a cap, taken back":                {files: files{user: `{"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"20"}}`, local: `{"env":{"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP":"0"}}`}},
		"a missing file of the command":    {args: "--settings nowhere.json", want: NoSettings},
		"~ is a folder's name":             {args: "--settings ~/x.json", files: files{"home/x.json": "{}"}, want: NoSettings},
		"a broken file of the command":     {args: "--settings x.json", files: files{"work/x.json": "{"}, want: NoSettings},
		"a missing file that is not asked": {args: "--settings nowhere.json --settings {}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := lab(t, tt.files)
			c.Command = append(c.Command, strings.Fields(tt.args)...)
			setenv(c, tt.env)
			if tt.flag {
				c.Target = config.SettingsFlag
			}
			got := c.HookObstacles(c.Settings())
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || got[0].Code != tt.want) {
				t.Fatalf("%+v, want %q", got, tt.want)
			}
			for _, o := range got {
				if o.Seen == "" || o.Why == "" || o.Fix == "" {
					t.Errorf("it lacks words: %+v", o)
				}
			}
		})
	}
}

func stop(command string) string {
	return `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"` + command + `"}]}]}}`
}

// TestOthersComeFromEverywhere: wherever the client reads hooks from.
func TestOthersComeFromEverywhere(t *testing.T) {
	t.Parallel()
	type files = map[string]string
	installed := `{"version":2,"plugins":{"p@m":[{"scope":"user","installPath":"LAB/plug"}]}}`
	for name, tt := range map[string]struct {
		args    string
		files   files
		want    string
		unknown bool
	}{
		"nobody":                  {files: files{project: stop("/x/heartbeat-stop hook"), local: `{"hooks":{"PreToolUse":[]}}`}},
		"user":                    {files: files{user: stop("a")}, want: "a"},
		"project":                 {files: files{project: stop("a")}, want: "a"},
		"local":                   {files: files{local: stop("a")}, want: "a"},
		"managed":                 {files: files{machine: stop("a")}, want: "a"},
		"managed, in drop-ins":    {files: files{"etc/managed-settings.d/a.json": stop("a"), "etc/managed-settings.d/b.json": stop("b")}, want: "a b"},
		"--settings JSON":         {args: "--settings " + stop("a"), want: "a"},
		"--settings FILE":         {args: "--settings=s.json", files: files{"work/s.json": stop("a")}, want: "a"},
		"--managed-settings":      {args: "--managed-settings " + stop("a"), want: "a"},
		"the last --settings":     {args: "--settings " + stop("a") + " --settings " + stop("b"), want: "b"},
		"sources that are read":   {args: "--setting-sources project", files: files{user: stop("a"), project: stop("b")}, want: "b"},
		"one that is not waited":  {files: files{user: `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a","async":true}]}]}}`}},
		"one that is no command":  {files: files{user: `{"hooks":{"Stop":[{"hooks":[{"type":"prompt","prompt":"done?"}]}]}}`}, want: "prompt"},
		"one in ours' clothes":    {files: files{user: `{"hooks":{"Stop":[{"hooks":[{"type":"http","url":"http://x","command":"/x/heartbeat-stop hook"}]}]}}`}, want: "http"},
		"a file that is broken":   {files: files{user: "{"}, unknown: true},
		"a plugin":                {files: files{user: `{"enabledPlugins":{"p@m":true}}`, "home/.claude/plugins/installed_plugins.json": installed, "plug/hooks/hooks.json": stop("a")}, want: "a"},
		"a plugin without hooks":  {files: files{user: `{"enabledPlugins":{"p@m":true}}`, "home/.claude/plugins/installed_plugins.json": installed, "plug/x": ""}},
		"a plugin, other hooks":   {files: files{user: `{"enabledPlugins":{"p@m":true}}`, "home/.claude/plugins/installed_plugins.json": installed, "plug/.claude-plugin/plugin.json": `{"hooks":"./more.json"}`}, unknown: true},
		"a plugin that is off":    {files: files{user: `{"enabledPlugins":{"p@m":true}}`, local: `{"enabledPlugins":{"p@m":false}}`}},
		"a plugin, nobody knows":  {files: files{project: `{"enabledPlugins":{"p@m":true}}`}, unknown: true},
		"a plugin of the command": {args: "--plugin-dir x", unknown: true},
		"an agent's head":         {files: files{"work/.claude/agents/boss.md": "---\nname: boss\nhooks:\n  Stop: []\n---\n"}, unknown: true},
		"a skill's of the user":   {files: files{"home/.claude/skills/s/SKILL.md": "---\nhooks:\n---\n"}, unknown: true},
		"a head that is not read": {args: "--setting-sources user", files: files{"work/.claude/agents/boss.md": "---\nhooks:\n---\n"}},
		"a head without hooks":    {files: files{"work/.claude/agents/boss.md": "---\nallowed-tools: Bash\n---\nhooks:\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := lab(t, tt.files)
			c.Command = append(c.Command, strings.Fields(tt.args)...)
			o := c.Others(c.Settings())
			var got []string
			for _, h := range o.Hooks {
				if got = append(got, h.Command); h.Command == "" {
					got[len(got)-1] = h.Type
				}
			}
			if strings.Join(got, " ") != tt.want || (o.Unknown != "") != tt.unknown || o.Any() != (tt.want != "" || tt.unknown) {
				t.Errorf("%+v, want %q", o, tt.want)
			}
		})
	}
}

// TestForeignComesFromTheDirectoryAlone: whatever the client takes from there
// is named, and nothing of what it does not take.
func TestForeignComesFromTheDirectoryAlone(t *testing.T) {
	t.Parallel()
	type files = map[string]string
	server := `{"mcpServers":{"x":{"command":"y"}}}`
	for name, tt := range map[string]struct {
		args   string
		target config.SettingsTarget
		files  files
		want   string
	}{
		"nothing":                   {},
		"the user's own":            {files: files{user: stop("a"), machine: stop("a"), "home/.claude/agents/a.md": "---\nhooks: x\n---\n"}},
		"project":                   {files: files{project: stop("a")}, want: `.claude/settings.json:1 hooks.Stop runs "a"`},
		"project, only":             {target: config.SettingsOnly, files: files{project: stop("a"), ".mcp.json": server}},
		"local":                     {files: files{local: stop("a")}, want: `.claude/settings.local.json:1 hooks.Stop runs "a"`},
		"what is not read":          {args: "--setting-sources user", files: files{project: stop("a"), "work/.claude/agents/a.md": "---\nhooks: x\n---\n"}},
		"servers":                   {files: files{"work/.mcp.json": server}, want: `.mcp.json:1 server "x" runs "y"`},
		"servers above":             {files: files{".mcp.json": server}, want: `../.mcp.json:1 server "x" runs "y"`},
		"servers that do not count": {args: "--strict-mcp-config", files: files{"work/.mcp.json": server}},
		"an agent":                  {files: files{"work/.claude/agents/a.md": "---\nname: x\nhooks:\n  Stop: x\n---\n"}, want: `.claude/agents/a.md:3 says hooks`},
		"a skill":                   {files: files{"work/.claude/skills/s/SKILL.md": "---\nallowed-tools: Bash\n---\n"}, want: `.claude/skills/s/SKILL.md:2 says allowed-tools`},
		"a command":                 {files: files{"work/.claude/commands/a/b.md": "---\n\"allowed-tools\": Bash\n---\n"}, want: `.claude/commands/a/b.md:2 says allowed-tools`},
		"a text about them":         {files: files{"work/.claude/agents/a.md": "---\nname: x\n---\nhooks: x\n", "work/.claude/agents/b.md": "hooks: x"}},
		"a broken file":             {files: files{local: "{"}, want: `.claude/settings.local.json cannot be read: 1:1: unexpected end of JSON input`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := lab(t, tt.files)
			c.Command, c.Target = append(c.Command, strings.Fields(tt.args)...), tt.target
			var got []string
			for _, f := range c.Foreign(c.Settings()) {
				f.File, _ = filepath.Rel(c.Dir, f.File)
				got = append(got, f.String())
			}
			if strings.Join(got, "|") != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// TestOnlyAddsFlags: of what the command says about sources only the user's own
// stay.
func TestOnlyAddsFlags(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                                 "--setting-sources= --strict-mcp-config",
		"--setting-sources user,project":   "--setting-sources=user --strict-mcp-config",
		"--setting-sources=local":          "--setting-sources= --strict-mcp-config",
		"--model x --setting-sources user": "--setting-sources=user --strict-mcp-config",
	} {
		c := lab(t, map[string]string{user: off, project: off, local: off})
		c.Command, c.Target = append(c.Command, strings.Fields(args)...), config.SettingsOnly
		if got := strings.Join(c.Added(), " "); got != want {
			t.Errorf("%s: %s", args, got)
		}
		if n := len(c.Settings()); n != strings.Count(want, "user") {
			t.Errorf("%s: %d settings are read", args, n)
		}
		if c.Target = config.SettingsFlag; c.Added() != nil {
			t.Errorf("%s: %q with flag", args, c.Added())
		}
	}
}

// In the home directory the user's and the project's settings are one file.
func TestOneFileIsReadOnce(t *testing.T) {
	t.Parallel()
	c := lab(t, map[string]string{"home/.claude/settings.json": stop("a")})
	c.Dir = c.Env["HOME"]
	if all := c.Settings(); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}

// What is no plain file is not waited for.
func TestAFolderInTheWay(t *testing.T) {
	t.Parallel()
	c := lab(t, map[string]string{"home/.claude/settings.json/x": ""})
	all := c.Settings()
	if len(all) != 1 || all[0].Err == nil || !c.Others(all).Any() {
		t.Errorf("%+v", all)
	}
	if slices.ContainsFunc(all, func(s Settings) bool { return s.Report != nil }) {
		t.Errorf("%+v", all)
	}
}
