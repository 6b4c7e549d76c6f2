package ptyrun

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// groupModel is the file system of control groups with the kernel's rules: no
// processes beside groups that controllers are passed on to, but in the root.
type groupModel struct {
	files map[string]string // PATH → content
	root  string
	stuck map[string]bool // pids that cannot be moved
}

func newGroupModel(root, base, controllers string, pids ...int) *groupModel {
	m := &groupModel{files: map[string]string{}, root: root, stuck: map[string]bool{}}
	m.made(root, controllers)
	if base != root {
		m.made(base, controllers)
	}
	for _, pid := range pids {
		m.files[base+"/cgroup.procs"] += strconv.Itoa(pid) + "\n"
	}
	return m
}

func (m *groupModel) made(dir, controllers string) {
	m.files[dir+"/cgroup.procs"], m.files[dir+"/cgroup.subtree_control"] = "", ""
	m.files[dir+"/cgroup.controllers"] = controllers
	if dir == m.root {
		return
	}
	m.files[dir+"/cgroup.type"] = "domain\n"
	for c, names := range map[string][]string{
		"memory": {"memory.max", "memory.events", "memory.oom.group"}, "pids": {"pids.max", "pids.events"}, "cpu": {"cpu.max"},
	} {
		for _, name := range names {
			if slices.Contains(strings.Fields(controllers), c) {
				m.files[dir+"/"+name] = ""
			}
		}
	}
}

