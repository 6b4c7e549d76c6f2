package doctor

import (
	"bytes"
	"context"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"heartbeat/orchestrator/clients"
	"heartbeat/orchestrator/preflight"
)

// versionOf is what a client said of its version.
type versionOf struct{ version, problem string }

func (c *collector) client(a *Agent, known preflight.Client, all []preflight.Settings) Client {
	cl := Client{Name: known.Program, Claude: known.Known()}
	if !cl.Claude {
		return cl
	}
	if !slices.ContainsFunc(a.Obstacles, func(o preflight.Obstacle) bool { return o.Code == preflight.ClientMissing }) {
		v := c.version(known.Locate())
		cl.Version, cl.VersionProblem = v.version, v.problem
	}
	cl.Known.Program = clients.Of(a.Config, c.base, c.Self)
	cl.Known.Result, _ = c.probed(cl.Known.Program) // otherwise nothing is known
	cl.Login, cl.Bypasses = known.Login(all), known.Bypasses()
	return cl
}

// version asks a client for its version.
func (c *collector) version(path string) versionOf {
	if v, ok := c.versions[path]; ok {
		return v
	}
	ctx, cancel := context.WithTimeout(c.ctx, 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Env = append([]string{"PATH=" + environ(c.base)["PATH"], "HOME=" + environ(c.base)["HOME"]}, claude.Variables.Quiet...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out bounded
	cmd.Stdout = &out
	var v versionOf
	if err := cmd.Run(); err != nil {
		v.problem = "claude --version failed: " + err.Error()
	} else if v.version = claude.Versions.Of(out.String()); v.version == "" {
		v.problem = "claude --version printed something else"
	}
	c.versions[path] = v
	return v
}

// bounded keeps the first 4 KiB.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(0, 4096-b.Len()))])
	return len(p), nil
}
