package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// unnamed is a fleet without a name, with one agent in a directory.
func unnamed(dir string) string {
	return "version: 1\nagents:\n  triage: {dir: '" + dir + "', command: [heartbeat, simulate]}\n"
}

// TestWhichFleetAFileIs: a pause shows whether a file without `name:` is known again as the
// fleet that it was. (Each deploy by a link made another fleet of it, whose paused agents
// worked, and so did mv of its folder.)
func TestWhichFleetAFileIs(t *testing.T) {
	t.Parallel()
	// as8e3db45 gives the state the name and the owner that 8e3db45 gave it: those of where the
	// links led.
	const as8e3db45 = `S="$PWD/state/1-$(printf %s "$PWD/releases/1/heartbeat.yaml" | sha256sum | cut -c1-8)"
mv state/current-* "$S"; printf '{"file": "%s/releases/1/heartbeat.yaml"}' "$PWD" > "$S/owner.json"
sed -i 's,"state_dir":"[^"]*","state_dir":"'"$S"'",' agent/.heartbeat/fleet.json; `
	const release = "mkdir -p releases/2; cp releases/1/heartbeat.yaml releases/2; ln -sfn releases/2 current"
	for name, way := range map[string]struct {
		file string // the first path of it
		// script changes what is on the disk; then is the path that is typed afterwards.
		script, then string
		// relative is true if the agent's directory stands beside the file.
		relative bool
		lost     bool // it is another fleet
	}{
		"a link that moves on":                        {file: "current/heartbeat.yaml", script: release, then: "current/heartbeat.yaml"},
		"a link of 8e3db45":                           {file: "current/heartbeat.yaml", script: as8e3db45, then: "current/heartbeat.yaml"},
		"a link of 8e3db45 that then moves on":        {file: "current/heartbeat.yaml", script: as8e3db45 + `"$HB" -f current/heartbeat.yaml apply; ` + release, then: "current/heartbeat.yaml"},
		"a link of 8e3db45 that has moved on already": {file: "current/heartbeat.yaml", script: as8e3db45 + release, then: "current/heartbeat.yaml"},
		"where the link leads":                        {file: "current/heartbeat.yaml", then: "releases/1/heartbeat.yaml"},
		"the link, after where it leads":              {file: "releases/1/heartbeat.yaml", then: "current/heartbeat.yaml"},
		"the link moves on, once it was typed":        {file: "releases/1/heartbeat.yaml", script: `"$HB" -f current/heartbeat.yaml apply; ` + release, then: "current/heartbeat.yaml"},
		"a release beside the one that counts":        {file: "current/heartbeat.yaml", script: release, then: "releases/1/heartbeat.yaml", lost: true},
		"another link":                                {file: "current/heartbeat.yaml", script: "ln -s releases/1 other", then: "other/heartbeat.yaml"},
		"a link to the file, absolute directories":    {file: "releases/1/heartbeat.yaml", script: "ln -s releases/1/heartbeat.yaml fleet.yaml", then: "fleet.yaml"},
		"a link to the file, relative directories":    {file: "releases/1/heartbeat.yaml", script: "ln -s releases/1/heartbeat.yaml heartbeat.yaml", then: "heartbeat.yaml", relative: true, lost: true},
		"an absolute path":                            {file: "releases/1/heartbeat.yaml", then: "$PWD/releases/1/heartbeat.yaml"},
		"a path with dots":                            {file: "releases/1/heartbeat.yaml", then: "releases/../releases/./1/heartbeat.yaml"},
		"a parent that is a link":                     {file: "releases/1/heartbeat.yaml", script: "ln -s . up", then: "up/up/releases/1/heartbeat.yaml"},
		"a renamed folder":                            {file: "releases/1/heartbeat.yaml", script: "mv releases/1 two", then: "two/heartbeat.yaml", relative: true},
		"a renamed folder, absolute directories":      {file: "releases/1/heartbeat.yaml", script: "mv releases/1 two", then: "two/heartbeat.yaml"},
		"a renamed file":                              {file: "releases/1/heartbeat.yaml", script: "mv releases/1/heartbeat.yaml fleet.yaml", then: "fleet.yaml"},
		"a copied folder":                             {file: "releases/1/heartbeat.yaml", script: "cp -r releases/1 two", then: "two/heartbeat.yaml", relative: true, lost: true},
		"the original of a copied folder":             {file: "releases/1/heartbeat.yaml", script: `cp -r releases/1 two; "$HB" -f two/heartbeat.yaml run --once`, then: "releases/1/heartbeat.yaml", relative: true},
		"a copy beside one that was renamed":          {file: "releases/1/heartbeat.yaml", script: `cp -r releases/1 two; mv releases/1 three; "$HB" -f three/heartbeat.yaml apply`, then: "two/heartbeat.yaml", relative: true, lost: true},
		"a copied folder, the original removed":       {file: "releases/1/heartbeat.yaml", script: "cp -r releases/1 two; rm -r releases/1", then: "two/heartbeat.yaml", relative: true},
		"a ConfigMap that swaps": {
			file: "map/heartbeat.yaml", then: "map/heartbeat.yaml",
			script: "mkdir map/..2; cp map/..1/heartbeat.yaml map/..2; ln -s ..2 map/tmp; mv -T map/tmp map/..data; rm -r map/..1",
		},
		"an editor's new file":   {file: "releases/1/heartbeat.yaml", script: "cp releases/1/heartbeat.yaml new; mv new releases/1/heartbeat.yaml", then: "releases/1/heartbeat.yaml"},
		"a `name:` that is gone": {file: "named.yaml", script: "sed -i /name:/d named.yaml", then: "named.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			dir := filepath.Join(w.dir, "agent")
			if way.relative {
				dir = "agent"
			}
			w.put("releases/1/heartbeat.yaml", unnamed(dir))
			w.put("map/..1/heartbeat.yaml", unnamed(dir))
			w.put("named.yaml", "name: fleet\n"+unnamed(dir))
			w.shell("ln -s releases/1 current; ln -s ..1 map/..data; ln -s ..data/heartbeat.yaml map/heartbeat.yaml")
			w.done("run", "--once", "-f", way.file)
			w.done("pause", "triage", "-f", way.file)
			w.shell(way.script)
			o := w.run("status", "-f", strings.Replace(way.then, "$PWD", w.dir, 1))
			if o.status != 0 || strings.Contains(o.stdout, "paused by a person") == way.lost {
				t.Errorf("%+v; the states are %v", o, w.names("state"))
			}
		})
	}
}

