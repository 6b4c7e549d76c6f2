package settings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"heartbeat/hook/client"
)

// Foreign is something in a settings file that we did not write: what it lets a
// session do, what it runs, where it sends requests.
type Foreign struct {
	// Line is where it is, from 1.
	Line int
	// Text is what it says, on one line: names and commands are quoted. It omits
	// the values of variables, except the host of an address.
	Text string
}

// FindForeign lists what a settings file (nil: none) says and none of ours does. It
// leaves out what restricts a session (deny and ask rules, switches that turn
// something off) and what only affects its looks; it names every key that is not
// known to be harmless.
func FindForeign(src []byte, ours ...Want) ([]Foreign, error) {
	d, err := read(src)
	if err != nil {
		return nil, err
	}
	f := foreigner{document: d}
	for _, w := range ours {
		f.allow = append(f.allow, w.Allow...)
		f.modes = append(f.modes, w.DefaultMode)
		f.commands = append(f.commands, w.Command)
		for name, value := range w.Env {
			f.variables = append(f.variables, name+"="+value)
		}
	}
	if err := f.hooks(); err != nil {
		return nil, err
	}
	for i, it := range d.root.items {
		if !shadowed(d.root, i) {
			f.key(it.key, it.value)
		}
	}
	slices.SortStableFunc(f.found, func(a, b Foreign) int { return a.Line - b.Line })
	return f.found, nil
}

// ServersOf lists the servers that a .mcp.json starts or connects to.
func ServersOf(src []byte) ([]Foreign, error) {
	d, err := read(src)
	if err != nil {
		return nil, err
	}
	f := foreigner{document: d}
	servers, err := d.want(d.root.find("mcpServers"), '{', "mcpServers")
	if err != nil || servers == nil {
		return nil, err
	}
	for _, it := range servers.items {
		does := "connects to " + shown(host(text(it.value.find("url"))))
		if command := commandLine(it.value); command != "" {
			does = "runs " + shown(command)
		}
		f.say(it.value, "server %s %s", shown(it.key), does)
		if helper := text(it.value.find("headersHelper")); helper != "" {
			f.say(it.value, "server %s runs %s", shown(it.key), shown(helper))
		}
	}
	return f.found, nil
}

// PromptsOf lists what a scheduled_tasks.json has the client ask a session, and when.
func PromptsOf(src []byte) ([]Foreign, error) {
	d, err := read(src)
	if err != nil {
		return nil, err
	}
	f := foreigner{document: d}
	tasks, err := d.want(d.root.find("tasks"), '[', "tasks")
	if err != nil || tasks == nil {
		return nil, err
	}
	for _, it := range tasks.items {
		f.say(it.value, "asks %s at %s", shown(text(it.value.find("prompt"))), shown(text(it.value.find("cron"))))
	}
	return f.found, nil
}

// foreigner collects what is not ours.
type foreigner struct {
	*document
	allow, modes, commands, variables []string // ours; a variable as NAME=VALUE
	found                             []Foreign
}

func (f *foreigner) say(at *value, format string, args ...any) {
	f.found = append(f.found, Foreign{f.errorAt(at.start, "", "").Line, fmt.Sprintf(format, args...)})
}

func (f *foreigner) hooks() error {
	_, handlers, err := f.document.hooks()
	for _, h := range handlers {
		switch {
		case h.command != "" && slices.Contains(f.commands, h.command):
		case h.command != "":
			f.say(h.self, "hooks.%s runs %s", plainKey(h.event), shown(h.command))
		default:
			f.say(h.self, "hooks.%s has a hook of type %s", plainKey(h.event), shown(h.kind))
		}
	}
	return err
}

// key examines one key of the file.
func (f *foreigner) key(key string, v *value) {
	switch {
	case key == "hooks":
	case key == "permissions":
		f.permissions(v)
	case key == "env":
		f.environment(v)
	case key == "enabledPlugins":
		for _, it := range v.items {
			if it.value.kind != 'f' {
				f.say(it.value, "enabledPlugins turns on %s", shown(it.key))
			}
		}
	case harmless(key, v):
	default:
		f.other(key, v)
	}
}

