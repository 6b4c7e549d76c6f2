package rooms

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)`)

// TestNotices: NOTICES has the licence of each module that is linked into our
// programs, as the modules themselves have them; their licences ask for it.
// UPDATE_GOLDEN=1 writes it anew.
func TestNotices(t *testing.T) {
	t.Parallel()
	modules := map[string]string{} // :: path and version → folder
	for _, system := range []string{"linux", "darwin"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps",
			"-f", "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}", "heartbeat/cmd/...")
		cmd.Env, cmd.Stderr = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"), os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if name, dir, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
				modules[name] = dir
			}
		}
	}
	if len(modules) < 10 {
		t.Fatalf("only %d modules", len(modules))
	}
	var want bytes.Buffer
	want.WriteString("heartbeat is linked with these modules, under the licences that follow.\nIts own is in LICENSE.\n")
	names := make([]string, 0, len(modules))
	for name := range modules {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		entries, err := os.ReadDir(modules[name])
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, e := range entries {
			if e.IsDir() || !licence.MatchString(e.Name()) {
				continue
			}
			text, err := os.ReadFile(filepath.Join(modules[name], e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			found = true
			fmt.Fprintf(&want, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 80), name, e.Name(), bytes.TrimSpace(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
		}
		if !found {
			t.Errorf("%s has no licence", name)
		}
	}
	const file = "../../NOTICES"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want.Bytes()) {
		t.Errorf("NOTICES is not what the modules say; UPDATE_GOLDEN=1 go test ./internal/rooms -run Notices writes it (%v)", err)
	}
}
