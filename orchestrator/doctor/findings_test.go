package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/hook"
	"heartbeat/hook/flock"
)

// fixture is a way to cause one finding and, for each, one that comes close
// and must not cause it.
type fixture struct {
	code     string
	severity Severity
	fixable  bool
	broken   func(r *rig)
	fine     func(r *rig)
}

func TestNothingIsWrong(t *testing.T) {
	t.Parallel()
	if found := newRig(t).findings(); len(found) != 0 {
		t.Errorf("findings on a healthy machine: %+v", found)
	}
}

func TestFindings(t *testing.T) {
	t.Parallel()
	for _, fx := range agentFixtures() {
		t.Run(fx.code+"/broken", func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			fx.broken(r)
			got := find(r.findings(), fx.code)
			if got == nil {
				t.Fatalf("not found; found: %+v", r.findings())
			}
			if got.Severity != fx.severity || got.Fixable != fx.fixable || got.Agent != "triage" {
				t.Errorf("got %+v, want %s, fixable %v, of agent triage", got, fx.severity, fx.fixable)
			}
			if got.Seen == "" || got.Why == "" || got.Fix == "" || strings.Contains(got.Seen+got.Fix, testKey[len(testKey)-20:]) {
				t.Errorf("it lacks words, or says the key: %+v", got)
			}
		})
		t.Run(fx.code+"/fine", func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			fx.fine(r)
			if got := find(r.findings(), fx.code); got != nil {
				t.Errorf("found %+v", got)
			}
		})
	}
}

func agentFixtures() []fixture {
	var all []fixture
	for _, some := range [][]fixture{hookFixtures(), settingsFixtures(), clientFixtures(), dialogFixtures(), queueFixtures(), lockFixtures()} {
		all = append(all, some...)
	}
	return all
}

func stopEntry(text string) string { return `{"hooks":{"Stop":[{"hooks":[` + text + `]}]}}` }

// wiredEntry is heartbeat-rs's hook in the user's settings.
func (r *rig) wiredEntry(flags, timeout string) {
	stop := filepath.Join(r.dir, "rs", "heartbeat-stop")
	r.program("rs/heartbeat-stop", "#!/bin/sh\n")
	r.put(userFile, stopEntry(`{"type":"command","command":"`+stop+` --inbox `+r.agent.Inbox+flags+`"`+timeout+`}`))
}

func hookFixtures() []fixture {
	return []fixture{
		{
			"not-applied", Warning, true,
			func(r *rig) { r.agent.Permissions.Allow = []string{"Read"} },
			func(r *rig) { r.agent.Permissions.Allow = []string{"Read"}; r.apply() },
		},
		{
			"cannot-wire", Error, false,
			func(r *rig) {
				r.remove("work/.claude")
				r.must(os.Symlink(r.home, filepath.Join(r.dir, "work/.claude")))
			},
			func(r *rig) { r.remove("work/.claude") },
		},
		{
			"hook-missing", Error, true,
			func(r *rig) {
				r.edit(func(s map[string]any) { entries(s, "Stop")[0].(map[string]any)["command"] = "/nowhere/heartbeat hook" })
			},
			func(r *rig) { r.put(localFile, stopEntry(`{"type":"command","command":"/nowhere/lint"}`)) },
		},
		{
			"hook-not-executable", Error, true,
			func(r *rig) {
				stop := filepath.Join(r.dir, "bin/heartbeat-stop")
				copyFile(r.t, r.self, stop)
				r.apply()
				r.must(os.Chmod(stop, 0o600))
			},
			func(r *rig) { copyFile(r.t, r.self, filepath.Join(r.dir, "bin/heartbeat-stop")); r.apply() },
		},
		{
			"hook-version", Warning, true,
			func(r *rig) { r.program("bin/heartbeat-stop", "#!/bin/sh\n"); r.apply() },
			func(r *rig) { copyFile(r.t, r.self, filepath.Join(r.dir, "bin/heartbeat-stop")); r.apply() },
		},
		{ // edited by hand
			"hook-timeout", Error, true,
			func(r *rig) {
				r.edit(func(s map[string]any) { entries(s, "Stop")[0].(map[string]any)["timeout"] = 1800 })
			},
			func(r *rig) { r.agent.Mode = hook.Drain; r.apply() },
		},
		{ // the client's default
			"hook-timeout", Error, true,
			func(r *rig) {
				r.edit(func(s map[string]any) { delete(entries(s, "Stop")[0].(map[string]any), "timeout") })
			},
			func(r *rig) {
				r.agent.IdleInterval = 9 * time.Minute
				r.edit(func(s map[string]any) { delete(entries(s, "Stop")[0].(map[string]any), "timeout") })
			},
		},
		{ // hand-wired
			"hook-timeout", Error, false,
			func(r *rig) { r.wiredEntry(" --mode persist --idle-interval 3600", `,"timeout":3600`) },
			func(r *rig) { r.wiredEntry(" --mode persist --idle-interval 3600", `,"timeout":3610`) },
		},
		{
			"hook-timeout", Error, false,
			func(r *rig) { r.wiredEntry(" --mode=persist --idle-interval=20m", "") },
			func(r *rig) { r.wiredEntry(" --mode drain --idle-interval 20m", "") },
		},
		{
			"hand-wired-hook", Warning, false,
			func(r *rig) { r.wiredEntry("", "") },
			func(r *rig) { r.put(userFile, stopEntry(`{"type":"command","command":"lint --inbox x"}`)) },
		},
		{
			"hand-wired-flags", Error, false,
			func(r *rig) { r.wiredEntry(" --mode forever", "") },
			func(r *rig) { r.wiredEntry(" --mode persist --idle-interval 90", "") },
		},
		{
			"hand-wired-payload", Warning, false,
			func(r *rig) { r.wiredEntry(" 2>>hook.err </dev/null", "") },
			func(*rig) {},
		},
		{
			"hand-wired-payload", Info, false,
			func(r *rig) { r.wiredEntry("", "") },
			func(*rig) {},
		},
		{
			"other-stop-hook", Warning, false,
			func(r *rig) { r.put(userFile, stopEntry(`{"type":"prompt","prompt":"is it done?"}`)) },
			func(r *rig) {
				r.put(userFile, `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"lint"}]}]}}`)
			},
		},
	}
}

