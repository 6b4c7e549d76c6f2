package doctor

import (
	"maps"
	"path"
	"slices"

	"heartbeat/config"
)

// essentials are passed on whatever env-allow says.
var essentials = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_*", "TZ", "TMPDIR", "TERM", "COLUMNS", "LINES",
}

// environment is what a session's client would get, by the rules of the
// orchestrator: the caller's environment as far as the agent lets it in, then
// its env-file, then its env. An env-file that cannot be read is an error, and
// the rest is returned without it; the error tells no value.
func environment(base map[string]string, a *config.Agent) (map[string]string, error) {
	env := maps.Clone(base)
	maps.DeleteFunc(env, func(name, _ string) bool {
		return matches(a.EnvDeny, name) || len(a.EnvAllow) > 0 && !matches(a.EnvAllow, name) && !matches(essentials, name)
	})
	var err error
	if a.EnvFile != "" {
		var lines []string
		if lines, err = config.ReadEnvFile(a.EnvFile); err == nil {
			maps.Copy(env, environ(lines))
		}
	}
	maps.Copy(env, a.Env)
	return env, err
}

func matches(globs []string, name string) bool {
	return slices.ContainsFunc(globs, func(g string) bool {
		ok, err := path.Match(g, name)
		return ok && err == nil
	})
}

// checkEnvFile: variables that a session cannot be given.
func checkEnvFile(_ *Facts, a *Agent) []Finding {
	if a.EnvProblem == nil {
		return nil
	}
	return []Finding{{
		Severity: Error, Code: "env-file", Seen: a.EnvProblem.Error(), Why: "no session starts without its variables",
		Fix: "correct " + a.Config.EnvFile + ", and chmod 600 it",
	}}
}
