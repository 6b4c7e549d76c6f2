package doctor

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/workspace"
)

// startCodes are what holds an agent before its sessions are started.
var startCodes = []preflight.Code{
	preflight.HooksDisabled, preflight.SettingsEnv, preflight.BlockCap, preflight.NoSettings,
	preflight.EnvFile, preflight.ClientMissing, preflight.OwnFileBroken, preflight.NoOnboarding, preflight.NotTrusted,
	preflight.NotLoggedIn, preflight.BypassDialog, preflight.KeyNotApproved, preflight.ServersOpen, preflight.ImportsOpen, preflight.SettingsBroken, preflight.SettingsRefused,
}

// TestDoctorAndRunAgree: of each finding that there is, a run holds the agent for
// it where it has one of these codes and is an error, and for nothing else.
func TestDoctorAndRunAgree(t *testing.T) {
	t.Parallel()
	walked := make(chan preflight.Code, 1000)
	t.Run("fixtures", func(t *testing.T) {
		t.Parallel()
		for _, fx := range agentFixtures() {
			for name, cause := range map[string]func(r *rig){"broken": fx.broken, "fine": fx.fine} {
				t.Run(fx.code+"/"+name, func(t *testing.T) {
					t.Parallel()
					r := newRig(t)
					cause(r)
					for _, code := range r.agree() {
						walked <- code
					}
				})
			}
		}
	})
	t.Cleanup(func() {
		close(walked)
		seen := map[preflight.Code]bool{}
		for code := range walked {
			seen[code] = true
		}
		for _, code := range startCodes {
			if !seen[code] {
				t.Errorf("no fixture has a run hold for %s", code)
			}
		}
	})
}

// agree prepares a session and examines, and returns the codes of both.
func (r *rig) agree() []preflight.Code {
	r.t.Helper()
	if _, err := os.Stat(filepath.Join(r.dir, managedFile)); err == nil {
		return nil // a run reads the machine's own
	}
	r.look() // writes the client's files
	env := maps.Clone(r.env)
	maps.Copy(env, r.agent.Env)
	if len(r.agent.EnvDeny)+len(r.agent.EnvAllow) == 0 {
		r.agent.Env = env
	} else {
		r.agent.Env = map[string]string{"HOME": env["HOME"], "PATH": env["PATH"]}
		r.env = map[string]string{"HOME": env["HOME"], "PATH": env["PATH"]}
	}
	h, err := workspace.FindHook(r.self, r.state)
	r.must(err)
	_, _ = workspace.Apply(r.agent, r.state, h) // a run does so first; where it cannot, it asks all the same
	_, err = workspace.Blocked(r.agent, r.state, h, "")
	var run, doctor []preflight.Code
	if blocked, ok := errors.AsType[*preflight.BlockedError](err); ok {
		for _, o := range blocked.Obstacles {
			run = append(run, o.Code)
		}
	}
	for _, f := range r.findings() {
		if f.Severity == Error && slices.Contains(startCodes, preflight.Code(f.Code)) {
			doctor = append(doctor, preflight.Code(f.Code))
		}
	}
	slices.Sort(run)
	slices.Sort(doctor)
	if !slices.Equal(slices.Compact(run), slices.Compact(doctor)) {
		r.t.Errorf("a run holds for %q (%v), doctor names %q", run, err, doctor)
	}
	return run
}
