package ptyrun

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"heartbeat/internal/testbed"
)

// planned names a control group, or says why the test cannot be run here.
func planned(t *testing.T) string {
	t.Helper()
	group := PlanGroup()
	if group == "" {
		mount, own := groupOf(os.Getpid())
		t.Skipf("no control group may be made here: ours is %q on %q", own, mount)
	}
	t.Cleanup(func() { killGroup(group); removeGroup(group) })
	return group
}

func requireNoGroup(t *testing.T, group string) {
	t.Helper()
	if _, err := os.Stat(group); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", group, err)
	}
}

// What has left the tree in every other way is still in its control group:
// the holder dies at once, so that orphans are nobody's descendants, and the
// cookie is gone from the environment. It runs alone, as TestSweepAfterKill does.
func TestSweepFindsTheGroup(t *testing.T) {
	group := planned(t)
	tr := newTree(t, `sh -c "$live"`)
	h := startHolder(t, "", tr.argv, "PTYRUN_TEST_GROUP="+group)
	procs := tr.up()
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait()
	// The terminal is closed with the holder: those that heed HUP may be gone.
	lost := Remains{Cookie: mark(), Group: group}
	if found, err := lost.Find(); err != nil || len(found) < 3 {
		t.Errorf("found %v, %v", found, err)
	}
	if _, err := Sweep(t.Context(), lost, 300*time.Millisecond); err != nil {
		t.Error(err)
	}
	within(t, "those that were ended are gone", func() bool { return len(alive(procs)) == 0 }) // whoever adopted them reaps them
	requireNoGroup(t, group)
	if _, err := Sweep(t.Context(), lost, time.Second); err != nil {
		t.Errorf("a group that is gone: %v", err)
	}
}

// Groups of makers that were killed do not pile up.
func TestForsakenGroupsAreRemoved(t *testing.T) {
	t.Parallel()
	own := filepath.Dir(planned(t))
	dead := filepath.Join(own, groupPrefix+"1-1-"+mark()) // 1 runs, but since another time
	alive := PlanGroup()
	for _, dir := range []string{filepath.Join(dead, "below"), alive} {
		if err := os.MkdirAll(dir, 0o755); err != nil && !errors.Is(err, fs.ErrNotExist) { // another test's child has removed it
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { removeGroup(dead); removeGroup(alive) })
	run(t, Config{Argv: sh("true"), Group: PlanGroup()})
	requireNoGroup(t, dead)
	if _, err := os.Stat(alive); err != nil {
		t.Errorf("the group of one who lives was removed: %v", err)
	}
	// One with processes in it stays.
	var used string
	var c *Child
	within(t, "a start that no other test's comes between", func() bool {
		used = filepath.Join(own, groupPrefix+"1-1-"+mark())
		c = start(t, Config{Argv: []string{"sleep", "100"}, Group: used, Grace: time.Second})
		return c.group != ""
	})
	run(t, Config{Argv: sh("true"), Group: PlanGroup()})
	if !groupMembers(used)[c.PID()] {
		t.Error("a group with processes was touched")
	}
}

// Whatever is named as a group, only one of ours is emptied.
func TestSweepPassesOverOtherGroups(t *testing.T) {
	t.Parallel()
	group := planned(t)
	other := filepath.Join(filepath.Dir(group), "not-"+filepath.Base(group))
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(other) })
	for _, g := range []string{other, t.TempDir(), "/no/such/group"} {
		if found, err := (Remains{Cookie: mark(), Group: g}).Find(); err != nil || len(found) > 0 {
			t.Errorf("%s: found %v, %v", g, found, err)
		}
		if _, err := Sweep(t.Context(), Remains{Cookie: mark(), Group: g}, time.Second); err != nil {
			t.Errorf("%s: %v", g, err)
		}
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("a group that is not ours was removed: %v", err)
	}
}

// End removes the group, also with groups below it that the child has made,
// and kills what moved there.
func TestEndRemovesTheGroup(t *testing.T) {
	t.Parallel()
	group := planned(t)
	out := &testbed.Output{}
	c := start(t, Config{
		Argv: sh(`mkdir -p "$G/a/b" && sh -c 'echo $$ >"$G/a/b/cgroup.procs"; trap "" TERM HUP; echo moved; while :; do sleep .05; done' & cat /proc/self/cgroup; wait`),
		Env:  append(CleanEnv(os.Environ()), "G="+group), Output: out, Grace: 100 * time.Millisecond, Group: group,
	})
	within(t, "it has moved", func() bool { return strings.Contains(out.String(), "moved") })
	if !strings.Contains(out.String(), "/"+filepath.Base(group)+"\r\n") {
		t.Errorf("the child is not in its group: %q", out.String())
	}
	if exit := c.End(t.Context()); len(exit.Left) > 0 || len(exit.Swept) == 0 {
		t.Errorf("exit is %+v", exit)
	}
	requireNoGroup(t, group)
}

// A group that cannot be made is done without, and leaves no trace.
func TestStartWithoutTheGroup(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"/no/such/group", filepath.Join(t.TempDir(), "x"), ""} {
		if out, exit := run(t, Config{Argv: sh("echo here"), Group: group}); exit.Code != 0 || !strings.Contains(out, "here") {
			t.Errorf("%q: %q, %+v", group, out, exit)
		}
		if group != "" {
			requireNoGroup(t, group)
		}
	}
	group := planned(t)
	if _, err := Start(t.Context(), Config{Argv: []string{"/no/such/command"}, Group: group}); !errors.Is(err, ErrCommand) {
		t.Errorf("got %v", err)
	}
	requireNoGroup(t, group)
}

