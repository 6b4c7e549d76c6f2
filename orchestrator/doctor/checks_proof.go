package doctor

import (
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/config"
)

// checkProofs: checks whose answer the agent can decide, and checks that do for an
// agent what it may not do itself.
func checkProofs(_ *Facts, a *Agent) []Finding {
	var found []Finding
	for _, c := range a.Checks {
		command := strings.Join(c.Command, " ")
		if len(c.Inside) > 0 {
			found = append(found, Finding{
				Severity: Warning, Code: "check-within-reach", Seen: c.Of + ": check " + command + " runs what lies in the agent's directory: " + list(c.Inside, 3),
				Why: "the agent can rewrite it: then it passes, and prompts count as proven that are not",
				Fix: "move it out of " + a.Config.Dir + ", to where only you can write",
			})
		}
		runs := c.Builds
		if runs == "" && len(c.Inside) > 0 {
			runs = c.Inside[0]
		}
		bound := lessThanACheck(a.Config, c)
		if runs == "" || bound == "" {
			continue
		}
		found = append(found, Finding{
			Severity: Warning, Code: "check-has-more-rights", Seen: c.Of + ": check " + command + " (" + runs + ") does what files in the agent's directory say, and " + bound,
			Why: "what the agent writes there runs outside its session, with the rights of heartbeat run",
			Fix: "have the check run it with fewer rights (another user, a container), or let the agent write only what the check does not run",
		})
	}
	return found
}

// lessThanACheck says what an agent that can edit files may not do, and its check
// can; "" if there is no such thing, or it cannot edit.
func lessThanACheck(a *config.Agent, c Check) string {
	p := a.Permissions
	if !edits(p) {
		return ""
	}
	if len(a.Command) > 0 && slices.Contains(confining, filepath.Base(a.Command[0])) {
		return "its sessions run in " + filepath.Base(a.Command[0])
	}
	if !shells(p, c) {
		return "the agent may edit files, but its permissions allow it no such command"
	}
	return ""
}

// confining are programs that give what they run fewer rights, or other ones.
var confining = []string{
	"docker", "podman", "nerdctl", "bwrap", "firejail", "nsjail", "unshare", "sandbox-exec", "systemd-run", "systemd-nspawn", "chroot",
	"sudo", "doas", "su", "runuser", "setpriv", "ssh",
}

// edits reports whether a session may change files without asking anybody.
func edits(p config.Permissions) bool {
	if p.Mode == "acceptEdits" || p.Mode == "bypassPermissions" {
		return true
	}
	return slices.ContainsFunc(p.Allow, func(rule string) bool {
		tool, _, _ := strings.Cut(rule, "(")
		return slices.Contains([]string{"Edit", "Write", "MultiEdit", "NotebookEdit", "Bash"}, tool)
	})
}

// shells reports whether a session may run any command, or what the check runs.
func shells(p config.Permissions, c Check) bool {
	whole := func(rule string) bool { return slices.Contains([]string{"Bash", "Bash(*)", "Bash(:*)"}, rule) }
	if slices.ContainsFunc(p.Deny, whole) {
		return false
	}
	return p.Mode == "bypassPermissions" || slices.ContainsFunc(p.Allow, func(rule string) bool {
		command, ok := strings.CutPrefix(rule, "Bash(")
		word, _, _ := strings.Cut(strings.TrimRight(command, ")"), " ")
		word, _, _ = strings.Cut(word, ":")
		return whole(rule) || ok && (word == c.Command[0] || word != "" && word == c.Builds)
	})
}
