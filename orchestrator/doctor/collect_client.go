package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"heartbeat/hook/durable"
)

// versionOf is what a client said of its version.
type versionOf struct{ version, problem string }

// clientConfig is the client's own file, as far as it is known here. Nothing
// secret is kept of it.
type clientConfig struct {
	broken string
	none   bool

	Onboarded bool `json:"hasCompletedOnboarding"`
	Keys      struct {
		Approved []string `json:"approved"`
		Rejected []string `json:"rejected"`
	} `json:"customApiKeyResponses"`
	Projects map[string]projectConfig `json:"projects"`
	Account  *struct{}                `json:"oauthAccount"`
}

type projectConfig struct {
	Trusted         bool     `json:"hasTrustDialogAccepted"`
	ImportsApproved bool     `json:"hasClaudeMdExternalIncludesApproved"`
	ImportsWarned   bool     `json:"hasClaudeMdExternalIncludesWarningShown"`
	Enabled         []string `json:"enabledMcpjsonServers"`
	Disabled        []string `json:"disabledMcpjsonServers"`
}

// logins are variables that let the client log in without anything else.
func logins() []string {
	names := []string{claude.Variables.Token, claude.Variables.Login}
	for _, c := range claude.Variables.Clouds {
		names = append(names, c.Switch)
	}
	return names
}

func (c *collector) client(a *Agent) Client {
	cl := Client{Name: a.Config.Argv()[0], Args: a.Config.Command[1:]}
	if a.Config.Self {
		return cl
	}
	path := a.locate(cl.Name)
	info, err := os.Stat(path)
	switch {
	case !filepath.IsAbs(path) || errors.Is(err, fs.ErrNotExist):
		cl.Missing = "it is not found"
	case err != nil:
		cl.Missing = err.Error()
	case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
		cl.Missing = path + " is not a program"
	}
	cl.Claude = filepath.Base(cl.Name) == "claude"
	if !cl.Claude {
		return cl
	}
	if cl.Missing == "" {
		v := c.version(path)
		cl.Version, cl.VersionProblem = v.version, v.problem
	}
	c.ownFiles(a, &cl)
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

// ownFiles reads what the client keeps of the user and the directory.
func (c *collector) ownFiles(a *Agent, cl *Client) {
	cl.ConfigFile = claude.Settings.Own(func(name string) string { return a.Env[name] })
	cfg := c.config(cl.ConfigFile)
	cl.ConfigBroken, cl.NoConfig, cl.Onboarded = cfg.broken, cfg.none, cfg.Onboarded
	work := a.Config.Dir
	cl.Repository = repository(work)
	cl.Trusted = a.Env[claude.Variables.Trusts] != "" || trusted(cfg, work, cl.Repository)
	c.login(a, cl, cfg)
	own := cfg.Projects[work]
	cl.Servers = serversOf(work)
	cl.ServersDecided = append(own.Enabled, own.Disabled...)
	cl.Imports = importsOf(work, a.Env["HOME"])
	cl.ImportsAnswered = own.ImportsApproved || own.ImportsWarned
}

func (c *collector) config(path string) *clientConfig {
	if cfg, ok := c.configs[path]; ok {
		return cfg
	}
	cfg := &clientConfig{}
	c.configs[path] = cfg
	data, err := readLinked(path)
	if err == nil {
		err = json.Unmarshal(data, cfg)
	}
	if cfg.none = errors.Is(err, fs.ErrNotExist); err != nil && !cfg.none {
		cfg.broken = err.Error()
	}
	return cfg
}

// repository is the nearest folder from dir upwards that git calls its own.
func repository(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// trusted reports whether the client takes dir as trusted: it or a folder
// above it is, but in a git repository none above the repository counts
// (measured).
func trusted(cfg *clientConfig, dir, repository string) bool {
	for at := dir; ; at = filepath.Dir(at) {
		if cfg.Projects[at].Trusted {
			return true
		}
		if at == repository || at == filepath.Dir(at) {
			return false
		}
	}
}

// login looks at what the client can log in with. An API key is known by its
// last 20 characters there.
func (c *collector) login(a *Agent, cl *Client, cfg *clientConfig) {
	if key := a.Env[claude.Variables.Key]; key != "" {
		tail := key[max(0, len(key)-20):]
		cl.Key = true
		cl.KeyApproved = slices.Contains(cfg.Keys.Approved, tail)
		cl.KeyRejected = slices.Contains(cfg.Keys.Rejected, tail)
	}
	for _, name := range logins() {
		cl.OtherLogin = cl.OtherLogin || a.Env[name] != ""
		for _, s := range a.Settings {
			cl.OtherLogin = cl.OtherLogin || s.Report.Env[name] != "" || s.Report.Env[claude.Variables.Key] != "" || s.KeyHelper
		}
	}
	_, err := os.Stat(filepath.Join(a.configDir, ".credentials.json"))
	cl.OtherLogin = cl.OtherLogin || err == nil || cfg.Account != nil
}

// serversOf lists the servers of .mcp.json in dir and the folders above it,
// which the client asks about.
func serversOf(dir string) []string {
	names := map[string]bool{}
	for at := dir; ; at = filepath.Dir(at) {
		data, err := durable.Read(filepath.Join(at, claude.Settings.Servers), maxMemory)
		var file struct {
			Servers map[string]json.RawMessage `json:"mcpServers"`
		}
		if err == nil && json.NewDecoder(io.LimitReader(bytes.NewReader(data), maxMemory)).Decode(&file) == nil {
			for name := range file.Servers {
				names[name] = true
			}
		}
		if at == filepath.Dir(at) {
			return slices.Sorted(maps.Keys(names))
		}
	}
}
