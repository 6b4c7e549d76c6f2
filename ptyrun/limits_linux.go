package ptyrun

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A control group that holds processes cannot limit groups below it (the kernel's
// rule of no internal processes), except the root. So a run moves itself and its
// relatives into a group of their own below the one that it was started in;
// children get theirs beside that.

// runSuffix ends the name of the group that a run moves into.
const runSuffix = "-run"

// groupFiles is the file system of control groups.
type groupFiles interface {
	ReadFile(path string) ([]byte, error)
	WriteFile(path, text string) error
	Mkdir(path string) error
	Rmdir(path string) error
}

type kernelFiles struct{}

func (kernelFiles) ReadFile(path string) ([]byte, error) { return os.ReadFile(path) }
func (kernelFiles) Mkdir(path string) error              { return os.Mkdir(path, 0o755) }
func (kernelFiles) Rmdir(path string) error              { return syscall.Rmdir(path) }

// WriteFile creates no file: one that does not exist is not the kernel's.
func (kernelFiles) WriteFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// limiting are the controllers that limits need.
var limiting = []string{"memory", "pids", "cpu"}

// MakeRoom prepares the control group of this process so that children in groups
// below it can have limits, as far as the system allows: this process, its
// descendants and its ancestors in that group move into a group of their own. It
// may be called again. The error is a *NoLimitsError.
func MakeRoom() error {
	base, err := baseOf(os.Getpid())
	if err != nil {
		return err
	}
	start, startErr := StartTimeOf(os.Getpid())
	if startErr != nil {
		return &NoLimitsError{Why: startErr.Error()}
	}
	removeForsaken(base)
	leaf := filepath.Join(base, fmt.Sprintf("%s%d-%d%s", groupPrefix, os.Getpid(), start, runSuffix))
	return makeRoom(kernelFiles{}, base, leaf, relatives)
}

// makeRoom moves the relatives that are in base into leaf and makes base pass its
// controllers on.
func makeRoom(files groupFiles, base, leaf string, relatives func() map[int]bool) error {
	there := words(files, base, "cgroup.controllers")
	wanted := slices.DeleteFunc(slices.Clone(limiting), func(c string) bool { return !slices.Contains(there, c) })
	missing := func() bool {
		passed := words(files, base, "cgroup.subtree_control")
		return slices.ContainsFunc(wanted, func(c string) bool { return !slices.Contains(passed, c) })
	}
	if !missing() {
		return nil
	}
	_, err := files.ReadFile(filepath.Join(base, "cgroup.type"))
	if root := errors.Is(err, fs.ErrNotExist); !root {
		if err := vacate(files, base, leaf, relatives); err != nil {
			return err
		}
	}
	var errs []error
	for _, c := range wanted {
		errs = append(errs, files.WriteFile(filepath.Join(base, "cgroup.subtree_control"), "+"+c))
	}
	if err := errors.Join(errs...); err != nil && missing() {
		return &NoLimitsError{Why: fmt.Sprintf("the control group %s cannot be divided: %v", base, err), Cure: asService}
	}
	return nil
}

// vacate moves all processes out of base. If there are others than relatives, all
// stay.
func vacate(files groupFiles, base, leaf string, relatives func() map[int]bool) error {
	var strangers []int
	for range 10 { // some may fork meanwhile
		members := words(files, base, "cgroup.procs")
		if len(members) == 0 {
			return nil
		}
		kin := relatives()
		strangers = nil
		for _, member := range members {
			if pid, err := strconv.Atoi(member); err == nil && !kin[pid] {
				strangers = append(strangers, pid)
			}
		}
		if err := files.Mkdir(leaf); err != nil && !errors.Is(err, fs.ErrExist) {
			return &NoLimitsError{Why: err.Error(), Cure: asService}
		}
		for _, member := range members {
			if pid, err := strconv.Atoi(member); err != nil || !kin[pid] {
				continue
			}
			err := files.WriteFile(filepath.Join(leaf, "cgroup.procs"), member)
			if err != nil && !errors.Is(err, syscall.ESRCH) {
				moveBack(files, base, leaf)
				return &NoLimitsError{Why: err.Error(), Cure: asService}
			}
		}
	}
	if len(strangers) == 0 {
		return nil // the kernel refuses what comes now
	}
	moveBack(files, base, leaf)
	return &NoLimitsError{
		Why: fmt.Sprintf("the control group %s has other processes in it: %s", base, named(strangers)), Cure: asService,
	}
}

func moveBack(files groupFiles, base, leaf string) {
	for _, member := range words(files, leaf, "cgroup.procs") {
		_ = files.WriteFile(filepath.Join(base, "cgroup.procs"), member) // it may have ended
	}
	_ = files.Rmdir(leaf)
}

// named lists up to three processes.
func named(pids []int) string {
	var all []string
	for _, pid := range pids[:min(len(pids), 3)] {
		p, err := readProcess(pid)
		if err != nil {
			p.command = "?"
		}
		all = append(all, fmt.Sprintf("%s (%d)", p.command, pid))
	}
	if more := len(pids) - len(all); more > 0 {
		all = append(all, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(all, ", ")
}

// relatives returns this process, its descendants and its ancestors.
func relatives() map[int]bool {
	procs, _ := snapshot() // a process that cannot be seen is a stranger
	parent := make(map[int]int, len(procs))
	for _, p := range procs {
		parent[p.pid] = p.ppid
	}
	self, kin := os.Getpid(), map[int]bool{}
	for pid := self; pid != 0 && !kin[pid]; pid = parent[pid] {
		kin[pid] = true
	}
	for pid := range parent {
		for at, steps := pid, 0; at != 0 && steps < len(parent); at, steps = parent[at], steps+1 {
			if at == self {
				kin[pid] = true
				break
			}
		}
	}
	return kin
}

// words returns the words in a file of a control group; none if it cannot be read.
func words(files groupFiles, dir, name string) []string {
	data, err := files.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}

const asService = "run it as a service (heartbeat service install), or: systemd-run --user --scope -p Delegate=yes heartbeat run"

// baseOf returns the control group below which the children of a process get
// theirs.
func baseOf(pid int) (string, error) {
	mount, own := groupOf(pid)
	switch base := aboveRun(own); {
	case own == "":
		return "", &NoLimitsError{
			Why:  "no control groups of version 2 are mounted",
			Cure: "boot with systemd.unified_cgroup_hierarchy=1; in a container: its own limits (docker run --memory 4g --pids-limit 500)",
		}
	case !isGroup(base) || !writable(base):
		return "", &NoLimitsError{
			Why:  "this user may not divide the control group " + base,
			Cure: asService + "; in a container: /sys/fs/cgroup mounted read-write, or the container's own limits",
		}
	case !delegated(mount, base, systemdRuns(), markedDelegated):
		return "", &NoLimitsError{Why: "the control group " + base + " is systemd's alone", Cure: asService}
	case !holdsProcesses(base):
		return "", &NoLimitsError{Why: "the control group " + base + " is a threaded one", Cure: asService}
	default:
		return base, nil
	}
}

// aboveRun returns the group below which the children of a process in own get
// theirs.
func aboveRun(own string) string {
	name := filepath.Base(own)
	if strings.HasPrefix(name, groupPrefix) && strings.HasSuffix(name, runSuffix) {
		return filepath.Dir(own)
	}
	return own
}

// systemdRuns is sd_booted(3).
func systemdRuns() bool {
	_, err := os.Stat("/run/systemd/system")
	return err == nil
}

// CanLimit says why the children of a run cannot have limits, or nil. The run is
// the process pid; for 0, one that would be started like this process. The error is
// a *NoLimitsError.
func CanLimit(pid int, l Limits) error {
	if l.None() {
		return nil
	}
	file := "cgroup.subtree_control"
	if pid == 0 {
		pid, file = os.Getpid(), "cgroup.controllers"
	}
	base, err := baseOf(pid)
	if err != nil {
		return err
	}
	return lacking(kernelFiles{}, base, file, l)
}

// lacking names the controllers that are missing.
func lacking(files groupFiles, base, file string, l Limits) error {
	there := words(files, base, file)
	var missing []string
	for _, f := range l.files() {
		if !slices.Contains(there, f.controller) && !slices.Contains(missing, f.controller) {
			missing = append(missing, f.controller)
		}
	}
	if missing == nil {
		return nil
	}
	what := strings.Join(missing, ", ")
	if file == "cgroup.subtree_control" && len(lackingIn(words(files, base, "cgroup.controllers"), missing)) == 0 {
		return &NoLimitsError{
			Why:  "the control group " + base + " does not pass on " + what,
			Cure: "heartbeat reload, or start heartbeat run again: it passes them on, or says why it cannot",
		}
	}
	cure := "have the group above pass it on: echo +" + strings.Join(missing, " +") + " | sudo tee " + filepath.Join(filepath.Dir(base), "cgroup.subtree_control")
	controllers, _ := files.ReadFile("/proc/cgroups")
	switch {
	case inVersion1(controllers, missing):
		cure = "boot with systemd.unified_cgroup_hierarchy=1: version 1 has it here"
	case strings.Contains(base, "/user@"):
		cure = "sudo systemctl edit user@.service, and write: [Service] Delegate=cpu cpuset io memory pids"
	}
	return &NoLimitsError{Why: "the control group " + base + " has no controller for " + what, Cure: cure}
}

// lackingIn returns those of wanted that are not in there.
func lackingIn(there, wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(c string) bool { return slices.Contains(there, c) })
}

// inVersion1 reports whether one of the controllers belongs to a hierarchy of
// version 1, by the text of /proc/cgroups (cgroups(7)): then it has a number there.
func inVersion1(controllers []byte, missing []string) bool {
	for line := range strings.Lines(string(controllers)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && slices.Contains(missing, fields[0]) && fields[1] != "0" {
			return true
		}
	}
	return false
}

// limit is a value to write into a file of a control group.
type limit struct {
	controller, file, value string
	// extra means that the limit is skipped if the kernel has no such file.
	extra bool
}

// cpuPeriod is the kernel's default, in microseconds (cpu.max).
const cpuPeriod = 100_000

// files returns what to write for the limits, by Linux's
// Documentation/admin-guide/cgroup-v2.rst.
func (l Limits) files() []limit {
	var all []limit
	if l.Memory > 0 {
		all = append(all,
			limit{"memory", "memory.max", strconv.FormatInt(l.Memory, 10), false},
			limit{"memory", "memory.swap.max", "0", true},  // without swap accounting
			limit{"memory", "memory.oom.group", "1", true}, // before Linux 4.19
		)
	}
	if l.Processes > 0 {
		all = append(all, limit{"pids", "pids.max", strconv.Itoa(l.Processes), false})
	}
	if l.CPU > 0 {
		all = append(all, limit{"cpu", "cpu.max", fmt.Sprintf("%d %d", int64(l.CPU*cpuPeriod), cpuPeriod), false})
	}
	return all
}

// writeLimits writes the limits of a control group that was just made.
func writeLimits(files groupFiles, dir string, l Limits) error {
	for _, f := range l.files() {
		err := files.WriteFile(filepath.Join(dir, f.file), f.value)
		if err != nil && (!f.extra || !errors.Is(err, fs.ErrNotExist)) {
			return err
		}
	}
	return nil
}

// groupEvents says whether memory ran out in a control group, and how many
// processes its limit has refused.
func groupEvents(dir string) (OutOfMemory, int) {
	if dir == "" {
		return "", 0
	}
	return eventsOf(kernelFiles{}, dir)
}

func eventsOf(files groupFiles, dir string) (OutOfMemory, int) {
	memory := counts(files, dir, "memory.events")
	refused := counts(files, dir, "pids.events")["max"]
	switch {
	case memory["oom_kill"] == 0:
		return "", refused
	case memory["oom"] > 0:
		return OwnMemory, refused
	}
	return MachineMemory, refused
}

// counts reads a file of lines with a name and a number.
func counts(files groupFiles, dir, name string) map[string]int {
	data, err := files.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return nil
	}
	all := map[string]int{}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		name, number, _ := strings.Cut(lines.Text(), " ")
		all[name], _ = strconv.Atoi(number)
	}
	return all
}
