package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heartbeat/hook/client"
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

// checkClient: the version of the program that sessions run.
func checkClient(_ *Facts, a *Agent) []Finding {
	c := a.Client
	switch {
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
			Why: "versions before " + claude.Versions.Oldest + " do not know all our hook events, and open a dialog when they start", Fix: c.Name + " update",
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
	if !c.Claude || c.Login.Other || c.Login.Key && !c.Login.KeyRejected {
		return nil
	}
	seen := "no key, no token and no saved login"
	if c.Login.KeyRejected {
		seen = "the API key in the environment was refused once in the client's dialog, and there is no other login"
	}
	return []Finding{{
		Severity: Error, Code: "not-logged-in", Seen: seen,
		Why: "each request fails: sessions retry for about three minutes and end by an API failure",
		Fix: "claude setup-token, or run claude once and log in",
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
			Why: "the client opens a dialog at its start, and nobody answers it: the session ends by start-timeout",
			Fix: `put "skipDangerousModePermissionPrompt": true into ` + a.configDir + "/settings.json",
		}}
	}
	return nil
}
