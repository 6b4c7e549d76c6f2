package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Keys that begin with x- at the top of a file are the person's own.
func TestOwnKeysForAnchors(t *testing.T) {
	t.Parallel()
	f := mustLoad(t, write(t, `
version: 1
x-careful: &careful
  timeout: 5m
  mode: persist
x-note: anything at all
agents:
  a: {dir: a, <<: *careful}
  b: {dir: b}
`))
	if f.Agent("a").Timeout != 5*time.Minute || f.Agent("b").Timeout != DefaultTimeout {
		t.Errorf("timeouts %v, %v", f.Agent("a").Timeout, f.Agent("b").Timeout)
	}
	problems := problemsOf(t, write(t, "version: 1\nagents: {a: {dir: a, x-note: 1}}\n"))
	if len(problems) != 1 || !strings.Contains(problems[0], "x-note: unknown key") {
		t.Errorf("in an agent: %q", problems)
	}
}

func TestKeysThatOthersUse(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"agents: {a: {directory: a}}":                                          "agents.a.directory: unknown key (did you mean dir?)",
		"agents: {a: {dir: a, working-directory: b}}":                          "did you mean dir?",
		"agents: {a: {dir: a, cmd: [x]}}":                                      "did you mean command?",
		"agents: {a: {dir: a, environment: {A: b}}}":                           "did you mean env?",
		"agents: {a: {dir: a, limits: {memory: 1GiB}}}":                        "did you mean resources?",
		"concurrency: 3\nagents: {a: {dir: a}}":                                "did you mean max-sessions?",
		"agents: {a: {dir: a, trigger: {cron: '@daily', prompt: x, tz: UTC}}}": "did you mean timezone?",
	} {
		problems := problemsOf(t, write(t, "version: 1\n"+yaml+"\n"))
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("%s: %q", yaml, problems)
		}
	}
}

func TestZonesThatAreMeant(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Europe/Roma": "Europe/Rome", "Rome": "Europe/Rome", "europe/paris ": "Europe/Paris", "America/NewYork": "America/New_York",
		"Europe/Wien": "Europe/Vienna", "PST": "America/Los_Angeles", "Tokio": "Asia/Tokyo", "Europe/Munich": "Europe/Berlin",
		"US/Pacfic": "US/Pacific", "America/Bosie": "America/Boise", "america/argentina/ushuaia": "America/Argentina/Ushuaia", "Canada/Atlntic": "Canada/Atlantic",
	} {
		if got := zoneHint(name); got != "did you mean "+want+"?" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for _, zone := range zones {
		if _, err := time.LoadLocation(zone); err != nil {
			t.Error(err)
		}
	}
	for _, zone := range called {
		if !slices.Contains(zones, zone) {
			t.Errorf("%s is no zone of the list", zone)
		}
	}
	if got := zoneHint("Mars/Olympus"); !strings.HasPrefix(got, "a name such as") {
		t.Error(got)
	}
}

// TestKeysOfOtherProgramsInTheWrongPlace: of a schedule in an agent all keys of agents were
// listed, which has none.
func TestKeysOfOtherProgramsInTheWrongPlace(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]string{
		"agents: {a: {dir: a, schedule: '@daily'}}": "agents.a.schedule: unknown key (did you mean cron? it belongs below trigger:)",
		"agents: {a: {dir: a, message: x}}":         "agents.a.message: unknown key (did you mean prompt? it belongs below trigger:)",
		"agents: {a: {dir: a, overlap: skip}}":      "agents.a.overlap: unknown key (it belongs below trigger:)",
		"schedule: '@daily'\nagents: {a: {dir: a}}": "schedule: unknown key (did you mean cron? it belongs in an agent, below trigger:)",
		"cron: '@daily'\nagents: {a: {dir: a}}":     "cron: unknown key (it belongs in an agent, below trigger:)",
		"directory: x\nagents: {a: {dir: a}}":       "directory: unknown key (did you mean dir? it belongs in an agent, or in defaults:)",
	} {
		problems := problemsOf(t, write(t, "version: 1\n"+yaml+"\n"))
		if !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("%s: %q", yaml, problems)
		}
	}
}