func settingsFixtures() []fixture {
	settings := func(file, text string) func(r *rig) { return func(r *rig) { r.put(file, text) } }
	refused := func(text string) fixture {
		return fixture{"settings-refused", Error, false, settings(localFile, text), settings(localFile, `{"modle":"x","env":{"A":1},"hooks":{"Stop":[]}}`)}
	}
	return []fixture{
		{"settings-broken", Error, false, settings(localFile, "{\n // mine\n}"), settings(localFile, "\xef\xbb\xbf \r\n")},
		{"settings-broken", Error, false, settings(userFile, "{"), settings(userFile, "{}")},
		refused(stopEntry(`{"type":"command","command":"x","timeout":0}`)),
		refused(stopEntry(`{"type":"command","command":"x","timeout":"30"}`)),
		refused(stopEntry(`{"type":"comand","command":"x"}`)),
		refused(stopEntry(`{"type":"command"}`)),
		refused(`{"hooks":{"Stop":[{"type":"command","command":"x"}]}}`),
		refused(`{"hooks":{"Stop":{}}}`),
		refused(`{"hooks":[]}`),
		refused(`{"hooks":{"Stop":[{"matcher":1,"hooks":[]}]}}`),
		refused(`{"permissions":{"allow":"Bash"}}`),
		refused(`{"permissions":{"deny":["Bash("]}}`),
		refused(`{"permissions":{"defaultMode":"never"}}`),
		refused(`{"env":["A"]}`),
		refused(`{"model":3}`),
		{"unknown-hook-event", Error, false, settings(localFile, `{"hooks":{"Stopp":[]}}`), settings(localFile, `{"hooks":{"Setup":[]}}`)},
		{
			"unknown-hook-event", Warning, false,
			func(r *rig) { r.version("3.0.0"); r.put(localFile, `{"hooks":{"Stopp":[]}}`) },
			settings(localFile, `{"hooks":{"Stop":[]}}`),
		},
		{"hooks-disabled", Error, false, settings(userFile, `{"disableAllHooks":true}`), settings(userFile, `{"disableAllHooks":false}`)},
		{
			"block-cap", Error, false, settings(localFile, `{"env":{"`+capVariable+`":"20"}}`),
			settings(localFile, `{"env":{"`+capVariable+`":"0"}}`),
		},
		{
			"block-cap", Error, false, settings(localFile, `{"env":{"`+capVariable+`":"off"}}`),
			settings(localFile, `{"env":{"`+capVariable+`":"-1"}}`),
		},
		{
			"block-cap", Info, false,
			func(r *rig) { r.env[capVariable] = "8" },
			func(r *rig) { r.env[capVariable] = "0" },
		},
		{
			"block-cap", Warning, false,
			func(r *rig) { r.wiredEntry("", "") },
			func(r *rig) { r.wiredEntry("", ""); r.env[capVariable] = "0" },
		},
		{
			"settings-env", Error, false, settings(localFile, `{"env":{"HEARTBEAT_SESSION":"x"}}`),
			settings(localFile, `{"env":{"HEART":"x","TERM":"dumb"}}`),
		},
		{"settings-env", Warning, false, settings(localFile, `{"env":{"HEARTBEAT_FILE":"x"}}`), settings(localFile, `{"env":{}}`)},
		{"settings-env", Warning, false, settings(localFile, `{"env":{"CLAUDECODE":"1"}}`), settings(localFile, `{"env":{}}`)},
	}
}

