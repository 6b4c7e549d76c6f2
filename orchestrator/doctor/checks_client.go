package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/hook/settings"
)

// claude is what is known of the client.
var claude = &client.Claude

// newer reports whether version a is newer than b; an unknown one is not.
func newer(a, b string) bool {
	x, y := numbers(a), numbers(b)
	return x != nil && y != nil && slices.Compare(x, y) > 0
}

func numbers(version string) []int {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		all = append(all, n)
	}
	return all
}

const dialogWhy = "the client opens a dialog at its start, and nobody answers it: the session ends by start-timeout"

// checkClient: the program that sessions run.
func checkClient(_ *Facts, a *Agent) []Finding {
	c := a.Client
	switch {
	case c.Missing != "":
		return []Finding{{
			Severity: Error, Code: "client-missing", Seen: fmt.Sprintf("command %q: %s", c.Name, c.Missing),
			Why: "no session can start", Fix: "npm install -g @anthropic-ai/claude-code, or correct command: or PATH",
		}}
	case !c.Claude:
		return nil
	case c.VersionProblem != "":
		return []Finding{{
			Severity: Warning, Code: "client-version", Seen: c.VersionProblem,
			Why: "it may not start in sessions either", Fix: c.Name + " --version",
		}}
	case newer(claude.Versions.Oldest, c.Version):
		return []Finding{{
			Severity: Error, Code: "client-version", Seen: "Claude Code " + c.Version,
			Why: "before " + claude.Versions.Oldest + " it does not know all our hook events, and opens a dialog at its start", Fix: c.Name + " update",
		}}
	case newer(claude.Versions.Measured, c.Version):
		return []Finding{{
			Severity: Warning, Code: "client-version", Seen: "Claude Code " + c.Version,
			Why: "it is older than " + claude.Versions.Measured + ", with which heartbeat was tested", Fix: c.Name + " update",
		}}
	}
	return nil
}

// checkLogin: something to log in with.
func checkLogin(_ *Facts, a *Agent) []Finding {
	c := a.Client
	if !c.Claude || c.OtherLogin || c.Key && !c.KeyRejected {
		return nil
	}
	seen := "no key, no token and no saved login"
	if c.KeyRejected {
		seen = "the API key in the environment was refused once in the client's dialog, and there is no other login"
	}
	return []Finding{{
		Severity: Error, Code: "not-logged-in", Seen: seen,
		Why: "each request fails: sessions retry for about three minutes and end by an API failure",
		Fix: "claude setup-token, or run claude once and log in",
	}}
}

// checkTrust: the workspace has to be trusted.
func checkTrust(_ *Facts, a *Agent) []Finding {
	c := a.Client
	if !c.Claude || c.Trusted || c.ConfigBroken != "" {
		return nil
	}
	seen := a.Config.Dir + " is not trusted"
	if c.Repository != "" && c.Repository != a.Config.Dir {
		seen += ", nor is a folder above it up to the git repository " + c.Repository
	} else if c.Repository != "" {
		seen += "; it is a git repository, so folders above it do not count"
	}
	fix := "run claude there once and accept: cd " + settings.Quote(a.Config.Dir) + " && " + c.Name
	if !c.NoConfig { // else there is nothing to record it in
		fix = a.command("apply --trust") + ", or " + fix
	}
	return []Finding{{Severity: Error, Code: "not-trusted", Seen: seen, Why: dialogWhy, Fix: fix}}
}

// checkOnboarding: the client's first-run screens.
func checkOnboarding(_ *Facts, a *Agent) []Finding {
	c := a.Client
	switch {
	case !c.Claude || c.Onboarded:
		return nil
	case c.ConfigBroken != "":
		return []Finding{{
			Severity: Error, Code: "client-config-broken", Seen: c.ConfigFile + ": " + c.ConfigBroken,
			Why: dialogWhy, Fix: "correct " + c.ConfigFile,
		}}
	}
	seen := c.ConfigFile + " does not say hasCompletedOnboarding"
	if c.NoConfig {
		seen = "there is no " + c.ConfigFile
	}
	return []Finding{{Severity: Error, Code: "no-onboarding", Seen: seen, Why: dialogWhy, Fix: "run claude once and go through its first screens"}}
}

