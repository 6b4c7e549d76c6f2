package orchestrator

import (
	"os"
	"path"
	"slices"
	"strings"

	"heartbeat/config"
	"heartbeat/ptyrun"
)

// essentials are what a program may count on in any environment. With
// env-allow they are passed on, too.
var essentials = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "TERM", "COLUMNS", "LINES",
}

// environment is what an agent's processes get: the caller's environment
// without the marks of a session and as far as the agent lets it in, then the
// agent's env-file, which is read now, then its env. The last of two values
// counts. An error tells no value.
func environment(a *config.Agent) ([]string, error) {
	env := passed(ptyrun.CleanEnv(os.Environ()), a.EnvAllow, a.EnvDeny)
	if a.EnvFile != "" {
		file, err := config.ReadEnvFile(a.EnvFile)
		if err != nil {
			return nil, err
		}
		for _, kv := range file {
			env = set(env, kv)
		}
	}
	for name, value := range a.Env {
		env = set(env, name+"="+value)
	}
	return env, nil
}

// passed returns what of an environment is passed on.
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

// set sets a variable in an environment. Some programs take the first of two.
func set(env []string, kv string) []string {
	name, _, _ := strings.Cut(kv, "=")
	env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
	return append(env, kv)
}
