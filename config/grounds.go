package config

import (
	"fmt"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"heartbeat/hook/inbox"
)

// An agent's directory must belong to that agent alone: its settings file would
// apply to everything below, and its rules to everybody who works there.

// systemFolders are folders of the Filesystem Hierarchy Standard 3.0 and of macOS
// that hold much more than one project.
var systemFolders = []string{
	"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt", "/opt", "/proc", "/root", "/run",
	"/sbin", "/srv", "/sys", "/tmp", "/usr", "/usr/local", "/usr/src", "/var", "/var/cache", "/var/lib", "/var/log", "/var/mail", "/var/run", "/var/spool", "/var/tmp",
	"/Applications", "/Library", "/System", "/Users", "/Volumes", "/private", "/private/etc", "/private/tmp", "/private/var",
}

// systemTrees are folders in which nothing belongs to a user, except in ownTrees.
var (
	systemTrees = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sbin", "/sys", "/usr", "/System", "/private/etc"}
	ownTrees    = []string{"/dev/shm", "/usr/local", "/usr/src", "/usr/home"}
)

// homes are folders that contain home directories.
var homes = []string{"/home", "/Users", "/usr/home", "/export/home"}

// tooWide reports a directory that is too wide for one agent: a home or a system
// folder. It returns true when it is.
func (l *loader) tooWide(p place, a *Agent) bool {
	what := ""
	switch dir := a.Dir; {
	case l.isHome(a), slices.Contains(homes, filepath.Dir(dir)):
		what = " is a home folder"
	case l.isSystem(dir):
		what = " is a folder of the system"
	default:
		return false
	}
	l.problem(p, a.Dir+what, "give the agent a folder of its own")
	return true
}

// isHome reports whether an agent's directory is the home of the current user, or
// of its own sessions.
func (l *loader) isHome(a *Agent) bool {
	if l.disk.home == nil {
		home, _ := l.lookup("HOME")
		l.disk.home = []string{home}
		if who, err := user.Current(); err == nil {
			l.disk.home = append(l.disk.home, who.HomeDir)
		}
	}
	return slices.ContainsFunc(append(l.disk.home, a.Env["HOME"]), func(home string) bool {
		return filepath.IsAbs(home) && l.disk.places.of(filepath.Clean(home)) == l.disk.places.of(a.Dir)
	})
}

func (l *loader) isSystem(dir string) bool {
	if l.disk.systems == nil {
		l.disk.systems = map[fileID]bool{}
		for _, path := range systemFolders {
			if id, ok := l.disk.places.identify(path); ok {
				l.disk.systems[id] = true
			}
		}
	}
	within := func(tree string) bool { return strings.HasPrefix(dir, tree+"/") }
	id, exists := l.disk.places.identify(dir)
	return slices.Contains(systemFolders, dir) || exists && l.disk.systems[id] ||
		slices.ContainsFunc(systemTrees, within) && !slices.ContainsFunc(ownTrees, within)
}

// notAnInbox says why a file cannot be an agent's inbox, or "".
func (l *loader) notAnInbox(a *Agent, folder, name string) (message, hint string) {
	const own = "name a file in it, for example .heartbeat/inbox.jsonl"
	dir, in := slashed(l.disk.places.of(a.Dir)), slashed(l.disk.places.of(folder))
	below, inside := strings.CutPrefix(in, dir)
	first, _, _ := strings.Cut(below, "/")
	switch {
	case !inside:
		return fmt.Sprintf("%s is outside the agent's dir", filepath.Join(folder, name)), own
	case first == ".claude" || first == ".git":
		return "what lies in " + first + " is not heartbeat's", own
	case strings.EqualFold(name, inbox.UrgentFile):
		return fmt.Sprintf("%q is the name of the file of urgent entries beside an inbox", name), own
	case strings.HasPrefix(name, ".") || first == ".heartbeat" && slices.Contains(heartbeatFiles, name):
		return fmt.Sprintf("%q is the name of another heartbeat file", name), own
	}
	return "", ""
}

// heartbeatFiles are the other files in .heartbeat beside an inbox.
var heartbeatFiles = []string{"outbox.jsonl", "hook.log", "session.json", "fleet.json", "sessions"}
