package service

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// awkward has in its paths all that a unit or a property list gives a meaning.
func awkward(system bool) *Unit {
	return &Unit{
		Fleet: "my-fleet", Binary: `/opt/heart beat/100%/$HOME/heartbeat`, File: `/srv/a "b" \c/%n/$x/<&>--/heartbeat.yaml`,
		System: system, User: "agents", Args: []string{"--metrics", ":9464", "é"},
		Env:         []string{"PATH=/usr/bin:/opt/with space/%h/$bin", "HEARTBEAT_STATE_DIR=/var/lib/heartbeat"},
		StopTimeout: 54500 * time.Millisecond, NoRestart: []int{2, 78},
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("UPDATE_GOLDEN=1 writes it anew (-want +got):\n%s", diff)
	}
}

func rendered(t *testing.T, u *Unit) string {
	t.Helper()
	text, err := u.Systemd()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestUnits(t *testing.T) {
	t.Parallel()
	golden(t, "user.service", rendered(t, awkward(false)))
	golden(t, "system.service", rendered(t, awkward(true)))
	agent, err := awkward(false).Launchd("/Users/agents/Library/Logs")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "agent.plist", agent)
	daemon, err := awkward(true).Launchd("/Users/agents/Library/Logs")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "daemon.plist", daemon)
}

// TestThePropertyListIsXML, and a reader finds the paths in it as they are.
func TestThePropertyListIsXML(t *testing.T) {
	t.Parallel()
	u := awkward(true)
	text, err := u.Launchd("/Library/Logs")
	if err != nil {
		t.Fatal(err)
	}
	var strs []string
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok && start.Name.Local == "string" {
			var s string
			if err := d.DecodeElement(&s, &start); err != nil {
				t.Fatal(err)
			}
			strs = append(strs, s)
		}
	}
	want := []string{
		"local.heartbeat-my-fleet", u.Binary, "-f", u.File, "run", "--metrics", ":9464", "é", "agents",
		"/usr/bin:/opt/with space/%h/$bin", "/var/lib/heartbeat",
		"/Library/Logs/heartbeat-my-fleet.log", "/Library/Logs/heartbeat-my-fleet.log",
	}
	if diff := cmp.Diff(want, strs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"/a\x01b", "/a\xffb"} {
		u.File = bad
		if _, err := u.Launchd("/Library/Logs"); err == nil || !strings.Contains(err.Error(), "XML cannot hold") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		word             string
		argument, inPath string
	}{
		{"/usr/bin/heartbeat", "/usr/bin/heartbeat", "/usr/bin/heartbeat"},
		{"", `""`, `""`},
		{"a b", `"a b"`, `"a b"`},
		{"$x%i", `"$$x%%i"`, `"$x%%i"`},
		{`"\`, `"\"\\"`, `"\"\\"`},
		{"a\nb\x7f", `"a\x0ab\x7f"`, `"a\x0ab\x7f"`},
		{"a\xffb", `"a\xffb"`, `"a\xffb"`},
		{"é\uFFFD", "\"é\uFFFD\"", "\"é\uFFFD\""},
		{"'", `"'"`, `"'"`},
		{";", `";"`, `";"`},
	} {
		if got := quoted(c.word, true); got != c.argument {
			t.Errorf("argument %q: %s, want %s", c.word, got, c.argument)
		}
		if got := quoted(c.word, false); got != c.inPath {
			t.Errorf("path %q: %s, want %s", c.word, got, c.inPath)
		}
	}
}

// TestSystemdTakesTheUnit asks systemd itself, where it is installed. A
// command that it finds at the wrong path is an error to it.
func TestSystemdTakesTheUnit(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed (apt-get install systemd)")
	}
	dir := filepath.Join(t.TempDir(), `a "b" \c %n $x 100% é`)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	u := awkward(true)
	u.User = "root"
	u.File = filepath.Join(dir, "heartbeat.yaml")
	for _, c := range `"'\` {
		u.Binary = "/opt/a" + string(c)
		if _, err := u.Systemd(); err == nil {
			t.Errorf("systemd runs no %s", u.Binary)
		}
	}
	u.Binary = filepath.Join(t.TempDir(), "heart beat $x 100% é;")
	verify := func() (string, error) {
		unit := filepath.Join(dir, "heartbeat-my-fleet.service")
		if err := os.WriteFile(unit, []byte(rendered(t, u)), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "systemd-analyze", "verify", unit)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := verify(); err == nil {
		t.Fatalf("systemd-analyze does not look for the command: %s", out)
	}
	if err := os.WriteFile(u.Binary, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := verify(); err != nil || strings.Contains(out, "heartbeat") {
		t.Errorf("%v\n%s", err, out)
	}
}
