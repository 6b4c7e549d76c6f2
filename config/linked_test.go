package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestADollarIsOneVariableOrItself: what a shell would make of a $ is refused, with what to
// type, and a folder whose name has one can be named.
func TestADollarIsOneVariableOrItself(t *testing.T) {
	t.Setenv("HEARTBEAT_TEST_DIR", "set")
	for dir, want := range map[string]string{
		"${HEARTBEAT_TEST_DIR}/a": "set/a", "$$HOME": "$HOME", "a$$b": "a$b", "$$$${HEARTBEAT_TEST_DIR}": "$${HEARTBEAT_TEST_DIR}", "$$${HEARTBEAT_TEST_DIR}": "$set",
		"a$": "a$", "a$1": "a$1", "$-x": "$-x",
		"$HEARTBEAT_TEST_DIR": "write ${HEARTBEAT_TEST_DIR} for a variable, or $$ for a $ in a name", "$(pwd)": "write ${NAME}", "${HEARTBEAT_TEST_DIR": "write ${NAME}", "$$$HOME": "write ${HOME}",
		"${HEARTBEAT_TEST_DIR:-x}": "write ${NAME}, without a default", "${}": "write ${NAME}", "${HEARTBEAT_TEST_NONE}": "export HEARTBEAT_TEST_NONE=",
	} {
		path := fleetOf(t, map[string]string{"heartbeat.yaml": "version: 1\nagents: {a: {dir: '" + dir + "'}}\n"})
		f, err := Load(path)
		if err != nil {
			if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ":2:19: agents.a.dir: ") {
				t.Errorf("%s: %v", dir, err)
			}
			continue
		}
		if got, _ := filepath.Rel(filepath.Dir(path), f.Agents[0].Dir); got != want {
			t.Errorf("%s is %s, want %s", dir, got, want)
		}
	}
}

// TestAWatchThroughALinkIsSaid: a watch follows no link, and said nothing about it.
func TestAWatchThroughALinkIsSaid(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"folder/*.md": "folder is a symbolic link (to real)", "outside/**/*.md": "outside is a symbolic link (to ../out)", "file.md": "file.md is a symbolic link (to real/r.md)",
		"dangling/*.md": "dangling is a symbolic link", "loop/*.md": "loop is a symbolic link", "sub/folder/x/*.md": "sub/folder is a symbolic link",
		"{folder,real}/*.md": "", "real/*.md": "", "*/r.md": "", "none/*.md": "", "none": "", "**/*.md": "", "real/r.md": "", `fol\der/*.md`: "",
	} {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			path := fleetOf(t, map[string]string{
				"heartbeat.yaml": "version: 1\ndefaults: {trigger: {watch: ['" + pattern + "'], prompt: p}}\nagents: {a: {dir: a}, b: {dir: b}}\n",
				"a/real/r.md":    "x", "a/sub/x": "", "out/o.md": "", "b/x": "",
			})
			dir := filepath.Join(filepath.Dir(path), "a")
			for name, to := range map[string]string{"folder": "real", "outside": "../out", "file.md": "real/r.md", "dangling": "nowhere", "loop": "loop", "sub/folder": "../real"} {
				if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			f := mustLoad(t, path)
			said := slices.IndexFunc(f.Warnings, func(p Problem) bool { return strings.Contains(p.Message, "symbolic link") })
			if (said >= 0) != (want != "") || said >= 0 && (!strings.Contains(f.Warnings[said].Message, want) || f.Warnings[said].Line != 2 || f.Warnings[said].Hint == "") {
				t.Errorf("warnings %+v, want %q", f.Warnings, want)
			}
		})
	}
}