func clientFixtures() []fixture {
	return []fixture{
		{
			"client-missing", Error, false,
			func(r *rig) { r.remove("bin/claude") },
			func(r *rig) {
				r.program("else/claude", "#!/bin/sh\necho '"+measured+" (Claude Code)'\n")
				r.agent.Command = []string{filepath.Join(r.dir, "else/claude")}
			},
		},
		{
			"client-missing", Error, false,
			func(r *rig) { r.must(os.Chmod(filepath.Join(r.dir, "bin/claude"), 0o600)) },
			func(r *rig) { r.agent.Command, r.agent.Self = []string{"heartbeat", "simulate"}, true },
		},
		{"client-version", Error, false, func(r *rig) { r.version("2.1.77") }, func(r *rig) { r.version("2.2.0") }},
		{"client-version", Warning, false, func(r *rig) { r.version("2.1.328") }, func(r *rig) { r.version("10.0.1") }},
		{
			"client-version", Warning, false,
			func(r *rig) { r.program("bin/claude", "#!/bin/sh\nexit 3\n") },
			func(r *rig) { r.version(measured) },
		},
		{
			"not-logged-in", Error, false,
			func(r *rig) { delete(r.env, keyVariable) },
			func(r *rig) { delete(r.env, keyVariable); r.put("home/.claude/.credentials.json", "{}") },
		},
		{
			"not-logged-in", Error, false,
			func(r *rig) {
				r.client["customApiKeyResponses"] = map[string]any{"rejected": []string{testKey[len(testKey)-20:]}}
			},
			func(r *rig) { delete(r.env, keyVariable); r.agent.Env["ANTHROPIC_AUTH_TOKEN"] = "x" },
		},
		{
			"not-logged-in", Error, false,
			func(r *rig) { delete(r.env, keyVariable); r.put(userFile, `{"apiKeyHelper":""}`) },
			func(r *rig) { delete(r.env, keyVariable); r.put(userFile, `{"apiKeyHelper":"./key.sh"}`) },
		},
		{
			"permission-dialog", Error, true,
			func(r *rig) {
				r.agent.Permissions.Mode = "default"
				r.edit(func(s map[string]any) { delete(s["hooks"].(map[string]any), "PermissionRequest") })
			},
			func(r *rig) { r.agent.Permissions.Mode = "default" },
		},
		{
			"bypass-dialog", Error, false,
			func(r *rig) { r.agent.Permissions.Mode = "bypassPermissions" },
			func(r *rig) {
				r.agent.Permissions.Mode = "bypassPermissions"
				r.put(userFile, `{"skipDangerousModePermissionPrompt":true}`)
			},
		},
		{ // the project's own word does not count
			"bypass-dialog", Error, false,
			func(r *rig) {
				r.agent.Command = []string{"claude", skipPermissions}
				r.edit(func(s map[string]any) { s["skipDangerousModePermissionPrompt"] = true })
			},
			func(r *rig) { r.agent.Command = []string{"claude", "--verbose"} },
		},
		{
			"dir-is-home", Error, false,
			func(r *rig) { r.env["HOME"] = r.agent.Dir },
			func(r *rig) { r.env["HOME"] = r.dir },
		},
	}
}

