package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"heartbeat/hook/settings"
	"heartbeat/internal/crash/stepper"
	"heartbeat/internal/testbed"
)

// theirs is what a person has in their settings.
const theirs = `{
	"model": "opus",
	"permissions": {"allow": ["Edit", "WebFetch"]},
	"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/usr/bin/lint"}]}]}
}
`

// step is one apply of a sequence: what the file declares, and what is done to
// the fleet before.
type step struct {
	name, settings string
	allow          []string
	folder         string // where the fleet's folder is by then
	agent          string // what it is called
}

func (s step) fleet() string {
	name := ""
	if s.name != "" {
		name = "name: " + s.name + "\n"
	}
	return "version: 1\n" + name + "agents:\n  " + s.agent + ": {dir: triage, settings: " + s.settings + ", permissions: {allow: ['" + strings.Join(s.allow, "', '") + "']}}\n"
}

// TestKilledApplies: whatever apply is killed, and however often the file or the
// fleet's name changes in between, the next apply leaves exactly what is wanted
// and what the person has, no temporary file, and a way back to the original to
// the byte. Of the calls every eightieth is killed, by the sample, unless
// -full is given. (A permission that was revoked stayed when the apply that revoked it
// had been killed, or the fleet had got another name.)
func TestKilledApplies(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string][]step{
		"a revoked permission": {
			{"fleet", "project", []string{"Read", "Edit", "Bash(git *)"}, "one", "triage"},
			{"fleet", "project", []string{"Read"}, "one", "triage"},
			{"fleet", "project", []string{"Grep"}, "one", "triage"},
		},
		"another file": {
			{"fleet", "project", []string{"Read", "Glob"}, "one", "triage"},
			{"fleet", "local", []string{"Read"}, "one", "triage"},
			{"fleet", "flag", []string{"Grep"}, "one", "triage"},
			{"fleet", "project", []string{"Grep"}, "one", "triage"},
		},
		"another name": {
			{"fleet", "project", []string{"Read", "Glob"}, "one", "triage"},
			{"troop", "project", []string{"Read"}, "one", "triage"},
			{"fleet", "local", []string{"Grep"}, "one", "triage"},
		},
		"another folder": {
			{"", "project", []string{"Read", "Glob"}, "one", "triage"},
			{"", "project", []string{"Read"}, "two", "triage"},
			{"", "project", []string{"Grep"}, "three", "triage"},
		},
		"another folder and agent": {
			{"fleet", "project", []string{"Read", "Glob"}, "one", "triage"},
			{"fleet", "project", []string{"Read"}, "two", "sorter"},
			{"troop", "project", []string{"Grep"}, "two", "sorter"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := applies{world: newWorld(t), every: testbed.Stride(80), offset: testbed.Turn(t, 80)}
			k.put("one/heartbeat.yaml", steps[0].fleet())
			k.put("one/triage/.claude/settings.json", theirs)
			k.shell("chmod 640 one/triage/.claude/settings.json")
			k.world.done("apply", "-f", "one/heartbeat.yaml")
			k.save("start")
			k.walk(steps[0], steps[1:], "start")
			testbed.Played(t, testbed.Kills, k.killed)
			t.Logf("%d applies killed", k.killed)
		})
	}
}

type applies struct {
	*world
	every, killed, offset int
}

// save keeps the world as it is, load brings it back.
func (k *applies) save(as string) {
	k.t.Helper()
	k.shell("rm -rf saved." + as + " && mkdir saved." + as + " && cp -a state saved." + as + " && for d in one two three; do test ! -d $d || cp -a $d saved." + as + "; done")
}

func (k *applies) load(from string) {
	k.t.Helper()
	k.shell("rm -rf state one two three && cp -a saved." + from + "/* .")
}

// walk kills the apply of the first of the steps before each call, and looks at
// what the same apply, or the next one, makes of it. Then it goes on from the
// last kill that had left something half done.
func (k *applies) walk(before step, steps []step, from string) {
	k.t.Helper()
	if len(steps) == 0 {
		return
	}
	now, half := steps[0], ""
	k.offset++
	for n := 1 + k.offset%k.every; ; n += k.every {
		k.load(from)
		calls := k.kill(before, now, n)
		if calls > 0 && half == "" { // an apply of fewer calls than the sample's first one
			n = 1 + (n-1)%calls
			k.load(from)
			calls = k.kill(before, now, n)
		}
		if calls > 0 {
			break
		}
		k.save("killed")
		where := fmt.Sprintf("killed before call %d of %+v", n, now)
		k.done("apply", now)
		k.check(where, now)
		if len(steps) > 1 {
			k.load("killed")
			k.change(now, steps[1])
			k.done("apply", steps[1])
			k.check(where+", then another one", steps[1])
		}
		k.load("killed")
		if next := "half." + now.name + now.folder + now.settings; half == "" || n%2 == 0 {
			half = next
			k.save(half)
		}
	}
	if half == "" {
		k.t.Fatal("nothing was killed")
	}
	k.walk(now, steps[1:], half)
}