// A session that forks as fast as it can is ended in one step.
func TestForkBomb(t *testing.T) {
	t.Parallel()
	for name, group := range map[string]string{"where a group may be made, with one": PlanGroup(), "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			// Bounded: it stops by itself when the file is gone, and at 300.
			bomb := `trap '' TERM HUP; b() { [ -e "$D/on" ] && [ "$1" -lt 300 ] && { b $(($1+1)) & exec 3>&-; sleep 2; }; }; touch "$D/on"; for i in 1 2 3; do b 0 & done; echo lit; sleep 60`
			out := &testbed.Output{}
			c := start(t, Config{
				Argv: []string{"bash", "-c", bomb}, Env: append(CleanEnv(os.Environ()), "D="+dir),
				Output: out, Grace: 20 * time.Millisecond, Group: group,
			})
			within(t, "it is lit", func() bool { return strings.Contains(out.String(), "lit") })
			within(t, "it forks", func() bool { procs, err := c.find(); return err == nil && len(procs) > 20 })
			before := time.Now()
			exit := c.End(t.Context())
			t.Logf("%d processes ended in %v", len(exit.Swept), time.Since(before))
			if len(exit.Left) > 0 {
				t.Errorf("left: %v", exit.Left)
			}
			if procs, err := c.find(); err != nil || len(procs) > 0 {
				t.Errorf("survivors %v, %v", procs, err)
			}
		})
	}
}

func TestLocateGroup(t *testing.T) {
	t.Parallel()
	const (
		unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid  = "31 30 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n32 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
		bound   = "33 30 0:26 /docker/c1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
		above   = "82 72 0:38 /.. /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"
		blank   = "34 30 0:26 / /mnt/a\\040b rw - cgroup2 cgroup2 rw\n"
	)
	tests := map[string]struct{ groups, mounts, mount, own string }{
		"unified":           {"0::/user.slice/s.scope\n", unified, "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/s.scope"},
		"root":              {"0::/\n", unified, "/sys/fs/cgroup", "/sys/fs/cgroup"},
		"hybrid":            {"9:name=systemd:/x\n1:cpu:/\n0::/x\n", hybrid, "/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/x"},
		"only version 1":    {"1:cpu:/\n", hybrid, "", ""},
		"not mounted":       {"0::/x\n", "", "", ""},
		"a container's":     {"0::/docker/c1/a\n", bound, "/sys/fs/cgroup", "/sys/fs/cgroup/a"},
		"another's":         {"0::/docker/c2\n", bound, "", ""},
		"out of namespace":  {"0::/../c2\n", unified, "", ""},
		"mounted above":     {"0::/\n", above, "", ""},
		"escaped mount":     {"0::/x\n", blank, "", ""},
		"a sibling's begin": {"0::/docker/c11\n", bound, "", ""},
	}
	for name, tt := range tests {
		if mount, own := locateGroup([]byte(tt.groups), []byte(tt.mounts)); mount != tt.mount || own != tt.own {
			t.Errorf("%s: %q on %q, want %q on %q", name, own, mount, tt.own, tt.mount)
		}
	}
}

func TestDelegated(t *testing.T) {
	t.Parallel()
	const mount = "/sys/fs/cgroup"
	tests := map[string]struct {
		own     string
		systemd bool
		marked  string
		want    bool
	}{
		"no systemd":                   {"/x.service", false, "", true},
		"a service":                    {"/system.slice/x.service", true, "", false},
		"Delegate=yes":                 {"/system.slice/x.service", true, "/system.slice/x.service", true},
		"below it":                     {"/system.slice/x.service/heartbeat-1", true, "/system.slice/x.service", true},
		"a user's terminal":            {"/user.slice/user@1.service/app.slice/t.scope", true, "/user.slice/user@1.service", false},
		"a user's delegated":           {"/user.slice/user@1.service/app.slice/h.service", true, "/user.slice/user@1.service/app.slice/h.service", true},
		"a container's root":           {"", true, "", true},
		"nobody's, beside systemd's":   {"/x", true, "", false},
		"a group of ours in a service": {"/system.slice/x.service/heartbeat-1", true, "", false},
	}
	for name, tt := range tests {
		marked := func(dir string) bool { return tt.marked != "" && dir == mount+tt.marked }
		if got := delegated(mount, mount+tt.own, tt.systemd, marked); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// systemd's mark is read from a real group.
func TestMarkedDelegated(t *testing.T) {
	t.Parallel()
	group := planned(t)
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Fatal(err)
	}
	if markedDelegated(group) {
		t.Error("marked from the start")
	}
	if err := syscall.Setxattr(group, "user.delegate", []byte("1"), 0); errors.Is(err, syscall.EOPNOTSUPP) {
		t.Skip("this kernel's groups have no user attributes")
	} else if err != nil {
		t.Fatal(err)
	}
	if !markedDelegated(group) {
		t.Error("the mark is not seen")
	}
}

// No processes below a threaded group.
func TestThreadedGroup(t *testing.T) {
	t.Parallel()
	group := planned(t)
	below := filepath.Join(group, "threads")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	if !holdsProcesses(group) || !isGroup(group) || !writable(group) {
		t.Error("a plain group is refused")
	}
	if err := os.WriteFile(filepath.Join(below, "cgroup.type"), []byte("threaded"), 0); err != nil {
		t.Fatal(err)
	}
	if holdsProcesses(below) || holdsProcesses(group) {
		t.Error("a threaded group is taken")
	}
	// Whatever says otherwise, Start goes on without.
	inside := filepath.Join(below, groupPrefix+"x")
	if out, exit := run(t, Config{Argv: sh("echo " + strconv.Itoa(7)), Group: inside}); exit.Code != 0 || !strings.Contains(out, "7") {
		t.Errorf("%q, %+v", out, exit)
	}
	requireNoGroup(t, inside)
}