func (f *foreigner) permissions(v *value) {
	for i, it := range v.items {
		switch {
		case shadowed(v, i) || slices.Contains([]string{"deny", "ask"}, it.key) || harmless(it.key, it.value):
		case it.key == "allow":
			f.each("permissions.allow", it.value, f.allow)
		case it.key == "defaultMode":
			if !slices.Contains(f.modes, text(it.value)) {
				f.say(it.value, "permissions.defaultMode is %s", shown(text(it.value)))
			}
		default:
			f.each("permissions."+plainKey(it.key), it.value, nil)
		}
	}
}

func (f *foreigner) environment(v *value) {
	for i, it := range v.items {
		if shadowed(v, i) || it.value.kind == '"' && slices.Contains(f.variables, it.key+"="+it.value.text) {
			continue
		}
		if strings.HasSuffix(it.key, "_URL") || strings.HasSuffix(strings.ToUpper(it.key), "_PROXY") {
			f.say(it.value, "env sets %s to %s", plainKey(it.key), shown(host(text(it.value))))
			continue
		}
		f.say(it.value, "env sets %s", plainKey(it.key))
	}
}

// other names a key that may do anything, with the command that it runs.
func (f *foreigner) other(key string, v *value) {
	command := text(v)
	if v.kind == '{' {
		command = commandLine(v)
	}
	runs := strings.HasSuffix(key, "Helper") || strings.HasSuffix(key, "Refresh") || strings.HasSuffix(key, "Export") || v.kind == '{'
	switch {
	case runs && command != "":
		f.say(v, "%s runs %s", plainKey(key), shown(command))
	case v.kind == '{' && len(v.items) > 0:
		for _, it := range v.items {
			f.say(it.value, "%s has %s", plainKey(key), shown(it.key))
		}
	default:
		f.each(plainKey(key), v, nil)
	}
}

// each names a value, or each element of a list that is not ours.
func (f *foreigner) each(place string, v *value, ours []string) {
	switch v.kind {
	case '[':
		for _, it := range v.items {
			if t := text(it.value); !slices.Contains(ours, t) {
				f.say(it.value, "%s has %s", place, shown(t))
			}
		}
	case '"':
		f.say(v, "%s is %s", place, shown(v.text))
	default:
		f.say(v, "%s is set", place)
	}
}

// harmless reports whether a key is safe in anybody's file. A session can do less
// if something is switched off (disableAllHooks has a word of its own).
func harmless(key string, v *value) bool {
	return slices.Contains(client.Claude.Settings.Harmless, key) || strings.HasPrefix(key, "disable") || v.kind == 'f' || v.kind == 'n' ||
		(v.kind == '[' || v.kind == '{') && len(v.items) == 0
}

// shadowed reports whether a later key of the same name counts instead.
func shadowed(v *value, i int) bool {
	return slices.ContainsFunc(v.items[i+1:], func(it item) bool { return it.key == v.items[i].key })
}

// mostShown is how much of a text is shown, in bytes.
const mostShown = 160

// shown returns a text of a file in quotes, without characters that act on a
// terminal.
func shown(text string) string {
	if len(text) > mostShown {
		text = strings.ToValidUTF8(text[:mostShown], "") + "…"
	}
	return strconv.Quote(text)
}

// plainKey returns a key as it is, or quoted if it is not a plain word.
func plainKey(key string) string {
	if key != "" && strings.Trim(key, safe) == "" {
		return key
	}
	return shown(key)
}

// host returns an address without its path and without a name and password.
func host(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return "an address"
	}
	rest, _, _ = strings.Cut(rest, "/")
	return scheme + "://" + rest[strings.LastIndexByte(rest, '@')+1:]
}
