package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrator/store"
	"heartbeat/orchestrator/store/storetest"
)

// TestAStoreThatCannotBeUsedIsTold by run, which does not begin, by status and by doctor, with
// what to do; put back, it is as it was.
func TestAStoreThatCannotBeUsedIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("heartbeat.yaml", simulated)
	r := w.background()
	w.ok("pause", "triage")
	if status := r.stop(); status != 0 {
		t.Fatal(status, r.stderr)
	}
	dir := filepath.Join(w.dir, "state", "fleet")
	path := filepath.Join(dir, store.Name)
	w.shell("cp -a state saved")
	for what, c := range map[string]struct {
		harm func() error
		want []string
	}{
		"removed":       {func() error { return os.Remove(path) }, []string{"cannot find the store", "which the fleet had", "heartbeat restore " + dir + "/backups/heartbeat-"}},
		"damaged":       {func() error { return os.WriteFile(path, []byte(strings.Repeat("text", 5000)), 0o600) }, []string{"is damaged", "heartbeat restore FILE"}},
		"emptied":       {func() error { return os.Truncate(path, 0) }, []string{"it is empty", "heartbeat restore FILE"}},
		"a link":        {func() error { return errors.Join(os.Rename(path, path+".1"), os.Symlink(path+".1", path)) }, []string{"not a regular file", "move it away"}},
		"another name":  {func() error { return os.Link(path, path+".1") }, []string{"hard link", "-samefile"}},
		"anybody's":     {func() error { return os.Chmod(path, 0o666) }, []string{"everybody can write it", "chmod go-w " + path + "*"}},
		"newer version": {func() error { return ofVersion(t, dir, 10_000) }, []string{"its tables have version 10000", "use the heartbeat that ran the fleet last"}},
	} {
		if err := c.harm(); err != nil {
			t.Fatal(what, err)
		}
		plain := func(text string) string { return strings.Join(strings.Fields(text), "") }
		for _, args := range [][]string{{"run"}, {"status"}, {"doctor"}} {
			o := w.run(args...)
			if args[0] == "run" && o.status == 0 || args[0] == "doctor" && !strings.Contains(o.stdout, "store-fails") {
				t.Errorf("%s: heartbeat %q: status %d\n%s%s", what, args, o.status, o.stdout, o.stderr)
			}
			for _, want := range c.want { // a line may be broken anywhere
				if !strings.Contains(plain(o.stdout+o.stderr), plain(want)) {
					t.Errorf("%s: heartbeat %q does not say %q:\n%s%s", what, args, want, o.stdout, o.stderr)
				}
			}
		}
		w.shell("rm -rf state && cp -a saved state")
	}
	r = w.background()
	if a := w.agent("triage"); a.State != "held" {
		t.Errorf("it is not paused any more: %+v", a)
	}
	r.stop()
}

// ofVersion writes another version into a store.
func ofVersion(t *testing.T, dir string, version int) error {
	s, end := storetest.Open(t, dir)
	defer end()
	return s.Write(t.Context(), func(c *store.Change) error {
		_, err := c.Do(`UPDATE store SET version = $1`, version)
		return err
	})
}

// TestARunWhoseStoreIsLostEnds in order, with the reason, and no other begins with an empty
// one.
func TestARunWhoseStoreIsLostEnds(t *testing.T) {
	t.Parallel()
	for what, harm := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".2", []byte("x"), 0o600), os.Rename(path+".2", path))
		},
		"cut":            func(path string) error { return os.Truncate(path, 0) },
		"its folder too": func(path string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+".old") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put("heartbeat.yaml", simulated)
			r := w.background()
			until(t, "there is a backup", func() bool { return len(w.names("state/fleet/backups")) > 0 })
			path := filepath.Join(w.dir, "state", "fleet", store.Name)
			if err := harm(path); err != nil {
				t.Fatal(err)
			}
			select {
			case <-r.done:
			case <-time.After(patience):
				t.Fatal("the run goes on")
			}
			if r.ended() == 0 || !strings.Contains(r.stderr.String(), "cannot write the store") || !strings.Contains(r.stderr.String(), "heartbeat restore FILE") {
				t.Errorf("status %d: %s", r.ended(), r.stderr)
			}
			if what == "its folder too" {
				return // what status reads is gone with it
			}
			if o := w.run("status"); o.status != exitNotRunning || !strings.Contains(o.stdout, "cannot write the store") {
				t.Errorf("status %d:\n%s%s", o.status, o.stdout, o.stderr)
			}
			if o := w.run("run", "--once"); o.status == 0 || !strings.Contains(o.stderr, "heartbeat restore") {
				t.Errorf("the next run: status %d:\n%s", o.status, o.stderr)
			}
			w.done("restore", filepath.Join(w.dir, "state/fleet/backups", w.names("state/fleet/backups")[0]))
			if o := w.run("run", "--once"); o.status != 0 {
				t.Errorf("after restore: status %d:\n%s", o.status, o.stderr)
			}
		})
	}
}
