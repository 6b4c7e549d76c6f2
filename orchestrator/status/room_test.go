package status

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What is said of agents is made out of values: the files that look at the disk
// are these two, and they decide nothing.
func TestTheRestOfTheRoomIsPure(t *testing.T) {
	t.Parallel()
	looking := []string{"disk.go", "backlog.go"}
	disk := []string{"os", "io/fs", "heartbeat/hook/flock", "heartbeat/orchestrator/queue", "heartbeat/orchestrator/state"}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || slices.Contains(looking, name) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err != nil || slices.Contains(disk, path) {
				t.Errorf("%s imports %s: look at the disk in disk.go", name, path)
			}
		}
	}
}
