package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestNothingIsEverybodysUnderUmask0: .claude was 0777, and a new heartbeat.yaml
// was everybody's to write.
func TestNothingIsEverybodysUnderUmask0(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{{"init", "-f", "new/heartbeat.yaml"}, {"apply"}, {"send", "triage", "hello"}, {"run", "--once"}, {"status"}} {
		if args[0] == "apply" {
			w.put("heartbeat.yaml", simulated)
		} else if args[0] == "init" {
			w.put("new/x", "")
		}
		cmd := w.command(args...)
		cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `umask 0; exec "$0" "$@"`, cmd.Path}, args...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	seen := 0
	err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		seen++
		if err == nil && info.Mode().Type() != fs.ModeSymlink && info.Mode().Perm()&0o022 != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return err
	})
	if err != nil || seen < 15 {
		t.Errorf("%d files, %v", seen, err)
	}
}

// TestNoValueOfEnvStaysBehind: a copy of the fleet's file is kept, to go on while
// it is broken; after unapply nothing needs it.
func TestNoValueOfEnvStaysBehind(t *testing.T) {
	t.Parallel()
	secret := "secret-" + strconv.Itoa(os.Getpid()) // this program is copied, too
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated+"    env: {TOKEN: "+secret+"}\n")
	holding := func() (found []string) {
		err := filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if rel, _ := filepath.Rel(w.dir, path); strings.Contains(string(data), secret) || strings.Contains(rel, "/.files/") {
				found = append(found, rel)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	w.ok("apply")
	w.ok("send", "triage", "hello")
	w.done("run", "--once")
	w.ok("unapply", "triage")
	if got := holding(); len(got) < 2 {
		t.Fatalf("%v", got)
	}
	w.ok("unapply")
	if got := holding(); len(got) != 1 || got[0] != "heartbeat.yaml" {
		t.Errorf("it is in %v", got)
	}
}
