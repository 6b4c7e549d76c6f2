package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestTheQueuesFolderIsIgnored (run made it bare, and wired with
// the first session: until then git add took the queue in): whatever makes
// .heartbeat makes it private and ignored, and what begins to run an agent has
// wired it.
func TestTheQueuesFolderIsIgnored(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		makes func(w *world)
		wires bool
	}{
		"apply":      {func(w *world) { w.ok("apply") }, true},
		"send":       {func(w *world) { w.put("agents/triage/README", ""); w.ok("send", "triage", "hello") }, false},
		"run":        {func(w *world) { w.run("run", "--once") }, true},
		"run --fire": {func(w *world) { w.run("run", "--once", "--fire") }, true},
		"reload": {func(w *world) {
			w.put("heartbeat.yaml", strings.ReplaceAll(simulated, "triage", "first"))
			r := w.background()
			w.put("heartbeat.yaml", strings.ReplaceAll(simulated, "triage", "first")+"  triage: {dir: agents/triage, command: [heartbeat, simulate]}\n")
			w.ok("reload")
			until(w.t, "the agent is wired", func() bool { return slices.Contains(w.names("agents/triage/.claude"), "settings.json") })
			r.stop()
		}, true},
		"fire": {func(w *world) {
			r := w.background()
			remove(w.t, w, "agents/triage")
			w.put("agents/triage/README", "")
			until(w.t, "it is the run's again", func() bool { return strings.Contains(w.ok("events", "triage"), "directory-found") })
			w.run("pause", "triage")
			w.run("trigger", "triage")
			r.stop()
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", simulated)
			tt.makes(w)
			info, err := os.Stat(filepath.Join(w.dir, "agents/triage/.heartbeat"))
			if err != nil || info.Mode().Perm() != 0o700 {
				t.Fatalf("%v, %v", info, err)
			}
			if text := w.get("agents/triage/.heartbeat/.gitignore"); text != "*\n" {
				t.Errorf(".gitignore: %q", text)
			}
			if wired := slices.Contains(w.names("agents/triage/.claude"), "settings.json"); wired != tt.wires {
				t.Errorf("wired: %v", wired)
			}
		})
	}
}

// TestRunMakesAWorkspaceThatIsThePersons: it was private to its owner, unlike
// the one that apply makes.
func TestRunMakesAWorkspaceThatIsThePersons(t *testing.T) {
	t.Parallel()
	modes := map[string]os.FileMode{}
	for _, command := range []string{"apply", "run --once"} {
		w := newWorld(t)
		w.put("heartbeat.yaml", simulated)
		w.run(strings.Fields(command)...)
		info, err := os.Stat(filepath.Join(w.dir, "agents/triage"))
		if err != nil {
			t.Fatal(err)
		}
		modes[command] = info.Mode()
	}
	if modes["apply"] != modes["run --once"] {
		t.Errorf("%v", modes)
	}
}

// TestRunSaysAtItsStartWhatItCannotWire: it said so at the first prompt.
func TestRunSaysAtItsStartWhatItCannotWire(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("agents/triage/README", "")
	if err := os.Symlink(w.dir, filepath.Join(w.dir, "agents/triage/.claude")); err != nil {
		t.Fatal(err)
	}
	r := w.background()
	if log := r.stderr.String(); !strings.Contains(log, "cannot wire agent") {
		t.Errorf("not said: %s", log)
	}
	// status says so, too, until the delay is over.
	until(t, "it backs off", func() bool {
		return strings.Contains(r.stderr.String(), `agent backing-off agent=triage why="cannot wire agent`)
	})
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestALoginThatEndsIsSaid by status and doctor, with what to do, and once for all agents
// that have it.
func TestALoginThatEndsIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	home := filepath.Join(w.dir, "home")
	w.put("heartbeat.yaml", `version: 1
defaults: {env: {HOME: `+home+`, CLAUDE_CONFIG_DIR: "", ANTHROPIC_API_KEY: "", CLAUDE_CODE_OAUTH_TOKEN: "", ANTHROPIC_AUTH_TOKEN: ""}}
agents:
  triage: {dir: agents/triage}
  clerk: {dir: agents/clerk}
`)
	for in, want := range map[time.Duration]int{72 * time.Hour: 0, 47 * time.Hour: 1} {
		w.put("home/.claude/.credentials.json", fmt.Sprintf(`{"claudeAiOauth":{"accessToken":"x","refreshToken":"y","expiresAt":1,"refreshTokenExpiresAt":%d}}`, time.Now().Add(in).UnixMilli()))
		for _, command := range []string{"status", "doctor"} {
			o := w.run(command)
			if n := strings.Count(strings.Join(strings.Fields(o.stdout), " "), home+"/.claude/.credentials.json ends at "); n != want || n == 1 && !strings.Contains(o.stdout, "/login") {
				t.Errorf("in %v %s says it %d times:\n%s", in, command, n, o.stdout)
			}
		}
	}
}
