package doctor

import (
	"os"
	"path/filepath"

	"heartbeat/config"
	"heartbeat/orchestrator/probe"
)

// bad is what a probe has found of a client that breaks a promise.
var bad = &probe.Result{Version: "2.2.0", Measured: claude.Versions.Measured, Broken: []probe.Breach{{Promise: probe.HandOver, Seen: "twice", Otherwise: "prompts are doubled"}}}

func clientFixtures() []fixture {
	return []fixture{
		{
			"client-missing", Error, false,
			func(r *rig) { r.remove("bin/claude") },
			func(r *rig) {
				r.program("else/claude", "#!/bin/sh\necho '"+claude.Versions.Measured+" (Claude Code)'\n")
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
			func(r *rig) { r.version(claude.Versions.Measured) },
		},
		{
			"client-drift", Warning, false,
			func(r *rig) { r.probed = bad },
			func(r *rig) { r.probed = &probe.Result{Kept: probe.Promises()} },
		},
		{
			"client-drift", Error, false,
			func(r *rig) { r.probed, r.agent.ClientDrift = bad, config.DriftHolds },
			func(r *rig) { r.agent.ClientDrift = config.DriftHolds },
		},
		{
			"not-logged-in", Error, false,
			func(r *rig) { delete(r.env, claude.Variables.Key) },
			func(r *rig) {
				delete(r.env, claude.Variables.Key)
				r.put("home/.claude/.credentials.json", `{"claudeAiOauth":{"accessToken":"x"}}`)
			},
		},
		{
			"not-logged-in", Error, false,
			func(r *rig) {
				r.client["customApiKeyResponses"] = map[string]any{"rejected": []string{testKey[len(testKey)-20:]}}
			},
			func(r *rig) { delete(r.env, claude.Variables.Key); r.agent.Env["ANTHROPIC_AUTH_TOKEN"] = "x" },
		},
		{
			"not-logged-in", Error, false,
			func(r *rig) { delete(r.env, claude.Variables.Key); r.put(userFile, `{"apiKeyHelper":""}`) },
			func(r *rig) { delete(r.env, claude.Variables.Key); r.put(userFile, `{"apiKeyHelper":"./key.sh"}`) },
		},
		{
			"login-unsure", Warning, false,
			func(r *rig) { delete(r.env, claude.Variables.Key); r.put(userFile, `{"apiKeyHelper":"./key.sh"}`) },
			func(r *rig) { r.put(userFile, `{"apiKeyHelper":"./key.sh"}`) },
		},
		{
			"login-unsure", Warning, false,
			func(r *rig) { delete(r.env, claude.Variables.Key); r.agent.Env["CLAUDE_CODE_USE_BEDROCK"] = "1" },
			func(r *rig) { r.agent.Env["CLAUDE_CODE_USE_BEDROCK"] = "1" },
		},
		{ // the key does not reach the session
			"not-logged-in", Error, false,
			func(r *rig) { r.agent.EnvDeny = []string{"ANTHROPIC_*"} },
			func(r *rig) {
				r.agent.EnvDeny = []string{"ANTHROPIC_*"}
				r.agent.EnvFile = filepath.Join(r.dir, "triage.env")
				r.put("triage.env", claude.Variables.Key+"="+testKey+"\n")
			},
		},
		{
			"not-logged-in", Error, false,
			func(r *rig) { r.agent.EnvAllow = []string{"LANG"} },
			func(r *rig) { r.agent.EnvAllow = []string{"ANTHROPIC_*"} },
		},
		{
			"env-file", Error, false,
			func(r *rig) { r.agent.EnvFile = filepath.Join(r.dir, "missing.env") },
			func(r *rig) { r.agent.EnvFile = filepath.Join(r.dir, "triage.env"); r.put("triage.env", "A=b\n") },
		},
		{
			"settings-missing", Error, false,
			func(r *rig) { r.agent.Command = []string{"claude", "--settings", "nowhere.json"} },
			func(r *rig) { r.agent.Command = []string{"claude", "--settings", "{}"} },
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
				r.agent.Command = []string{"claude", "--dangerously-skip-permissions"}
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
			func(r *rig) { delete(r.client, "customApiKeyResponses"); delete(r.env, claude.Variables.Key) },
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
		{"import-dialog", Error, false, imports("work/CLAUDE.md", "see @../outside.md"), imports("work/CLAUDE.md", "`see @../outside.md there`\n```\n@../outside.md\n```\na@../outside.md")},
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
