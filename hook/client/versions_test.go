package client

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestThePromisedVersions are those that CI installs and tries, and that the README names.
func TestThePromisedVersions(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{"": Claude.Versions.Measured, "oldest": Claude.Versions.Oldest} {
		data, err := os.ReadFile(filepath.Join("../../.ci/client", folder, "package.json"))
		var in struct{ Dependencies map[string]string }
		if err == nil {
			err = json.Unmarshal(data, &in)
		}
		if got := in.Dependencies["@anthropic-ai/claude-code"]; err != nil || got != want {
			t.Errorf(".ci/client/%s has %q, want %q: %v", folder, got, want, err)
		}
		if !strings.Contains(string(readme), want) {
			t.Errorf("the README does not name %s", want)
		}
	}
}