// TestAnotherStateDirectoryIsTold: cron and sudo have another one, in which an agent that a
// person has paused is not.
func TestAnotherStateDirectoryIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.done("run", "--once")
	w.done("pause", "triage")
	const says = "with another store: that in "
	if o := w.run("status"); strings.Contains(o.stderr, says) {
		t.Errorf("its own: %+v", o)
	}
	cron := *w
	cron.env = append(slices.Clone(w.env), "HEARTBEAT_STATE_DIR="+filepath.Join(w.dir, "elsewhere"))
	for _, args := range [][]string{{"status"}, {"send", "triage", "hello"}, {"apply"}, {"doctor"}, {"run", "--once"}} {
		o := cron.run(args...)
		said := strings.Join(strings.Fields(o.stdout+o.stderr), " ")
		if !strings.Contains(said, says) || !strings.Contains(said, w.dir+"/state/fleet") || !strings.Contains(said, w.dir+"/elsewhere/fleet") {
			t.Errorf("%q: %+v", args, o)
		}
	}
	if o := cron.run("status"); strings.Contains(o.stderr, says) {
		t.Errorf("its run has made the directory its own: %+v", o)
	}
	if o := w.run("status"); !strings.Contains(o.stderr, says) {
		t.Errorf("the first one's: %+v", o)
	}
}

// TestWhatAnEarlierVersionHasKeptIsToldOf: events said that nothing has happened, and status
// that nobody is paused, until the first run had taken the files over.
func TestWhatAnEarlierVersionHasKeptIsToldOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	w.put("state/fleet/paused.json", `{"since": {"triage": "2026-11-01T10:00:00Z"}}`)
	const says = "an earlier version of heartbeat has kept"
	for _, command := range []string{"status", "events", "history", "doctor"} {
		if o := w.run(command); !strings.Contains(o.stderr, says) {
			t.Errorf("%s: %+v", command, o)
		}
	}
	w.run("run", "--once")
	if o := w.run("status"); strings.Contains(o.stderr, says) || !strings.Contains(o.stdout, "paused by a person") {
		t.Errorf("after a run: %+v", o)
	}
}
