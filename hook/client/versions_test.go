package client

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestThePromisedVersions are those that CI installs, and that the README and the help name.
func TestThePromisedVersions(t *testing.T) {
	t.Parallel()
	for folder, want := range map[string]string{"": Claude.Versions.Measured, "oldest": Claude.Versions.Oldest} {
		data, err := os.ReadFile(filepath.Join("../../.ci/client", folder, "package.json"))
		var in struct{ Dependencies map[string]string }
		if err == nil {
			err = json.Unmarshal(data, &in)
		}
		if got := in.Dependencies["@anthropic-ai/claude-code"]; err != nil || got != want {
			t.Errorf(".ci/client/%s has %q, want %q: %v", folder, got, want, err)
		}
	}
	tried := []string{Claude.Versions.Oldest, Claude.Versions.Measured, Claude.Versions.Newest}
	known := append(tried, "2.1.200" /* does not work */, "2.1.332" /* the first that cuts */)
	version := regexp.MustCompile(`\b2\.\d+\.\d+\b`)
	for _, pattern := range []string{"../../README.md", "../../docs/*.md", "../../cmd/heartbeat/help/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range version.FindAllString(string(text), -1) {
				if !slices.Contains(known, v) {
					t.Errorf("%s names Claude Code %s, which is not tried", file, v)
				}
			}
			if base := filepath.Base(file); base != "README.md" && base != "client.md" {
				continue
			}
			for _, v := range tried {
				if !strings.Contains(string(text), v) {
					t.Errorf("%s does not name Claude Code %s, which is tried", file, v)
				}
			}
		}
	}
}
