package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeSystemctl notes how it is called, and answers as systemd's does; a file broken
// makes it fail as without a user's manager, a file failing as where a unit does not
// start.
const fakeSystemctl = `#!/bin/sh
dir=$(dirname "$0")
echo "$*" >> "$dir/calls"
[ -e "$dir/broken" ] && { echo "Failed to connect to bus: No medium found" >&2; exit 1; }
case "$*" in
*is-enabled*) [ -e "$dir/enabled" ] && echo enabled || { echo "Failed to get unit file state for x.service: No such file or directory" >&2; exit 1; } ;;
*is-active*) [ -e "$dir/enabled" ] && echo active || { echo inactive; exit 3; } ;;
*able*--now*) [ -e "$dir/failing" ] && { echo "Job for x.service failed" >&2; exit 1; }; case "$*" in *disable*) rm -f "$dir/enabled" ;; *) touch "$dir/enabled" ;; esac ;;
esac
exit 0
`

func TestServiceInstall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.env = append(w.env, "PATH="+filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+filepath.Join(w.dir, "home/conf"))
	const unit = "home/conf/systemd/user/heartbeat-fleet.service"
	path := filepath.Join(w.dir, unit)
	service := func(args ...string) outcome {
		t.Helper()
		return w.run(append([]string{"service"}, args...)...)
	}
	calls := func() string {
		t.Helper()
		data, _ := os.ReadFile(filepath.Join(w.dir, "bin/calls"))
		if err := os.WriteFile(filepath.Join(w.dir, "bin/calls"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	is := func(step string, o outcome, status int, says ...string) {
		t.Helper()
		for _, want := range says {
			if o.status != status || !strings.Contains(o.stdout+o.stderr, want) {
				t.Errorf("%s lacks %q: %+v", step, want, o)
			}
		}
	}
	w.put("bin/systemctl", fakeSystemctl)
	if err := os.Chmod(filepath.Join(w.dir, "bin/systemctl"), 0o755); err != nil {
		t.Fatal(err)
	}

	is("a dry run", service("install", "--dry-run"), 0, "would write "+path+"\n", "would run systemctl --user enable --now heartbeat-fleet.service\n", "\nExecStart=")
	if got := calls(); got != "" || len(w.names("home/conf")) != 0 {
		t.Errorf("a dry run called %q and left %q", got, w.names("home/conf"))
	}
	is("before", service("status"), 0, "installed no", "enabled   not-found\n", "active    inactive\n", "journalctl --user --no-pager -n 20 -u heartbeat-fleet.service\n")
	calls()

	w.put("bin/broken", "")
	is("without a manager", service("install"), exitError, "heartbeat: cannot install the service: cannot run \"systemctl --user is-enabled heartbeat-fleet.service\"", "No medium found", "hint: your own service manager does not run")
	if len(w.names("home/conf")) != 0 {
		t.Errorf("left without a manager: %q", w.names("home/conf"))
	}
	os.Remove(filepath.Join(w.dir, "bin/broken"))
	calls()

	is("install", service("install", "--run-arg=--watch-config"), 0, "wrote "+path+"\nran systemctl --user daemon-reload\nran systemctl --user enable --now heartbeat-fleet.service\n\nNext:\n", "loginctl enable-linger")
	if got := calls(); !strings.HasSuffix(got, "--user daemon-reload\n--user enable --now heartbeat-fleet.service\n") {
		t.Errorf("install called %q", got)
	}
	if text := w.get(unit); !strings.Contains(text, "run --watch-config\n") || !strings.Contains(text, "Type=notify\n") || !strings.Contains(text, "Restart=on-failure\n") {
		t.Errorf("the unit: %s", text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the unit: %v %v", info, err)
	}
	is("with another argument", service("status"), 0, "installed yes, and not as install would write it now", "enabled   enabled\n", "active    active\n")
	is("again", service("install"), 0, "wrote "+path, "systemctl --user restart heartbeat-fleet.service")
	is("unchanged", service("install"), 0, "as it was "+path)
	is("current", service("status"), 0, "installed yes ("+path+")\n")

	// What is somebody else's stays, also where a link stands in its place.
	w.put("mine.service", "[Service]\nExecStart=/bin/true\n")
	for name, put := range map[string]func() error{
		"a file": func() error { return os.WriteFile(path, []byte(w.get("mine.service")), 0o644) },
		"a link": func() error { return os.Symlink(filepath.Join(w.dir, "mine.service"), path) },
	} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := put(); err != nil {
			t.Fatal(err)
		}
		calls()
		is(name, service("install"), exitError, "cannot install the service: "+path+" is not heartbeat's\nhint: look at it; --force")
		is(name, service("uninstall"), exitError, "cannot uninstall the service: "+path+" is not heartbeat's\n")
		is(name, service("status"), 0, "installed another unit than heartbeat's")
		if got := calls(); strings.Contains(got, "able --now") || !strings.Contains(w.get(unit), "/bin/true") {
			t.Errorf("%s: called %q", name, got)
		}
		is(name, service("install", "--force"), 0, "wrote "+path)
		if !strings.Contains(w.get(unit), "heartbeat.yaml run") || !strings.Contains(w.get("mine.service"), "/bin/true") {
			t.Errorf("%s: %s", name, w.get(unit))
		}
	}

	w.put("bin/failing", "")
	is("it does not stop", service("uninstall"), exitError, "cannot stop the service, whose unit stays in "+path, "hint: --force removes")
	is("it does not start", service("install"), exitError, "cannot start the service, whose unit is in "+path, "Job for x.service failed")
	os.Remove(filepath.Join(w.dir, "bin/failing"))
	calls()
	is("uninstall while the file is broken", func() outcome { w.put("heartbeat.yaml", simulated); return service("uninstall") }(), 0, "removed "+path+"\n")
	if got := calls(); got != "--user disable --now heartbeat-fleet.service\n--user daemon-reload\n" {
		t.Errorf("uninstall called %q", got)
	}
	is("nothing left", service("uninstall"), 0, "there is no "+path)
	is("wrong usage", service("status", "--force"), exitUsage, "--dry-run and --force go with install and uninstall")

	// A machine without systemd.
	w.env = append(w.env, "PATH="+filepath.Join(w.dir, "home"))
	is("no systemctl", service("install"), exitError, "executable file not found", "hint: this machine has no such service manager")
	is("no systemctl", service("status"), 0, "enabled   ?\n", "warning: cannot run")
	is("for launchd", service("install", "launchd", "--dry-run"), 0, "would write "+w.dir+"/home", "/Library/LaunchAgents/local.heartbeat-fleet.plist", "would run launchctl bootstrap gui/")
	is("for the machine", service("install", "--system", "--dry-run"), 0, "would write /etc/systemd/system/heartbeat-fleet.service", "would run systemctl enable --now", "\nUser=")
}
