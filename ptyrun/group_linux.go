package ptyrun

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A child can have a control group of its own (cgroups(7), version 2). A process
// cannot leave it by setsid, a double fork or another environment, and the kernel
// kills everything in it in one step, including what forks meanwhile.

// groupPrefix begins the names of all our control groups.
const groupPrefix = "heartbeat-"

// PlanGroup names a control group that Start can make for one child, below the one
// of this process, or beside it after MakeRoom. It returns "" when none can be
// made: there is no control group of version 2, it is read-only, we may not divide
// it, or it is a threaded one. Nothing is made yet, so that the name can be
// recorded first.
func PlanGroup() string {
	base, err := baseOf(os.Getpid())
	if err != nil {
		return ""
	}
	start, err := StartTimeOf(os.Getpid())
	if err != nil {
		return ""
	}
	return filepath.Join(base, fmt.Sprintf("%s%d-%d-%s", groupPrefix, os.Getpid(), start, mark()))
}

// removeForsaken removes the empty control groups below own whose makers no longer
// exist: a process that was killed could not remove its own. A group that is not
// empty is left to Sweep, which knows what may be killed.
func removeForsaken(own string) {
	entries, err := os.ReadDir(own)
	if err != nil {
		return
	}
	for _, e := range entries {
		var pid int
		var start uint64
		if n, _ := fmt.Sscanf(e.Name(), groupPrefix+"%d-%d-", &pid, &start); n != 2 {
			continue
		}
		if at, err := StartTimeOf(pid); errors.Is(err, ErrGone) || err == nil && at != start {
			eachGroup(filepath.Join(own, e.Name()), func(dir string) { _ = unix.Rmdir(dir) }) // fails while it is in use
		}
	}
}

// groupOf returns the directory of a process's control group of version 2 and the
// mount that it is in, or nothing.
func groupOf(pid int) (mount, own string) {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return "", ""
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", ""
	}
	return locateGroup(groups, mounts)
}

