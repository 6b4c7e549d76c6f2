package preflight

import (
	"slices"
	"strings"

	"heartbeat/config"
	"heartbeat/hook/client"
)

// flags are what an agent's command tells the client in addition to what we do.
type flags struct {
	settings string   // of --settings, of which the last one counts; "": none
	managed  string   // of --managed-settings
	sources  []string // of --setting-sources; nil: all
	strict   bool     // --strict-mcp-config
	plugins  bool     // --plugin-dir or --plugin-url
	// off is a flag that turns hooks off, restricted is --restricted.
	off        string
	restricted bool
}

// flags returns those that a session is started with: its command's, and ours if it
// is given only our settings.
func (c Client) flags() flags { return readFlags(slices.Concat(c.Command, c.Added())) }

// Added returns the flags with which the client reads our settings, and of others
// only what the command names by --settings, --mcp-config and --setting-sources
// user; none except for config.SettingsOnly. Of two --setting-sources the last one
// counts.
func (c Client) Added() []string {
	if c.Target != config.SettingsOnly {
		return nil
	}
	sources := ""
	if slices.Contains(readFlags(c.Command).sources, string(User)) {
		sources = string(User)
	}
	return []string{client.Claude.Flags.Sources + "=" + sources, client.Claude.Flags.StrictServers}
}

// readFlags reads the flags that decide which settings count. Whatever program the
// command names, it passes its arguments on to the client: we add some too.
func readFlags(command []string) flags {
	var f flags
	known := client.Claude.Flags
	for i := 1; i < len(command) && command[i] != "--"; i++ {
		name, value, split := strings.Cut(command[i], "=")
		if !split && i+1 < len(command) {
			value = command[i+1]
		}
		switch {
		case slices.Contains(known.HooksOff, name):
			f.off = name
			continue
		case name == known.Restricted:
			f.restricted = true
			continue
		case name == known.StrictServers:
			f.strict = true
			continue
		case name == known.Settings:
			f.settings = value
		case name == known.Managed:
			f.managed = value
		case name == known.Sources:
			f.sources = append([]string{}, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...) // not nil: none
		case slices.Contains(known.Plugins, name):
			f.plugins = true
		default:
			continue
		}
		if !split {
			i++
		}
	}
	return f
}

// reads reports whether the client reads the user's, project's or local settings.
func (f flags) reads(kind Kind) bool {
	return !f.restricted && (f.sources == nil || slices.Contains(f.sources, string(kind)))
}

// isJSON reports whether the client takes an argument of --settings as the settings
// themselves and not as a file's name.
func isJSON(arg string) bool {
	arg = strings.TrimSpace(arg)
	return strings.HasPrefix(arg, "{") && strings.HasSuffix(arg, "}")
}
