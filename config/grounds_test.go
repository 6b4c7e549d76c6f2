package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDirectoriesThatAreNotAnAgents: an agent's directory is no home and no
// folder of the system, by whatever name.
func TestDirectoriesThatAreNotAnAgents(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	links := t.TempDir()
	for name, to := range map[string]string{"etc": "/etc", "home": home, "root": "/", "fine": filepath.Join(home, "agents")} {
		if err := os.Symlink(to, filepath.Join(links, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(home, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"/": "a folder of the system", "/..": "a folder of the system", "/etc": "a folder of the system", "/etc/heartbeat/agents/a": "a folder of the system",
		"/usr/bin": "a folder of the system", "/usr/share/agents": "a folder of the system", "/tmp": "a folder of the system", "/tmp/": "a folder of the system",
		"/home": "a folder of the system", "/var/lib": "a folder of the system", "/proc/1/cwd": "", "/dev/x": "a folder of the system",
		"~": "a home folder", "~/": "a home folder", "~/.": "a home folder", "${HOME}": "a home folder", "~/agents/..": "a home folder", "/home/bob": "a home folder", "/Users/bob": "a home folder",
		links + "/etc": "a folder of the system", links + "/home": "a home folder", links + "/root": "a folder of the system", links + "/etc/agents": "a folder of the system",
		"~/agents": "", "/home/bob/agents": "", "/srv/agents": "", "/opt/agents/a": "", "/var/lib/heartbeat": "", "/tmp/heartbeat-none/a": "", "/usr/local/agents": "",
		"/dev/shm/heartbeat-none/a": "", "/workspace": "", "/etcetera": "", links + "/fine": "", "relative": "",
	} {
		if dir == "/proc/1/cwd" {
			continue // whatever that is
		}
		_, err := parseText("/nonexistent/heartbeat.yaml", fmt.Appendf(nil, "version: 1\nagents:\n  a: {dir: %q}\n", dir))
		problems, _ := errors.AsType[Problems](err)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", dir, err)
		case want != "" && (len(problems) != 1 || !strings.HasSuffix(problems[0].Message, "is "+want) || problems[0].Line != 3 || problems[0].Hint == ""):
			t.Errorf("%s: %v, want %q", dir, err, want)
		}
	}
	own := fmt.Appendf(nil, "version: 1\nagents: {a: {dir: %s/own, env: {HOME: %s/own}}}\n", home, home)
	if _, err := parseText("/nonexistent/heartbeat.yaml", own); err == nil || !strings.Contains(err.Error(), "is a home folder") {
		t.Errorf("the home of its own sessions: %v", err)
	}
}

// TestAnInboxLiesInItsAgentsDirectory, and is none of the other files there: one
// directory has one consumer, and who locks it locks the queue.
func TestAnInboxLiesInItsAgentsDirectory(t *testing.T) {
	t.Parallel()
	path := write(t, "")
	dir := filepath.Dir(path)
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "work/sub"), 0o700), os.Mkdir(filepath.Join(dir, "other"), 0o700),
		os.Symlink("../other", filepath.Join(dir, "work/out")), os.Symlink("sub", filepath.Join(dir, "work/in")), os.Symlink("work", filepath.Join(dir, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for inbox, want := range map[string]string{
		"../other/in.jsonl": "is outside the agent's dir", "/var/spool/in.jsonl": "is outside the agent's dir", "../work2/in.jsonl": "is outside the agent's dir",
		"out/in.jsonl": "is outside the agent's dir", "sub/../../in.jsonl": "is outside the agent's dir", "..": "is outside the agent's dir",
		".heartbeat/outbox.jsonl": "is the name of another heartbeat file", ".heartbeat/.in-flight": "is the name of another heartbeat file", ".inbox": "is the name of another heartbeat file",
		".claude/in.jsonl": "what lies in .claude", ".git/in.jsonl": "what lies in .git", "sub": "is not a regular file", ".": "is outside",
		".heartbeat/inbox.jsonl": "", "queue.jsonl": "", "sub/in.jsonl": "", "in/in.jsonl": "", "new/folder/in.jsonl": "", dir + "/link/in.jsonl": "", "sub/outbox.jsonl": "", ".queue/in.jsonl": "",
	} {
		if err := os.WriteFile(path, fmt.Appendf(nil, "version: 1\nagents:\n  a: {dir: link, inbox: %q}\n", inbox), 0o600); err != nil {
			t.Fatal(err)
		}
		if want == "" {
			mustLoad(t, path)
			continue
		}
		if got := problemsOf(t, path); len(got) != 1 || !strings.HasPrefix(got[0], "3:25: agents.a.inbox: ") || !strings.Contains(got[0], want) {
			t.Errorf("%s: %q, want %q", inbox, got, want)
		}
	}
}
