package probe

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// TestNothingOfTheUsersIsReachable: a client that is probed has no variable of the
// user's, another home, and our API.
func TestNothingOfTheUsersIsReachable(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "the user's own")
	t.Setenv("ANTHROPIC_BASE_URL", "https://example.com")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the user's own")
	dir := t.TempDir()
	spy := filepath.Join(dir, "claude")
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && { env >%[1]s/version; exit; }\nenv >%[1]s/env; ls -a $HOME >%[1]s/home\n", dir)
	if err := os.WriteFile(spy, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r := probe(t, Prober{Patience: 2 * time.Second}, []string{spy}, os.Getenv("PATH"))
	if r.Verdict() != Bad || r.Broken[0].Promise != Starts {
		t.Errorf("%+v", r)
	}
	allowed := []string{
		"PATH", "HOME", "TMPDIR", "TERM", "LANG", "SHELL", "GORACE", "PWD", "OLDPWD", "SHLVL", "_", "LINES", "COLUMNS",
		"HEARTBEAT_SESSION", "HEARTBEAT_TREE", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "DISABLE_AUTOUPDATER",
	}
	for _, name := range []string{"version", "env"} {
		env, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(env)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if !slices.Contains(allowed, name) && !strings.HasPrefix(name, "CLAUDE_CODE_") {
				t.Errorf("it has %s", name)
			}
			if strings.Contains(value, "the user's own") || strings.Contains(value, "example.com") || name == "HOME" && value == os.Getenv("HOME") {
				t.Errorf("it has %s=%s", name, value)
			}
		}
	}
	if home, _ := os.ReadFile(filepath.Join(dir, "home")); strings.TrimSpace(string(home)) != ".\n..\n.claude.json" {
		t.Errorf("its home has %q", home)
	}
}

// TestWithoutANetworkOfItsOwn a client is probed all the same, and the result says so;
// unless an administrator's settings could have it call others.
func TestWithoutANetworkOfItsOwn(t *testing.T) {
	t.Parallel()
	none := func() []*syscall.SysProcAttr { return []*syscall.SysProcAttr{{Chroot: "/nowhere"}} }
	r := probe(t, Prober{networks: none, managed: func() bool { return false }}, standIn(t), os.Getenv("PATH"))
	if r.Verdict() != Good || r.Isolated || !strings.Contains(r.Open, "cannot have a network of its own") {
		t.Errorf("%+v", r)
	}
	r = probe(t, Prober{networks: none, managed: func() bool { return true }}, standIn(t), os.Getenv("PATH"))
	if r.Verdict() != Unknown || !strings.Contains(string(r.Failure), "administrator") {
		t.Errorf("with an administrator's settings: %+v", r)
	}
}

// TestAProbeThatIsCutShort says nothing about the client, and leaves no process and no
// folder.
func TestAProbeThatIsCutShort(t *testing.T) {
	t.Parallel()
	const mark = "59m59s" // on the command line of this test's clients
	argv := append(standIn(t, "no-hook=UserPromptSubmit"), "--max-time", mark)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	began := make(chan struct{}, 100)
	p := Prober{Self: self, Step: func(int, int, string) { began <- struct{}{} }}
	go func() {
		<-began
		testbed.Await(testbed.Patience, func() bool { return len(running(mark)) > 0 })
		stop(fmt.Errorf("the run is stopped"))
	}()
	r := p.Probe(ctx, argv, os.Getenv("PATH"))
	if r.Verdict() != Unknown || r.Failure == "" {
		t.Errorf("%+v", r)
	}
	if !testbed.Await(testbed.Patience, func() bool { return len(running(mark)) == 0 }) {
		t.Errorf("left: %v", running(mark))
	}
}

// running are the processes that have a word on their command line; other systems than
// Linux show none.
func running(word string) (found []string) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err == nil && bytes.Contains(line, []byte("\x00"+word+"\x00")) {
			found = append(found, dir)
		}
	}
	return found
}
