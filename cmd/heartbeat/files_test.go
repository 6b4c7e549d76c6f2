package main

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"heartbeat/orchestrator/store"
)

// documented are the names in a state directory that the table of files in
// orchestrator/README.md explains, as patterns.
var documented = sync.OnceValues(func() (names []string, err error) {
	text, err := os.ReadFile("../../orchestrator/README.md")
	_, rest, _ := strings.Cut(string(text), "\nIn the state directory")
	table, _, _ := strings.Cut(rest, "\nIn an agent's")
	name := regexp.MustCompile("`([^`]+)`")
	for row := range strings.SplitSeq(table, "\n") {
		if !strings.HasPrefix(row, "| `") {
			continue
		}
		for _, found := range name.FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			first, _, _ := strings.Cut(found[1], "/")
			names = append(names, first)
		}
	}
	return names, err
})

// checkFiles checks that all that was left in the state directories of fleets that have a store
// is documented. Who has gone back to an earlier version has its files, too.
func checkFiles(t *testing.T, states string) {
	t.Helper()
	known, err := documented()
	if err != nil || len(known) < 20 {
		t.Fatalf("documented are %q: %v", known, err)
	}
	all, _ := filepath.Glob(filepath.Join(states, "*", "*"))
	for _, one := range all {
		dir, name := filepath.Split(one)
		if _, err := os.Lstat(filepath.Join(dir, "newer")); err == nil || !store.Exists(dir) {
			continue
		}
		if !slices.ContainsFunc(known, func(pattern string) bool { is, _ := path.Match(pattern, name); return is }) {
			t.Errorf("%s is in a state directory, and not in the table of files in orchestrator/README.md", name)
		}
	}
}
