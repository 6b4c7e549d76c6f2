package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"heartbeat/hook"
	"heartbeat/internal/promise"
	"heartbeat/orchestrator/journal"
	"heartbeat/orchestrator/status"
)

// seen is what a person sees of an agent's session: by `status`, and by ps.
type seen struct {
	Session  string // "": none lives
	Phase    hook.Phase
	Attached int
	Hush     time.Time // until when the session gets no prompt, as somebody has typed
	// Shim, Client and Waiter are processes, 0 for none: Waiter is the hook that waits.
	Shim, Client, Waiter int `json:"-"`
}

// session is that of the lab's agent.
func (f *fleet) session() *seen { return f.sessionOf("a") }

// sessionOf is that of an agent.
func (f *fleet) sessionOf(agent string) *seen {
	f.t.Helper()
	var envelope struct {
		Data struct {
			Agents []struct {
				Agent string
				State status.State
				seen
			}
		}
	}
	out, errs, _ := f.heartbeat("", "status", "-o", "json", "--heartbeat-ms", "0")
	if err := json.Unmarshal([]byte(out), &envelope); err != nil {
		f.t.Fatalf("status: %v: %s%s", err, out, errs)
	}
	var s seen
	for _, a := range envelope.Data.Agents {
		if a.Agent != agent {
			continue
		}
		s = a.seen
		if lives := a.State == status.Starting || a.State == status.Running || a.State == status.Ending; !lives || s.Session == "" {
			s.Phase = hook.Ended // of the last one, whose id is told still
		}
	}
	f.sees(agent, &s)
	return &s
}

// sees adds the processes of an agent's session: the shim has the agent's session lock open,
// and the client leads the session of the terminal that the shim has made.
func (f *fleet) sees(agent string, s *seen) {
	dir := filepath.Join(f.Dir, "agents", agent) // of a crew
	if _, err := os.Stat(dir); err != nil {
		dir = f.Work
	}
	lock := filepath.Join(dir, ".heartbeat", ".session-lock")
	all := pids()
	for _, pid := range all {
		if slices.Contains(argvOf(pid), "launch") && slices.Contains(openIn(pid), lock) {
			s.Shim = pid
		}
	}
	for _, pid := range all {
		if parent, leader := kinOf(pid); s.Shim > 0 && parent == s.Shim && leader == pid {
			s.Client = pid
		}
	}
	for _, pid := range all {
		argv := argvOf(pid)
		if len(argv) < 2 || argv[1] != "hook" || !strings.HasPrefix(filepath.Base(argv[0]), "heartbeat") {
			continue
		}
		for up := pid; up > 1; up, _ = kinOf(up) {
			if up == s.Client {
				s.Waiter = pid
			}
		}
	}
}

func pids() (all []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(d))
		all = append(all, pid)
	}
	return all
}

// openIn are the files that a process has open.
func openIn(pid int) (paths []string) {
	links, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil {
			paths = append(paths, to)
		}
	}
	return paths
}

// kill signals a process that was seen. One that was not has the number 0, by which
// kill(2) means the caller's own group.
func kill(pid int, sig syscall.Signal) error {
	if pid <= 1 {
		return syscall.ESRCH
	}
	return syscall.Kill(pid, sig)
}

func argvOf(pid int) []string {
	line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	return strings.Split(string(line), "\x00")
}

// kinOf are a process's parent and the leader of its session, 0 if there is none.
func kinOf(pid int) (parent, leader int) {
	stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // from the state on
	if len(fields) < 4 {
		return 0, 0
	}
	parent, _ = strconv.Atoi(fields[1])
	leader, _ = strconv.Atoi(fields[3])
	return parent, leader
}

// conversation is the client's newest one, by the file that it keeps of it.
func (f *fleet) conversation() string {
	f.t.Helper()
	return strings.TrimSuffix(filepath.Base(newest(filepath.Join(f.Home, ".claude", "projects", "*", "*.jsonl"))), ".jsonl")
}

// cleared reports whether the client has begun another conversation in the session. No
// command says so, and the client keeps no file of one without a prompt: what hooks have told
// the session says it.
func (f *fleet) cleared() bool {
	r, err := hook.ReadRecord(f.home())
	return err == nil && r != nil && r.ClientSession != r.Session
}

// newest is the file that was written last, of those that match a pattern.
func newest(pattern string) string {
	files, _ := filepath.Glob(pattern)
	at := func(path string) time.Time {
		info, err := os.Stat(path)
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	if len(files) == 0 {
		return ""
	}
	return slices.MaxFunc(files, func(a, b string) int { return cmp.Or(at(a).Compare(at(b)), cmp.Compare(a, b)) })
}

// events are what heartbeat tells of the fleet, oldest first.
func (f *fleet) events() []journal.Event {
	f.t.Helper()
	out, err := f.ask("events", "-n", "1000000", "-o", "json", "--heartbeat-ms", "0")
	if err != nil {
		f.t.Fatal(err)
	}
	all, err := promise.Lines[journal.Event](bytes.NewReader(out))
	if err != nil {
		f.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(e journal.Event) bool { return e.Kind == "" }) // the envelope
}

// journal returns the events of a kind.
func (f *fleet) journal(kind journal.Kind) (all []journal.Event) {
	f.t.Helper()
	for _, e := range f.events() {
		if e.Kind == kind {
			all = append(all, e)
		}
	}
	return all
}

// ends returns why the sessions so far ended.
func (f *fleet) ends() (all []string) {
	f.t.Helper()
	for _, e := range f.journal(journal.Ended) {
		all = append(all, e.Reason.Raw())
	}
	return all
}
