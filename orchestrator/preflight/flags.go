package preflight

import (
	"slices"
	"strings"

	"heartbeat/config"
)

// flags are what an agent's command tells the client beside what we do.
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

// flags are those that a session is started with: its command's, and ours where
// it is given our settings alone.
func (c Client) flags() flags { return readFlags(slices.Concat(c.Command, c.Added())) }

// Added are the flags with which the client reads our settings, and of others
// only what the command names by --settings, --mcp-config and --setting-sources
// user; none but for config.SettingsOnly. Of two --setting-sources the last one
// counts.
func (c Client) Added() []string {
	if c.Target != config.SettingsOnly {
		return nil
	}
	sources := ""
	if slices.Contains(readFlags(c.Command).sources, string(User)) {
		sources = string(User)
	}
	return []string{"--setting-sources=" + sources, "--strict-mcp-config"}
}

// readFlags reads the flags that decide which settings count. Whatever program
// the command names, it hands its arguments on to the client: we add some, too.
func readFlags(command []string) flags {
	var f flags
	for i := 1; i < len(command) && command[i] != "--"; i++ {
		name, value, split := strings.Cut(command[i], "=")
		if !split && i+1 < len(command) {
			value = command[i+1]
		}
		switch name {
		case "--bare", "--safe-mode":
			f.off = name
			continue
		case "--restricted":
			f.restricted = true
			continue
		case "--strict-mcp-config":
			f.strict = true
			continue
		case "--settings":
			f.settings = value
		case "--managed-settings":
			f.managed = value
		case "--setting-sources":
			f.sources = append([]string{}, strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })...) // not nil: none
		case "--plugin-dir", "--plugin-url":
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

// reads reports whether the client reads the user's, project's or local
// settings.
func (f flags) reads(kind Kind) bool {
	return !f.restricted && (f.sources == nil || slices.Contains(f.sources, string(kind)))
}

// isJSON reports whether the client takes an argument of --settings for the
// settings themselves and not for a file's name.
func isJSON(arg string) bool {
	arg = strings.TrimSpace(arg)
	return strings.HasPrefix(arg, "{") && strings.HasSuffix(arg, "}")
}