// locateGroup finds what groupOf returns in the text of /proc/self/cgroup and
// /proc/self/mountinfo (proc_pid_mountinfo(5)).
func locateGroup(groups, mounts []byte) (mount, own string) {
	path := ""
	for line := range strings.Lines(string(groups)) {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			path = strings.TrimSuffix(rest, "\n")
		}
	}
	if path == "" || strings.Contains(path, "..") {
		return "", "" // none, or outside this namespace
	}
	lines := bufio.NewScanner(bytes.NewReader(mounts))
	for lines.Scan() {
		head, tail, _ := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(head)
		if !strings.HasPrefix(tail, "cgroup2 ") || len(fields) < 5 || strings.Contains(fields[4], `\`) {
			continue
		}
		// Field 4 is the directory of the hierarchy that is mounted here; "/.." is
		// above this process's namespace.
		rel, err := filepath.Rel(fields[3], path)
		if err == nil && filepath.IsLocal(rel) && !strings.Contains(fields[3], "..") {
			return fields[4], filepath.Join(fields[4], rel)
		}
	}
	return "", ""
}

func isGroup(dir string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(dir, &stat) == nil && stat.Type == unix.CGROUP2_SUPER_MAGIC
}

func writable(dir string) bool {
	return unix.Access(dir, unix.W_OK|unix.X_OK) == nil && unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
}

// holdsProcesses reports whether groups below dir can hold processes; below a
// threaded one they cannot. The root has no type.
func holdsProcesses(dir string) bool {
	kind, err := os.ReadFile(filepath.Join(dir, "cgroup.type"))
	return errors.Is(err, fs.ErrNotExist) || err == nil && string(bytes.TrimSpace(kind)) == "domain"
}

// unitKinds are the suffixes of a systemd unit's group.
var unitKinds = []string{".service", ".scope", ".slice", ".socket", ".mount", ".swap"}

// delegated reports whether we may divide own. Under systemd only a unit with
// Delegate= may (https://systemd.io/CGROUP_DELEGATION: one writer for each group),
// and its directory is marked; elsewhere everyone with write access may.
func delegated(mount, own string, systemd bool, marked func(dir string) bool) bool {
	if !systemd {
		return true
	}
	for dir := own; ; dir = filepath.Dir(dir) {
		switch {
		case marked(dir):
			return true
		case dir == mount || dir == filepath.Dir(dir):
			return own == mount // a container's root
		case slices.Contains(unitKinds, filepath.Ext(dir)):
			return false
		}
	}
}

// markedDelegated looks for systemd's mark of a delegated group.
func markedDelegated(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}

// startIn starts the child in a new control group if one was planned and can be
// made. Otherwise it starts it without one, unless the child must have limits.
func (c *Child) startIn(dir string, l Limits) error {
	if dir != "" {
		err := c.startApart(dir, l)
		if err == nil || l.Required && !l.None() {
			return err
		}
		c.unlimited = cmp.Or(c.unlimited, whyUnlimited(err, l))
		return c.cmd.Start()
	}
	if c.unlimited = whyUnlimited(errNoPlan, l); c.unlimited != nil && l.Required {
		return c.unlimited
	}
	return c.cmd.Start()
}

var errNoPlan = errors.New("no control group was planned")

// startApart starts the child in a new control group. If the limits cannot be set,
// the child runs without them where that is allowed.
func (c *Child) startApart(dir string, l Limits) error {
	removeForsaken(filepath.Dir(dir))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return cmp.Or(whyUnlimited(err, l), err)
	}
	err := writeLimits(kernelFiles{}, dir, l)
	if c.unlimited = whyUnlimited(err, l); c.unlimited == nil || !l.Required {
		if err = c.startInto(dir); err == nil {
			c.group = dir
			return nil
		}
	}
	removeGroup(dir)
	return cmp.Or(c.unlimited, err)
}

// whyUnlimited says why limits are not in force, from err; nil if there is no
// error, or nothing to limit.
func whyUnlimited(err error, l Limits) error {
	if err == nil || l.None() {
		return nil
	}
	if why := CanLimit(os.Getpid(), l); why != nil {
		return why
	}
	return &NoLimitsError{Why: err.Error(), Cure: asService}
}

// startInto tries with a copy: a command that failed cannot start again.
func (c *Child) startInto(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	attr := *c.cmd.SysProcAttr
	attr.UseCgroupFD, attr.CgroupFD = true, fd
	cmd := &exec.Cmd{
		Path: c.cmd.Path, Args: c.cmd.Args, Dir: c.cmd.Dir, Env: c.cmd.Env, SysProcAttr: &attr,
		Stdin: c.cmd.Stdin, Stdout: c.cmd.Stdout, Stderr: c.cmd.Stderr,
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.cmd = cmd
	return nil
}

// groupMembers returns the pids in a control group and those below it; none when
// dir is "" or gone.
func groupMembers(dir string) map[int]bool {
	members := map[int]bool{}
	eachGroup(dir, func(dir string) {
		data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if err != nil {
			return // removed meanwhile
		}
		for field := range bytes.FieldsSeq(data) {
			if pid, err := strconv.Atoi(string(field)); err == nil && pid > 0 { // 0: in another namespace
				members[pid] = true
			}
		}
	})
	return members
}

// eachGroup calls f for the groups below dir, the deepest first, and for dir.
func eachGroup(dir string, f func(dir string)) {
	if dir == "" {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			eachGroup(filepath.Join(dir, e.Name()), f)
		}
	}
	f(dir)
}

// killGroup kills everything in a control group and those below it, in one step.
// Before Linux 5.14 it does nothing, and the members are killed one by one. This
// process must not be in the group.
func killGroup(dir string) {
	if dir == "" || groupMembers(dir)[os.Getpid()] {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return
	}
	_, _ = f.WriteString("1") // what remains is found and killed
	_ = f.Close()
}

// removeGroup removes a control group and those below it. Processes that were just
// killed may need a moment to leave it.
func removeGroup(dir string) {
	for deadline := time.Now().Add(removeWait); dir != ""; {
		var err error
		eachGroup(dir, func(dir string) { err = unix.Rmdir(dir) })
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// removeWait is how long a control group may take to become empty.
const removeWait = time.Second

// ourGroup reports whether PlanGroup named the control group.
func ourGroup(dir string) bool {
	return strings.HasPrefix(filepath.Base(dir), groupPrefix) && isGroup(dir)
}