// done runs a command to its end. It may warn of what the fleet was before.
func (k *applies) done(command string, s step) {
	k.t.Helper()
	if o := k.run(command, "-f", s.folder+"/heartbeat.yaml"); o.status != 0 {
		k.t.Fatalf("%s of %+v: %+v", command, s, o)
	}
}

// change brings about what is between two steps.
func (k *applies) change(before, now step) {
	k.t.Helper()
	if before.folder != now.folder {
		k.shell("mv " + before.folder + " " + now.folder)
	}
	k.put(now.folder+"/heartbeat.yaml", now.fleet())
}

// kill runs an apply and kills it before its n-th call. Where it has ended before, it
// returns how many calls it has made.
func (k *applies) kill(before, now step, n int) (calls int) {
	k.t.Helper()
	k.change(before, now)
	self := testbed.Program(k.t, "heartbeat")
	o, err := stepper.Run(stepper.Program{Path: self, Args: []string{"apply", "-f", now.folder + "/heartbeat.yaml"}, Env: k.env, Dir: k.dir}, n)
	if errors.Is(err, stepper.ErrUnavailable) && os.Getenv("CI") != "true" {
		k.t.Skip(err)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	if o.Killed {
		k.killed++
		return 0
	}
	return len(o.Calls)
}

var temporary = regexp.MustCompile(`\.tmp-[0-9a-f]{16}$|^\.copy-`)

// check looks at what an apply that was not killed has left, and takes it back.
func (k *applies) check(where string, s step) {
	k.t.Helper()
	k.noTemps(where)
	dir := s.folder + "/triage/.claude/"
	own := map[string][]string{dir + "settings.json": {"Edit", "WebFetch"}, dir + "settings.local.json": nil}
	wired := map[string]string{"project": dir + "settings.json", "local": dir + "settings.local.json"}[s.settings]
	for file, rules := range own {
		want := slices.Clone(rules)
		if file == wired {
			want = slices.Concat(want, s.allow, settings.Grants())
		}
		hooks := 0
		if file == wired {
			hooks = 1
		}
		k.holds(where, file, want, hooks)
	}
	k.done("unapply", s)
	if got := k.get(dir + "settings.json"); got != theirs {
		k.t.Errorf("%s: unapply leaves %s", where, got)
	}
	if info, err := os.Stat(filepath.Join(k.dir, dir, "settings.json")); err != nil || info.Mode().Perm() != 0o640 {
		k.t.Errorf("%s: %v, %v", where, info, err)
	}
	if names := k.names(dir); len(names) != 1 {
		k.t.Errorf("%s: unapply leaves %q", where, names)
	}
	left, err := filepath.Glob(filepath.Join(k.dir, "state", "*", "applied", "*", "applied.json"))
	if err != nil || len(left) > 0 {
		k.t.Errorf("%s: unapply leaves the records %q", where, left)
	}
}

// holds checks a settings file: the rules that it allows, each once, and how
// often we answer a Stop.
func (k *applies) holds(where, file string, allow []string, stops int) {
	k.t.Helper()
	var s struct {
		Permissions struct{ Allow, Deny []string }
		Hooks       map[string][]struct{ Hooks []struct{ Command string } }
	}
	data, err := os.ReadFile(filepath.Join(k.dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		data, err = []byte("{}"), nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		k.t.Errorf("%s: %v", where, err)
		return
	}
	slices.Sort(allow)
	slices.Sort(s.Permissions.Allow)
	if !slices.Equal(slices.Compact(allow), s.Permissions.Allow) || len(s.Permissions.Deny) != (2+len(settings.Denials()))*stops {
		k.t.Errorf("%s: %s allows %q and denies %q, want %q", where, file, s.Permissions.Allow, s.Permissions.Deny, allow)
	}
	for _, g := range s.Hooks["Stop"] {
		for _, h := range g.Hooks {
			if h.Command != "/usr/bin/lint" {
				stops--
			}
		}
	}
	if stops != 0 {
		k.t.Errorf("%s: %s has %d Stop hooks of ours too few: %s", where, file, stops, data)
	}
}

// states are the state directories whose fleet's file is where it was.
func (k *applies) states() []string {
	k.t.Helper()
	var all []string
	for _, name := range k.names("state") {
		owner := filepath.Join(k.dir, "state", name, "owner.json")
		text, err := os.ReadFile(owner)
		var o struct{ File string }
		if err == nil && json.Unmarshal(text, &o) == nil {
			f, err := os.ReadFile(o.File)
			if err == nil && strings.Contains(string(f), "name: "+name+"\n") != strings.Contains(name, "-") {
				all = append(all, "state/"+name)
			}
		}
	}
	if len(all) != 1 {
		k.t.Errorf("the states of the fleet: %q", all)
	}
	return all
}

func (k *applies) noTemps(where string) {
	k.t.Helper()
	for _, dir := range append([]string{"one", "two", "three"}, k.states()...) {
		_ = filepath.WalkDir(filepath.Join(k.dir, dir), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && temporary.MatchString(filepath.Base(path)) {
				k.t.Errorf("%s: %s is left", where, path)
			}
			return nil
		})
	}
}
