package simulate

import (
	"fmt"
	"slices"
	"strings"
)

// faults are what --broken has the stand-in do otherwise than the client was measured
// to, one thing each: so that who looks for changes of the client can be shown some.
// The first four take a name: "no-hook=Stop".
var faults = []string{
	"no-flag",     // a flag is refused
	"no-hook",     // an event calls no hook; without a name: none does
	"no-field",    // payloads lack a field
	"no-variable", // hooks lack a variable of the environment

	"prompt-altered", "prompt-twice", // on their way from the command line to the model
	"exit-2-altered", "exit-2-twice", "exit-2-ignored", // what a Stop hook says
	"cap-fixed", // CLAUDE_CODE_STOP_HOOK_BLOCK_CAP counts for nothing
	"no-transcript", "no-usage", "no-status-line",
	"status-line-only-between-turns",      // not while a Stop hook runs
	"settings-ignored", "sources-ignored", // --settings, --setting-sources
	"dont-ask-allows", "deny-ignored",
	"deny-rules-ignored",                // what one denies is allowed
	"no-wake",                           // a task that has ended begins no turn
	"other-failures",                    // each is "unknown"
	"resume-anew",                       // under another id
	"term-ignored", "term-only-if-idle", // SIGTERM
}

// checkBroken refuses what is no fault.
func (a *arguments) checkBroken() error {
	for _, f := range a.broken {
		name, _, _ := strings.Cut(f, "=")
		if !slices.Contains(faults, name) {
			return fmt.Errorf("option '--broken <fault>' argument '%s' is invalid. Allowed choices are %s", f, strings.Join(faults, ", "))
		}
	}
	for _, f := range a.broken {
		if flag, ok := strings.CutPrefix(f, "no-flag="); ok && slices.ContainsFunc(a.given, func(arg string) bool {
			return arg == flag || strings.HasPrefix(arg, flag+"=")
		}) {
			return fmt.Errorf("unknown option '%s'", flag)
		}
	}
	return nil
}

// broken reports whether the stand-in has a fault.
func (s *session) broken(fault string) bool { return slices.Contains(s.args.broken, fault) }

// calls reports whether an event calls its hooks.
func (s *session) calls(event string) bool {
	return !s.broken("no-hook") && !s.broken("no-hook="+event)
}

// told leaves out what payloads lack.
func (s *session) told(fields []field) []field {
	return slices.DeleteFunc(fields, func(f field) bool { return s.broken("no-field=" + f.name) })
}

// altered is a text as a client gives it to the model that cannot leave it alone.
func altered(text string) string { return strings.Join(strings.Fields(text), " ") }