// checkKey: an API key that the client would ask about.
func checkKey(_ *Facts, a *Agent) []Finding {
	c := a.Client
	if !c.Claude || !c.Key || c.KeyApproved || c.KeyRejected {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "key-not-approved", Seen: claude.Variables.Key + " is set, and " + c.ConfigFile + " does not say that it may be used",
		Why: dialogWhy, Fix: "run claude once with this key and choose Yes",
	}}
}

// checkMCP: servers of .mcp.json that the client would ask about.
func checkMCP(_ *Facts, a *Agent) []Finding {
	c := a.Client
	if !c.Claude || a.Config.Settings == config.SettingsOnly || slices.Contains(c.Args, claude.Flags.StrictServers) {
		return nil
	}
	var open []string
	for _, name := range c.Servers {
		decided := slices.Contains(c.ServersDecided, name)
		for _, s := range a.Settings {
			decided = decided || s.AllServers || slices.Contains(s.Servers, name)
		}
		if !decided {
			open = append(open, name)
		}
	}
	if len(open) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "mcp-dialog", Seen: ".mcp.json has " + list(open, 3) + ", which nobody approved or refused",
		Why: dialogWhy,
		Fix: fmt.Sprintf(`put "enabledMcpjsonServers": ["%s"] (or disabledMcpjsonServers) into %s/.claude/settings.local.json`,
			strings.Join(open, `", "`), a.Config.Dir),
	}}
}

// checkImports: CLAUDE.md files that import what lies outside.
func checkImports(_ *Facts, a *Agent) []Finding {
	c := a.Client
	if !c.Claude || c.ImportsAnswered || len(c.Imports) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "import-dialog", Seen: "CLAUDE.md or .claude/rules imports " + list(c.Imports, 3) + " from outside",
		Why: dialogWhy, Fix: "run claude there once and answer, or copy the text into the directory",
	}}
}

// skipPermissions is the flag that turns all questions off, whatever
// --permission-mode says.
const skipPermissions = "--dangerously-skip-permissions"

// checkPermissions: modes that can hang or that the client refuses.
func checkPermissions(f *Facts, a *Agent) []Finding {
	c, mode := a.Client, a.Config.Permissions.Mode
	if !c.Claude {
		return nil
	}
	if mode == "bypassPermissions" || slices.Contains(c.Args, skipPermissions) {
		return checkBypass(f, a)
	}
	if mode == "dontAsk" || mode == "" && a.defaultMode() == "dontAsk" {
		return nil
	}
	if slices.ContainsFunc(a.Hooks, func(h Hook) bool { return h.Ours && h.Event == "PermissionRequest" }) {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "permission-dialog", Seen: fmt.Sprintf("permission mode %s, and no PermissionRequest hook of ours is installed", mode),
		Why: "the first tool that is not allowed opens a dialog, and nobody answers it",
		Fix: a.command("apply"), mend: applying,
	}}
}

func (a *Agent) defaultMode() string {
	mode := ""
	for _, s := range a.Settings {
		if s.Report.DefaultMode != "" {
			mode = s.Report.DefaultMode
		}
	}
	return mode
}

func checkBypass(f *Facts, a *Agent) []Finding {
	sandbox := a.Env["IS_SANDBOX"] == "1"
	skips := slices.ContainsFunc(a.Settings, func(s Settings) bool { return s.Kind != "project" && s.SkipBypassDialog })
	switch {
	case f.Root && !sandbox:
		return []Finding{{
			Severity: Error, Code: "root-bypass", Seen: "permission mode bypassPermissions as root",
			Why: "the client refuses to start",
			Fix: "run as another user, or in a container set env: {IS_SANDBOX: \"1\"}",
		}}
	case !skips:
		return []Finding{{
			Severity: Error, Code: "bypass-dialog", Seen: "permission mode bypassPermissions, which the client warns of",
			Why: dialogWhy,
			Fix: `put "skipDangerousModePermissionPrompt": true into ` + a.configDir + "/settings.json",
		}}
	}
	return nil
}
