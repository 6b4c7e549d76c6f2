package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"heartbeat/ptyrun"
)

const bounded = oneAgent + `    max-restarts: 0
    command: [sh, -c, "sleep 100 & head -c 300000000 /dev/zero | tail"]
    resources: {memory: 64MiB, processes: 100, cpu: 2}
`

// A session that needs more memory than it may is killed as a whole, and that is
// what the journal, the status and the summary say, not that it crashed.
func TestResourcesAreKept(t *testing.T) {
	t.Parallel()
	group := freshGroup(t)
	w := newWorld(t)
	w.put("heartbeat.yaml", bounded)
	w.put("agents/triage/README", "")
	w.ok("send", "triage", "eat")
	run := w.command("run", "--once", "--once-timeout", "60s")
	run.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	out, _ := run.CombinedOutput()
	if strings.Contains(string(out), "cannot be kept") {
		t.Fatalf("%s", out)
	}
	const why = "out-of-memory (it needed more memory than its limit of 64 MiB)"
	for command, want := range map[string]string{"events": why, "status": "out-of-memory, 0 done"} {
		if got := w.run(command, "triage"); !strings.Contains(got.stdout, want) {
			t.Errorf("heartbeat %s says\n%s%s\n%s", command, got.stdout, got.stderr, out)
		}
	}
	if !strings.Contains(string(out), why) {
		t.Errorf("run says\n%s", out)
	}
	left, err := filepath.Glob(filepath.Join(group.Name(), "heartbeat-*"))
	if err != nil || len(left) > 1 { // that of the run itself
		t.Errorf("left: %q, %v", left, err)
	}
}

// freshGroup is a control group whose processes could be limited, or says why
// the test cannot be run here.
func freshGroup(t *testing.T) *os.File {
	t.Helper()
	planned := ptyrun.PlanGroup()
	if planned == "" {
		t.Skip("no control group may be made here")
	}
	dir := filepath.Join(filepath.Dir(planned), "not-"+filepath.Base(planned))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		inner, _ := filepath.Glob(dir + "/*/")
		for _, d := range append(inner, dir) {
			_ = syscall.Rmdir(strings.TrimSuffix(d, "/"))
		}
	})
	there, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"memory", "pids", "cpu"} {
		if !strings.Contains(" "+strings.TrimSpace(string(there))+" ", " "+c+" ") {
			t.Skipf("%s has no controller for %s (.ci/limits runs this on a kernel that does)", dir, c)
		}
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Where they cannot be kept, run and doctor say so with the cure, and sessions
// start without, but for agents that require them.
func TestResourcesThatCannotBeKept(t *testing.T) {
	t.Parallel()
	if err := ptyrun.CanLimit(0, ptyrun.Limits{Memory: 1, Processes: 1, CPU: 1}); err == nil {
		t.Skip("here they can be kept")
	}
	const fields = "    command: [heartbeat, simulate]\n    resources: {memory: 2GiB, processes: 100, cpu: 2}\n"
	w := newWorld(t)
	w.put("heartbeat.yaml", oneAgent+fields+"  strict:\n    dir: agents/strict\n"+strings.Replace(fields, "cpu: 2", "cpu: 2, required: true", 1))
	w.put("agents/triage/README", "")
	w.put("agents/strict/README", "")
	w.ok("send", "triage", "hello")
	w.ok("send", "strict", "hello")
	o := w.run("run", "--once", "--once-timeout", "60s")
	for _, want := range []string{"cannot be kept: ", "sessions run without: triage; none is started, as required: true says: strict", "hint="} {
		if !strings.Contains(o.stderr, want) {
			t.Errorf("run does not say %q:\n%s", want, o.stderr)
		}
	}
	if !strings.Contains(o.stdout, "no session is started, as resources: required: true says: ") || !strings.Contains(w.get("agents/triage/.heartbeat/outbox.jsonl"), "hello") {
		t.Errorf("run did\n%s", o.stdout)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "agents/strict/.heartbeat/outbox.jsonl")); err == nil {
		t.Error("a session was started that requires limits")
	}
	d := w.run("doctor")
	if strings.Count(d.stdout, "no-limits") != 2 || !strings.Contains(d.stdout, "starts no session of these agents") {
		t.Errorf("doctor says\n%s", d.stdout)
	}
}
