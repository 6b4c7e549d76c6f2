package rooms

import (
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
)

// TestNoWriteOfTheStoreIsForgotten: a hold, and until when an account is parked, were logged
// where they could not be written, and written with their next change.
func TestNoWriteOfTheStoreIsForgotten(t *testing.T) {
	t.Parallel()
	module := os.DirFS("../..")
	found := map[string]bool{}
	for _, folder := range []string{"orchestrator", "cmd"} {
		err := fs.WalkDir(module, folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(path.Dir(name), "test") {
				return err
			}
			source, err := fs.ReadFile(module, name)
			if err != nil {
				return err
			}
			functions, err := Writing(name, source)
			for _, f := range functions {
				if found[name+" "+f] = true; writers[name+" "+f] == "" {
					t.Errorf("%s: %s writes the store: say in writers what becomes of what it cannot write", name, f)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range writers {
		if !found[name] {
			t.Errorf("%s: writes nothing", name)
		}
	}
}