func dialogFixtures() []fixture {
	const server = `{"mcpServers":{"tool":{"command":"true"}}}`
	git := func(r *rig, dir string) { r.must(os.MkdirAll(filepath.Join(r.dir, dir, ".git"), 0o700)) }
	trust := func(r *rig, dir string) {
		r.client["projects"] = map[string]any{dir: map[string]any{"hasTrustDialogAccepted": true}}
	}
	outside := func(r *rig) { r.put("outside.md", "text") }
	imports := func(file, text string) func(r *rig) { return func(r *rig) { outside(r); r.put(file, text) } }
	return []fixture{
		{"not-trusted", Error, false, func(r *rig) { trust(r, "/elsewhere") }, func(r *rig) { trust(r, r.dir) }},
		{
			"not-trusted", Error, false,
			func(r *rig) { git(r, "work"); trust(r, r.dir) },
			func(r *rig) { git(r, "."); trust(r, r.dir) },
		},
		{
			"not-trusted", Error, false,
			func(r *rig) { r.project["hasTrustDialogAccepted"] = false },
			func(r *rig) { r.project["hasTrustDialogAccepted"] = false; r.env["CLAUDE_CODE_SANDBOXED"] = "1" },
		},
		{
			"no-onboarding", Error, false,
			func(r *rig) { delete(r.client, "hasCompletedOnboarding") },
			func(r *rig) {
				r.env["CLAUDE_CONFIG_DIR"] = filepath.Join(r.dir, "config")
				r.put("config/.claude.json", `{"hasCompletedOnboarding":true}`)
			},
		},
		{
			"no-onboarding", Error, false,
			func(r *rig) { r.client = nil; r.remove("home/.claude.json") },
			func(r *rig) { r.client = nil; r.put("home/.claude.json", "{") },
		},
		{
			"client-config-broken", Error, false,
			func(r *rig) { r.client = nil; r.put("home/.claude.json", "{") },
			func(*rig) {},
		},
		{
			"key-not-approved", Error, false,
			func(r *rig) { delete(r.client, "customApiKeyResponses") },
			func(r *rig) { delete(r.client, "customApiKeyResponses"); delete(r.env, keyVariable) },
		},
		{
			"mcp-dialog", Error, false,
			func(r *rig) { r.put("work/.mcp.json", server) },
			func(r *rig) { r.put("work/.mcp.json", server); r.project["enabledMcpjsonServers"] = []string{"tool"} },
		},
		{
			"mcp-dialog", Error, false,
			func(r *rig) { r.put(".mcp.json", server) },
			func(r *rig) { r.put(".mcp.json", server); r.put(localFile, `{"disabledMcpjsonServers":["tool"]}`) },
		},
		{
			"mcp-dialog", Error, false,
			func(r *rig) { r.put("work/.mcp.json", server); r.put(localFile, `{"enabledMcpjsonServers":["other"]}`) },
			func(r *rig) {
				r.put("work/.mcp.json", server)
				r.agent.Command = []string{"claude", "--strict-mcp-config"}
			},
		},
		{
			"mcp-dialog", Error, false,
			func(r *rig) { r.put("work/.mcp.json", server) },
			func(r *rig) { r.put("work/.mcp.json", "{"); r.put(userFile, `{"enableAllProjectMcpServers":true}`) },
		},
		{"import-dialog", Error, false, imports("work/CLAUDE.md", "see @../outside.md"), imports("work/CLAUDE.md", "`@../outside.md`\n```\n@../outside.md\n```\na@../outside.md")},
		{"import-dialog", Error, false, imports("work/.claude/rules/a.md", "@../../../outside.md"), imports("work/CLAUDE.md", "@../missing.md @in.md")},
		{"import-dialog", Error, false, imports("CLAUDE.md", "@outside.md"), imports("home/.claude/CLAUDE.md", "@../../outside.md")},
		{
			"import-dialog", Error, false,
			func(r *rig) { outside(r); r.put("work/CLAUDE.md", "@in.md"); r.put("work/in.md", "@../outside.md") },
			func(r *rig) {
				imports("work/CLAUDE.md", "@../outside.md")(r)
				r.project["hasClaudeMdExternalIncludesWarningShown"] = true
			},
		},
	}
}

