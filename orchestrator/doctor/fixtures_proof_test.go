package doctor

import (
	"os"
	"path/filepath"

	"heartbeat/config"
)

// proofFixtures are about checks.
func proofFixtures() []fixture {
	checked := func(r *rig, command ...string) *config.Until {
		u := config.NewUntil(command...)
		r.agent.Until = u
		r.agent.Permissions.Allow = []string{"Read", "Edit"}
		r.apply()
		return u
	}
	const within, rights = "check-within-reach", "check-has-more-rights"
	return []fixture{
		{ // the program itself
			within, Warning, false,
			func(r *rig) {
				r.program("work/check", "#!/bin/sh\n")
				u := checked(r, "./work/check")
				u.Program = filepath.Join(r.dir, "work/check")
			},
			func(r *rig) {
				r.program("checks/check", "#!/bin/sh\n")
				u := checked(r, "./checks/check")
				u.Program = filepath.Join(r.dir, "checks/check")
			},
		},
		{ // an argument, relative to the directory
			within, Warning, false,
			func(r *rig) { r.put("work/test/all.sh", "exit 0\n"); checked(r, "sh", "test/all.sh") },
			func(r *rig) {
				r.put("checks/all.sh", "exit 0\n")
				checked(r, "sh", filepath.Join(r.dir, "checks/all.sh"), "test", "missing.sh")
			},
		},
		{ // a link from outside, of a trigger
			within, Warning, false,
			func(r *rig) {
				r.put("work/all.sh", "exit 0\n")
				link := filepath.Join(r.dir, "all.sh")
				r.must(os.Symlink(filepath.Join(r.dir, "work/all.sh"), link))
				r.agent.Triggers = []config.Trigger{{Name: "poll-1", Until: config.NewUntil("sh", link)}}
			},
			func(r *rig) {
				r.agent.Triggers = []config.Trigger{{Name: "poll-1", Until: config.NewUntil("sh", filepath.Join(r.dir, "none.sh"))}}
			},
		},
		{ // in a PATH that leads into the directory
			within, Warning, false,
			func(r *rig) {
				r.program("work/tools/verify", "#!/bin/sh\n")
				r.env["PATH"] += ":" + filepath.Join(r.dir, "work/tools")
				checked(r, "verify")
			},
			func(r *rig) { r.program("bin/verify", "#!/bin/sh\n"); checked(r, "verify") },
		},
		{
			rights, Warning, false,
			func(r *rig) { checked(r, "make", "test") },
			func(r *rig) { // it may run that itself
				checked(r, "make", "test")
				r.agent.Permissions.Allow = append(r.agent.Permissions.Allow, "Bash(make *)")
			},
		},
		{
			rights, Warning, false,
			func(r *rig) { checked(r, "sh", "-c", "cd web && npm test") },
			func(r *rig) { // it only reads
				checked(r, "sh", "-c", "cd web && npm test")
				r.agent.Permissions.Allow = []string{"Read"}
			},
		},
		{ // its shell is denied
			rights, Warning, false,
			func(r *rig) {
				checked(r, "env", "CI=1", "make")
				r.agent.Permissions = config.Permissions{Mode: "acceptEdits", Allow: []string{"Bash"}, Deny: []string{"Bash"}}
			},
			func(r *rig) {
				checked(r, "env", "CI=1", "make")
				r.agent.Permissions = config.Permissions{Mode: "bypassPermissions"}
			},
		},
		{ // its sessions are confined
			rights, Warning, false,
			func(r *rig) {
				checked(r, "make")
				r.agent.Permissions.Mode, r.agent.Command = "bypassPermissions", []string{"bwrap", "--ro-bind", "/", "/", "claude"}
			},
			func(r *rig) { checked(r, "/usr/local/bin/verify-release") },
		},
		{ // a script in its directory
			rights, Warning, false,
			func(r *rig) { r.put("work/all.sh", "exit 0\n"); checked(r, "sh", "all.sh") },
			func(r *rig) {
				r.put("work/all.sh", "exit 0\n")
				checked(r, "sh", "all.sh")
				r.agent.Permissions.Allow = append(r.agent.Permissions.Allow, "Bash(*)")
			},
		},
	}
}
