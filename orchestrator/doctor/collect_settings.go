package doctor

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/hook/durable"
	"heartbeat/hook/inpath"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/preflight"
	"heartbeat/orchestrator/stophooks"
	"heartbeat/orchestrator/store"
)

// maxSettings bounds the files of the client's that are read.
const maxSettings = 64 << 20

// settings reads all settings that the client reads for the agent.
func (c *collector) settings(a *Agent) {
	client := preflight.ClientOf(a.Config, c.base)
	client.Managed, client.Own = c.Managed, c.hook.Command
	a.configDir = client.ConfigDir()
	all := client.Settings()
	client.Ours = c.Ours
	a.Obstacles, a.Others = client.Obstacles(all), client.Others(all)
	a.Client = c.client(a, client, all)
	a.Gates, _ = store.Ask(c.ctx, c.StateDir, func(v *store.View) ([]string, error) { return stophooks.Seen(v, a.Others.Present()) }) // else none is known
	for _, doc := range all {
		if a.IsHome && doc.Kind == preflight.Project {
			continue // it is the user's
		}
		c.document(a, Settings{Kind: string(doc.Kind), Path: doc.Name}, doc.Data, doc.Err)
	}
	if a.Config.Settings.Rendered() {
		path := filepath.Join(c.StateDir, "settings", a.Config.Name+".json")
		if data, err := durable.Read(path, maxSettings); !errors.Is(err, fs.ErrNotExist) {
			if err == nil {
				_, err = settings.Inspect(data, c.hook.Command)
			}
			c.document(a, Settings{Kind: rendered, Path: path}, data, err)
			a.Obstacles = append(a.Obstacles, preflight.ReadDocument(data, err).Refusals(path)...)
		}
	}
}

// rendered is the file of ours that sessions are given with `settings: flag`.
const rendered = "rendered"

func (c *collector) document(a *Agent, s Settings, data []byte, err error) {
	s.Document = preflight.ReadDocument(data, err)
	if data != nil {
		c.inspect(a, &s, data)
	}
	a.Settings = append(a.Settings, s)
}

func (c *collector) inspect(a *Agent, s *Settings, data []byte) {
	r, err := settings.Inspect(data, c.hook.Command)
	if err != nil { // the document says so
		return
	}
	s.Report = *r
	for _, h := range r.Hooks {
		if s.Kind == rendered && !h.Ours {
			continue // the command's own, which are listed
		}
		entry := Hook{Hook: h, File: s.Path, Kind: s.Kind}
		if !h.Ours && h.Event == "Stop" {
			entry.Wired = wired(h.Command)
		}
		a.Applied = a.Applied || h.Ours
		if h.Ours || entry.Wired != nil {
			name, known := settings.Program(h.Command)
			if !known {
				list, _ := words(h.Command)
				name, _ = program(list)
			}
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
	if path, err := inpath.Find(a.Env["PATH"], name); err == nil {
		return path
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
	p.Mendable = path == filepath.Join(filepath.Dir(c.Self), "heartbeat-stop") || strings.HasPrefix(path, filepath.Join(c.StateDir, "bin")+string(filepath.Separator))
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
