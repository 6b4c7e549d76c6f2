package settings

import "strconv"

// Report is what a settings file says, as far as it concerns us.
type Report struct {
	// Hooks are all hook entries in the order of the file.
	Hooks []Hook
	// ForeignStop is true when a Stop hook is installed that is not ours:
	// then a Stop that continues is no proof that our hand-over arrived.
	ForeignStop bool
	// DisableAllHooks turns off every hook, also those of other files.
	DisableAllHooks bool
	Allow, Deny     []string
	DefaultMode     string
	// Env are the session's variables. They override the environment that
	// the session was started with.
	Env map[string]string
}

// Hook is one hook entry.
type Hook struct {
	Event, Matcher string
	// Type is "command" or another of the client's kinds; Command is empty
	// for those.
	Type, Command string
	// Timeout is in seconds; 0 means that none is given (the client's
	// default is 600).
	Timeout float64
	Ours    bool
}

// Inspect reads a settings file, nil for one that does not exist. own are
// command lines that count as ours beside those that Ours knows.
func Inspect(src []byte, own ...string) (*Report, error) {
	d, err := read(src)
	if err != nil {
		return nil, err
	}
	_, handlers, err := d.hooks()
	if err != nil {
		return nil, err
	}
	r := &Report{Env: map[string]string{}}
	for _, h := range handlers {
		hook := Hook{Event: h.event, Matcher: h.matcher, Type: h.kind, Command: h.command, Ours: Ours(h.command)}
		for _, o := range own {
			hook.Ours = hook.Ours || o == h.command
		}
		if h.timeout != nil && h.timeout.kind == '0' {
			hook.Timeout, _ = strconv.ParseFloat(string(d.src[h.timeout.start:h.timeout.end]), 64)
		}
		r.ForeignStop = r.ForeignStop || h.event == "Stop" && !hook.Ours
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
	off := d.root.find("disableAllHooks")
	r.DisableAllHooks = off != nil && off.kind == 't'
	return r, nil
}
