package rooms

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Some thirty comments named documents that nobody had but their writer.
func TestReferencesLeadSomewhere(t *testing.T) {
	t.Parallel()
	module := os.DirFS("../..")
	r := Repository{Paths: map[string]bool{}, Tests: map[string]bool{}}
	sources := map[string][]byte{} // :: path → a Go or Markdown file
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name != "." && strings.HasPrefix(d.Name(), ".") && name != ".ci" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		r.Paths[name] = true
		if d.IsDir() || path.Ext(name) != ".go" && path.Ext(name) != ".md" || strings.Contains(name, "testdata/") || strings.Contains(name, "node_modules/") {
			return nil
		}
		source, err := fs.ReadFile(module, name)
		for _, match := range declared.FindAllSubmatch(source, -1) {
			r.Tests[string(match[1])] = true
		}
		sources[name] = source
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) < 300 || len(r.Tests) < 500 || !r.Paths["README.md"] {
		t.Fatalf("found %d files and %d tests, want the whole repository", len(sources), len(r.Tests))
	}
	for name, source := range sources {
		found, err := r.References(name, source)
		if err != nil {
			t.Error(err)
		}
		for _, what := range found {
			t.Errorf("%s: refers to %q, which this repository does not have: say the fact itself", name, what)
		}
	}
}

// TestReferences shows that each kind is found.
func TestReferences(t *testing.T) {
	t.Parallel()
	r := Repository{
		Paths: map[string]bool{"README.md": true, "hook/README.md": true, "hook/decide.go": true, "hook": true, "internal/e2e/testdata/turn.txt": true},
		Tests: map[string]bool{"TestThere": true},
	}
	for name, c := range map[string]struct {
		file, source string
		want         []string
	}{
		"a document":                {"hook/a.go", "// As PLAN.md says.\npackage hook", []string{"PLAN.md"}},
		"in a block":                {"hook/a.go", "package hook\n\n/* see docs/plan.md 3 */", []string{"docs/plan.md"}},
		"inside of a function":      {"hook/a.go", "package hook\nfunc f() {\n\t// PLAN.md 4\n}", []string{"PLAN.md"}},
		"of the folder above":       {"hook/a.go", "// README.md, ../README.md\npackage hook", nil},
		"from the root":             {"config/a.go", "// hook/README.md\npackage config", nil},
		"another room's":            {"config/a.go", "// ../hooks/README.md\npackage config", []string{"../hooks/README.md"}},
		"the client's":              {"hook/a.go", "// CLAUDE.md, .claude/CLAUDE.md and .claude/rules/*.md\npackage hook", nil},
		"a text, no comment":        {"hook/a.go", "package hook\nconst c = \"PLAN.md, section 3\"", nil},
		"a sign":                    {"hook/a.go", "// By §3.\npackage hook", []string{"§"}},
		"a section":                 {"hook/a.go", "// The targets (section 10 of it).\npackage hook", []string{"section 1"}},
		"an RFC's":                  {"hook/a.go", "// RFC 9562, section 5.4\npackage hook", nil},
		"a link":                    {"README.md", "[a](hook/README.md) [b](hook/GONE.md)", []string{"hook/GONE.md"}},
		"a link to a place":         {"README.md", "[a](hook/decide.go#L3) [b](#there) [c](hook/x.go#L3)", []string{"hook/x.go"}},
		"a link from below":         {"hook/README.md", "[a](../README.md) [b](decide.go) [c](..) [d](README.md)", []string{".."}},
		"a link out":                {"README.md", "[a](https://example.org/b.md) [b](mailto:a@example.org)", nil},
		"a section in Markdown":     {"README.md", "See section 4.", []string{"section 4"}},
		"a test":                    {"README.md", "`TestThere`, TestGone, TestWired…", []string{"TestGone"}},
		"recordings":                {"README.md", "It ends. Recorded: turn, gone-turn.", []string{"gone-turn"}},
		"a word in a code example":  {"README.md", "```\nheartbeat send triage < task.md\n```", nil},
		"a document named in a URL": {"hook/a.go", "// https://example.org/plan.md\npackage hook", []string{"//example.org/plan.md"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := r.References(c.file, []byte(c.source))
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("got %q, %v, want %q", got, err, c.want)
			}
		})
	}
}