func (m *groupModel) ReadFile(path string) ([]byte, error) {
	text, ok := m.files[path]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func (m *groupModel) WriteFile(path, text string) error {
	dir, name := filepath.Dir(path), filepath.Base(path)
	if _, ok := m.files[path]; !ok {
		return fs.ErrNotExist
	}
	switch name {
	case "cgroup.procs":
		if m.stuck[text] {
			return syscall.EPERM
		}
		if dir != m.root && m.files[dir+"/cgroup.subtree_control"] != "" {
			return syscall.EBUSY
		}
		for other, content := range m.files {
			if filepath.Base(other) == "cgroup.procs" {
				m.files[other] = strings.Join(slices.DeleteFunc(strings.SplitAfter(content, "\n"), func(l string) bool { return l == text+"\n" }), "")
			}
		}
		m.files[path] += text + "\n"
	case "cgroup.subtree_control":
		c := strings.TrimPrefix(text, "+")
		if !slices.Contains(strings.Fields(m.files[dir+"/cgroup.controllers"]), c) {
			return syscall.ENOENT
		}
		if dir != m.root && m.files[dir+"/cgroup.procs"] != "" {
			return syscall.EBUSY
		}
		m.files[path] += c + " "
	default:
		m.files[path] = text
	}
	return nil
}

func (m *groupModel) Mkdir(path string) error {
	if _, ok := m.files[path+"/cgroup.procs"]; ok {
		return fs.ErrExist
	}
	m.made(path, m.files[filepath.Dir(path)+"/cgroup.subtree_control"])
	return nil
}

func (m *groupModel) Rmdir(path string) error {
	if m.files[path+"/cgroup.procs"] != "" {
		return syscall.EBUSY
	}
	for name := range m.files {
		if filepath.Dir(name) == path {
			delete(m.files, name)
		}
	}
	return nil
}

const everything = "cpuset cpu io memory pids"

func pids(all ...int) func() map[int]bool {
	return func() map[int]bool {
		of := map[int]bool{}
		for _, pid := range all {
			of[pid] = true
		}
		return of
	}
}

// A run makes its group one that can limit sessions, and sessions get theirs.
func TestRoomForLimits(t *testing.T) {
	t.Parallel()
	const root, base, leaf = "/c", "/c/u.service", "/c/u.service/heartbeat-7-1-run"
	m := newGroupModel(root, base, everything, 7, 8)
	for range 2 { // a second time nothing is to be done
		if err := makeRoom(m, base, leaf, pids(7, 8)); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.files[leaf+"/cgroup.procs"]; got != "7\n8\n" {
		t.Errorf("in the group of the run are %q", got)
	}
	if got := m.files[base+"/cgroup.subtree_control"]; got != "memory pids cpu " {
		t.Errorf("passed on: %q", got)
	}
	session := base + "/heartbeat-8-1-aa"
	l := Limits{Memory: 1 << 30, Processes: 100, CPU: 1.5}
	if err := errors.Join(m.Mkdir(session), writeLimits(m, session, l)); err != nil { // the model has no memory.swap.max
		t.Fatal(err)
	}
	for name, want := range map[string]string{"memory.max": "1073741824", "memory.oom.group": "1", "pids.max": "100", "cpu.max": "150000 100000"} {
		if got := m.files[session+"/"+name]; got != want {
			t.Errorf("%s is %q, not %q", name, got, want)
		}
	}
	if err := lacking(m, base, "cgroup.subtree_control", l); err != nil {
		t.Error(err)
	}
}

// The root of all groups divides with its processes in it.
func TestRoomInTheRoot(t *testing.T) {
	t.Parallel()
	m := newGroupModel("/c", "/c", everything, 1, 7)
	if err := makeRoom(m, "/c", "/c/heartbeat-7-1-run", pids(7)); err != nil {
		t.Fatal(err)
	}
	if got := m.files["/c/cgroup.procs"]; got != "1\n7\n" {
		t.Errorf("in the root are %q", got)
	}
}

// Where limits cannot be kept nothing has changed, and it is said why.
func TestNoRoomForLimits(t *testing.T) {
	t.Parallel()
	const base, leaf = "/c/u.service", "/c/u.service/heartbeat-7-1-run"
	tests := map[string]struct {
		controllers string
		stuck       bool
		kin         func() map[int]bool
		limits      Limits
		made, want  string
	}{
		"a stranger":           {everything, false, pids(7), Limits{Memory: 1}, "has other processes in it: ", ""},
		"one that cannot move": {everything, true, pids(7, 8), Limits{Memory: 1}, "operation not permitted", ""},
		"no controller at all": {"", false, pids(7, 8), Limits{Memory: 1, CPU: 1}, "", "has no controller for memory, cpu"},
		"one is missing":       {"memory pids", false, pids(7, 8), Limits{Memory: 1, CPU: 1}, "", "has no controller for cpu"},
		"it is not needed":     {"memory pids", false, pids(7, 8), Limits{Memory: 1, Processes: 9}, "", ""},
	}
	for name, tt := range tests {
		m := newGroupModel("/c", base, tt.controllers, 7, 8)
		m.stuck["8"] = tt.stuck
		err := makeRoom(m, base, leaf, tt.kin)
		if got := textOf(err); !strings.Contains(got, tt.made) || (err == nil) != (tt.made == "") {
			t.Errorf("%s: making room: %q", name, got)
		}
		if tt.made != "" {
			if got := m.files[base+"/cgroup.procs"]; len(strings.Fields(got)) != 2 {
				t.Errorf("%s: in the group are %q", name, got)
			}
			if _, ok := m.files[leaf+"/cgroup.procs"]; ok {
				t.Errorf("%s: the run's group is left", name)
			}
			continue
		}
		err = lacking(m, base, "cgroup.subtree_control", tt.limits)
		if got := textOf(err); !strings.Contains(got, tt.want) || (err == nil) != (tt.want == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestAboveRun(t *testing.T) {
	t.Parallel()
	for own, want := range map[string]string{
		"/c/u.service":                              "/c/u.service",
		"/c/u.service/heartbeat-7-1-run":            "/c/u.service",
		"/c/u.service/heartbeat-7-1-aabb":           "/c/u.service/heartbeat-7-1-aabb", // a session's
		"/c/u.service/heartbeat-7-1-aa/morning-run": "/c/u.service/heartbeat-7-1-aa/morning-run",
	} {
		if got := aboveRun(own); got != want {
			t.Errorf("%s: %s", own, got)
		}
	}
}

func TestInVersion1(t *testing.T) {
	t.Parallel()
	const text = "#subsys_name\thierarchy\tnum_cgroups\tenabled\nmemory\t4\t20\t1\npids\t0\t1\t1\n"
	if !inVersion1([]byte(text), []string{"memory"}) || inVersion1([]byte(text), []string{"pids"}) {
		t.Error("the hierarchies are taken for others")
	}
}

// What the kernel counted says whose memory it was.
func TestGroupEvents(t *testing.T) {
	t.Parallel()
	const dir = "/c/x"
	for _, tt := range []struct {
		memory, pids string
		want         OutOfMemory
		refused      int
	}{
		{"low 0\nhigh 0\nmax 7\noom 1\noom_kill 3\noom_group_kill 1\n", "max 0\n", OwnMemory, 0},
		{"low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n", "max 4\n", MachineMemory, 4},
		{"low 0\nmax 9\noom 0\noom_kill 0\n", "", "", 0},
		{"", "", "", 0},
	} {
		m := &groupModel{files: map[string]string{dir + "/memory.events": tt.memory, dir + "/pids.events": tt.pids}}
		if got, refused := eventsOf(m, dir); got != tt.want || refused != tt.refused {
			t.Errorf("%q: %q, %d", tt.memory, got, refused)
		}
	}
}

// Required limits that cannot be had keep a child from being started; others
// are said not to hold.
func TestLimitsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	for _, group := range []string{"", filepath.Join(t.TempDir(), "missing", "heartbeat-x")} {
		l := Limits{Memory: 1 << 30, Processes: 100}
		c := start(t, Config{Argv: sh("true"), Group: group, Limits: l})
		if _, ok := errors.AsType[*NoLimitsError](c.Unlimited()); !ok {
			t.Errorf("%q: unlimited is %v", group, c.Unlimited())
		}
		c.End(t.Context())
		l.Required = true
		_, err := Start(t.Context(), Config{Argv: sh("true"), Group: group, Limits: l})
		if _, ok := errors.AsType[*NoLimitsError](err); !ok {
			t.Errorf("%q: %v", group, err)
		}
	}
}

// roomy is a fresh control group with all controllers, or says why the test
// cannot be run here.
func roomy(t *testing.T) *os.File {
	t.Helper()
	base := filepath.Dir(planned(t))
	dir := filepath.Join(base, "not-"+groupPrefix+mark())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { killGroup(dir); removeGroup(dir) })
	there := words(kernelFiles{}, dir, "cgroup.controllers")
	if missing := lackingIn(there, limiting); len(missing) > 0 {
		t.Skipf("%s passes on no controller for %s (.ci/limits runs this on a kernel that does)", base, strings.Join(missing, ", "))
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// limitedIn runs a command with limits in a process whose own group dir is.
func limitedIn(t *testing.T, dir *os.File, l Limits, script string) ended {
	t.Helper()
	cmd := role(t, "limit", sh(script)...)
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "PTYRUN_TEST_LIMITS="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var e ended
	if err := json.Unmarshal(out, &e); err != nil {
		t.Fatal(err)
	}
	requireNoGroup(t, e.Group)
	if e.Unlimited != "" {
		t.Fatal(e.Unlimited)
	}
	return e
}

// The kernel kills what needs too much memory, all of it, and it is told so.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	e := limitedIn(t, roomy(t), Limits{Memory: 64 << 20}, `sleep 100 & head -c 200000000 /dev/zero | tail; wait`)
	if e.Exit.OutOfMemory != OwnMemory || e.Exit.Signal != unix.SignalName(syscall.SIGKILL) {
		t.Errorf("exit is %+v", e.Exit)
	}
}

func TestProcessLimit(t *testing.T) {
	t.Parallel()
	e := limitedIn(t, roomy(t), Limits{Processes: 64}, `i=0; while [ $i -lt 100 ]; do sleep 5 & i=$((i+1)); done 2>/dev/null; exit 3`)
	if e.Exit.Refused == 0 || e.Exit.OutOfMemory != "" {
		t.Errorf("exit is %+v", e.Exit)
	}
}

func TestCPULimit(t *testing.T) {
	t.Parallel()
	e := limitedIn(t, roomy(t), Limits{CPU: 0.1},
		`i=0; while ! grep -q 'nr_throttled [1-9]' "$GROUP/cpu.stat" && [ $i -lt 100000 ]; do i=$((i+1)); done; [ $i -lt 100000 ]`)
	if e.Exit.Code != 0 {
		t.Errorf("it was never slowed down: %+v", e.Exit)
	}
}