func queueFixtures() []fixture {
	const inboxFile = "work/.heartbeat/inbox.jsonl"
	return []fixture{
		{
			"queue-needs-person", Error, false,
			func(r *rig) { r.put(inboxFile, "one\ntwo\n"); r.put("work/.heartbeat/.inbox-offset", "rubbish") },
			func(r *rig) { r.put(inboxFile, "one\ntwo\n"); r.put("work/.heartbeat/.inbox-offset", "4") },
		},
		{
			"queue-unreadable", Error, false,
			func(r *rig) { r.must(os.Symlink(filepath.Join(r.home, "x"), r.agent.Inbox)); r.put("home/x", "one\n") },
			func(r *rig) { r.put(inboxFile, "one\n") },
		},
		{
			"cursor", Warning, true,
			func(r *rig) { r.put(inboxFile, "one\ntwo\n"); r.put("work/.heartbeat/.inbox-offset", "99") },
			func(r *rig) { r.put(inboxFile, "one\ntwo"); r.put("work/.heartbeat/.inbox-offset", "7") },
		},
		{
			"cursor", Warning, true,
			func(r *rig) { r.put(inboxFile, "one\ntwo\n"); r.put("work/.heartbeat/.inbox-offset", "2") },
			func(r *rig) { r.put(inboxFile, "one\ntwo\n"); r.put("work/.heartbeat/.inbox-offset", "8\n") },
		},
		{"orphan", Warning, true, (*rig).offer, (*rig).bury},
		{ // somebody works there: it is no orphan
			"orphan", Warning, false,
			func(r *rig) { r.offer(); r.wiredEntry("", "") },
			func(r *rig) { r.offer(); r.hold(r.agent.Dir) },
		},
		{
			"torn-line", Warning, false,
			func(r *rig) { r.put(inboxFile, "one\nha"); r.age(inboxFile, time.Minute) },
			func(r *rig) { r.put(inboxFile, "one\nha") },
		},
		{"dead-letters", Warning, false, (*rig).bury, (*rig).offer},
		{
			"dead-letters-broken", Warning, false,
			func(r *rig) { r.must(os.Mkdir(filepath.Join(r.agent.Home, ".dead-letter.jsonl"), 0o700)) },
			(*rig).bury,
		},
	}
}

// hold takes a lock until the test's end.
func (r *rig) hold(path string) {
	r.t.Helper()
	unlock, err := flock.TryLock(path)
	r.must(err)
	r.t.Cleanup(func() { _ = unlock() })
}

// record writes the record of a session whose shim is this process, or none.
func (r *rig) record(alive bool) {
	r.t.Helper()
	shim := hook.Process{PID: 1 << 30, Start: 1}
	if alive {
		shim = self(r.t)
	}
	rec := &hook.Record{Version: 1, Agent: "triage", Phase: hook.Turn, Inbox: r.agent.Inbox, Shim: shim}
	r.must(rec.Write(r.agent.Home))
}

func lockFixtures() []fixture {
	const temp = "work/.heartbeat/.inbox-offset.tmp-0123456789abcdef"
	lock := func(r *rig, name string) string { return filepath.Join(r.agent.Home, name) }
	return []fixture{
		{
			"lock-no-file", Error, false,
			func(r *rig) { r.must(os.Mkdir(lock(r, hookLock), 0o700)) },
			func(r *rig) { r.put("work/.heartbeat/.hook-lock", "") },
		},
		{
			"lock-stuck", Error, false,
			func(r *rig) { r.hold(lock(r, hookLock)) },
			func(r *rig) {
				unlock, err := flock.TryLock(lock(r, hookLock))
				r.must(err)
				time.AfterFunc(50*time.Millisecond, func() { _ = unlock() })
			},
		},
		{
			"lock-stuck", Error, false,
			func(r *rig) { r.hold(lock(r, sessionLock)); r.record(false) },
			func(r *rig) { r.hold(lock(r, sessionLock)); r.record(true) },
		},
		{
			"session-without-run", Warning, false,
			func(r *rig) { r.hold(lock(r, sessionLock)); r.record(true) },
			func(r *rig) { r.hold(lock(r, sessionLock)); r.record(true); r.hold(r.agent.Dir) },
		},
		{
			"session-record", Error, false,
			func(r *rig) { r.put("work/.heartbeat/session.json", "{") },
			func(r *rig) { r.record(false) },
		},
		{
			"stale-files", Info, true,
			func(r *rig) { r.put(temp, ""); r.age(temp, 2*time.Hour) },
			func(r *rig) {
				r.put(temp, "")
				r.put("work/.heartbeat/mine.tmp-x", "")
				r.age("work/.heartbeat/mine.tmp-x", 2*time.Hour)
			},
		},
		{
			"corrupt-files", Info, false,
			func(r *rig) { r.put("work/.heartbeat/.in-flight.corrupt-20261121T000000.0Z", "") },
			func(*rig) {},
		},
		{"no-gitignore", Warning, true, func(r *rig) { r.remove("work/.heartbeat/.gitignore") }, func(r *rig) { r.remove("work/.heartbeat") }},
		{
			"clock-behind", Warning, false,
			func(r *rig) { r.put("work/.heartbeat/hook.log", ""); r.age("work/.heartbeat/hook.log", -time.Hour) },
			func(r *rig) { r.put("work/.heartbeat/hook.log", ""); r.age("work/.heartbeat/hook.log", -time.Minute) },
		},
	}
}
