package rooms

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// aside are files whose wording is not ours, or that list words: the test's own, what the
// client and services say, and scripts.
var aside = []string{"internal/rooms/words.go", "cmd/heartbeat/complete.go", "NOTICES", "LICENSE"}

// printed are the documents that users read; those about the code are read by who works on it.
func printed(name string) bool {
	return name == "README.md" || strings.HasPrefix(name, "docs/") || strings.HasPrefix(name, "cmd/heartbeat/help/") || path.Ext(name) == ".html" ||
		name == "orchestrator/explain/words.txt" || path.Ext(name) == ".yaml" || name == "config/schema.json"
}

// TestNothingHasToBeReadTwice: what is printed, the help, the README, docs and comments use
// no wording that is known to be unclear.
func TestNothingHasToBeReadTwice(t *testing.T) {
	t.Parallel()
	module := os.DirFS("../..")
	files := 0
	err := fs.WalkDir(module, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (name != "." && strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		isGo := path.Ext(name) == ".go"
		if d.IsDir() || strings.HasSuffix(name, "_test.go") || slices.Contains(aside, name) || !isGo && path.Ext(name) != ".md" && !printed(name) {
			return nil
		}
		files++
		source, err := fs.ReadFile(module, name)
		if err != nil {
			return err
		}
		said := []Said{}
		if isGo {
			if said, err = Texts(name, source); err != nil {
				return err
			}
		} else {
			for i, block := range strings.Split(string(source), "\n\n") {
				said = append(said, Said{i, strings.Join(strings.Fields(block), " "), !printed(name)})
			}
		}
		for _, s := range said {
			for _, found := range Unclear(s.Text, s.Code) {
				where := "line"
				if !isGo {
					where = "paragraph"
				}
				t.Errorf("%s, %s %d: %s", name, where, s.Line, found)
			}
		}
		return nil
	})
	if err != nil || files < 300 {
		t.Fatalf("looked at %d files: %v", files, err)
	}
}

func TestUnclear(t *testing.T) {
	t.Parallel()
	for text, tt := range map[string]struct{ printed, code bool }{
		"it begins anew":                 {true, true},
		"the event trigger-anew":         {false, false},
		"the size of that file":          {false, false},
		"because of that.":               {true, true},
		"cannot see to what waits":       {true, true},
		"it is no file":                  {true, false},
		"there is no file":               {false, false},
		"it is no longer held":           {false, false},
		"the prompt in work":             {true, true},
		"what the entry in worktime has": {false, false},
		"chown it; else move it":         {true, false},
		"the file by which it gets it":   {true, false},
		"cannot find the file \"x\"":     {false, false},
	} {
		if got := len(Unclear(text, false)) > 0; got != tt.printed {
			t.Errorf("%q printed: %v", text, got)
		}
		if got := len(Unclear(text, true)) > 0; got != tt.code {
			t.Errorf("%q in code: %v", text, got)
		}
	}
}
