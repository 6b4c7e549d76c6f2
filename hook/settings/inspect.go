package settings

import (
	"slices"
	"strconv"
)

// Report is what a settings file says, as far as it concerns us.
type Report struct {
	// Hooks are all hook entries in the order of the file.
	Hooks []Hook
	// DisableAllHooks turns off every hook, including those of other files, unless
	// a file with higher precedence says otherwise. ManagedHooksOnly, and
	// PluginsOnly (strictPluginOnlyCustomization, for hooks), in a managed file
	// turn off those of all other files. Nil: the file does not say.
	DisableAllHooks, ManagedHooksOnly, PluginsOnly *bool
	// Plugins says which plugins are on, by NAME@MARKETPLACE.
	Plugins     map[string]bool
	Allow, Deny []string
	DefaultMode string
	// Env are the session's variables. They override the environment that the
	// session was started with.
	Env map[string]string
}

// Hook is one hook entry.
type Hook struct {
	Event, Matcher string
	// Type is "command" or another of the client's kinds; for those, Command is
	// empty.
	Type, Command string
	// Timeout is in seconds; 0 means that none is given (the client's
	// default is 600).
	Timeout float64
	// Async is true if the client does not wait for it.
	Async bool
	Ours  bool
}

// Inspect reads a settings file, nil for one that does not exist. own are command
// lines that count as ours in addition to those that Ours knows.
func Inspect(src []byte, own ...string) (*Report, error) {
	d, err := read(src)
	if err != nil {
		return nil, err
	}
	_, handlers, err := d.hooks()
	if err != nil {
		return nil, err
	}
	r := &Report{
		Env: map[string]string{}, Plugins: map[string]bool{},
		DisableAllHooks: truth(d.root.find("disableAllHooks")), ManagedHooksOnly: truth(d.root.find("allowManagedHooksOnly")),
		PluginsOnly: coversHooks(d.root.find("strictPluginOnlyCustomization")),
	}
	if plugins := d.root.find("enabledPlugins"); plugins != nil {
		for _, it := range plugins.items {
			r.Plugins[it.key] = it.value.kind != 'f'
		}
	}
	for _, h := range handlers {
		hook := Hook{Event: h.event, Matcher: h.matcher, Type: h.kind, Command: h.command, Async: h.async, Ours: Ours(h.command)}
		for _, o := range own {
			hook.Ours = hook.Ours || o != "" && o == h.command
		}
		if h.timeout != nil && h.timeout.kind == '0' {
			hook.Timeout, _ = strconv.ParseFloat(string(d.src[h.timeout.start:h.timeout.end]), 64)
		}
		r.Hooks = append(r.Hooks, hook)
	}
	p, err := d.permissions()
	if err != nil {
		return nil, err
	}
	r.Allow, r.Deny, r.DefaultMode = texts(p.allow), texts(p.deny), text(p.mode)
	env, err := d.env()
	if err != nil {
		return nil, err
	}
	if env != nil {
		for _, it := range env.items {
			r.Env[it.key] = text(it.value)
		}
	}
	return r, nil
}

// truth returns a boolean value, or nil.
func truth(v *value) *bool {
	if v == nil || v.kind != 't' && v.kind != 'f' {
		return nil
	}
	return new(v.kind == 't')
}

// coversHooks reports whether a list of surfaces, or true for all, includes hooks.
func coversHooks(v *value) *bool {
	if v != nil && v.kind == '[' {
		return new(slices.Contains(texts(v), "hooks"))
	}
	return truth(v)
}
