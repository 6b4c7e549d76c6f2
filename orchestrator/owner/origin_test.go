package owner

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"heartbeat/config"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// TestAnAgentsWordOfItsFleetIsNotBelieved: fleet.json named a folder of the
// person's, and doctor and apply told them to rm -r it.
func TestAnAgentsWordOfItsFleetIsNotBelieved(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	states := filepath.Join(root, "state")
	now := Origin{File: filepath.Join(root, "heartbeat.yaml"), StateDir: filepath.Join(states, "now")}
	knowing := func(dir, agent string) string {
		dir = filepath.Join(root, dir)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		err := storetest.New(t, dir).Write(t.Context(), func(c *store.Change) error {
			return journal.Write(c, journal.Event{Agent: agent, Kind: journal.Removed})
		})
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	for _, dir := range []string{now.StateDir, filepath.Join(states, "empty")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	was := knowing("state/was", "triage")
	for name, tt := range map[string]struct {
		dir  string
		want bool
	}{
		"ours, and it knows the agent": {was, true},
		"another agent's":              {knowing("state/other", "builder"), false},
		"an empty one":                 {filepath.Join(states, "empty"), false},
		"elsewhere":                    {knowing("home", "triage"), false},
		"another spelling":             {was + "/", false},
		"by a way around":              {filepath.Join(states, "was") + "/../../home", false},
		"this fleet's own":             {now.StateDir, false},
		"a word for a shell":           {was + "; rm -rf ~", false},
		"all of them":                  {states, false},
		"the root":                     {"/", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &config.Agent{Name: "triage", Dir: filepath.Join(root, "agents", strings.ReplaceAll(name, " ", "-"))}
			a.Home = filepath.Join(a.Dir, ".heartbeat")
			if err := os.MkdirAll(a.Home, 0o700); err != nil {
				t.Fatal(err)
			}
			data := mustJSON(t, Origin{File: filepath.Join(root, "gone.yaml"), StateDir: tt.dir})
			if err := os.WriteFile(filepath.Join(a.Home, OriginFile), data, 0o600); err != nil {
				t.Fatal(err)
			}
			left := LeftBehind([]*config.Agent{a}, now)
			if (len(left) == 1) != tt.want {
				t.Fatalf("%+v", left)
			}
			for _, l := range left {
				if strings.Contains(l.Advice(), "rm ") {
					t.Error(l.Advice())
				}
			}
		})
	}
}

func mustJSON(t *testing.T, o Origin) []byte {
	t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTheStateIsApartFromAgents: an agent that can write the state decides what
// is killed, what fired and which program hooks are.
func TestTheStateIsApartFromAgents(t *testing.T) {
	t.Parallel()
	for dir, apart := range map[string]bool{
		"/work": true, "/state": false, "/state/fleet": false, "/state/fleet/x": false, "/": false, "/state/fle": true, "/state/other": true,
	} {
		err := checkApart(&config.Fleet{Agents: []*config.Agent{{Name: "a", Dir: dir}}}, "/state/fleet")
		if (err == nil) != apart {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
