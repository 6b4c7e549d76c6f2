package doctor

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/settings"
)

// maxSettings bounds the files of the client's that are read.
const maxSettings = 64 << 20

// configDir is where the agent's client finds the user's settings.
func (a *Agent) configDir() string {
	return cmp.Or(a.Env["CLAUDE_CONFIG_DIR"], filepath.Join(a.Env["HOME"], ".claude"))
}

// settings reads all settings files that the client reads for the agent.
func (c *collector) settings(a *Agent) {
	files := []Settings{
		{Kind: "user", Path: filepath.Join(a.configDir(), "settings.json")},
		{Kind: "project", Path: filepath.Join(a.Config.Dir, ".claude", "settings.json")},
		{Kind: "local", Path: filepath.Join(a.Config.Dir, ".claude", "settings.local.json")},
	}
	if a.Config.Settings == "flag" {
		files = append(files, Settings{Kind: "flag", Path: filepath.Join(c.StateDir, "settings", a.Config.Name+".json")})
	}
	if a.IsHome {
		files = files[1:] // they are one file
	}
	files = append(files, Settings{Kind: managed, Path: cmp.Or(c.Managed, managedPath())})
	for _, s := range files {
		data, err := readLinked(s.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			s.Broken = err.Error()
		} else {
			s.read(data)
			c.inspect(a, &s, data)
		}
		a.Settings = append(a.Settings, s)
	}
}

// managed files come from the machine's administrator and lie over all others.
const managed = "managed"

// managedPath is where the client looks for it, by its documentation and, on
// Linux, as measured.
func managedPath() string {
	if runtime.GOOS == "darwin" {
		return "/Library/Application Support/ClaudeCode/managed-settings.json"
	}
	return "/etc/claude-code/managed-settings.json"
}

// readLinked reads a file that may be a link, as the client does.
func readLinked(path string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return durable.Read(real, maxSettings)
}

func (c *collector) inspect(a *Agent, s *Settings, data []byte) {
	r, err := settings.Inspect(data, c.hook.Command)
	if err != nil {
		if s.Broken == "" && len(s.Refused) == 0 {
			s.Refused = append(s.Refused, err.Error())
		}
		return
	}
	s.Report = *r
	for _, h := range r.Hooks {
		entry := Hook{Hook: h, File: s.Path, Kind: s.Kind}
		if !h.Ours && h.Event == "Stop" {
			entry.Wired = wired(h.Command)
		}
		a.Applied = a.Applied || h.Ours
		if h.Ours || entry.Wired != nil {
			list, _ := words(h.Command)
			name, _ := program(list)
			entry.Program = c.program(a.locate(name))
		}
		a.Hooks = append(a.Hooks, entry)
	}
}

// locate finds the program that a shell in a session would run.
func (a *Agent) locate(name string) string {
	for _, v := range []struct{ prefix, dir string }{
		{"~", a.Env["HOME"]},
		{"$HOME", a.Env["HOME"]},
		{"${HOME}", a.Env["HOME"]},
		{"$CLAUDE_PROJECT_DIR", a.Config.Dir},
		{"${CLAUDE_PROJECT_DIR}", a.Config.Dir},
	} {
		if rest, ok := strings.CutPrefix(name, v.prefix+"/"); ok {
			return filepath.Join(v.dir, rest)
		}
	}
	if strings.Contains(name, "/") {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(a.Config.Dir, name)
	}
	for _, dir := range filepath.SplitList(a.Env["PATH"]) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return name
}

// program looks at a binary. Its build information is read, it is not run.
func (c *collector) program(path string) Program {
	if p, ok := c.programs[path]; ok {
		return p
	}
	p := Program{Path: path}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		p.Missing = true
		c.programs[path] = p
		return p
	}
	p.Executable = info.Mode().Perm()&0o111 != 0
	// Agents can write any path into their settings; only what we chose
	// ourselves is touched.
	p.Mendable = path == filepath.Join(filepath.Dir(c.Self), "heartbeat-stop") || below(filepath.Join(c.StateDir, "bin"), path)
	if build, err := buildinfo.ReadFile(path); err == nil {
		p.Module = cmp.Or(build.Main.Path, "?")
		for _, s := range build.Settings {
			switch s.Key {
			case "vcs.revision":
				p.Revision = s.Value
			case "vcs.modified":
				p.Modified = s.Value == "true"
			case "vcs.time":
				p.Built, _ = time.Parse(time.RFC3339, s.Value)
			}
		}
	}
	c.programs[path] = p
	return p
}
