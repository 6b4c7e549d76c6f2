package owner

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/config"
	"heartbeat/orchestrator/memory"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// TestADirectoryNamesItsStore: who has another state directory, as cron or sudo do, does not
// know what a person has paused; a copied directory has the queue of another agent.
func TestADirectoryNamesItsStore(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	makes := func(dir string) Origin {
		o := Origin{File: filepath.Join(root, filepath.Base(dir)+".yaml"), StateDir: filepath.Join(root, dir)}
		if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(o.File, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		s := storetest.New(t, o.StateDir)
		if filepath.Base(dir) == "newer" {
			if err := s.Write(t.Context(), func(c *store.Change) error {
				_, err := c.Do(`UPDATE store SET version = version + 1`)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		o.Store = s.ID()
		return o
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(filepath.Join(root, "state/now"), link); err != nil {
		t.Fatal(err)
	}
	now, beside, newer, far := makes("state/now"), makes("state/beside"), makes("state/newer"), makes("root/far")
	known := memory.Identities{{Name: "a", Key: "a", Dir: filepath.Join(root, "a")}, {Name: "b", Key: "b~2", Dir: filepath.Join(root, "b")}}
	with := func(o Origin, change func(*Origin)) Origin { change(&o); return o }
	for name, tt := range map[string]struct {
		says Origin
		want string // "": nothing
	}{
		"nothing":                     {Origin{}, ""},
		"an earlier version":          {Origin{File: now.File, StateDir: now.StateDir}, ""},
		"this fleet":                  {with(now, func(o *Origin) { o.Agent = "b~2" }), ""},
		"this fleet by its old name":  {with(now, func(o *Origin) { o.Agent, o.File = "b~2", "/old.yaml" }), ""},
		"another fleet":               {beside, "with another store: that in " + `"` + beside.StateDir},
		"one of another version":      {newer, "with another store: that in " + `"` + newer.StateDir},
		"another state directory":     {far, "with another store: that in " + `"` + far.StateDir},
		"one beside, of another id":   {with(beside, func(o *Origin) { o.Store = "x" }), "that cannot be found"},
		"a copy of this store":        {with(now, func(o *Origin) { o.StateDir = far.StateDir }), "with a copy of the fleet's store, or that is one: that in " + `"` + far.StateDir},
		"this one, moved since":       {with(now, func(o *Origin) { o.StateDir = "/nowhere" }), ""},
		"this one by a link":          {with(now, func(o *Origin) { o.StateDir = link }), ""},
		"this one, when it was lost":  {with(now, func(o *Origin) { o.Store = "x" }), "that is not in " + `"` + now.StateDir},
		"none":                        {with(beside, func(o *Origin) { o.StateDir = "/nowhere" }), "that cannot be found"},
		"a word for a shell":          {with(beside, func(o *Origin) { o.StateDir = "x; rm -rf ~" }), "that cannot be found"},
		"a copy":                      {with(now, func(o *Origin) { o.Agent = "a" }), "copy of that of agent a"},
		"one that is no agent's":      {with(now, func(o *Origin) { o.Agent = "c" }), ""},
		"a copy of another fleet's a": {with(beside, func(o *Origin) { o.Agent = "a" }), "with another store"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			other := &config.Agent{Name: "a", Dir: filepath.Join(root, "a"), Home: filepath.Join(root, "a/.heartbeat")}
			a := &config.Agent{Name: "b", Dir: filepath.Join(root, strings.ReplaceAll(name, " ", "-"))}
			a.Home = filepath.Join(a.Dir, ".heartbeat")
			if err := os.MkdirAll(a.Home, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := mark(a, mustJSON(t, tt.says)); err != nil {
				t.Fatal(err)
			}
			all := Compare([]*config.Agent{other, a}, now, known)
			if tt.want == "" && len(all) > 0 || tt.want != "" && (len(all) != 1 || !strings.Contains(all[0].String(), tt.want) || all[0].Advice() == "") {
				t.Fatalf("%v", all)
			}
			if tt.want != "" && strings.Contains(all[0].Advice(), "rm ") {
				t.Error(all[0].Advice())
			}
			if err := Mark([]*config.Agent{a}, now, known); err != nil {
				t.Fatal(err)
			}
			if o := OriginOf(a); o != with(now, func(o *Origin) { o.Agent = "b~2" }) {
				t.Errorf("a run has marked it: %+v", o)
			}
			if all := Compare([]*config.Agent{other, a}, now, known); len(all) > 0 {
				t.Errorf("then: %v", all)
			}
		})
	}
	if _, err := store.ID(t.Context(), filepath.Join(root, "none")); err != store.ErrNone {
		t.Errorf("no store: %v", err)
	}
}
