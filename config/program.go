package config

import (
	"fmt"
	"os"
	"strings"

	"gopkg.in/yaml.v3"
)

// unrunnable warns about commands that cannot run now, once for all agents that
// share one. The programs may be installed later, or the fleet may be meant for
// another machine.
func (l *loader) unrunnable() {
	warned := map[*yaml.Node]bool{}
	for _, c := range l.claims.programs {
		if c.agent.Name == "" || c.agent.Dir == "" || warned[c.where.node] {
			continue // the defaults themselves belong to nobody
		}
		if message, hint := l.missing(c); message != "" {
			warned[c.where.node] = true
			l.warn(c.where, message, hint)
		}
	}
}

// missing says why a program cannot run, and what to do about it.
func (l *loader) missing(c program) (message, hint string) {
	if strings.HasPrefix(c.word, "~/") || variable().MatchString(c.word) || unbraced().MatchString(c.word) {
		return fmt.Sprintf("%s is not expanded: ~ and ${VAR} work in dir and other paths of this file", cut(c.word)), "write its whole path"
	}
	if path := beside(c.where, c.word); path != "" {
		switch why := l.unfit(path); {
		case why == "":
			return "", ""
		case why == notExecutable:
			return cut(c.word) + " " + why, "chmod +x " + path
		case path == c.word:
			return cut(c.word) + " " + why, "install it there, or write another path"
		default:
			return cut(c.word) + " " + why, "it is looked for at " + path
		}
	}
	search, _ := l.lookup("PATH")
	if own, ok := c.agent.Env["PATH"]; ok && c.session {
		search = own
	} else if c.session && c.agent.EnvFile != "" {
		return "", "" // which may set PATH
	}
	if l.inPath(search, c.word) != "" {
		return "", ""
	}
	return cut(c.word) + " is not found in PATH", "install it, or write its whole path"
}

const notExecutable = "is not executable"

// unfit says why a file cannot be run as a program, or "".
func (l *loader) unfit(path string) string {
	why, known := l.disk.lacking[path]
	if known {
		return why
	}
	switch info, err := os.Stat(path); {
	case err != nil:
		why = "is not there"
	case !info.Mode().IsRegular():
		why = "is not a program"
	case info.Mode()&0o111 == 0:
		why = notExecutable
	}
	l.disk.lacking[path] = why
	return why
}
