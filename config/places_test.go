package config

import (
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"strings"
	"testing"
)

// existing is a file system that has some directories; with folds it ignores
// case.
func existing(folds bool, dirs ...string) func(string) (fileID, bool) {
	name := func(path string) string {
		if folds {
			return strings.ToLower(path)
		}
		return path
	}
	ids := map[string]fileID{}
	for _, dir := range dirs {
		for ; dir != "/"; dir = filepath.Dir(dir) {
			h := fnv.New64()
			h.Write([]byte(name(dir)))
			ids[name(dir)] = fileID{1, h.Sum64()}
		}
	}
	ids["/"] = fileID{1, 2}
	return func(path string) (fileID, bool) {
		id, ok := ids[name(path)]
		return id, ok
	}
}

// TestDirectoriesCollideByCase: where a file system ignores case, two
// spellings are one directory, also below it and before it exists.
func TestDirectoriesCollideByCase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, one, two string
		want           string
	}{
		{"both there", "Work", "work", `is also the directory of agent "one" (line 3)`},
		{"neither there", "New", "new", `is also the directory of agent "one" (line 3)`},
		{"nested, there", "Work", "work/Inner", `lies inside the directory of agent "one" (line 3)`},
		{"nested, not there", "Work", "WORK/new/x", `lies inside the directory of agent "one" (line 3)`},
		{"nested in one that is not there", "New", "new/x", `lies inside the directory of agent "one" (line 3)`},
		{"around", "work/x/y", "WORK", `contains the directory of agent "one" (line 3)`},
		{"neighbours", "Work/a", "work/b", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			data := fmt.Appendf(nil, "version: 1\nagents:\n  one: {dir: %s}\n  two: {dir: %s}\n", tt.one, tt.two)
			load := func(folds bool) error {
				_, err := parse("/nonexistent/agents/heartbeat.yaml", data, newPlaces(existing(folds, "/nonexistent/agents/Work/Inner")), disk{}, nil)
				return err
			}
			if err := load(false); err != nil {
				t.Errorf("where case counts: %v", err)
			}
			err := load(true)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			problems, _ := errors.AsType[Problems](err)
			if len(problems) != 1 || !strings.Contains(problems[0].Message, tt.want) || problems[0].Line != 4 {
				t.Errorf("got %v", err)
			}
		})
	}
}
