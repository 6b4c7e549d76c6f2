package config

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWhatALoadDependsOnIsLookedAt: what changes a load looks different
// afterwards, also where the load failed for the want of it; nothing else does.
func TestWhatALoadDependsOnIsLookedAt(t *testing.T) {
	t.Parallel()
	fleet := map[string]string{
		"heartbeat.yaml": "version: 1\ninclude: [one.yaml, 'more/*.yaml', 'none/**/*.yaml']\nagents: {a: {dir: a, env-file: a.env}}\n",
		"one.yaml":       "agents: {b: {dir: b}}\n", "more/c.yaml": "agents: {c: {dir: ../c, trigger: {cron: '@daily', prompt-file: ../p.txt}}}\n",
		"p.txt": "look", "a.env": "A=1\n", "README": "",
	}
	write := func(name, text string) func(dir string) error {
		return func(dir string) error {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			return os.WriteFile(path, []byte(text), 0o600)
		}
	}
	remove := func(name string) func(dir string) error {
		return func(dir string) error { return os.Remove(filepath.Join(dir, name)) }
	}
	nothing := func(string) error { return nil }
	for name, tt := range map[string]struct {
		before, change func(dir string) error
		fails, sees    bool
	}{
		"nothing":                     {nothing, nothing, false, false},
		"another file":                {nothing, write("README", "new"), false, false},
		"a file that does not match":  {nothing, write("more/c.txt", "new"), false, false},
		"an env-file":                 {nothing, write("a.env", "A=2\nB=3\n"), false, false},
		"the file":                    {nothing, write("heartbeat.yaml", fleet["heartbeat.yaml"]+"# more\n"), false, true},
		"the file is gone":            {nothing, remove("heartbeat.yaml"), false, true},
		"an included file":            {nothing, write("one.yaml", "agents: {d: {dir: d}}\n#"), false, true},
		"a new one":                   {nothing, write("more/d.yaml", ""), false, true},
		"a new one in a new folder":   {nothing, write("none/x/d.yaml", ""), false, true},
		"one less":                    {nothing, remove("more/c.yaml"), false, true},
		"a prompt":                    {nothing, write("p.txt", "look around"), false, true},
		"a broken file is mended":     {write("heartbeat.yaml", "agents: ["), write("heartbeat.yaml", fleet["heartbeat.yaml"]), true, true},
		"a broken include is mended":  {write("one.yaml", "agents: ["), write("one.yaml", fleet["one.yaml"]), true, true},
		"the file comes":              {remove("heartbeat.yaml"), write("heartbeat.yaml", fleet["heartbeat.yaml"]), true, true},
		"a missing include comes":     {remove("one.yaml"), write("one.yaml", fleet["one.yaml"]), true, true},
		"a missing prompt comes":      {remove("p.txt"), write("p.txt", "look"), true, true},
		"a blank prompt is filled":    {write("p.txt", ""), write("p.txt", "look"), true, true},
		"the same, put in its place":  {nothing, func(dir string) error { return swap(filepath.Join(dir, "p.txt"), "book") }, false, true},
		"a link leads somewhere else": {func(dir string) error { return relink(dir, "1") }, func(dir string) error { return relink(dir, "2") }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for name, text := range fleet {
				if err := write(name, text)(dir); err != nil {
					t.Fatal(err)
				}
			}
			if err := tt.before(dir); err != nil {
				t.Fatal(err)
			}
			_, in, err := LoadInputs(filepath.Join(dir, "heartbeat.yaml"), nil)
			if (err != nil) != tt.fails || in.Then() != in.Now() {
				t.Fatalf("%v; then %q, now %q", err, in.Then(), in.Now())
			}
			if err := tt.change(dir); err != nil {
				t.Fatal(err)
			}
			if sees := in.Now() != in.Then(); sees != tt.sees {
				t.Errorf("seen: %v\nthen %q\nnow  %q", sees, in.Then(), in.Now())
			}
		})
	}
}

// swap puts another file of the same size and times in a file's place.
func swap(path, text string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	if err := os.Chtimes(path+".new", time.Time{}, info.ModTime()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// relink makes the prompt a link into a folder, as a mounted ConfigMap is.
func relink(dir, to string) error {
	if err := os.MkdirAll(filepath.Join(dir, ".."+to), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, ".."+to, "p.txt"), []byte("look"), 0o600); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join("..", filepath.Base(dir), ".."+to, "p.txt"), filepath.Join(dir, "p.new")); err != nil {
		return err
	}
	return os.Rename(filepath.Join(dir, "p.new"), filepath.Join(dir, "p.txt"))
}
