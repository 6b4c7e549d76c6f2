package doctor

import (
	"fmt"
	"slices"

	"heartbeat/config"
	"heartbeat/hook/client"
	"heartbeat/orchestrator/preflight"
)

// claude is what is known of the client.
var claude = &client.Claude

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
	case client.Newer(claude.Versions.Oldest, c.Version):
		return []Finding{{
			Severity: Error, Code: "client-version", Seen: "Claude Code " + c.Version,
			Why: "versions before " + claude.Versions.Oldest + " are not tried; 2.1.200 does not tell hooks which client calls them, so that they do nothing", Fix: c.Name + " update",
		}}
	case client.Newer(claude.Versions.Measured, c.Version):
		return []Finding{{
			Severity: Warning, Code: "client-version", Seen: "Claude Code " + c.Version,
			Why: "it is older than " + claude.Versions.Measured + ", with which heartbeat was tested", Fix: c.Name + " update",
		}}
	}
	return nil
}

// checkDrift: what the last probe of the client has found.
func checkDrift(_ *Facts, a *Agent) []Finding {
	known := a.Client.Known
	breaks := known.Breaks()
	if breaks == "" {
		return nil
	}
	f := Finding{
		Severity: Warning, Code: "client-drift", Seen: known.Name() + " does not do what heartbeat relies on: " + breaks,
		Why: known.Result.Broken[0].Otherwise + "; sessions are started all the same (client-drift: warn)",
		Fix: "npm install -g @anthropic-ai/claude-code@" + known.Result.Measured + ", or what " + a.command("doctor --probe") + " says",
	}
	if a.Config.ClientDrift == config.DriftHolds {
		f.Severity, f.Why = Error, known.Result.Broken[0].Otherwise+"; no session is started (client-drift: hold)"
	}
	return []Finding{f}
}

// checkLogin: what may be a login, which nobody can know here. Where there is none
// for certain, it is an obstacle.
func checkLogin(_ *Facts, a *Agent) []Finding {
	c := a.Client
	if !c.Claude || c.Login.Is != preflight.LoginUnsure {
		return nil
	}
	return []Finding{{
		Severity: Warning, Code: "login-unsure", Seen: "the login is by " + c.Login.By,
		Why: "only a session can show whether it works; if it does not, the agent is parked",
		Fix: a.command("send") + " \"Say hello.\", once",
	}}
}

// checkPermissions: modes that can hang.
func checkPermissions(_ *Facts, a *Agent) []Finding {
	c, mode := a.Client, a.Config.Permissions.Mode
	if !c.Claude {
		return nil
	}
	if c.Bypasses {
		return nil
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
