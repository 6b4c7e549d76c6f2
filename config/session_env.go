package config

import (
	"path"
	"slices"
	"strings"
)

// essentials are variables that every program may rely on. They are passed on even
// with env-allow.
var essentials = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "TERM", "COLUMNS", "LINES",
}

// Environ returns the environment of an agent's processes: the variables of base
// that env-allow and env-deny let through, then the env-file, which is read now,
// then env. Each name appears once. When the env-file cannot be read, Environ
// returns the rest with the error. The error contains no value.
func (a *Agent) Environ(base []string) ([]string, error) {
	env := passed(slices.Clone(base), a.EnvAllow, a.EnvDeny)
	var err error
	if a.EnvFile != "" {
		var lines []string
		lines, err = readEnvFile(a.EnvFile)
		for _, kv := range lines {
			env = set(env, kv)
		}
	}
	for name, value := range a.Env {
		env = set(env, name+"="+value)
	}
	return env, err
}

// passed returns the variables that are passed on.
func passed(env, allow, deny []string) []string {
	return slices.DeleteFunc(env, func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return matches(deny, name) || len(allow) > 0 && !matches(allow, name) && !matches(essentials, name)
	})
}

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		ok, err := path.Match(g, name)
		return ok && err == nil
	})
}

// set sets a variable in an environment and removes duplicates: some programs use
// the first of two.
func set(env []string, kv string) []string {
	name, _, _ := strings.Cut(kv, "=")
	env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	return append(env, kv)
}
