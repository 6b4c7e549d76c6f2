package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// many is a file with n agents of different shapes.
func many(n int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\ndefaults:\n  timezone: Europe/Rome\n  timeout: 1h\n  permissions: {allow: [Read, Edit]}\nagents:\n")
	for i := range n {
		fmt.Fprintf(&b, "  agent-%d:\n    dir: agents/a%d\n    mode: persist\n    permissions:\n      allow: [Read, \"Bash(git *)\"]\n    env: {N: %d}\n", i, i, i)
		switch i % 3 {
		case 0:
			fmt.Fprintf(&b, "    trigger:\n      cron: \"%d %d * * 1-5\"\n      prompt: \"Do number %d at {{.Label}}\"\n", i%60, i%24, i)
		case 1:
			b.WriteString("    triggers:\n      - watch: [\"incoming/**/*.md\"]\n        prompt: \"Process {{.Path}}\"\n      - poll: [./next.sh]\n        every: 1m\n")
		}
	}
	return []byte(b.String())
}

// TestWorkPerAgent bounds what an agent costs, and that it does not depend on
// how many others there are. It counts allocations, because the time that a
// test measures is that of its neighbours; the benchmark gives the time.
func TestWorkPerAgent(t *testing.T) {
	perAgent := func(n int) float64 {
		data := many(n)
		return testing.AllocsPerRun(1, func() {
			f, err := parseText("/nonexistent/heartbeat.yaml", data)
			if err != nil || len(f.Agents) != n || f.Agent(fmt.Sprint("agent-", n-1)) == nil {
				t.Fatal(err)
			}
		}) / float64(n)
	}
	few, more := perAgent(300), perAgent(2400)
	if few > 250 || more > few*1.2 {
		t.Errorf("%.0f allocations an agent for 300, %.0f for 2400", few, more)
	}
}

func BenchmarkLoadTenThousandAgents(b *testing.B) {
	path := write(b, string(many(10_000)))
	for b.Loop() {
		if _, err := Load(path); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzParse checks that no input makes it panic or hang, that each problem
// has a place in the file, and that what is accepted is usable.
func FuzzParse(f *testing.F) {
	f.Add(Starter())
	f.Add(Reference())
	f.Add(many(3))
	for _, s := range []string{
		"", "a: &a [*a]", "agents: &a {<<: *a, b: *a}", "version: 1\nagents: {a: {dir: x, timeout: 1d}}", "? {a: b}\n: c", "- 1\n---\n- 2", "\t", "\xff", "a: !!binary x",
		"version: 1\nagents: {}", // said explicitly: apply takes back the last agents
		"version: 1\nagents: {a: {dir: x, trigger: {cron: '*/5 * * * *', prompt: '{{.At}}'}}}",
		"version: 1\nagents: {a: {dir: x, trigger: {watch: ['{a,b}/**'], prompt: '{{.Path}}', debounce: none}}}",
		"version: 1\ndefaults: {permissions: {allow: [a]}, env: {A: b}}\nagents: {a: {dir: x, permissions: {deny: [b]}, env: {C: d}}}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		fleet, err := parseText("/nonexistent/heartbeat.yaml", data)
		if err == nil {
			usable(t, fleet)
			return
		}
		problems, ok := errors.AsType[Problems](err)
		if !ok || len(problems) == 0 {
			t.Fatalf("%T: %v", err, err)
		}
		lines := strings.Count(string(data), "\n") + strings.Count(string(data), "\r") + 2 +
			strings.Count(string(data), "\u0085") + strings.Count(string(data), "\u2028") + strings.Count(string(data), "\u2029")
		for _, p := range problems {
			if p.Line < 1 || p.Line > lines || p.Column < 1 || p.Message == "" {
				t.Errorf("%d lines, problem %+v", lines, p)
			}
		}
	})
}

func usable(t *testing.T, fleet *Fleet) {
	if fleet.Name == "" || fleet.MaxSessions < 1 {
		t.Errorf("fleet %+v", fleet)
	}
	for _, a := range fleet.Agents {
		if fleet.Agent(a.Name) != a || a.Dir == "" || a.Inbox == "" || len(a.Command) == 0 || a.IdleInterval <= 0 || a.MaxEntry < 1 || a.Line < 1 {
			t.Errorf("agent %+v", a)
		}
		for _, trigger := range a.Triggers {
			if trigger.Name == "" || (trigger.Cron == nil) == (trigger.Watch == nil && trigger.Poll == nil) {
				t.Errorf("trigger %+v", trigger)
			}
		}
	}
}
