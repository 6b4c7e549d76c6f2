package client

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// confirm is below each question at the client's start, except the first screens
// (2.1.329).
const (
	confirm  = "Enter to confirm"
	runThere = "run {client} in the agent's directory once and answer"
)

// Claude is Claude Code.
var Claude = Client{
	Name:     "Claude Code",
	Program:  "claude",
	Versions: Versions{Measured: "2.1.329", Oldest: "2.1.270", Newest: "2.1.332", Of: versionOf},
	Hooks: Hooks{
		Known: []string{
			PreToolUse, "PostToolUse", "PostToolUseFailure", "PostToolBatch", Notification,
			UserPromptSubmit, "UserPromptExpansion", SessionStart, SessionEnd, Stop, StopFailure,
			"SubagentStart", "SubagentStop", "PreCompact", "PostCompact", "PreModelSwitch",
			"PostModelSwitch", PermissionRequest, "PermissionDenied", "Setup", "TeammateIdle",
			"TaskCreated", "TaskCompleted", "Elicitation", "ElicitationResult", "ConfigChange",
			"WorktreeCreate", "WorktreeRemove", "InstructionsLoaded", "CwdChanged", "FileChanged",
			"DirectoryAdded", "MessageDisplay",
		},
		Installed: []string{
			SessionStart, UserPromptSubmit, PreToolUse, Stop,
			StopFailure, Notification, PermissionRequest, SessionEnd,
		},
		Types:   []string{"command", "prompt", "agent", "http", "mcp_tool"},
		Timeout: 600 * time.Second,
		Fields: []Field{
			text("hook_event_name", maxField, func(e *Event) *string { return &e.Name }),
			text("session_id", maxField, func(e *Event) *string { return &e.SessionID }),
			text("transcript_path", maxField, func(e *Event) *string { return &e.Transcript }),
			text("prompt_id", maxField, func(e *Event) *string { return &e.PromptID }),
			text("permission_mode", maxField, func(e *Event) *string { return &e.PermissionMode }),
			text("agent_id", maxField, func(e *Event) *string { return &e.AgentID }),
			text("source", maxField, func(e *Event) *string { return &e.Cause }),
			text("reason", maxField, func(e *Event) *string { return &e.Cause }),
			text("prompt", maxPrompt, func(e *Event) *string { return &e.Prompt }),
			text("last_assistant_message", maxLast, func(e *Event) *string { return &e.LastMessage }),
			text("error", maxField, func(e *Event) *string { return &e.Error }),
			text("notification_type", maxField, func(e *Event) *string { return &e.Notification.Kind }),
			text("message", maxField, func(e *Event) *string { return &e.Notification.Message }),
			text("tool_name", maxField, func(e *Event) *string { return &e.Tool.Name }),
			{"tool_input", readTool},
			{"stop_hook_active", readActive},
			{"background_tasks", readTasks},
		},
		Block: block, Cuts: cuts, Deny: deny, Failure: failureKind, Limited: limited, Refused: loginFailed, Limit: limitOf,
		Faults: map[string]Fault{
			"invalid_request": RequestFault, "max_output_tokens": RequestFault,
			serviceFailed: ServiceFault, "overloaded": ServiceFault,
			limited: AccountFault, loginFailed: AccountFault, billingFailed: AccountFault, accountStopped: AccountFault,
			"oauth_org_not_allowed": AccountFault, "verification_required": AccountFault, "cloud_credential_error": AccountFault,
			"model_not_found": SettingFault, misconfigured: SettingFault,
			"unknown": SuspectFault, // said for whatever it cannot determine
		},
	},
	Transcript: Transcript{
		Behind: 2 * time.Second, Folder: "projects",
		HandedOver: handedOver, Asked: asked, Answered: answered, Version: writtenBy, Begun: begun,
		Stopped: stopped, Spoke: spoke, Queued: queued, Spending: spending, Subagents: subagents, Refused: refused, Calls: calls, Names: names, Worked: worked, Denied: denied, Stray: stray,
	},
	Settings: Settings{
		Folder: ".claude", File: "settings.json", Local: "settings.local.json", Servers: ".mcp.json", Timed: "scheduled_tasks.json", ServerLogs: serverLogs, ServerLog: serverLog, ServerSaid: serverSaid,
		Managed: managed, Own: ownFile, Login: ".credentials.json", Profiles: profiles,
		Harmless: []string{
			"$schema", "attribution", "includeCoAuthoredBy", "includeGitInstructions", "cleanupPeriodDays", "respectGitignore",
			"language", "theme", "viewMode", "outputStyle", "syntaxHighlightingDisabled", "maxProseWidth", "spinnerTipsEnabled",
			"spinnerVerbs", "spinnerTipsOverride", "terminalTitleFromRename", "prefersReducedMotion", "autoScrollEnabled",
			"showTurnDuration", "showThinkingSummaries", "feedbackSurveyRate", "feedbackDrafts", "spellcheck",
			"deniedMcpServers", "disabledMcpjsonServers", "allowedMcpServers", "strictKnownMarketplaces", "blockedMarketplaces",
			"deniedModels", "prUrlTemplate", "plansDirectory", "autoMemoryEnabled", "alwaysThinkingEnabled", "effortLevel",
			"maxEffortLevel", "model", "availableModels",
		},
		Tools: tools, CheckRule: checkRule,
	},
	Variables: Variables{
		Config: "CLAUDE_CONFIG_DIR", Caller: "CLAUDE_PID", Cap: "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP",
		HooksOff: []string{"CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"},
		Trusts:   "CLAUDE_CODE_SANDBOXED",
		Session: []string{
			// Otherwise it ends a turn after 8 hand-overs in a row.
			"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP=0",
			// An entry's @path is text, not a file to include in the request.
			"CLAUDE_CODE_DISABLE_FILE_MENTIONS=1",
		},
		Defaults: []string{
			// A stream that hangs: the client waits 300 s for its next byte and 361
			// s for the first bytes of an answer, and calls no hook meanwhile.
			"CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS=300000",
			"API_TIMEOUT_MS=600000",
		},
		// With a key it repeats a refused request ten times, over 3 minutes, and each
		// one counts; a subscription's limit it does not repeat.
		Keyed: []string{"CLAUDE_CODE_MAX_RETRIES=2"},
		// With them it repeats a refused request up to 300 times, or waits for a limit to
		// end, and calls no hook meanwhile (2.1.301).
		Dropped: []string{"CLAUDE_CODE_RETRY_WATCHDOG", "CLAUDE_CODE_RETRY_WATCHDOG_*"},
		Still:   "DISABLE_AUTOUPDATER=1", Untimed: "CLAUDE_CODE_DISABLE_CRON=1",
		Quiet: []string{"DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
		// It sets them for its tools and hooks, or reads them to find out whether
		// it is nested.
		Marks: []string{
			"CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT",
			"CLAUDE_CODE_EXECPATH", "CLAUDECODE", "AI_AGENT", "CLAUDE_PID", "CLAUDE_PROJECT_DIR",
			"CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN",
			"CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_CHILD_NOTES_DIR", "CLAUDE_ENV_FILE",
			"CLAUDE_CODE_SESSION_KIND", "CLAUDE_JOB_DIR",
		},
		Key: "ANTHROPIC_API_KEY", Token: "ANTHROPIC_AUTH_TOKEN", Login: "CLAUDE_CODE_OAUTH_TOKEN", Base: "ANTHROPIC_BASE_URL",
		Logins: []string{
			"CLAUDE_CODE_USE_*", "ANTHROPIC_*KEY*", "ANTHROPIC_*TOKEN*", "ANTHROPIC_PROFILE", "ANTHROPIC_CONFIG_DIR",
			"ANTHROPIC_FEDERATION_*", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_*AUTH*", "CLAUDE_*TOKEN", "CLAUDE_*_FILE_DESCRIPTOR",
		},
		Sandbox: "IS_SANDBOX",
		Clouds: []Cloud{
			{"CLAUDE_CODE_USE_BEDROCK", "bedrock", []string{
				"AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "AWS_REGION", "ANTHROPIC_BEDROCK_BASE_URL",
			}},
			{"CLAUDE_CODE_USE_VERTEX", "vertex", []string{
				"ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_APPLICATION_CREDENTIALS", "CLOUD_ML_REGION", "ANTHROPIC_VERTEX_BASE_URL",
			}},
			{"CLAUDE_CODE_USE_FOUNDRY", "foundry", []string{
				"ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_FOUNDRY_BASE_URL", "ANTHROPIC_FOUNDRY_API_KEY",
			}},
		},
	},
	StatusLine: readStatusLine,
	Flags: Flags{
		Session: "--session-id", Resume: "--resume", Mode: "--permission-mode",
		Settings: "--settings", Managed: "--managed-settings",
		Sources: "--setting-sources", StrictServers: "--strict-mcp-config", Restricted: "--restricted",
		Plugins:  []string{"--plugin-dir", "--plugin-url"},
		HooksOff: []string{"--bare", "--safe-mode"},
	},
	// Over 5 seconds each: a turn with a running tool 2,200 bytes, 1,500 while hooks
	// run, a turn whose stream hangs 330, an idle or interrupted session 0 (63 once, a
	// few seconds after the end of a turn).
	Terminal: Terminal{
		Idle: 200, IdleFor: 20 * time.Second, Spinner: 1800, SpinnerFor: 5 * time.Second,
		Dialogs: []Dialog{
			{Shows: []string{"I trust this folder", confirm}, What: "whether the folder is trusted", Type: "apply --trust", First: "run {client} in the agent's directory once and accept"},
			{Shows: []string{"Do you want to use this API key?", confirm}, What: "whether to use the API key", Do: "run {client} once with this key and choose Yes"},
			{Shows: []string{"New MCP server found", confirm}, What: "about a server of .mcp.json", Do: runThere},
			{Shows: []string{"Allow external CLAUDE.md file imports?", confirm}, What: "whether CLAUDE.md may import files from outside", Do: runThere},
			{Shows: []string{"Settings Error", confirm}, What: "what to do about settings that it cannot read", Type: "doctor"},
			{Shows: []string{"Settings Warning", confirm}, What: "what to do about settings that it refuses", Type: "doctor"},
			{Shows: []string{"Bypass Permissions mode", confirm}, What: "whether to bypass permissions", Type: "doctor"},
			{Shows: []string{"Choose the text style", "Dark mode"}, What: "how it is to look: it was never started", Do: "run {client} once and go through its first screens"},
			{Shows: []string{confirm, "Esc to cancel"}, What: "something that is not known here", Do: runThere},
		},
	},
	Modes: []string{"acceptEdits", "auto", "bypassPermissions", "default", "dontAsk", "plan"},
	Attended: map[string]string{
		"auto": "a person is asked about compound commands",
		"plan": "nothing may change a file until a person approves a plan",
	},
	Beside:  beside,
	Carries: carriedByArgument,
	Untold: []string{
		"that its hooks are turned off: the model works all the same",
		"that a person has pressed ESC in a turn, or that a stream hangs",
		"that it had a prompt, where it is killed at once: the transcript may lack it",
		"what a Stop hook of somebody else says at the same Stop, until that has ended",
		"what account a failure is about, and when a limit ends, but in words for people",
	},
}

// versionOf reads "2.1.329 (Claude Code)".
func versionOf(printed string) string {
	version, _, ok := strings.Cut(printed, " (Claude Code)")
	if !ok || strings.ContainsAny(version, " \t\r\n") {
		return ""
	}
	if end := strings.IndexFunc(version, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		version = version[:end]
	}
	parts := strings.Split(version, ".")
	if len(parts) < 3 || slices.Contains(parts[:3], "") {
		return ""
	}
	return strings.Join(parts[:3], ".")
}

func managed(system string) string {
	if system == "darwin" {
		return "/Library/Application Support/ClaudeCode"
	}
	return "/etc/claude-code"
}

func profiles(get Getter) string {
	return filepath.Join(cmp.Or(get("XDG_CONFIG_HOME"), filepath.Join(get("HOME"), ".config")), "anthropic")
}

func ownFile(get Getter) string {
	const name = ".claude.json"
	if dir := get("CLAUDE_CONFIG_DIR"); dir != "" {
		return filepath.Join(dir, name)
	}
	return filepath.Join(get("HOME"), name)
}
