package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"heartbeat/internal/testbed"
)

// content is what a folder holds, but for what a run does meanwhile.
func (w *world) content(dir string) string {
	w.t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(filepath.Join(w.dir, dir)), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Type() != 0 {
			return err
		}
		b.WriteString(path + "\n" + w.get(filepath.Join(dir, path)) + "\n")
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return b.String()
}

// shell runs a script in the world's folder; $HB is the program.
func (w *world) shell(script string) {
	w.t.Helper()
	sh := exec.CommandContext(w.t.Context(), "/bin/sh", "-ec", script)
	sh.Dir, sh.Env = w.dir, append(slices.Clone(w.env), "HB="+testbed.Program(w.t, "heartbeat"))
	if out, err := sh.CombinedOutput(); err != nil {
		w.t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// twoFleets is a fleet in one/ that is run, with an agent more than others have.
const twoFleets = simulated + "  builder: {dir: builder, command: [heartbeat, simulate]}\n"

// TestAFleetsNameIsOneFiles (found by a user: the apply of a copied folder took
// the original's hooks away, its pause paused the original, its files never
// fired): no command of another file with that name does anything, each says
// what to do, and nothing of the first fleet changes.
func TestAFleetsNameIsOneFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("one/heartbeat.yaml", twoFleets)
	w.env = append(w.env, "HEARTBEAT_FILE=one/heartbeat.yaml")
	w.ok("apply")
	r := w.background()
	for name, copies := range map[string]struct{ script, file string }{
		"a copy of the folder": {"cp -r one copied", "copied/heartbeat.yaml"},
		"another fleet":        {"mkdir other && sed 's/ builder:/ writer:/' one/heartbeat.yaml > other/fleet.yaml", "other/fleet.yaml"},
		"in the same folder":   {"cp one/heartbeat.yaml one/second.yaml", "one/second.yaml"},
		"it includes its agents": {
			"mkdir parts && sed 1,2d one/heartbeat.yaml > parts/agents.yaml && printf 'version: 1\\nname: fleet\\ninclude: [agents.yaml]\\n' > parts/heartbeat.yaml",
			"parts/heartbeat.yaml",
		},
		"a link with relative paths":  {"mkdir linked && ln -s ../one/heartbeat.yaml linked/heartbeat.yaml", "linked/heartbeat.yaml"},
		"a hard link":                 {"mkdir hard && ln one/heartbeat.yaml hard/heartbeat.yaml", "hard/heartbeat.yaml"},
		"while the first one is torn": {"mkdir torn && cp one/heartbeat.yaml torn && echo 'agents: [' > one/heartbeat.yaml", "torn/heartbeat.yaml"},
	} {
		w.put("one/heartbeat.yaml", twoFleets)
		w.shell(copies.script)
		before := w.content("one") + w.content("state/fleet/applied")
		theirs := w.content(filepath.Dir(copies.file))
		for _, command := range []string{
			"apply", "apply --dry-run", "diff", "unapply", "unapply triage", "run --once", "run", "pause --all", "resume --all", "trigger triage", "reload",
			"send triage hello", "status", "history", "events", "attach --read-only triage", "screen triage", "service print systemd",
		} {
			o := w.run(append(strings.Fields(command), "--file", copies.file)...)
			if o.status != exitConfig || !strings.Contains(o.stderr, "/one/heartbeat.yaml\"") || !strings.Contains(o.stderr, "\nhint: ") || o.stdout != "" {
				t.Errorf("%s, %s: %+v", name, command, o)
			}
		}
		if o := w.run("doctor", "--fix", "--file", copies.file); o.status != exitError || !strings.Contains(o.stdout, "error name-taken\n") || !strings.Contains(o.stdout, "1 error, 0 warnings\n") {
			t.Errorf("%s, doctor: %+v", name, o)
		}
		if o := w.run("validate", "--file", copies.file); o.status != 0 || !strings.Contains(o.stderr, "warning: cannot use") {
			t.Errorf("%s, validate: %+v", name, o)
		}
		if now := w.content(filepath.Dir(copies.file)); now != theirs {
			t.Errorf("%s: something was written there", name)
		}
		if now := w.content("one") + w.content("state/fleet/applied"); now != before {
			t.Errorf("%s: the original changed:\n%s\nbefore:\n%s", name, now, before)
		}
	}
	w.put("one/heartbeat.yaml", twoFleets)
	if o := w.run("pause", "--all"); o.status != 0 {
		t.Errorf("the original's own pause: %+v", o)
	}
	// Another name settles it.
	w.shell("sed -i 's/name: fleet/name: second/' copied/heartbeat.yaml")
	if o := w.run("apply", "-f", "copied/heartbeat.yaml"); o.status != 0 {
		t.Errorf("with another name: %+v", o)
	}
	if code := r.stop(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}

// TestOneFleetByManyPaths: what leads to the same file, or to where it has gone,
// is the same fleet.
func TestOneFleetByManyPaths(t *testing.T) {
	t.Parallel()
	absolute := func(w *world) string {
		return strings.NewReplacer("dir: agents/triage", "dir: '"+w.dir+"/agents/triage'", "dir: builder,", "dir: '"+w.dir+"/builder',").Replace(twoFleets)
	}
	for name, way := range map[string]struct {
		script, file string
		absolute     bool
	}{
		"a link to the folder":               {"ln -s one link", "link/heartbeat.yaml", false},
		"a path with dots":                   {"mkdir two", "two/../one/heartbeat.yaml", false},
		"a link, and absolute directories":   {"mkdir two && ln -s ../one/heartbeat.yaml two/fleet.yaml", "two/fleet.yaml", true},
		"a hard link, absolute directories":  {"mkdir two && ln one/heartbeat.yaml two/fleet.yaml", "two/fleet.yaml", true},
		"a folder that was moved":            {"mv one two", "two/heartbeat.yaml", false},
		"a file that was moved":              {"mkdir two && mv one/heartbeat.yaml two/h.yaml", "two/h.yaml", true},
		"a copy, and the original removed":   {"cp -r one two && rm -r one", "two/heartbeat.yaml", false},
		"a copy, the original another thing": {"cp -r one two && rm -r one && echo > one", "two/heartbeat.yaml", false},
		"a copy, and the original renamed":   {"cp -r one two && sed -i 's/name: fleet/name: first/' one/heartbeat.yaml", "two/heartbeat.yaml", false},
		"an editor's new file":               {"cp one/heartbeat.yaml one/new && mv one/new one/heartbeat.yaml", "one/heartbeat.yaml", false},
		"a mounted map that was replaced":    {"mv one/heartbeat.yaml one/was && mkdir one/..1 one/..2 && cp one/was one/..2/heartbeat.yaml && ln -s ..2/heartbeat.yaml one/heartbeat.yaml", "one/heartbeat.yaml", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("one/heartbeat.yaml", twoFleets)
			if way.absolute {
				w.put("one/heartbeat.yaml", absolute(w))
			}
			w.ok("apply", "-f", "one/heartbeat.yaml")
			w.shell(way.script)
			for _, command := range []string{"status", "apply", "diff", "run --once", "history", "unapply"} {
				if o := w.run(append(strings.Fields(command), "--file", way.file)...); o.status != 0 {
					t.Errorf("%s: %+v", command, o)
				}
			}
		})
	}
}

// TestABindMountIsTheSameFolder needs a mount namespace of its own.
func TestABindMountIsTheSameFolder(t *testing.T) {
	t.Parallel()
	if out, err := exec.Command("unshare", "-m", "true").CombinedOutput(); err != nil {
		t.Skipf("unshare -m: %v: %s", err, out)
	}
	w := newWorld(t)
	w.put("one/heartbeat.yaml", twoFleets)
	w.put("two/empty", "")
	w.env = append(w.env, "HEARTBEAT_FILE=one/heartbeat.yaml")
	w.ok("apply")
	self := testbed.Program(t, "heartbeat")
	sh := exec.CommandContext(t.Context(), "unshare", "-m", "/bin/sh", "-ec", "mount --bind one two && '"+self+"' pause --all -f two/heartbeat.yaml")
	sh.Dir, sh.Env = w.dir, w.env
	r := w.background()
	if out, err := sh.CombinedOutput(); err != nil || !strings.Contains(string(out), "builder: paused") {
		t.Errorf("%v\n%s", err, out)
	}
	r.stop()
}

// TestWhatAnotherFleetHasWiredStays: a fleet takes its own back, under whatever
// name it had, and nobody else's.
func TestWhatAnotherFleetHasWiredStays(t *testing.T) {
	t.Parallel()
	wired := func(w *world, dir string) bool {
		data, err := os.ReadFile(filepath.Join(w.dir, dir, ".claude/settings.json"))
		return err == nil && strings.Contains(string(data), " hook; test ")
	}
	t.Run("a name that was given up", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.put("one/heartbeat.yaml", twoFleets)
		w.ok("apply", "-f", "one/heartbeat.yaml")
		w.shell("cp -r one two; sed -i 's/name: fleet/name: first/' one/heartbeat.yaml")
		if o := w.run("apply", "-f", "two/heartbeat.yaml"); o.status != 0 || !wired(w, "one/builder") || !wired(w, "two/builder") {
			t.Errorf("%+v", o)
		}
		w.shell("sed -i /builder/d one/heartbeat.yaml") // the fleet drops it under its new name
		if o := w.run("apply", "-f", "one/heartbeat.yaml"); o.status != 0 || wired(w, "one/builder") || !wired(w, "one/agents/triage") || !wired(w, "two/builder") {
			t.Errorf("%+v", o)
		}
	})
	t.Run("one directory", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		fleet := func(name, rule string) string {
			return "version: 1\nname: " + name + "\nagents:\n  triage: {dir: '" + w.dir + "/triage', permissions: {allow: [" + rule + "]}}\n"
		}
		w.put("one/heartbeat.yaml", fleet("first", "Read"))
		w.put("two/heartbeat.yaml", fleet("second", "Glob"))
		w.put("triage/.claude/settings.json", theirsAlone)
		w.ok("apply", "-f", "one/heartbeat.yaml")
		w.ok("apply", "-f", "two/heartbeat.yaml")
		if o := w.run("unapply", "-f", "one/heartbeat.yaml"); o.status != 0 || !wired(w, "triage") || !strings.Contains(o.stderr, "is wired by the fleet of \""+w.dir+"/two/heartbeat.yaml") {
			t.Errorf("%+v", o)
		}
		if got := w.get("triage/.claude/settings.json"); strings.Contains(got, `"Read"`) || !strings.Contains(got, `"Glob"`) {
			t.Errorf("who applied last does not decide: %s", got)
		}
		w.ok("unapply", "-f", "two/heartbeat.yaml")
		if got := w.get("triage/.claude/settings.json"); got != theirsAlone {
			t.Errorf("left: %s", got)
		}
	})
}

// theirsAlone is a person's settings.
const theirsAlone = `{"model":"opus"}`

// TestOnlyTheOwnersWayLeadsToAState: a command that takes a state directory by
// the fleet's name alone could take another fleet's.
func TestOnlyTheOwnersWayLeadsToAState(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if room, ok := s.X.(*ast.Ident); ok && room.Name == "state" && (s.Sel.Name == "Dir" || s.Sel.Name == "RuntimeDir" || s.Sel.Name == "Path") {
				t.Errorf("%s: state.%s: ask owner.StateDir, RuntimeDir or Claim", path, s.Sel.Name)
			}
			return true
		})
	}
}
