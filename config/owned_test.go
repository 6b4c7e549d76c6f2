package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAFileOfSomebodyElsesSaysNothing: what stands in these files is run as this
// user; doctor ran another user's command as root.
func TestAFileOfSomebodyElsesSaysNothing(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	files := map[string]string{
		"heartbeat.yaml": "version: 1\ninclude: [more.yaml]\nagents: {a: {dir: a, env-file: x.env, trigger: {cron: \"@daily\", prompt-file: p.md}}}\n",
		"more.yaml":      "agents: {b: {dir: b}}\n", "p.md": "a prompt\n", "x.env": "A=b\n",
	}
	for how, change := range map[string]func(path string) error{
		"":                                   func(string) error { return nil },
		"everybody can write it (mode 0646)": func(path string) error { return os.Chmod(path, 0o646) },
		"its group can write it (mode 0664, group 65534)": func(path string) error {
			if err := os.Chown(path, -1, nobody); err != nil {
				return err
			}
			return os.Chmod(path, 0o664)
		},
		"it belongs to user": func(path string) error { return os.Chown(path, nobody, -1) },
	} {
		for name := range files {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				if how != "" && os.Getuid() != 0 {
					t.Skip("only root can give files away")
				}
				path := fleetOf(t, files)
				file := filepath.Join(filepath.Dir(path), name)
				if err := os.Chmod(filepath.Join(filepath.Dir(path), "x.env"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := change(file); err != nil {
					t.Fatal(err)
				}
				f, err := Load(path)
				problems, _ := err.(Problems)
				switch {
				case name == "x.env": // it is read when something is started
					if err != nil {
						t.Fatal(err)
					}
					want := how
					if strings.Contains(how, "write") {
						want = "others can read or write it"
					}
					if _, err := f.Agent("a").Environ(nil); (err != nil) != (how != "") || err != nil && !strings.Contains(err.Error(), want) {
						t.Error(err)
					}
				case how == "":
					if err != nil {
						t.Error(err)
					}
				case len(problems) != 1 || !strings.Contains(problems[0].Message, how) ||
					!strings.HasPrefix(problems[0].Hint, "ch") || !strings.Contains(problems[0].Hint, file):
					t.Errorf("%v", err)
				}
			})
		}
	}
}
