package preflight

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"heartbeat/hook/client"
	"heartbeat/hook/foreign"
	"heartbeat/hook/settings"
	"heartbeat/orchestrator/stophooks"
)

// Others are Stop hooks that run beside ours. Any of them may continue the client
// when we let a turn end.
type Others struct {
	Hooks []Other
	// Unknown is why there may be more, or "".
	Unknown string
}

// Other is one of them.
type Other struct {
	settings.Hook
	// File is where it is.
	File string
}

// Any reports whether there are others, or may be.
func (o Others) Any() bool { return len(o.Hooks) > 0 || o.Unknown != "" }

// Present returns what a session has to know about them.
func (o Others) Present() stophooks.Present {
	p := stophooks.Present{Opaque: o.Unknown != ""}
	for _, h := range o.Hooks {
		if h.Command == "" {
			p.Opaque = true
		} else {
			p.Commands = append(p.Commands, h.Command)
		}
	}
	return p
}

// Others lists the Stop hooks that the client waits for beside ours, from all
// places.
func (c Client) Others(all []Settings) Others {
	var o Others
	for _, s := range all {
		if s.Err != nil {
			o.Unknown = s.Name + " cannot be read"
			continue
		}
		o.add(s)
	}
	c.plugins(&o, all)
	f := c.flags()
	if f.reads(Project) {
		o.heads(filepath.Join(c.Dir, client.Claude.Settings.Folder))
	}
	if f.reads(User) {
		o.heads(c.ConfigDir())
	}
	return o
}

// heads: the hooks in the head of a skill, an agent or a command run once that is
// used, or from the start with --agent (measured in 2.1.329).
func (o *Others) heads(dir string) {
	for _, f := range granted(dir) {
		if f.Line == 0 || f.Text == saysKey+"hooks" {
			o.Unknown = f.String()
			return
		}
	}
}

func (o *Others) add(s Settings) {
	for _, h := range s.Report.Hooks {
		if h.Event == "Stop" && !h.Ours && !h.Async {
			o.Hooks = append(o.Hooks, Other{h, s.Name})
		}
	}
}

// plugins adds the Stop hooks of plugins that are on. A plugin that is not laid out
// like the client's own is unknown.
func (c Client) plugins(o *Others, all []Settings) {
	if readFlags(c.Command).plugins {
		o.Unknown = "command: loads a plugin"
	}
	var on []string
	for _, s := range all {
		if s.Report == nil {
			continue
		}
		for name, is := range s.Report.Plugins {
			on = slices.DeleteFunc(on, func(n string) bool { return n == name })
			if is {
				on = append(on, name)
			}
		}
	}
	if len(on) == 0 {
		return
	}
	slices.Sort(on)
	installed := c.installed()
	for _, name := range on {
		if len(installed[name]) == 0 {
			o.Unknown = "nothing is known of plugin " + name
		}
		for _, dir := range installed[name] {
			c.plugin(o, name, dir)
		}
	}
}

// installed lists where plugins are, by NAME@MARKETPLACE.
func (c Client) installed() map[string][]string {
	data, err := read(filepath.Join(c.ConfigDir(), "plugins", "installed_plugins.json"))
	var file struct {
		Plugins map[string]json.RawMessage `json:"plugins"`
	}
	if err != nil || foreign.Unmarshal(data, &file) != nil {
		return nil
	}
	type place struct {
		Path string `json:"installPath"`
	}
	dirs := map[string][]string{}
	for name, raw := range file.Plugins {
		var several []place // since version 2 of the file
		var one place
		if json.Unmarshal(raw, &several) != nil && json.Unmarshal(raw, &one) == nil {
			several = []place{one}
		}
		for _, p := range several {
			if p.Path != "" {
				dirs[name] = append(dirs[name], p.Path)
			}
		}
	}
	return dirs
}

// plugin adds the Stop hooks of one plugin: those of hooks/hooks.json. Its manifest
// may name more.
func (c Client) plugin(o *Others, name, dir string) {
	manifest, err := read(filepath.Join(dir, ".claude-plugin", "plugin.json"))
	var says struct {
		Hooks json.RawMessage `json:"hooks"`
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && (json.Unmarshal(manifest, &says) != nil || says.Hooks != nil) {
		o.Unknown = "plugin " + name + " may have hooks"
	}
	s := Settings{Name: filepath.Join(dir, "hooks", "hooks.json")}
	s.Data, s.Err = read(s.Name)
	if errors.Is(s.Err, fs.ErrNotExist) {
		return
	}
	if s = c.understood(s); s.Err != nil {
		o.Unknown = s.Name + " cannot be read"
		return
	}
	o.add(s)
}
