package config

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"heartbeat/hook"
)

var (
	variableForm = pattern(`^[A-Za-z_][A-Za-z0-9_]*$`)
	ownVariables = hook.Variables()
)

func (l *loader) env(t table) map[string]string {
	where, ok := t["env"]
	if !ok {
		return nil
	}
	env := map[string]string{}
	for name, p := range l.entries(where) {
		switch {
		case !variableForm().MatchString(name):
			l.problem(p, fmt.Sprintf("%q is not the name of a variable", cut(name)), "letters, digits and _, no digit first")
		case slices.Contains(ownVariables, name):
			l.problem(p, "is set by heartbeat itself", "remove it")
		case empty(p.node):
			l.problem(p, "has no value", `write "" for an empty one`)
		default:
			env[name], _ = l.word(p)
		}
	}
	return env
}

// envFile returns the file's path. It does not read the file: the content may
// change until a session starts.
func (l *loader) envFile(t table) string {
	p, ok := t["env-file"]
	if !ok {
		return ""
	}
	text, _ := l.expand(p)
	l.names(p, text)
	return text
}

// globs reads a list of globs for variable names.
func (l *loader) globs(t table, key string) []string {
	p, ok := t[key]
	if !ok {
		return nil
	}
	list := l.texts(p, `for example [HTTPS_PROXY, "AWS_*"]`)
	for _, g := range list {
		if _, err := path.Match(g, ""); err != nil || strings.ContainsAny(g, "/=") {
			l.problem(p, fmt.Sprintf("%q is not a pattern for names of variables", cut(g)), `for example "AWS_*"`)
		}
	}
	return list
}
