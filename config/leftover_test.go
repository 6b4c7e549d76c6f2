package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestIncludeTakesNoLeftovers: what editors, version control and ConfigMaps have beside a
// file broke the fleet, or declared its agents twice. What is named is taken.
func TestIncludeTakesNoLeftovers(t *testing.T) {
	t.Parallel()
	one := func(name string) string { return "agents: {" + name + ": {dir: /" + name + "}}\n" }
	for include, want := range map[string]string{
		"agents/*.yaml":                  "a b",
		"agents/*":                       "a b",
		"agents/**/*.yaml":               "a b sub",
		"'**/*.yaml'":                    "a b sub top",
		"agents/.*.yaml":                 "hidden",
		"agents/.hidden.yaml":            "hidden",
		"'agents/{a,.hidden}.yaml'":      "a",
		"agents/..data/b.yaml":           "b",
		"agents/.git/*.yaml":             "git",
		"'agents/a.yaml~'":               "old",
		"agents/*.yaml, agents/.h*.yaml": "a b hidden",
	} {
		t.Run(include, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{
				"heartbeat.yaml": "version: 1\ninclude: [" + include + "]\n",
				"top.yaml":       one("top"), "agents/a.yaml": one("a"), "agents/sub/sub.yaml": one("sub"), "agents/.hidden.yaml": one("hidden"), "agents/.git/git.yaml": one("git"),
				"agents/..2026_11/b.yaml": one("b"),
				"agents/a.yaml~":          one("old"), "agents/#a.yaml#": one("a"), "agents/.a.yaml.swp": "b0VIM 9.0", "agents/a.yaml.swp": "b0VIM", "agents/4913": "",
			}
			path := fleetOf(t, files)
			agents := filepath.Join(filepath.Dir(path), "agents")
			for name, to := range map[string]string{".#a.yaml": "me@host.4711:1", "..data": "..2026_11", "b.yaml": "..data/b.yaml"} {
				if err := os.Symlink(to, filepath.Join(agents, name)); err != nil {
					t.Fatal(err)
				}
			}
			if strings.HasPrefix(include, "'**") { // it does not include itself
				if err := os.Rename(path, filepath.Join(filepath.Dir(path), "fleet.yml")); err != nil {
					t.Fatal(err)
				}
				path = filepath.Join(filepath.Dir(path), "fleet.yml")
			}
			f := mustLoad(t, path)
			var got []string
			for _, a := range f.Agents {
				got = append(got, a.Name)
			}
			slices.Sort(got)
			if names := strings.Join(got, " "); names != want {
				t.Errorf("it takes %q, want %q", names, want)
			}
			again, err := Recall(f.Texts, f.Folders)
			if err != nil || len(again.Agents) != len(f.Agents) {
				t.Errorf("as it was kept: %v", err)
			}
		})
	}
}

// TestAPatternThatMatchesOnlyLeftoversSaysSo.
func TestAPatternThatMatchesOnlyLeftoversSaysSo(t *testing.T) {
	t.Parallel()
	path := fleetOf(t, map[string]string{"heartbeat.yaml": "version: 1\ninclude: [agents/*]\nagents: {a: {dir: a}}\n", "agents/.a.yaml": "agents: {b: {dir: b}}\n"})
	f := mustLoad(t, path)
	if len(f.Warnings) != 1 || !strings.Contains(f.Warnings[0].String(), `no file matches "agents/*"`) || f.Warnings[0].Hint != hiddenHint {
		t.Errorf("%+v", f.Warnings)
	}
}
