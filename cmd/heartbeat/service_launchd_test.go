package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeLaunchctl notes how it is called, and answers as launchd's does: bootout returns
// before the service has ended, which three further questions see, and bootstrap fails
// until then. A file nobody makes it fail as where nobody is logged in.
const fakeLaunchctl = `#!/bin/sh
dir=$(dirname "$0")
echo "$*" >> "$dir/calls"
case "$1" in
bootout) [ -e "$dir/loaded" ] || { echo "Boot-out failed: 3: No such process" >&2; exit 3; }; echo 3 > "$dir/ending" ;;
bootstrap)
  [ -e "$dir/nobody" ] && { echo "Bootstrap failed: 125: Domain does not support specified action" >&2; exit 125; }
  [ -e "$dir/loaded" ] && { echo "Bootstrap failed: 5: Input/output error" >&2; exit 5; }
  [ -f "$3" ] || exit 2
  touch "$dir/loaded" ;;
print)
  if [ -e "$dir/ending" ]; then
    n=$(cat "$dir/ending"); n=$((n - 1)); echo $n > "$dir/ending"
    [ $n -le 0 ] && rm -f "$dir/ending" "$dir/loaded"
  fi
  [ -e "$dir/loaded" ] || { echo "Could not find service in domain" >&2; exit 113; }
  printf 'gui/501/x = {\n\tstate = running\n}\n' ;;
print-disabled) [ -e "$dir/disabled" ] && printf '\tdisabled services = {\n\t\t"local.heartbeat-fleet" => disabled\n\t}\n' ;;
esac
exit 0
`

// plistKeys reads a property list's outermost dictionary: each key with its value, as XML.
func plistKeys(t *testing.T, text string) map[string]string {
	t.Helper()
	var list struct {
		XMLName xml.Name `xml:"plist"`
		Version string   `xml:"version,attr"`
		Dict    struct {
			Inner string `xml:",innerxml"`
		} `xml:"dict"`
	}
	if err := xml.Unmarshal([]byte(text), &list); err != nil || list.Version != "1.0" {
		t.Fatalf("no property list: %v\n%s", err, text)
	}
	all := map[string]string{}
	d, key := xml.NewDecoder(strings.NewReader(list.Dict.Inner)), ""
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		var value struct {
			Inner []byte `xml:",innerxml"`
		}
		if err := d.DecodeElement(&value, &start); err != nil {
			t.Fatal(err)
		}
		if start.Name.Local == "key" {
			key = string(value.Inner)
			continue
		}
		all[key] = start.Name.Local + ":" + string(bytes.Join(bytes.Fields(value.Inner), nil))
	}
}

// TestServiceOfLaunchd: a reinstall asked launchd for the new one before the old one had
// ended, and was refused; and what it said to type next ended the service for good.
func TestServiceOfLaunchd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.env = append(w.env, "PATH="+filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"))
	w.put("bin/launchctl", fakeLaunchctl)
	if err := os.Chmod(filepath.Join(w.dir, "bin/launchctl"), 0o755); err != nil {
		t.Fatal(err)
	}
	const unit = "home/Library/LaunchAgents/local.heartbeat-fleet.plist"
	calls := func() string {
		t.Helper()
		data, _ := os.ReadFile(filepath.Join(w.dir, "bin/calls"))
		_ = os.Remove(filepath.Join(w.dir, "bin/calls"))
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
	is("before", w.run("service", "status", "launchd"), 0, "installed no", "enabled   not-found\n", "active    inactive\n")

	w.put("bin/nobody", "")
	is("nobody is logged in", w.run("service", "install", "launchd"), exitError, "cannot start the service", "Domain does not support", "hint: nobody is logged in at this machine's screen")
	w.put("bin/disabled", "")
	is("disabled", w.run("service", "status", "launchd"), 0, "enabled   disabled\n")
	_ = os.Remove(filepath.Join(w.dir, "bin/disabled"))
	is("at the next login", w.run("service", "status", "launchd"), 0, "enabled   enabled\n", "active    inactive\n")
	_ = os.Remove(filepath.Join(w.dir, "bin/nobody"))
	calls()

	is("install", w.run("service", "install", "launchd"), 0, "ran launchctl bootstrap gui/")
	if got := calls(); !strings.Contains(got, "\nenable gui/") || !strings.HasSuffix(got, w.dir+"/"+unit+"\n") {
		t.Errorf("install called %q", got)
	}
	is("it runs", w.run("service", "status", "launchd"), 0, "installed yes (", "enabled   enabled\n", "active    active\n", "tail -n 20 ")
	calls()
	if o := w.run("service", "install", "launchd"); o.status != 0 || strings.Contains(calls(), "boot") {
		t.Errorf("unchanged, it was ended: %+v", o)
	}
	if o := w.run("service", "install", "launchd", "--run-arg=--watch-config"); o.status != 0 || strings.Contains(o.stdout, "heartbeat stop") {
		t.Errorf("changed: %+v", o)
	}
	if got := calls(); !strings.Contains(got, "bootout") || strings.Count(got, "print gui/") < 3 || !strings.Contains(got, "bootstrap") {
		t.Errorf("a changed one called %q", got)
	}
	keys := plistKeys(t, w.get(unit))
	for key, want := range map[string]string{
		"Label": "string:local.heartbeat-fleet", "RunAtLoad": "true:", "KeepAlive": "dict:<key>SuccessfulExit</key><false/>", "ThrottleInterval": "integer:30",
		"StandardOutPath": "string:" + w.dir + "/home/Library/Logs/heartbeat-fleet.log", "StandardErrorPath": "string:" + w.dir + "/home/Library/Logs/heartbeat-fleet.log",
	} {
		if keys[key] != want {
			t.Errorf("%s is %q, want %q", key, keys[key], want)
		}
	}
	if args := keys["ProgramArguments"]; !strings.HasPrefix(args, "array:<string>/") || !strings.HasSuffix(args, "<string>run</string><string>--watch-config</string>") {
		t.Errorf("ProgramArguments: %s", args)
	}
	if keys["ExitTimeOut"] == "" || !strings.Contains(keys["EnvironmentVariables"], "<key>PATH</key>") {
		t.Errorf("the property list: %q", keys)
	}

	is("uninstall", w.run("service", "uninstall", "launchd"), 0, "removed "+filepath.Join(w.dir, unit))
	if got := calls(); !strings.HasPrefix(got, "bootout gui/") || strings.Count(got, "print gui/") < 3 {
		t.Errorf("uninstall called %q", got)
	}
	is("nothing left", w.run("service", "status", "launchd"), 0, "installed no", "enabled   not-found\n")
}
