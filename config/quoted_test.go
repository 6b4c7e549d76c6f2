package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A problem quotes its line, of whichever file, but none that may hold the value of
// an environment variable.
func TestAProblemQuotesItsLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ yaml, line string }{
		"a key":               {"agents:\r\n  a:\r\n    dir: a\r\n    colour: red\r\n", "    colour: red"},
		"an agent without":    {"agents:\n  a: {mode: drain}\n", "  a: {mode: drain}"},
		"broken":              {"agents:\n  a:\n    dir: \"a\n", "    dir: \"a"},
		"the end of the file": {"agents: {a: {dir: a, x: 1}}", "agents: {a: {dir: a, x: 1}}"},
		"a variable":          {"agents:\n  a:\n    dir: a\n    env:\n      A: [secret]\n", ""},
		"in braces":           {"agents: {a: {dir: a, \"env\": {A: [secret]}}}\n", ""},
		"of the defaults":     {"defaults:\n  env:\n\n    # a comment\n    A:\n      - secret\nagents: {a: {dir: a}}\n", ""},
		"a broken variable":   {"agents:\n  a:\n    dir: a\n    env:\n      A: \"secret\n      B: x\n", ""},
		"an address":          {"agents: {a: {dir: a}}\nnotify:\n  t:\n    webhook: https://x:hush@a.example\n", ""},
		"a folded address":    {"agents: {a: {dir: a}}\nnotify:\n  t:\n    webhook: >\n      https://hooks.slack.com/hush\n", ""},
		"a token":             {"agents: {a: {dir: a}}\nnotify: {t: {webhook: 'https://a.example', token: hush}}\n", ""},
		"where to ping":       {"agents: {a: {dir: a}}\nping: {url: 'https://a.example/?key=hush'}\n", ""},
		"behind them":         {"agents:\n  a:\n    dir: a\n    env:\n      A: secret\n    colour: red\n", "    colour: red"},
		"like it":             {"agents:\n  a:\n    dir: a\n    my-envy: red\n", "    my-envy: red"},
		"an included file's":  {"include: [b.yaml]\nagents: {a: {dir: a}}\n", "agents: {b: {dir: b, colour: blue}}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := write(t, "version: 1\n"+tt.yaml)
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), "b.yaml"), []byte("agents: {b: {dir: b, colour: blue}}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Load(path)
			problems, ok := errors.AsType[Problems](err)
			if !ok || len(problems) == 0 || problems[0].Source != tt.line || strings.Contains(err.Error(), "secret") && !strings.Contains(err.Error(), ": is a secret: ") || strings.Contains(err.Error(), "hush") {
				t.Errorf("%+v", err)
				for _, p := range problems {
					t.Logf("%s: %q", p, p.Source)
				}
			}
		})
	}
}
